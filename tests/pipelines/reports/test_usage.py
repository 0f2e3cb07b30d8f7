"""Each page of something that can be used says how, in commands and Python that there are."""

import ast
import html
import re
import shlex

import click
import pytest

from pipelines.cli import cli
from pipelines.reports import index, render
from pipelines.reports.stage_page import shown


def _elements(page: str) -> list[str]:
    return [html.unescape(text) for text in re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", page, flags=re.DOTALL)]


def _parse(line: str) -> None:
    """Raises click.UsageError where korbert has no such command, argument or option."""
    name, verb, *arguments = shlex.split(line)
    assert name == "korbert"
    command = cli.get_command(click.Context(cli), verb)
    assert command, verb
    with command.make_context(verb, arguments):
        pass  # and the files that it opened are closed


@pytest.mark.parametrize(
    ("stage", "verb", "place"),
    [
        ("vocab", "tokenize", "시험/vocab/tokenizer"),
        ("pretrain", "fill", "시험/pretrain/model"),
        ("nsmc", "predict", "시험/nsmc/model"),
        ("korquad", "predict", "시험/korquad/model"),
    ],
)
def test_page_has_a_valid_command_and_python(maker, monkeypatch, stage, verb, place):
    folder = maker(stage)
    (folder / "model").mkdir()
    monkeypatch.chdir(maker.recipe.parent)
    shell, python = _elements(render(folder.relative_to(maker.recipe.parent)).read_text(encoding="utf-8"))
    assert shell.startswith(f"korbert {verb} {shlex.quote(place)}")
    (maker.recipe.parent / "texts.txt").touch()
    (maker.recipe.parent / "questions.jsonl").touch()
    _parse(shell.strip())
    assert ast.parse(python)
    assert f'"{place}"' in python
    assert len(python.strip().split("\n")) <= 3


def test_index_has_a_command_for_each_stage(maker, monkeypatch):
    for stage in ("clean", "vocab", "pretrain", "nsmc"):
        maker(stage)
    monkeypatch.chdir(maker.recipe.parent)
    shell, python = _elements(index(maker.recipe.relative_to(maker.recipe.parent)).read_text(encoding="utf-8"))
    assert [line.split()[1] for line in shell.strip().split("\n")] == ["tokenize", "fill", "predict"]
    assert "nsmc/model" in python


def test_no_usage_without_anything_to_use(maker):
    assert _elements(render(maker("clean")).read_text(encoding="utf-8")) == []
    assert _elements(index(maker.recipe).read_text(encoding="utf-8")) == []


def test_page_has_no_absolute_path(maker, tmp_path):
    folder = maker("pretrain").resolve()
    page = render(folder).read_text(encoding="utf-8")
    assert str(tmp_path.parent) not in page
    assert shown(folder) == "/".join(folder.parts[-3:])


def test_path_is_quoted(maker, monkeypatch):
    folder = maker("pretrain")
    odd = maker.recipe.parent / '내 것 $HOME"'
    maker.recipe.rename(odd)
    monkeypatch.chdir(odd.parent)
    shell, python = _elements(render((odd / folder.name).relative_to(odd.parent)).read_text(encoding="utf-8"))
    assert shlex.split(shell)[2] == '내 것 $HOME"/pretrain/model'
    strings = [node.value for node in ast.walk(ast.parse(python)) if isinstance(node, ast.Constant)]
    assert '내 것 $HOME"/pretrain/model' in strings
