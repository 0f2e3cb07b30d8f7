"""Bad input at the command: one line that says where and what to do, the right exit code, and nothing lost."""

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import zstandard

from tests.whole.conftest import STAGES, Whole

Harm = Callable[[Path], None]
PACK: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}


@pytest.fixture
def made(data, tmp_path):
    """A copy of the data and the recipe, to be harmed, and no artifacts."""
    shutil.copytree(data, tmp_path / "data")
    return Whole(tmp_path / "data" / "tiny.toml", tmp_path / "artifacts")


def _empty(folder: Path) -> None:
    for name in ("wiki.jsonl", "reviews.jsonl"):
        (folder / name).write_bytes(b"")


def _missing(folder: Path) -> None:
    (folder / "wiki.jsonl").unlink()


def _in_recipe(old: str, new: str) -> Harm:
    def harm(folder: Path) -> None:
        recipe = folder / "tiny.toml"
        text = recipe.read_text(encoding="utf-8")
        assert old in text
        recipe.write_text(text.replace(old, new), encoding="utf-8")

    return harm


def _cut(suffix: str, frame: int) -> Harm:
    """The articles in two frames, cut off in the middle of one of them."""

    def harm(folder: Path) -> None:
        lines = (folder / "wiki.jsonl").read_bytes().splitlines(keepends=True)
        frames = [PACK[suffix](b"".join(half)) for half in (lines[:10], lines[10:])]
        last = frames[frame - 1]
        whole_ones = b"".join(frames[: frame - 1])
        (folder / f"wiki.jsonl{suffix}").write_bytes(whole_ones + last[: len(last) // 2])
        _in_recipe('"wiki.jsonl"', f'"wiki.jsonl{suffix}"')(folder)

    return harm


def _other_header(folder: Path) -> None:
    path = folder / "ratings_train.txt"
    path.write_text(path.read_text(encoding="utf-8").replace("id\tdocument\tlabel", "id,text,label"), encoding="utf-8")


def _bad_word(folder: Path) -> None:
    (folder / "words.tsv").write_text("코르버트체\tNNP\n뽀시래기\tNOUN\n", encoding="utf-8")
    _in_recipe("[analyze]", '[analyze]\nuser_words = "words.tsv"')(folder)


def _not_korquad(folder: Path) -> None:
    (folder / "train.json").write_text('{"version": "KorQuAD_v1.0", "rows": []}', encoding="utf-8")


BAD = {
    "missing file": ("clean", _missing, (), 1, ("tiny.toml: clean.wiki: no file wiki.jsonl in ", "--data")),
    "empty corpus": ("clean", _empty, (), 1, ("data/wiki.jsonl, ", "nothing in there: name files that hold text")),
    "misspelt key": (
        "clean",
        _in_recipe("max_query_pieces", "max_query_peices"),
        (),
        2,
        ("tiny.toml: korquad.max_query_peices: no such key", "did you mean max_query_pieces?"),
    ),
    "no TOML": (
        "clean",
        _in_recipe("[clean]", "[clean"),
        (),
        2,
        ("tiny.toml: is not TOML: ", "line", "correct it there"),
    ),
    **{
        f"{suffix} cut in frame {frame}": (
            "clean",
            _cut(suffix, frame),
            (),
            1,
            (f"data/wiki.jsonl{suffix}: ends inside frame {frame}: ", "get it again"),
        )
        for suffix in PACK
        for frame in (1, 2)
    },
    "too little text": (
        "vocab",
        lambda folder: None,
        ("--set", "vocab.size=50000"),
        1,
        ("analyze/morphemes: vocab.size 50000: too little text", "set vocab.size to ", "or bring more text"),
    ),
    "user dictionary": (
        "analyze",
        _bad_word,
        (),
        1,
        ("data/words.tsv, line 2: 'NOUN' is no part of speech of Kiwi", "a line is form, tab, tag, tab, score"),
    ),
    "NSMC header": (
        "nsmc",
        _other_header,
        (),
        1,
        ("data/ratings_train.txt: no column 'document' for text among id,text,label",),
    ),
    "not KorQuAD": ("korquad", _not_korquad, (), 1, ("data/train.json",)),
}


@pytest.mark.parametrize(("stage", "harm", "options", "code", "said"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_said_in_one_line(whole, made, stage, harm, options, code, said):
    for name in STAGES[: STAGES.index(stage)]:
        shutil.copytree(whole.folder / name, made.folder / name)
    harm(made.recipe.parent)
    shown = made.run(stage, "--workers", "1", *options, code=code).err
    last = shown.splitlines()[-1]
    assert last.startswith("korbert: ")
    assert [part for part in said if part not in last] == []
    assert "Traceback" not in shown
    assert not (made.folder / stage).exists()


def _documents(made: Whole) -> list[dict[str, str]]:
    found: list[dict[str, str]] = pq.read_table(made.folder / "clean" / "documents").to_pylist()
    return found


def test_bad_rows_are_dropped_with_their_reasons_and_the_run_goes_on(whole, made):
    path = made.recipe.parent / "wiki.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1:1] = [b'{"id": "cut", "text": "\n', '{"id": "cp949", "text": "한국어"}\n'.encode("cp949")]
    path.write_bytes(b"\xef\xbb\xbf" + b"".join(lines))
    made.run("clean", "--workers", "1", "--set", "clean.part_bytes=1000000")  # one part: quicker
    assert sorted(map(str, _documents(made))) == sorted(map(str, _documents(whole)))  # the first one, too
    before = pq.read_table(whole.folder / "clean" / "dropped").to_pylist()
    added = [row for row in pq.read_table(made.folder / "clean" / "dropped").to_pylist() if row not in before]
    assert [(row["reason"], row["detail"].split(": ")[0]) for row in added] == [
        ("bad_json", "wiki.jsonl line 2"),
        ("bad_encoding", "wiki.jsonl line 3"),
    ]
    counts = made.record("clean")["counts"]
    assert counts["read"] == whole.record("clean")["counts"]["read"] + 2
    assert counts["dropped.bad_json"] == counts["dropped.bad_encoding"] == 1
