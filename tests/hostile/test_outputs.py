"""Every output of every command, with things of somebody else at, under and next to it: nothing of theirs changes.

Commands and outputs come from click: a parameter of type Output is one. What the others are given, FEED says by the
name of the parameter, so that a new command is tried without being named. The names of files that a command writes on
its way are observed: those that two runs in empty places have in common can be expected, so that a link may wait there.

A trial is a command, a place and a thing; a failure prints it. `pytest tests/hostile/test_outputs.py -m "" -rP` counts.
"""

import contextlib
import itertools
import json
import os
import resource
import shlex
import shutil
import sqlite3
import sys

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from korbert.modeling import PretrainingModel, QuestionAnsweringModel, save_model
from korbert.pipelines.cli import cli
from korbert.pipelines.commands.options import Output
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.kinds.question_answering import QuestionAnswering
from tests.hostile.faults import fail
from tests.hostile.pipeline import READS, digests_of
from tests.running import run_here

FAST = 10  # one output in so many is not slow
ENDINGS = ("", ".jsonl", ".json", ".npy", ".html", ".parquet", ".csv")  # of an output, until one is accepted
FEED = {  # parameter that is read -> what to give, until a command accepts it
    "model": ["pretrained", "mood", "reader"],
    "recipe": ["data/tiny.toml", "data/own.toml"],
    "folder": ["theirs"],
    "folders": ["tuned again"],
    "teacher": ["mood"],
    "train": ["t.csv"],
    "file": ["t.csv", "t.parquet"],
    "labels": ["가,나"],
    "texts": ["t.txt"],
    "corpus": ["docs.jsonl", "data/wiki.jsonl"],
    "input": ["t.txt", "t.parquet", "data/valid.json"],
    "pairs": ["pairs.jsonl"],
    "queries": ["queries.jsonl"],
    "text": ["글"],
}
READ = {
    *("data", "valid", "test", "tokenizer", "dataset", "bundle", "predictions", "remove", "index", "base", "rerank"),
    *("labelled", "teachers", "unlabelled"),
}
QUICKLY = {  # option -> its value where a command has it
    "epochs": 1, "features": "last", "workers": 1, "device": "cpu", "seconds": 0, "last": "clean", "seeds": 1,
}  # fmt: skip
RECORDS = (
    "stage.json", "plan.json", "run.json", "scores.json", "layers.json", "config.json", "korbert_tokenizer.json",
    ".korbert", "index.sqlite", "encoder.onnx", "tensorboard/my.txt", "work/part-00000.json",
)  # fmt: skip
UNLISTED = ("stage.json", "run.json", "layers.json")  # those of ours that no record lists
CONTENTS = ("[1]", "no JSON", json.dumps({"format": 1, "stage": "of a rocket", "settings": {}, "inputs": {}}))
CASES = [
    (name, parameter.name)
    for name, command in cli.commands.items()
    for parameter in command.params
    if isinstance(parameter.type, Output)
]


# --- what a command is given ---


@pytest.fixture
def world(made, memory_path):
    """A copy of it, and what is in it."""
    return shutil.copytree(made, memory_path / "world"), digests_of(made)


@pytest.fixture(scope="module")
def made(base, foreign, tiny_tokenizer, tiny_config, tmp_path_factory):
    """A folder with something for every parameter that is read."""
    folder = tmp_path_factory.mktemp("world")
    base.copy_data(folder)
    mood = Classification(metrics=("accuracy",), max_length=32, labels=("부정", "긍정"))
    reading = QuestionAnswering(metrics=("f1",), max_length=40, stride=8, max_query_pieces=8)
    config = tiny_config()
    save_model(folder / "pretrained", PretrainingModel(config), tiny_tokenizer)
    save_model(folder / "mood", mood.model(config), tiny_tokenizer, mood.task())
    save_model(folder / "reader", QuestionAnsweringModel(config), tiny_tokenizer, reading.task())
    shutil.copytree(foreign("electra"), folder / "theirs")
    rows = [f"참 좋은 영화 {n},긍정\n정말 지루한 영화 {n},부정\n" for n in range(12)]
    text = "세종은 1443년에 한글을 만들었다."
    documents = [{"id": n, "title": f"한글 {n}", "text": f"{text} {n}번째 문단이다.\n글을 읽는다."} for n in range(4)]
    files = {
        "t.csv": f"text,label\n{''.join(rows)}",
        "t.txt": f"{text}\n글을 읽는다.\n",
        "docs.jsonl": _lines(documents),
        "pairs.jsonl": _lines([{"query": f"한글 {n}", "passage": f"{text} {n}"} for n in range(4)]),
        "queries.jsonl": _lines([{"query": "한글", "relevant": "1"}]),
        "data/own.toml": '[tasks.mood]\nkind = "classification"\ninit = "../mood"\ntrain = "../t.csv"\nepochs = 1\n'
        'features = "last"\nbaselines = false\nscratch = false\n',
    }
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    pq.write_table(pa.table({"text": [text, "글을 읽는다."]}), folder / "t.parquet")
    tuned = ["finetune", "mood", "--train", "t.csv", "--epochs", "1", "--features", "last", "--output", "tuned"]
    assert run_here(tuned, folder).code == 0
    shutil.copytree(folder / "tuned", folder / "again")
    return folder


def _lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _lines_of(name, output):
    """Command lines for an output, with what FEED has for the other parameters."""
    parameters = [one for one in cli.commands[name].params if one.name != output]
    as_words = [one.name for one in parameters if isinstance(one, click.Argument)]
    fed = [
        one for one in parameters if one.name in FEED and (one.name in as_words or one.name not in ("text", "input"))
    ]
    order = [one for one in cli.commands[name].params if isinstance(one, click.Argument)]
    quick = [word for one in parameters if one.name in QUICKLY for word in (one.opts[0], str(QUICKLY[one.name]))]
    for ending, *values in itertools.product(ENDINGS, *(FEED[one.name] for one in fed)):
        given = {one.name: value for one, value in zip(fed, values, strict=True)} | {output: f"out{ending}"}
        words = [word for one in order if one.name in given for word in given[one.name].split()]
        named = [one for one in cli.commands[name].params if one.name in given and one not in order]
        yield [name, *words, *(word for one in named for word in (one.opts[0], given[one.name])), *quick]


_written: set[str] = set()


def _watch(event, arguments):
    """Notes the names that Python writes to, once this hook is there."""
    opened = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    if opened or event in ("os.mkdir", "sqlite3.connect"):
        _written.add(str(arguments[0]))
    elif event == "os.rename":
        _written.update(map(str, arguments[:2]))


sys.addaudithook(_watch)


class Place:
    """The world while one output of one command is tried in it.

    line: the command. ways: what may be added to it. names: those that it writes to, next to the output and below.
    """

    def __init__(self, base, world, name, output):
        self.folder, self.before = world
        self.base, self.output = base, output
        self.reads = [stage for stage in READS.get(name, ()) if output == "root"]
        for self.line in _lines_of(name, output):
            self.reset()
            if (outcome := self.run()).code == 0:
                break
        assert outcome.code == 0, f"{name}: what FEED has does not do: {self.line}: {outcome.err[-300:]}"
        self.target = next(word for word in self.line if word.partition(".")[0] == "out")
        rebuilds = any(one.name == "rebuild" for one in cli.commands[name].params)
        self.ways = [(), ("--rebuild",)][: 1 + rebuilds]
        seen = [self._observed() for _ in range(2)]
        self.names = sorted({*seen[0] & seen[1], self.target})
        self.kept = shutil.copytree(self.folder, self.folder.with_name("kept"))
        self.reset()

    def reset(self):
        """Leaves what the world holds, and the artifacts that the command reads."""
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if str(path.relative_to(self.folder)) not in self.before:
                _remove(path)
        for stage in self.reads:
            shutil.copytree(self.base.artifacts / stage, self.folder / "out" / "tiny" / stage)

    def way(self, turn):
        """What is added to the command at this turn."""
        return self.ways[turn % len(self.ways)]

    def run(self, *more):
        return run_here([*self.line, *more], self.folder)

    def _observed(self):
        """The names, relative to the world, of one run in each way."""
        self.reset()
        _written.clear()
        assert [self.run(*way).code for way in self.ways] == [0] * len(self.ways)
        root, depth = self.folder.resolve(), 3 if self.output == "root" else 2
        names = {os.path.relpath(root / name, root) for name in _written} - {".", *self.before}
        near = {name for name in names if "/" not in name or name.startswith(f"{self.target}/")}
        return {name for name in near if name.count("/") < depth and not name.startswith("..")}


def _remove(path):
    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


# --- what lies there ---


def _file(path):
    path.write_text("of someone")


def _page(path):
    path.write_text("<!doctype html>\n<html>\n<title>korbert</title>")


def _folder(path):
    path.mkdir()
    (path / "thesis.hwp").write_text("of someone")


def _read_only(path):
    _folder(path)
    (path / "thesis.hwp").chmod(0o444)
    path.chmod(0o555)


def _database(path):
    _folder(path)
    with contextlib.closing(sqlite3.connect(path / "index.sqlite")) as database:
        database.execute("CREATE TABLE photos (name)")


def _link(target):
    return lambda path: path.symlink_to(os.path.relpath(target, path.parent))


def _record(name, content):
    def put(path):
        _folder(path)
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text(content)

    return put


def _things(folder):
    single = {
        "a file": _file, "a pipe": os.mkfifo, "a link to a file": _link(folder / "t.txt"),
        "a link to a folder": _link(folder / "data"), "a link to nothing": _link(folder / "nowhere"),
    }  # fmt: skip
    folders = {"a page": _page, "a folder": _folder, "a read-only folder": _read_only, "a database": _database}
    records = [(name, CONTENTS[number % 3]) for number, name in enumerate(RECORDS)]
    records += [(name, content) for name in ("stage.json", "plan.json") for content in CONTENTS]
    return single, folders, [(f"{name} of {content[:9]}", _record(name, content)) for name, content in records]


def _trials(place):
    """(way, name, thing, how it is put there, whether the command has run before) of all trials of an output.

    Left out, as each name with each thing in each way took a quarter of an hour: ways take turns, so that each way
    meets every thing and every name, but not every pair; records, which are many and alike, lie at every other name.
    """
    single, folders, records = _things(place.folder)
    for row, name in enumerate(place.names):
        things = [*single.items(), *folders.items(), *records[row % 2 :: 2]]
        for column, (thing, put) in enumerate(things):
            yield place.way(row // 2 + column), name, thing, put, False
    made = place.kept / place.target
    below = [path for path in sorted(made.rglob("*")) if path.relative_to(place.kept).parts[2:3] != ("encoded",)]
    inside = [made, *(path for path in below if path.is_dir())] if made.is_dir() else []
    for row, path in enumerate(inside[:: 1 + len(inside) // 8]):
        for column, (thing, put) in enumerate(single.items()):
            yield place.way(row + column), path.relative_to(place.kept) / "thesis.hwp", thing, put, True
    for row, path in enumerate([path for path in below if path.name in UNLISTED][:8]):
        yield place.way(row), path.relative_to(place.kept), "no record", _file, True


def _faults(place, trials):
    """What of somebody else's is not as it was, and what did not end in a line."""
    for way, name, thing, put, again in trials:
        place.reset()
        if again:
            shutil.rmtree(place.folder / place.target, ignore_errors=True)
            shutil.copytree(place.kept / place.target, place.folder / place.target)
        path = place.folder / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        ours = digests_of(place.folder)
        put(path)
        there = digests_of(place.folder)
        outcome = place.run(*way)
        after = digests_of(place.folder)
        foreign = [one for one in there if ours.get(one) != there[one] or one in place.before]
        changed = [one for one in foreign if after.get(one) != there[one]]
        if changed or outcome.code is None or "Traceback" in outcome.err:
            yield f"{thing} at {name}, {shlex.join([*place.line, *way])}: {changed or outcome.err[-300:]}"
    place.reset()


@pytest.mark.parametrize("case", [
    pytest.param(case, id=" ".join(case), marks=[pytest.mark.slow, pytest.mark.timeout(1_800)] * (number % FAST != 4))
    for number, case in enumerate(CASES)
])  # fmt: skip
def test_nothing_of_somebody_else_changes(base, world, case):
    place = Place(base, world, *case)
    trials = list(_trials(place))
    print(f"{len(trials)} trials at {place.names}")
    fail(list(_faults(place, trials)), [])


def _instead(line, target):
    """The command with another output."""
    return [target if word.partition(".")[0] == "out" else word for word in line]


@pytest.mark.parametrize(("target", "said"), [
    ("", "is empty"), ("/", "is the folder of the whole machine"), ("\udcff\udcfe.json", "is not UTF-8"),
])  # fmt: skip
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_an_odd_name_is_refused_in_one_line(world, case, target, said):
    outcome = run_here(_instead(next(iter(_lines_of(*case))), target), world[0])
    assert outcome.code == 2
    assert outcome.err.startswith("korbert: ")
    assert said in outcome.message
    assert digests_of(world[0]) == world[1]


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_what_is_read_is_not_written_over_and_nothing_is_written_into_a_model(world, case):
    for line in _lines_of(*case):
        read = [word for word in line if word in world[1]]
        inside = [f"{word}/out.json" for word in read if (world[0] / word).is_dir()]
        for target in (*read, *inside):
            run_here(_instead(line, target), world[0])
            assert digests_of(world[0]) == world[1]


def test_every_path_that_a_command_writes_to_is_an_output():
    paths = [
        one.name for command in cli.commands.values() for one in command.params if isinstance(one.type, click.Path)
    ]
    assert {*paths} - {name for _, name in CASES} <= READ | FEED.keys()


@pytest.mark.parametrize("case", [case for case in CASES if case[0] in ("pack", "import", "export")], ids=" ".join)
def test_a_folder_on_a_full_disk_is_whole_or_absent(world, case):
    for line in _lines_of(*case):
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
        try:
            outcome = run_here(line, world[0])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert outcome.code != 0
        assert digests_of(world[0]) == world[1]
        assert "resumes" not in outcome.message
