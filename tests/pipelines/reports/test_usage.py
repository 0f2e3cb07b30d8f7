"""Pages say how to use their artifact, with valid commands and Python."""

import ast
import html
import re
import shlex

import click
import pytest

from korbert.pipelines.cli import cli
from korbert.pipelines.reports import index, render
from korbert.pipelines.reports.artifacts.stage_page import displayed_path
from korbert.pipelines.stages.table import STAGES


def _code(page):
    """The command lines and the Python of a page."""
    text = page.read_text(encoding="utf-8")
    return [html.unescape(code) for code in re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", text, flags=re.DOTALL)]


@pytest.mark.parametrize(
    ("verb", "path"),
    [("questions", "clean/documents"), ("tokenize", "vocab/tokenizer"), ("fill", "pretrain/model"),
     ("predict", "nsmc/model"), ("predict", "korquad/model")],
)  # fmt: skip
def test_page_has_a_valid_command_and_python(maker, monkeypatch, verb, path):
    folder = maker(path.partition("/")[0])
    (folder / "model").mkdir(exist_ok=True)
    monkeypatch.chdir(maker.recipe.parent)
    line, python = _code(render(folder.relative_to(maker.recipe.parent)))
    assert line.startswith(f"korbert {verb} {shlex.quote(f'시험/{path}')}")
    for name in ("texts.txt", "questions.jsonl"):
        (maker.recipe.parent / name).touch()
    context = click.Context(cli, **cli.context_settings)
    command = cli.get_command(context, verb)
    with command.make_context(verb, shlex.split(line)[2:], parent=context):  # click.UsageError for unknown arguments
        pass
    assert ast.parse(python)
    assert f'"시험/{path}"' in python
    assert len(python.strip().split("\n")) <= 3


@pytest.mark.parametrize(
    ("stage", "commands", "path"),
    [("analyze", [], "analyze/morphemes"), ("shard", ["korbert plan '시험' --hours 8"], "shard/pieces.parquet")],
)
def test_what_no_command_reads_is_a_table_in_python(maker, monkeypatch, stage, commands, path):
    folder = maker(stage)
    monkeypatch.chdir(maker.recipe.parent)
    *lines, python = _code(render(folder.relative_to(maker.recipe.parent)))
    assert [line.strip() for line in lines] == commands
    assert ast.parse(python)
    assert f'pd.read_parquet("시험/{path}")' in python


def test_index_has_a_command_for_each_stage(maker, monkeypatch):
    maker.recipe.mkdir()
    assert _code(index(maker.recipe, STAGES)) == []
    for stage in ("clean", "vocab", "pretrain", "nsmc"):
        maker(stage)
    monkeypatch.chdir(maker.recipe.parent)
    lines, python = _code(index(maker.recipe.relative_to(maker.recipe.parent), STAGES))
    assert [line.split()[1] for line in lines.strip().split("\n")] == ["questions", "tokenize", "fill", "predict"]
    assert "nsmc/model" in python


def test_paths_are_quoted_and_absolute_ones_cut(maker, monkeypatch, tmp_path):
    folder = maker("pretrain").resolve()
    assert str(tmp_path.parent) not in render(folder).read_text(encoding="utf-8")
    assert displayed_path(folder) == "/".join(folder.parts[-3:])
    odd = maker.recipe.rename(maker.recipe.with_name('내 것 $HOME"'))
    monkeypatch.chdir(odd.parent)
    line, python = _code(render((odd / folder.name).relative_to(odd.parent)))
    assert shlex.split(line)[2] == '내 것 $HOME"/pretrain/model'
    strings = [node.value for node in ast.walk(ast.parse(python)) if isinstance(node, ast.Constant)]
    assert '내 것 $HOME"/pretrain/model' in strings
