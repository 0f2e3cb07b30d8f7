"""Command lines and files drawn from a seed: `draw(base, folder, number)` makes the same case each time.

A slot is one way to be hostile; case number n is of slot n modulo their number, so that the first round has each once.
"""

import base64
import bz2
import contextlib
import gzip
import html
import io
import itertools
import json
import lzma
import random
import shutil
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from tests.hostile import oracles
from tests.hostile.mutations import (
    DIGITS,
    KEYS,
    ODD_KEYS,
    ODD_SETTINGS,
    ODD_TEXTS,
    dumped,
    spoiled,
    spoiled_json,
    spoiled_lines,
)
from tests.hostile.oracles import Oracle
from tests.hostile.pipeline import READS, STAGES, Base

SEED = 22
COUNT = 250
MODELS = {"pretrain": "fill", "nsmc": "predict", "korquad": "submit"}


@dataclass
class Case:
    """One command line in a folder that is its own.

    names: an error has to hold one of them. allowed: beginnings of names below the folder that the command may write.
    right: what has to hold where it leaves with 0; always: whatever it leaves with. mended: undoes the harm; then the
    same stage has to give what the unharmed pipeline has. outside: in a process of its own. codes: with which it may
    leave. stage: what it makes.
    """

    base: Base
    folder: Path
    rng: random.Random
    arguments: list[str] = field(default_factory=list)
    stdin: bytes = b""
    names: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    right: Oracle | None = None
    always: Oracle | None = None
    mended: Callable[[], None] | None = None
    outside: bool = False
    seconds: float = 60
    codes: tuple[int, ...] = (0, 1, 2)
    stage: str | None = None

    def data(self, name: str) -> Path:
        return self.folder / "data" / name

    def harm(self, path: Path, change: Callable[[bytes, random.Random], bytes]) -> None:
        path.write_bytes(change(path.read_bytes(), self.rng))

    def runs_stage(self, stage: str, *options: str, names: Sequence[str] = ()) -> None:
        """That stage alone, over fresh artifacts of those before it."""
        self.base.copy(self.folder, READS[stage])
        self.stage = stage
        self.arguments = [stage, "data/tiny.toml", "--root", "artifacts", "--workers", "1", *options]
        self.allowed = (f"artifacts/tiny/{stage}", "artifacts/tiny/encoded", "artifacts/tiny/index.html")
        self.right, self.names = oracles.stage_is_right(stage), tuple(names)

    def can_be_mended(self, path: Path) -> None:
        """By the unharmed file of the same name."""
        source = self.base.folder / path.relative_to(self.folder)

        def mend() -> None:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            path.unlink(missing_ok=True)
            shutil.copy(source, path)

        self.mended = mend


def word(text: str) -> str:
    """As an argument can be: no NUL, and what is no text as the bytes that it would be."""
    return "".join("\udcff" if "\ud800" <= char <= "\udfff" else char for char in text.replace("\x00", ""))


# Settings


def _set_dry(case: Case) -> None:
    """--set of an odd key or value, where nothing is made."""
    case.base.copy(case.folder, ())
    commands = ["run", "--dry-run"], ["status"], ["clean", "--dry-run"], ["report"], ["nsmc", "--dry-run"]
    command = case.rng.choice(commands)
    case.arguments = [command[0], "data/tiny.toml", "--root", "artifacts", *command[1:]]
    names: list[str] = []
    for _ in range(case.rng.choice((1, 1, 1, 2))):
        key = case.rng.choice(KEYS if case.rng.random() < 0.7 else ODD_KEYS)
        value = word(case.rng.choice(ODD_SETTINGS))
        case.arguments += ["--set", key if case.rng.random() < 0.05 else f"{key}={value}"]
        names += ["--set", key.rpartition(".")[2], key.split(".")[0]]
    case.names = (*filter(None, names), "data/tiny.toml", "artifacts/tiny")
    case.allowed = ("artifacts/tiny/index.html",) if command[0] == "report" else ()


_NOT_LIVE = ("pretrain.phases", "korquad.train", "korquad.epochs")


def _set_live(*stages: str) -> Callable[[Case], None]:
    """An odd value of a setting that the stage works with."""

    def slot(case: Case) -> None:
        stage = case.rng.choice(stages)
        key = case.rng.choice([key for key in KEYS if key.startswith(f"{stage}.") and key not in _NOT_LIVE])
        value = word(case.rng.choice(ODD_SETTINGS))
        case.runs_stage(stage, "--set", f"{key}={value}", names=(key.rpartition(".")[2], stage, "tiny.toml", "--set"))

    return slot


def _in_recipe(case: Case) -> None:
    """The recipe's text: bytes spoilt, lines doubled or lost, odd tables."""
    case.base.copy(case.folder, ())
    recipe = case.data("tiny.toml")
    odd = word(case.rng.choice(ODD_SETTINGS))
    lines = recipe.read_text(encoding="utf-8").splitlines()
    place = case.rng.choice([place for place, line in enumerate(lines) if "=" in line])
    match case.rng.randrange(6):
        case 0 | 1:
            case.harm(recipe, spoiled)
        case 2:
            lines[place] = f"{lines[place].partition('=')[0]}= {odd}"
        case 3:
            lines.insert(case.rng.randrange(len(lines)), case.rng.choice(lines))
        case 4:
            del lines[case.rng.randrange(len(lines))]
        case 5:
            extra = "[clean.filters.a.b]", "[[vocab]]", "[[clean.sources]]", "clean = 1", "[nsmc.x]\ny=1"
            lines.insert(case.rng.randrange(len(lines)), case.rng.choice((*extra, f"[{'a.' * 500}a]")))
    if recipe.read_bytes() == (case.base.data / "tiny.toml").read_bytes():
        recipe.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogatepass")
    command = case.rng.choice((["run", "--dry-run"], ["status"], ["pretrain", "--dry-run"], ["status", "--verify"]))
    case.arguments = [command[0], "data/tiny.toml", "--root", "artifacts", *command[1:]]
    case.names = ("tiny.toml",)


def _roots(case: Case) -> None:
    """A root or a data folder whose name means something to a shell, to SQL or to a glob, beside its lookalikes."""
    odd = ("it's", 'g"1', "g 1", "g;1", "한국", "-g", "g\\1", "{g}", "%g", "g\n1", "\udcffg", "[", "g[!a]", "**")
    root, stage = case.rng.choice((*odd, "g[1]")), case.rng.choice(("clean", "analyze", "vocab", "shard"))
    if case.rng.random() < 0.5:  # what DuckDB takes for a pattern, and stages that read artifacts with it
        root, stage = case.rng.choice(("g[1]", "g*", "g?")), case.rng.choice(("clean", "nsmc"))
    for before in READS[stage]:
        for name in (root, "g1"):
            shutil.copytree(case.base.artifacts / before, case.folder / name / "tiny" / before)
    _make_other(case, case.folder / "g1" / "tiny", stage)
    case.base.copy_data(case.folder)
    data = case.rng.choice(("data", "data", "d[1]"))
    (case.folder / "data").rename(case.folder / data)
    case.arguments = [stage, f"{data}/tiny.toml", "--root", f"./{root}", "--workers", "1"]
    case.allowed = (f"{root}/tiny/{stage}", f"{root}/tiny/index.html", f"{root}/tiny/encoded")

    def same(folder: Path, outcome: Any) -> Any:
        record = json.loads((folder / root / "tiny" / stage / "stage.json").read_text(encoding="utf-8"))
        if record["digest"] != case.base.digest(stage):
            yield f"another {stage} than under a plain name"

    case.right = same
    case.codes = (0,) if root.startswith(("g[1", "g*", "g?")) else (0, 1, 2)


def _make_other(case: Case, folder: Path, stage: str) -> None:
    """What would be read in the lookalike shows in what is made: files of the same names hold other rows."""
    if stage == "clean":
        shutil.copytree(case.base.artifacts / "clean.partial", folder / "clean.partial")
        for part in folder.rglob("part-00001.*"):
            shutil.copy(part, part.with_stem("part-00000"))
    if stage == "nsmc":
        lines = (case.base.data / "ratings_test.txt").read_text(encoding="utf-8").splitlines()[1:]
        texts = [line.split("\t")[1] for line in lines]
        for part in (folder / "clean" / "documents").iterdir():
            pq.write_table(pa.table({"id": texts, "source": texts, "text": texts}), part)


_OPTIONS = (  # ODD: something odd, R: the recipe
    "run R --from korquad --to clean", "run R --from ODD", "run R --workers ODD --dry-run", "run R --set", "run R R",
    "run R --device ODD --dry-run", "run R --runner ODD --dry-run", "run R --address ODD --dry-run", "run R --verify",
    "run", "status", "status ODD", "status R --rebuild", "clean R --preview ODD --root artifacts", "ODD R", "ODD",
    "analyze R --preview 3", "fill nowhere [MASK] --top ODD",
    "--data ODD", "submit ODD ODD ODD", "score ODD ODD", "tokenize ODD 가", "export ODD out", "predict ODD ODD",
    "korquad R --data ODD --dry-run", "pretrain R --device cuda --root artifacts",
)  # fmt: skip


def _options(case: Case) -> None:
    """Options that do not exist, do not go together or lack their value."""
    case.base.copy(case.folder, ("clean",))
    odd = word(case.rng.choice((*ODD_TEXTS[:8], "-1", "0", "1e9", DIGITS, "가", "clean", "ray", "cuda")))
    words = {"ODD": odd, "R": "data/tiny.toml"}
    case.arguments = [words.get(one, one) for one in case.rng.choice(_OPTIONS).split()]
    case.allowed = ("artifacts/tiny/clean", "artifacts/tiny/preview.html", "artifacts/tiny/index.html")


def _wrong_data(case: Case) -> None:
    """--data that is no folder, or has other files."""
    case.base.copy(case.folder, ())
    (case.folder / "empty").mkdir()
    (case.folder / "loop").symlink_to("loop")
    odd = "nowhere", "empty", "data/tiny.toml", "loop", "", "\udcff", "data/../data", "data/wiki.jsonl/x"
    folder = case.rng.choice(odd)
    stage = case.rng.choice(("clean", "run", "nsmc", "korquad"))
    case.arguments = [stage, "data/tiny.toml", "--root", "artifacts", "--data", folder, "--dry-run"]


# Sources


def _rows(case: Case) -> list[dict[str, str]]:
    lines = (case.base.data / "reviews.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _as_dump(rows: Sequence[dict[str, str]], bodies: Sequence[str] = ()) -> bytes:
    pages = "".join(
        f"<page><title>{number}</title><ns>0</ns><id>{number}</id><revision><id>1</id><model>wikitext</model>"
        f"<text>{body}</text></revision></page>\n"
        for number, body in enumerate((*bodies, *(html.escape(row["text"]) for row in rows)), 1)
    )
    return f"<mediawiki>\n{pages}</mediawiki>\n".encode()


def _reads(case: Case, name: str, content: bytes, **settings: str) -> Path:
    """The stage `clean` over that one file."""
    keys = {"name": "mine", "path": name, **settings}
    table = ", ".join(f"{key} = {json.dumps(value)}" for key, value in keys.items())
    case.runs_stage("clean", "--set", f"clean.sources=[{{{table}}}]", names=(name, "'mine'", "clean.mine"))
    path = case.data(name)
    path.write_bytes(content)
    return path


def _jsonl(case: Case) -> None:
    name = case.rng.choice(("wiki.jsonl", "reviews.jsonl"))
    case.runs_stage("clean", names=(name, repr(name.split(".")[0])))
    case.harm(case.data(name), spoiled if case.rng.random() < 0.5 else spoiled_lines)
    case.can_be_mended(case.data(name))


def _jsonl_odd(case: Case) -> None:
    """Rows that are right but for what their text is."""
    rows = [{"id": str(number), "text": odd} for number, odd in enumerate(ODD_TEXTS)] + _rows(case)
    rows += [{"id": case.rng.choice(ODD_TEXTS), "text": "이름이 이상한 문서입니다. 그래도 글은 멀쩡합니다."}]
    _reads(case, "odd.jsonl", b"\n".join(dumped(row, case.rng) for row in rows))


def _text(case: Case) -> None:
    documents = case.rng.choice(("line", "blank", "file"))
    content = ("\n\n" if documents == "blank" else "\n").join([row["text"] for row in _rows(case)]).encode()
    encoding = case.rng.choice(("auto", "auto", "utf-8", "cp949", "utf-16"))
    case.harm(_reads(case, "mine.txt", content, documents=documents, encoding=encoding), spoiled)


def _delimited(case: Case) -> None:
    kind = case.rng.choice(("csv", "tsv"))
    rows = pd.DataFrame(_rows(case), columns=["id", "text"])
    content = rows.to_csv(index=False, sep="," if kind == "csv" else "\t").encode()
    odd = (b'"', b'""', b'"a\nb"', b",,,", b"\t\t\t", b"id,text\n", b"\n\n", b'"' + b"a" * 200_000, b"\x00")
    place = case.rng.randrange(len(content))
    inserted = content[:place] + case.rng.choice(odd) + content[place:]
    _reads(case, f"mine.{kind}", spoiled(content, case.rng) if case.rng.random() < 0.5 else inserted)


def _table(case: Case) -> None:
    kind = case.rng.choice(("parquet", "arrow"))
    table, sink = pa.Table.from_pylist(_rows(case)).select(["id", "text"]), io.BytesIO()
    if kind == "parquet":
        types = (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.binary())
        text = table["text"].combine_chunks()
        of_type = case.rng.choice(types)
        text = text.dictionary_encode() if pa.types.is_dictionary(of_type) else text.cast(of_type)
        pq.write_table(table.set_column(1, "text", text), sink)
    else:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    settings = case.rng.choice(({}, {"id": ""}, {"text": "본문"}, {"id": "text"}))
    path = _reads(case, f"mine.{kind}", sink.getvalue(), **settings)
    if case.rng.random() < 0.7:
        case.harm(path, spoiled)


_WIKITEXT = (
    "{{a|" * 500, "[[" * 2_000, "{|" * 500, "'''" * 2_000, "<ref>" * 1_000, "<" * 5_000, "&#x1b;[31m빨강", "&#0;",
    "&#xD800;", "{{" * 1_000 + "}}" * 1_000, "[[파일:" * 500, "<!--" * 1_000, "[http://" * 1_000, "==" * 3_000,
    "{{{" * 700, "__NOTOC__" * 1_000, "<nowiki>" * 500, "<math>" + "{" * 3_000, "\n*" * 5_000,
)  # fmt: skip


def _wiki(case: Case) -> None:
    rows = _rows(case)
    if case.rng.random() < 0.5:
        _reads(case, "mine.xml", _as_dump(rows, [case.rng.choice(_WIKITEXT).replace("<", "&lt;") for _ in range(3)]))
    else:
        case.harm(_reads(case, "mine.xml", _as_dump(rows)), spoiled)


def _packed(case: Case) -> None:
    packs = {".gz": gzip, ".zst": zstandard, ".xz": lzma, ".bz2": bz2}
    suffix = case.rng.choice((*packs, ".zip"))
    pack = base64.b64encode if suffix == ".zip" else packs[suffix].compress
    content = case.base.data.joinpath("reviews.jsonl").read_bytes()
    half = len(content) // 2
    case.harm(_reads(case, f"mine.jsonl{suffix}", pack(content[:half]) + pack(content[half:])), spoiled)


def _odd_file(case: Case, path: Path) -> None:
    """Something else where a file was."""
    path.unlink()
    match case.rng.randrange(4):
        case 0:
            path.mkdir()
        case 1:
            path.symlink_to(case.rng.choice((path.name, "nowhere", path.parent)))
        case 2:
            with socket.socket(socket.AF_UNIX) as here, contextlib.suppress(OSError):  # a path of more than 108 bytes
                here.bind(str(path))


def _odd_source(case: Case) -> None:
    """A source that is no file, or is called as files seldom are."""
    if case.rng.random() < 0.5:
        name = case.rng.choice(("wiki.jsonl", "reviews.jsonl"))
        case.runs_stage("clean", names=(name, repr(name.split(".")[0]), f"clean.{name.split('.')[0]}"))
        _odd_file(case, case.data(name))
        case.can_be_mended(case.data(name))
        return
    names = "g[1]", "*", "\udcff\udcfe", "줄\n바꿈", "it's", " ", "\x1b[31m", "한글"
    paths = "folder", "fol*", "folder/*", "folder/**", "**/*.jsonl", "folder/../folder", "folder/", "~"
    paths = (*paths, "file:///nowhere")
    source = f'{{name = "mine", path = "{case.rng.choice(paths)}"}}'
    case.runs_stage("clean", "--set", f"clean.sources=[{source}]", names=("mine",))
    case.data("folder").mkdir()
    for name in case.rng.sample(names, 3):
        path = case.data("folder") / f"{name}.jsonl"
        shutil.copy(case.data("reviews.jsonl"), path)
        case.harm(path, lambda data, rng: data.replace(b'"id": "', b'"id": "%d' % rng.randrange(10**9)))


def _evaluation(case: Case) -> None:
    """Sets that documents may share no text with, of all kinds."""
    sets = ("tsv", "ratings_test.txt"), ("korquad", "valid.json"), ("jsonl", "reviews.jsonl"), ("text", "tiny.toml")
    kind, name = case.rng.choice(sets)
    text = case.rng.choice(("document", "text", "id", "없음"))
    table = f'{{name = "bench", path = "{name}", kind = "{kind}", text = "{text}"}}'
    case.runs_stage("clean", "--set", f"clean.evaluation=[{table}]", names=(name, "bench"))
    if name != "tiny.toml":
        case.harm(case.data(name), spoiled)


# Files of the tasks


def _nsmc(case: Case) -> None:
    name = case.rng.choice(("ratings_train.txt", "ratings_test.txt"))
    case.runs_stage("nsmc", names=(name,))
    odd = b"1\t\xea\xb0\x80\t2\n", b"1\t\t1\n", b"\t\t\n", b'1\t"\t1\n', b"id\tdocument\tlabel\n"
    odd = (*odd, b"1\t" + b"a" * 70_000 + b"\t0\n")
    if case.rng.random() < 0.2:
        _odd_file(case, case.data(name))
    elif case.rng.random() < 0.6:
        case.harm(case.data(name), spoiled)
    else:
        case.harm(case.data(name), lambda data, rng: data + rng.choice(odd))
    if case.rng.random() < 0.3:
        case.can_be_mended(case.data(name))


def _korquad(case: Case) -> None:
    name = case.rng.choice(("train.json", "valid.json"))
    case.runs_stage("korquad", names=(name,))
    if case.rng.random() < 0.15:
        _odd_file(case, case.data(name))
    else:
        case.harm(case.data(name), spoiled_json if case.rng.random() < 0.75 else spoiled)


# Models and tokenizers


def _model(case: Case, stage: str) -> Path:
    """A copy of the model of a stage, as `model/`."""
    shutil.copytree(case.base.artifacts / stage / "model", case.folder / "model")
    return case.folder / "model"


def _use(case: Case, stage: str, *options: str) -> None:
    """The command that a model is for, so that it reads all of it."""
    command = MODELS[stage]
    if command == "fill":
        case.arguments, case.right = ["fill", "model", "나는 [MASK]에 간다.", *options], oracles.guesses_fit
    elif command == "predict":
        case.arguments, case.stdin = ["predict", "model", *options], "재미있다\n지루하다\n".encode()
        case.right = oracles.json_lines(2)
    else:
        shutil.copy(case.base.data / "valid.json", case.folder / "valid.json")
        case.arguments = ["submit", "model", "valid.json", "answers.json", *options]
        case.allowed, case.right = ("answers.json",), oracles.answers_fit("valid.json", "answers.json")


def _score(case: Case) -> None:
    shutil.copy(case.base.data / "valid.json", case.folder / "valid.json")
    shutil.copy(case.base.artifacts / "korquad" / "predictions.json", case.folder / "answers.json")
    name = case.rng.choice(("valid.json", "answers.json"))
    case.arguments, case.names, case.right = ["score", "valid.json", "answers.json"], (name,), oracles.scores_fit
    if case.rng.random() < 0.2:
        _odd_file(case, case.folder / name)
    else:
        case.harm(case.folder / name, spoiled_json if case.rng.random() < 0.75 else spoiled)


def _model_config(case: Case) -> None:
    """The records of a model and of its tokenizer. What flips do to them is the affair of test_flips."""
    stage = case.rng.choice(tuple(MODELS))
    folder = _model(case, stage)
    name = case.rng.choice(("config.json", "config.json", "tokenizer/korbert_tokenizer.json", "tokenizer/probe.json"))
    _use(case, stage)
    case.harm(folder / name, spoiled_json if case.rng.random() < 0.8 else spoiled)
    case.names = ("model/",)
    if case.rng.random() < 0.15:
        _odd_file(case, folder / name)


def _predict(case: Case) -> None:
    """Lines for a classifier: odd texts, and bytes that are none."""
    _model(case, "nsmc")
    odd = [word(case.rng.choice(ODD_TEXTS)) for _ in range(case.rng.randrange(1, 12))]
    lines = [text.replace("\n", " ").replace("\r", "") for text in odd]
    data = "\n".join(lines).encode("utf-8", "surrogateescape")
    if case.rng.random() < 0.4:
        data = spoiled(data, case.rng)
    good = list(itertools.takewhile(_is_text, data.removesuffix(b"\n").split(b"\n")))  # before the first that is not
    case.stdin, case.arguments, case.names = data, ["predict", "model"], ("<stdin>", "input", "line")
    if case.rng.random() < 0.5:
        (case.folder / "lines.txt").write_bytes(data)
        case.arguments, case.names = ["predict", "model", "lines.txt"], ("lines.txt",)
    case.right = oracles.json_lines(len(good) if _is_text(data) else None)

    def at_least(folder: Path, outcome: Any) -> Any:
        if len(outcome.out.split("\n")) - 1 < len(good):
            yield f"{len(outcome.out.splitlines())} results, where {len(good)} lines before the bad one are good"

    case.always = at_least


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _records(case: Case) -> None:
    """Records of artifacts that are JSON, but not theirs. `status` shows it and never fails."""
    case.base.copy(case.folder, STAGES)
    stage = case.rng.choice(STAGES)
    folder = case.folder / "artifacts" / "tiny" / stage
    name = case.rng.choice(("stage.json", "stage.json", "stage.json", "run.json"))
    if case.rng.random() < 0.3:
        odd = "{}", "[]", "null", "", "1", '"x"', '{"digest": 1}', '{"files": []}', "{" * 50_000, "[" * 100_000
        (folder / name).write_bytes(case.rng.choice((b"\xff", *map(str.encode, odd))))
    else:
        case.harm(folder / name, lambda data, rng: spoiled_json(data, rng, times=rng.randrange(1, 4)))
    commands = ["status"], ["status", "--verify"], ["status"], ["report"], ["run"], ["run", "--dry-run"]
    command = case.rng.choice(commands)
    case.arguments = [command[0], "data/tiny.toml", "--root", "artifacts", *command[1:]]
    case.allowed = ("artifacts/tiny/",) if command[0] in ("report", "run") and "--dry-run" not in command else ()
    case.codes = (0,) if command[0] == "status" else (0, 1, 2)
    case.names = (stage, "tiny")


def _outside(case: Case) -> None:
    """One of the quick ones, in a process of its own."""
    case.rng.choice((_set_dry, _in_recipe, _options, _wrong_data, _score, _records))(case)
    case.outside = True


SLOTS: dict[str, Callable[[Case], None]] = {
    "set-1": _set_dry, "jsonl-1": _jsonl, "score-1": _score, "recipe-1": _in_recipe, "predict-1": _predict,
    "set-2": _set_dry, "table": _table, "options-1": _options, "set-vocab": _set_live("vocab", "shard"),
    "records-1": _records, "text": _text, "roots": _roots, "model-config-1": _model_config, "delimited": _delimited,
    "recipe-2": _in_recipe, "korquad": _korquad, "odd-source": _odd_source, "set-3": _set_dry, "wiki": _wiki,
    "set-clean": _set_live("clean", "analyze"), "nsmc": _nsmc, "packed": _packed, "records-2": _records,
    "jsonl-odd": _jsonl_odd, "outside": _outside, "set-pretrain": _set_live("pretrain", "korquad"),
    "wrong-data": _wrong_data, "last": lambda case: case.rng.choice((_evaluation, _options))(case),
}  # fmt: skip


def slot_of(number: int) -> str:
    return list(SLOTS)[number % len(SLOTS)]


def draw(base: Base, folder: Path, number: int, seed: int = SEED) -> Case:
    """The case of that number, its files written into the folder."""
    case = Case(base, folder, random.Random(f"{seed}/{number}"))
    SLOTS[slot_of(number)](case)
    return case
