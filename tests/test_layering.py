"""The rooms of the house: imports go one way, and the cheap commands stay cheap."""

import ast
import graphlib
import importlib
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAY_IMPORT = {"korbert": {"korbert"}, "corpus": {"korbert", "corpus"}, "pipelines": {"korbert", "corpus", "pipelines"}}

# Fine-tunes as a user does. What `korbert` itself offers of the pipeline is in its stub, and imported when it is used.
ESTIMATORS = ROOT / "korbert" / "sklearn.py"

HEAVY = {"torch", "kiwipiepy", "duckdb", "datasets", "sklearn", "matplotlib", "fastapi"}


@cache
def _nodes(path):
    """All nodes of a file's syntax tree, the module first."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def _imported(path):
    names = set()
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def _room(module):
    """The room of a module: that of korbert.corpus.clean is corpus. The folders are no packages of their own."""
    first, second = [*module.split("."), ""][:2]
    assert first not in ("corpus", "pipelines"), f"{module}: import korbert.{module}"
    return second if first == "korbert" and second in MAY_IMPORT else first


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_go_one_way(package):
    for path in (ROOT / package).rglob("*.py"):
        ours = {_room(name) for name in _imported(path)} & MAY_IMPORT.keys()
        allowed = MAY_IMPORT[package] | ({"pipelines"} if path == ESTIMATORS else set())
        assert ours <= allowed, f"{path} imports {ours - allowed}"


FLOORS = (
    {"artifacts", "inference"},
    {"experiments", "submission"},
    {"stages"},
    {"recipes"},
    {"runs"},
    {"planning", "reports"},
    {"results", "service"},
    {"commands", "library"},
    {"cli"},
)
"""The rooms of pipelines, from the ground up: a room knows those on lower floors alone."""


def test_rooms_of_pipelines_stand_on_floors():
    floor = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
    folder = ROOT / "pipelines"
    for path in folder.rglob("*.py"):
        room = path.relative_to(folder).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        for name in _imported(path):
            module = name.removeprefix("korbert.pipelines.")
            other = module.split(".")[0] if module != name else ""
            if other and other != room:
                assert floor[other] < floor[room], f"{path} imports {name}, which is no lower floor"


def test_what_is_used_of_a_package_is_what_it_exports():
    """What a package does not name in its stub is there or not, by what was imported before."""
    exports = {}
    for stub in (path for package in MAY_IMPORT for path in (ROOT / package).rglob("__init__.pyi")):
        parts = stub.parent.relative_to(ROOT).parts
        names = {
            alias.asname or alias.name
            for node in _nodes(stub)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        exports[".".join(parts if parts[0] == "korbert" else ("korbert", *parts))] = names
    for path in (path for package in MAY_IMPORT for path in (ROOT / package).rglob("*.py")):
        nodes = _nodes(path)
        imported = [
            (node.module, alias.name) for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names
        ]
        packages = {name: full for module, name in imported if (full := f"{module}.{name}") in exports}
        for node in nodes:
            if isinstance(node, ast.Attribute) and (full := packages.get(ast.unparse(node.value))):
                assert node.attr in exports[full] | {"__file__"}, f"{path}:{node.lineno}: {ast.unparse(node)}"


@cache
def _module_graph():
    """Each module of korbert with those that it imports, in functions, too, but not for types alone.

    A name that a package exports lazily is looked up in its stub: the import is of the module that has it.
    """
    paths = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in (ROOT / "korbert").rglob("*.py")}
    paths = {name.removesuffix(".__init__"): path for name, path in paths.items()}

    def module_of(package, name):
        if f"{package}.{name}" in paths:
            return f"{package}.{name}"
        stub = paths[package].with_suffix(".pyi")
        for node in _nodes(stub) if stub.exists() else ():
            if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
                return module_of(f"{package}.{node.module}" if node.level else node.module or "", name)
        return package

    def imports(node):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in paths)
        elif isinstance(node, ast.ImportFrom) and node.module in paths:
            yield from (module_of(node.module or "", alias.name) for alias in node.names)
        for child in ast.iter_child_nodes(node):
            yield from imports(child)

    return {name: {*imports(_nodes(path)[0])} - {name} for name, path in paths.items()}


def test_modules_of_korbert_import_each_other_in_no_circle():
    graph = _module_graph()
    assert list(graphlib.TopologicalSorter(graph).static_order())  # CycleError names the modules
    assert not [name for name, imports in graph.items() if "korbert.sklearn" in imports]


def test_vectors_stand_below_tasks():
    """But for the index, which stands above the model that it was made with."""
    graph = _module_graph()

    def reached(name):
        modules, left = set[str](), [name]
        while left:
            left += (new := graph[left.pop()] - modules)
            modules |= new
        return modules

    for name in graph:
        if name.startswith("korbert.vectors.") and "korbert.model" not in (below := reached(name)):
            assert not {other for other in below if other.startswith("korbert.tasks")}, name


def test_tokenization_never_imports_torch():
    for path in (ROOT / "korbert" / "tokenization").rglob("*.py"):
        assert "torch" not in {name.split(".")[0] for name in _imported(path)}, path


@pytest.mark.parametrize(
    "code",
    [
        "import korbert, korbert.pipelines.reports",
        "import sys, korbert.pipelines.cli as it; it.run_command(['--help']); assert 'pydantic' not in sys.modules",
        "from korbert.pipelines.cli import run_command; assert not run_command(['status', 'demo', '--root', 'no'])",
        "from korbert.pipelines.cli import run_command; run_command(['serve', '--help'])",
        "from korbert.pipelines.reports.look.page import page; page(None)",
        "import korbert.modeling.config, korbert.training.plan, korbert.pretraining.objective_settings",
        "import korbert.corpus.corpus_settings",
    ],
)
def test_cheap_things_load_nothing_heavy(code):
    check = f"; import sys; heavy = {HEAVY} & sys.modules.keys(); assert not heavy, heavy"
    done = subprocess.run([sys.executable, "-c", code + check], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_public_names_exist():
    for path in (path for package in MAY_IMPORT for path in ROOT.glob(f"{package}/**/__init__.py")):
        name = ".".join(path.parent.relative_to(ROOT).parts)
        module = importlib.import_module(name if name.startswith("korbert") else f"korbert.{name}")
        for name in getattr(module, "__all__", []):
            getattr(module, name)
