"""The rooms of the house: imports go one way, and the cheap commands stay cheap."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAY_IMPORT = {"korbert": {"korbert"}, "corpus": {"korbert", "corpus"}, "pipelines": {"korbert", "corpus", "pipelines"}}

HEAVY = {"torch", "kiwipiepy", "duckdb", "datasets", "sklearn", "matplotlib", "fastapi"}


def _imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_go_one_way(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        ours = {name.split(".")[0] for name in _imported(path)} & MAY_IMPORT.keys()
        assert ours <= MAY_IMPORT[package], f"{path} imports {ours - MAY_IMPORT[package]}"


def test_tokenization_never_imports_torch() -> None:
    for path in (ROOT / "korbert" / "tokenization").rglob("*.py"):
        assert "torch" not in {name.split(".")[0] for name in _imported(path)}, path


@pytest.mark.parametrize(
    "code",
    [
        "import korbert",
        "from pipelines.cli import run_command; run_command(['--help'])",
        "from pipelines.cli import run_command; assert run_command(['status', 'demo', '--root', 'nowhere']) == 0",
        "from pipelines.cli import run_command; run_command(['serve', '--help'])",
        "from pipelines.reports.look.page import page; page(None)",
        "import korbert.modeling.config, korbert.training.settings, korbert.pretraining.settings, corpus.settings",
    ],
)
def test_cheap_things_load_nothing_heavy(code: str) -> None:
    check = f"; import sys; found = {HEAVY} & sys.modules.keys(); assert not found, found"
    done = subprocess.run([sys.executable, "-c", code + check], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_help_loads_no_settings() -> None:
    """Their classes take longer to build than all the rest of a command line."""
    code = "import sys; from pipelines.cli import run_command; run_command(['--help'])"
    check = "; assert 'pydantic' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code + check], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_public_names_exist() -> None:
    import importlib

    for path in [
        *ROOT.glob("korbert/**/__init__.py"),
        *ROOT.glob("corpus/__init__.py"),
        *ROOT.glob("pipelines/**/__init__.py"),
    ]:
        module = importlib.import_module(".".join(path.parent.relative_to(ROOT).parts))
        for name in getattr(module, "__all__", []):
            getattr(module, name)
