"""The glossary: its words are in the code, and no public type has the name of another."""

import ast
import importlib
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TABLE = (ROOT / "docs" / "explanation" / "terms.md").read_text(encoding="utf-8")
DEFINED = dict(re.findall(r"^\| ([^|]+) \| .* \| `(korbert[\w.]+)` \|$", TABLE, re.MULTILINE))


def test_the_glossary_is_short():
    rows = [line for line in TABLE.splitlines() if line.startswith("| ")]
    assert len(DEFINED) == len(rows) - 1
    assert len(DEFINED) <= 30


@pytest.mark.parametrize("word", DEFINED)
def test_a_word_is_defined_in_the_code(word):
    module, _, name = DEFINED[word].rpartition(".")
    try:
        importlib.import_module(DEFINED[word])
    except ModuleNotFoundError:
        assert hasattr(importlib.import_module(module), name), f"{word}: {DEFINED[word]}"


def test_a_public_type_has_a_name_of_its_own():
    places = defaultdict(list)
    for package in ("korbert", "corpus", "pipelines"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                name = node.name if isinstance(node, ast.ClassDef) else ""
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    name = node.targets[0].id
                # A class or an alias of a type begins with a capital letter, and is not all capitals.
                if name[:1].isupper() and not name.isupper():
                    places[name].append(path.relative_to(ROOT).as_posix())
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}
