PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
# A worker that dies ends the run: with another in its place, the run may wait for ever.
PYTEST := $(BIN)/pytest -q -n 2 --dist loadfile --max-worker-restart 0

.PHONY: box constraints demo docs lint messages release results test test-all types wheel

# The environment of a user: torch first, so that a CPU build at hand is taken and nothing pulls in another.
$(VENV)/ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints.txt torch
	$(BIN)/pip install -q -c constraints.txt -e '.[pipeline]'
	touch $@

# The environment of a developer: the same, and what tests, lint, types and the site need.
$(VENV)/ready-dev: $(VENV)/ready
	$(BIN)/pip install -q -c constraints.txt -e '.[dev,docs]'
	touch $@

$(VENV)/ready-release: $(VENV)/ready-dev
	$(BIN)/pip install -q -c constraints.txt -e '.[dev,docs,release]'
	touch $@

demo: $(VENV)/ready
	$(BIN)/korbert run demo

# The models of the box, from raw text and teachers: ARGS="--data DATA --work FOLDER". `make box --dry-run` prints the steps.
box: $(VENV)/ready
	+$(BIN)/python -m benchmarks.box.make $(if $(findstring n,$(firstword -$(MAKEFLAGS))),--dry-run) $(ARGS)

test: $(VENV)/ready-dev
	$(PYTEST)

test-all: $(VENV)/ready-dev
	$(PYTEST) -m 'slow or not slow'

lint: $(VENV)/ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

constraints:
	$(BIN)/pip freeze --exclude-editable | sed 's/+cpu$$//' > constraints.txt

# The Korean of messages: what the code says today, merged into the catalogues of korbert/locale.
messages: $(VENV)/ready-dev
	$(BIN)/python -m docs.messages
	$(BIN)/python -m docs.messages --check

# benchmarks/RESULTS.md, from the figures in benchmarks/results/.
results: $(VENV)/ready-dev
	$(BIN)/python -m benchmarks.tables

types: $(VENV)/ready-dev
	$(BIN)/mypy

# The site, in site/: no network, and a link that leads nowhere is an error.
docs: $(VENV)/ready-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# Both files of a release, in dist/, checked as the package index would.
wheel: $(VENV)/ready-release
	rm -rf build dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist

# CONTRIBUTING.md says what comes before and after.
release: wheel
	test -z "$$(git status --porcelain)" # everything is committed
	version=$$($(BIN)/python -c 'import korbert; print(korbert.__version__)'); \
	grep -q "^## $$version, 20" CHANGELOG.md && git tag "v$$version"
