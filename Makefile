PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/pytest -q -n 2 --dist loadfile

.PHONY: constraints demo test test-all lint types

# The environment of a user: torch first, so that a CPU build at hand is taken and nothing pulls in another.
$(VENV)/ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints.txt torch
	$(BIN)/pip install -q -c constraints.txt -e .
	touch $@

# The environment of a developer: the same, and what tests, lint and types need.
$(VENV)/ready-dev: $(VENV)/ready
	$(BIN)/pip install -q -c constraints.txt -e '.[dev]'
	touch $@

demo: $(VENV)/ready
	$(BIN)/korbert run demo

test: $(VENV)/ready-dev
	$(PYTEST)

test-all: $(VENV)/ready-dev
	$(PYTEST) -m 'slow or not slow'

lint: $(VENV)/ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

constraints:
	$(BIN)/pip freeze --exclude-editable | sed 's/+cpu$$//' > constraints.txt

types: $(VENV)/ready-dev
	$(BIN)/mypy
