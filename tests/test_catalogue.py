"""The catalogue of translations: nothing is missing, nothing is stale, and both languages have the same fields."""

import ast
import string

import pytest
from babel.messages.catalog import Catalog

from docs import messages
from korbert.messages import Message

FIELDS = string.Formatter()


def fields(template):
    return {
        (name, spec, conversion) for _, name, spec, conversion in FIELDS.parse(template) if name and name.isidentifier()
    }


@pytest.fixture(scope="module")
def catalogues():
    return messages.catalogues()


def test_nothing_is_missing_and_the_files_are_of_today(catalogues, monkeypatch):
    monkeypatch.setattr(messages, "catalogues", lambda: catalogues)
    assert list(messages.faults()) == []


def test_both_languages_have_the_same_fields(catalogues):
    entries = [entry for domain, found in catalogues.items() for entry in messages.merged(domain, found) if entry.id]
    for entry in entries:
        english = entry.id if isinstance(entry.id, str) else entry.id[-1]
        korean = entry.string if isinstance(entry.string, str) else entry.string[-1]
        assert fields(korean) == fields(english), english


def calls():
    for folder in ("korbert", "corpus", "pipelines"):
        for path in (messages.ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in messages.KEYWORDS and node.args:
                    yield path, node


def test_each_template_gets_the_values_that_it_names():
    for path, call in calls():
        given = {keyword.arg for keyword in call.keywords}
        if None in given or not given:
            continue
        for template in call.args[: len(messages.KEYWORDS[call.func.id])]:
            if ast.unparse(template).endswith(".template"):  # of a message that is in the catalogue
                continue
            assert isinstance(template, ast.Constant), (path, call.lineno)
            assert {name for name, _, _ in fields(template.value)} == given, (path, call.lineno)


def test_a_lost_translation_is_found(monkeypatch, tmp_path):
    monkeypatch.setattr(messages, "LOCALES", tmp_path)
    monkeypatch.setattr(messages, "ROOT", tmp_path)
    template = Catalog()
    template.add("A new sentence.")
    monkeypatch.setattr(messages, "catalogues", lambda: {"korbert": template})
    assert "korbert.po: no translation of 'A new sentence.'" in messages.faults()


def test_english_needs_no_catalogue():
    assert Message("A sentence that is in no catalogue.") == "A sentence that is in no catalogue."
