"""Bad input at the command: one line that says where and what to do, the right exit code, and nothing lost."""

import shutil

import pyarrow.parquet as pq
import pytest

from tests.whole.conftest import STAGES, Whole


@pytest.fixture
def made(data, tmp_path):
    """A copy of the data and the recipe, to be harmed, and no artifacts."""
    shutil.copytree(data, tmp_path / "data")
    return Whole(tmp_path / "data" / "tiny.toml", tmp_path / "artifacts")


def _other_header(folder):
    path = folder / "ratings_train.txt"
    path.write_text(path.read_text(encoding="utf-8").replace("id\tdocument\tlabel", "id,text,label"), encoding="utf-8")


BAD = {
    "missing file": ("clean", lambda folder: (folder / "wiki.jsonl").unlink(), (),
                     ("tiny.toml: clean.wiki: no file wiki.jsonl in ", "--data")),
    "too little text": ("vocab", lambda folder: None, ("--set", "vocab.size=50000"),
                        ("vocab.size 50000: too little text", "set vocab.size to ", "or bring more text")),
    "nothing held out": ("vocab", lambda folder: None, ("--set", "heldout_share=0.000001"),
                         ("documents is held out by heldout_share 1e-06",)),
    "NSMC header": ("nsmc", _other_header, (),
                    ("data/ratings_train.txt: no column 'document' for text among id,text,label",)),
    "not KorQuAD": ("korquad", lambda folder: (folder / "train.json").write_text('{"rows": []}'), (), ("train.json",)),
}  # fmt: skip


@pytest.mark.parametrize(("stage", "harm", "options", "said"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_said_in_one_line(whole, made, stage, harm, options, said):
    for name in STAGES[: STAGES.index(stage)]:
        shutil.copytree(whole.folder / name, made.folder / name)
    harm(made.recipe.parent)
    shown = made.run(stage, "--workers", "1", *options, code=1).err
    last = shown.splitlines()[-1]
    assert last.startswith("korbert: ")
    assert [part for part in said if part not in last] == []
    assert "Traceback" not in shown
    assert not (made.folder / stage).exists()


def test_bad_rows_are_dropped_with_their_reasons_and_the_run_goes_on(whole, made):
    path = made.recipe.parent / "wiki.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1:1] = [b'{"id": "cut", "text": "\n', '{"id": "cp949", "text": "한국어"}\n'.encode("cp949")]
    path.write_bytes(b"\xef\xbb\xbf" + b"".join(lines))
    said = made.run("clean", "--workers", "1", "--set", "clean.part_bytes=1000000").err  # one part: quicker

    def rows(run, name):
        return pq.read_table(run.folder / "clean" / name).to_pylist()

    assert sorted(map(str, rows(made, "documents"))) == sorted(map(str, rows(whole, "documents")))  # the first one, too
    added = [row for row in rows(made, "dropped") if row not in rows(whole, "dropped")]
    places = {"bad_json": "wiki.jsonl line 2", "bad_encoding": "wiki.jsonl line 3"}
    assert [(row["reason"], row["detail"].split(": ")[0]) for row in added] == list(places.items())
    counts = made.record("clean")["counts"]
    assert counts["read"] == whole.record("clean")["counts"]["read"] + 2
    assert counts["dropped.bad_json"] == counts["dropped.bad_encoding"] == 1
    reasons = {name.removeprefix("dropped."): number for name, number in counts.items() if name.startswith("dropped.")}
    largest = max(reasons, key=lambda name: reasons[name])
    assert f"dropped {counts['dropped']} ({reasons[largest]} {largest.replace('_', ' ')}" in said
