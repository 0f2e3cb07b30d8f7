"""Every output of every command, against files of somebody else: nothing changes but what the command owns.

The commands and their options come from click, so that a new one without a case fails here. Refusals come before a
model is loaded: the model here is none.
"""

import click
import pytest

from korbert.pipelines.cli import cli, run_command
from korbert.pipelines.commands.options import Output
from korbert.pipelines.reports.look.page import page
from korbert.pipelines.reports.page import is_page

OUT = "{out}"
FILES = {  # command and parameter -> the name of a file that it writes, and the arguments
    ("look", "html"): ("out.html", ["look", "m", "글", "--html", OUT]),
    ("compare", "page"): ("out.html", ["compare", "m", "m", "--html", OUT]),
    ("evaluate", "html"): ("out.html", ["evaluate", "m", "t.csv", "--html", OUT]),
    ("search-eval", "page"): ("out.html", ["search-eval", "m", "t.csv", "t.txt", "--html", OUT]),
    ("questions", "output"): ("out.json", ["questions", "t.txt", "--output", OUT]),
    ("embed", "output"): ("out.npy", ["embed", "m", "t.txt", "--output", OUT]),
    ("predict", "output"): ("out.xlsx", ["predict", "m", "t.txt", "--output", OUT]),
    ("evaluate", "output"): ("out.jsonl", ["evaluate", "m", "t.csv", "--output", OUT]),
    ("submit", "output"): ("out.json", ["submit", "m", "q.json", OUT]),
    ("new", "name"): ("out.toml", ["new", OUT]),
}
FOLDERS = {
    ("finetune", "output"): ("out", ["finetune", "m", "--train", "t.csv", "--output", OUT]),
    ("distill", "output"): ("out", ["distill", "m", "t.txt", "--teacher", "m", "--output", OUT]),
    ("layers", "output"): ("out", ["layers", "m", "--train", "t.csv", "--output", OUT]),
    ("pairs", "output"): ("out.jsonl", ["pairs", "t.jsonl", "--output", OUT]),
    ("negatives", "output"): ("out.jsonl", ["negatives", "m", "t.jsonl", "--output", OUT]),
    ("index", "output"): ("out", ["index", "m", "t.txt", "--output", OUT]),
    ("export", "folder"): ("out", ["export", "m", OUT]),
    ("import", "target"): ("out", ["import", "m", OUT]),
    ("pack", "folder"): ("out", ["pack", "m", OUT]),
}
ON_RECIPES = [
    "run", "clean", "analyze", "vocab", "shard", "pretrain", "nsmc", "korquad", "tasks", "status", "report", "plan",
]  # fmt: skip
ROOTS = {(name, "root"): ("out", [name, "demo", "--root", OUT]) for name in ON_RECIPES}
ROOTS["plan", "root"][1].extend(["--seconds", "0"])
READ = {  # paths that are only read
    "data", "model", "train", "valid", "test", "file", "input", "tokenizer", "dataset", "bundle", "folders",
    "predictions", "corpus", "queries", "remove", "index", "base", "folder of import",
    "pairs", "rerank", "texts",
}  # fmt: skip
CASES = FILES | FOLDERS | ROOTS


def test_every_output_of_every_command_has_a_case():
    outputs, others = set(), set()
    for name, command in cli.commands.items():
        for parameter in command.params:
            if isinstance(parameter.type, Output):
                outputs.add((name, parameter.name))
            elif isinstance(parameter.type, click.Path):
                read = parameter.name == "folder" and name in ("import", "models")
                others.add("folder of import" if read else parameter.name)
    assert outputs == CASES.keys()
    assert others <= READ, "a path that a command writes to has the type options.Output"


@pytest.fixture(autouse=True)
def _files(here):
    for folder in ("m", "elsewhere"):
        (here / folder).mkdir()
    (here / "m" / "config.json").write_text("{}")
    (here / "t.txt").write_text("세종은 1443년에 한글을 만들었다.\n")
    (here / "t.csv").write_text("text,label\n가,좋음\n나,나쁨\n")
    (here / "q.json").write_text('{"version": "1", "data": []}')
    (here / "elsewhere" / "thesis.hwp").write_text("of someone")


def _everything(folder):
    """Path -> the content of a file, the target of a link, or that it is a folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        kind = f"-> {path.readlink()}" if path.is_symlink() else "folder" if path.is_dir() else path.read_text()
        found[path.relative_to(folder).as_posix()] = kind
    return found


def _run(arguments, out):
    return run_command([argument.replace(OUT, out) for argument in arguments])


def _a_folder(path, names=("thesis.hwp", "layers.json", "layers.html", "words.tsv", "part-00000.arrow")):
    path.mkdir()
    for name in names:
        (path / name).write_text('{"stage": "of a rocket"}')


SOMEBODY_ELSES = {
    "a file": lambda path: path.write_text("of someone"),
    "a page": lambda path: path.write_text("<!doctype html>\n<html>\n<head>\n<title>korbert</title>"),
    "a table": lambda path: path.write_text('{"id": 3, "text": "가", "label": "좋음"}\n'),
    "a folder": _a_folder,
    "an artifact": lambda path: _a_folder(path, ["stage.json"]),
    "a link": lambda path: path.symlink_to("elsewhere/thesis.hwp"),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.parametrize("kind", SOMEBODY_ELSES)
@pytest.mark.parametrize("case", FILES | FOLDERS, ids=" ".join)
def test_what_somebody_else_made_stays_as_it_is(here, capsys, case, kind):
    name, arguments = CASES[case]
    SOMEBODY_ELSES[kind](here / name)
    before = _everything(here)
    assert _run(arguments, name) in (1, 2)
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if line.startswith("korbert: ")] == said[-1:]
    assert name in said[-1]
    assert _everything(here) == before


@pytest.mark.parametrize("case", FILES | FOLDERS, ids=" ".join)
def test_what_is_read_is_not_written_over(here, case):
    before = _everything(here)
    for name in ("m/config.json", "m", "t.csv", "t.txt", "q.json"):
        _run(CASES[case][1], name)
    assert _everything(here).items() >= before.items()


@pytest.mark.parametrize("case", ROOTS, ids=" ".join)
def test_files_of_somebody_else_below_the_root_stay_as_they_are(here, case):
    name, arguments = CASES[case]
    for place in ("clean", "clean.partial", ".korbert-clean.old", "analyze", "pretrain.partial"):
        (here / name / "demo" / place).mkdir(parents=True)
        (here / name / "demo" / place / "thesis.hwp").write_text("of someone")
    for file in ("index.html", "preview.html", "vocab", "shard.lock"):
        (here / name / "demo" / file).write_text("of someone")
    before = _everything(here)
    for more in ((), ("--rebuild",)):
        if not more or any(parameter.name == "rebuild" for parameter in cli.commands[case[0]].params):
            _run([*arguments, *more], name)
    after = _everything(here)
    assert {path: after.get(path) for path in before} == before
    assert [path for path in after.keys() - before.keys() if not path.endswith(".lock")] == []
    (here / "file").write_text("of someone")
    _run(arguments, "file")
    assert (here / "file").read_text() == "of someone"


ODD = {
    "is not UTF-8": "\udcff\udcfe.json",
    "is the folder of the whole machine": "/",
}


@pytest.mark.parametrize("why", ODD)
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_an_odd_name_is_refused_in_one_line(here, capsys, case, why):
    before = _everything(here)
    assert _run(CASES[case][1], ODD[why]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("korbert: ")
    assert why in line
    assert _everything(here) == before


def test_only_our_own_pages_are_written_over(tmp_path):
    path = tmp_path / "page.html"
    for text in ("", "<!doctype html>\n<html>\n<head>\n<title>korbert</title>", "\x00" * 100):
        path.write_text(text)
        assert not is_page(path)
    path.write_text(page(None))
    assert is_page(path)
