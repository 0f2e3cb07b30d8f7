"""`korbert predict` and `embed` on folders: parts of Parquet, whoever makes them and however often they are killed."""

import gzip
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import korbert
from korbert.corpus.execution.processes import processes
from korbert.corpus.execution.workers import Workers
from korbert.pipelines.inference import parts
from korbert.pipelines.inference.embedding import text_role, text_rows


@pytest.fixture(scope="module")
def texts(sample):
    lines = (sample / "nsmc" / "ratings_train.txt").read_text(encoding="utf-8").split("\n")[1:401]
    return [line.split("\t")[1] for line in lines]


@pytest.fixture
def corpus(here, texts):
    """Files of several formats with 400 texts, and three records that cannot be read."""
    below = here / "corpus" / "below"
    below.mkdir(parents=True)
    rows = [{"id": number, "text": text} for number, text in enumerate(texts[:200])]
    rows[150]["later"] = [1, {"가": None}]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    lines[100:100] = ["no JSON", '{"text": "\\ud800"}', '{"글": "다른 글"}']
    (below / "a.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    frame = pd.DataFrame({"text": texts[200:300], "stars": range(100), "error": ["mine"] * 100})
    frame.to_parquet(here / "corpus" / "b.parquet")
    pd.DataFrame({"text": texts[300:], "n": range(100)}).to_csv(here / "corpus" / "c.csv", index=False)
    (here / "corpus" / "picture.png").write_bytes(b"\x89PNG")
    return here / "corpus"


@pytest.fixture
def real_workers(monkeypatch):
    monkeypatch.setattr("korbert.corpus.execution.processes.processes", processes)


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of some 30 texts."""
    monkeypatch.setattr(parts, "_PART_BYTES", 3_000)


def read(folder):
    """The rows of all parts, read by a library that knows the first part's columns alone."""
    return pa.concat_tables(map(pq.read_table, sorted(folder.glob("*.parquet")))).to_pandas()


def test_rows_have_their_columns_and_predictions(corpus, command, untrained_models, texts, small_parts):
    said = command("predict", untrained_models / "nsmc", corpus, "--output", "labelled", "--workers", 2, code=1)
    assert "3 files of texts and tables; not read: 1, such as picture.png" in said.err
    assert "3 of 403 rows have an error: it is in their column `error`" in said.err
    found = read(corpus.parent / "labelled")
    assert len(list((corpus.parent / "labelled").iterdir())) > 10
    bad = found[found.file.eq("below/a.jsonl.gz") & found.label.isna()]
    assert list(bad.line) == [101, 102, 103]
    assert [*map(bool, bad.error.str.contains("not JSON|surrogate|has no 'text'"))] == [True] * 3
    good = found[found.label.notna()].sort_values(["file", "line"])
    assert list(good.text) == [*texts[200:300], *texts[:200], *texts[300:]]
    model = korbert.load(untrained_models / "nsmc", "cpu")
    for row in good.iloc[::17].itertuples():
        expected = model.predict(row.text)
        assert row.label == expected.label
        assert row.probability == pytest.approx(max(expected.probabilities.values()), abs=1e-5)
    assert good.later.dropna().tolist() == ['[1, {"가": null}]']
    table = found[found.file.eq("b.parquet")]
    assert (list(table.stars), set(table.input_error)) == (list(range(100)), {"mine"})
    assert table.error.isna().all()


@pytest.mark.slow
def test_rows_are_equal_for_any_number_of_workers(corpus, command, untrained_models, texts, small_parts, real_workers):
    for count in (1, 3):
        command("embed", untrained_models / "pretrain", corpus, "--output", f"by {count}", "--workers", count, code=1)
    one, three = (read(corpus.parent / f"by {count}") for count in (1, 3))
    pd.testing.assert_frame_equal(one, three)
    expected = korbert.load(untrained_models / "pretrain", "cpu").embed(texts)
    found = one[one.vector.notna()].drop_duplicates("text").set_index("text").vector
    assert np.allclose(np.stack(found[texts].to_list()), expected, atol=1e-5)


@pytest.mark.slow
def test_a_ray_cluster_gives_the_same_rows(corpus, untrained_models):
    for runner in ("native", "ray"):  # in a process of its own: see corpus/execution/test_cluster.py
        asked = ["predict", untrained_models / "nsmc", corpus, "--output", runner, "--workers", "2", "--runner", runner]
        ended = subprocess.run([sys.executable, "-m", "korbert", *asked], capture_output=True, text=True)
        assert ended.returncode == 1, ended.stderr
    pd.testing.assert_frame_equal(*(read(corpus.parent / runner) for runner in ("native", "ray")))


def test_an_interrupted_run_resumes(corpus, command, untrained_models, small_parts):
    (corpus / "d.parquet").write_bytes(b"PAR1 not whole")
    asked = ("embed", untrained_models / "pretrain", "corpus", "--output", "vectors", "--workers", 1)
    assert "d.parquet: not a whole Parquet" in command(*asked, code=2).err
    kept = sorted((corpus.parent / "vectors.partial").glob("part-*"))
    assert len(kept) > 5
    assert not (corpus.parent / "vectors").exists()
    (kept[0].parent / ".korbert-0123456789abcdef").touch()  # as a killed process leaves it
    (corpus / "d.parquet").rename(corpus / "0.bin")
    (corpus / "0.csv").write_text("text\n새 글\n", encoding="utf-8")  # before the others, whose parts get other numbers
    resumed = sum(pq.read_metadata(path).num_rows for path in kept)
    assert f"vectors: 404 rows, {resumed} of them from an earlier run" in command(*asked, code=1).err
    names = {path.name for path in (corpus.parent / "vectors").iterdir()}
    assert {name[12:] for name in names} >= {path.name[12:] for path in kept}
    assert not any(name.startswith(".") for name in names)
    assert not (corpus.parent / "vectors.partial").exists()


@dataclass(frozen=True)
class Dying:
    """Ends its process at a text."""

    text: str
    digest = "dying"

    @property
    def roles(self):
        return [text_role()]

    def __call__(self, records):
        rows = text_rows(records, self.roles[0])
        if any(row.get("text") == self.text for row in rows):
            os._exit(9)
        return [row | {"label": "다른 글"} for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_record_that_ends_its_worker_is_an_error(here, texts, ending, real_workers):
    frame = pd.DataFrame({"text": [*texts[:9], "끝", *texts[9:20]], "n": range(21)})
    if ending == "jsonl":
        frame.to_json("a.jsonl", orient="records", lines=True, force_ascii=False)
    else:
        frame.to_parquet("a.parquet")
    file = here / f"a.{ending}"
    make = partial(Dying, "끝")
    counts = parts.write_parts(make(), make, {file.name: file}, here / "out", form="auto", workers=Workers(2))
    assert (counts["rows"], counts["failed"]) == (21, 1)
    found = read(here / "out")
    assert list(found.line) == list(range(1, 22))
    assert list(found.text) == list(frame.text)
    assert found[found.error.notna()].text.tolist() == ["끝"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["corpus"], "corpus: is several files: name a folder for the results with --output"),
        (["corpus", "--output", "o", "--csv"], "--csv: is for one file"),
        (["corpus/c.csv", "--workers", "2"], "--workers: is for a folder or a glob, and corpus/c.csv is one file"),
        (["corpus/c.csv", "--runner", "ray"], "--runner: is for a folder"),
        (["corpus", "--output", "o", "--address", "here:1"], "--address names a Ray cluster: add --runner ray"),
        (["corpus", "--output", "corpus/o"], "corpus/o: lies in corpus, which is read"),
        (["corpus", "--output", "corpus"], "corpus: already exists: name a new folder"),
        (["no/*.jsonl", "--output", "o"], "'no/*.jsonl': no such file"),
        (["corpus/*.csv", "--output", "o", "--text", "글"], "corpus/c.csv: no column 글 among text, n"),
        (["empty/*", "--output", "o"], "o: the files hold no record: give others"),
    ],
)
def test_what_cannot_be_done_is_said(corpus, command, untrained_models, arguments, message):
    (corpus.parent / "empty").mkdir()
    (corpus.parent / "empty" / "a.jsonl").touch()
    assert message in command("predict", untrained_models / "nsmc", *arguments, code=2).err
    assert not (corpus.parent / "o").exists()
    assert not (corpus.parent / "o.partial").exists()


def test_long_rows_of_parquet_are_parts_of_their_own(here, command, untrained_models, small_parts):
    pd.DataFrame({"text": ["가나다 " * 300, "라", "마 " * 2000, *"바사아"]}).to_parquet("a.parquet")
    command("embed", untrained_models / "pretrain", "*.parquet", "--output", "o")
    # A part ends as soon as it has 3,000 bytes.
    assert [pq.read_metadata(path).num_rows for path in sorted((here / "o").iterdir())] == [1, 2, 3]
    assert list(read(here / "o").line) == [1, 2, 3, 4, 5, 6]


def test_files_of_somebody_else_stay(corpus, command, untrained_models):
    theirs = corpus.parent / "o.partial"
    theirs.mkdir()
    (theirs / "mine.txt").write_text("mine", encoding="utf-8")
    asked = ("embed", untrained_models / "pretrain", corpus, "--output", "o")
    assert "holds mine.txt, not korbert's" in command(*asked, code=2).err
    assert (theirs / "mine.txt").read_text(encoding="utf-8") == "mine"


def test_a_column_named_like_a_result_is_the_input_of_every_part(here, command, untrained_models, small_parts):
    rows = [{"text": "좋다 " * 40, **({"label": "내 것"} if number > 60 else {})} for number in range(90)]
    (here / "a.jsonl").write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    command("predict", untrained_models / "nsmc", "*.jsonl", "--output", "o")
    found = read(here / "o")
    assert set(found.label) <= {"부정", "긍정"}
    assert found.input_label.notna().sum() == 29


def test_the_input_of_a_column_is_named_alike_in_every_part(here, command, untrained_models):
    pd.DataFrame({"text": ["좋다"], "label": ["처음"]}).to_parquet("a.parquet")
    rows = {"text": ["나쁘다"], "label": ["그다음"], "input_label": ["처음"]}  # as predict has written them
    pd.DataFrame(rows).to_parquet("b.parquet")
    pd.DataFrame(rows).to_csv("c.csv", index=False)
    command("predict", untrained_models / "nsmc", "[abc].*", "--output", "o")
    found = read(here / "o")
    assert found.input_label.tolist() == ["처음", "그다음", "그다음"]
    assert found.input_input_label.fillna("").tolist() == ["", "처음", "처음"]
    assert set(found.label) <= {"부정", "긍정"}


def test_a_glob_does_not_read_what_an_interrupted_run_has_written(here, command, untrained_models):
    pd.DataFrame({"text": ["가"]}).to_parquet("a.parquet")
    (here / "b.parquet").write_bytes(b"PAR1 not whole")
    asked = ("embed", untrained_models / "pretrain", "**/*.parquet", "--output", "o", "--workers", 1)
    command(*asked, code=2)
    assert len(list((here / "o.partial").glob("part-*"))) == 1
    (here / "b.parquet").unlink()
    (here / "picture.png").write_bytes(b"\x89PNG")
    assert "1 of them from an earlier run" in command(*asked).err
    said = command("embed", untrained_models / "pretrain", "[ap]*.p[an]*", "--output", "again").err
    assert "1 file of texts or a table; not read: 1, such as picture.png" in said


def test_another_form_is_other_work(here):
    (here / "a.txt").write_text('{"text": "가"}\n', encoding="utf-8")
    file = {"a.txt": here / "a.txt"}
    digests = {one.digest("") for form in ("lines", "jsonl") for one in parts.units_of(file, form, [text_role()])}
    assert len(digests) == 2


def test_personal_data_of_spans_is_not_masked(here, command, untrained_reader):
    (here / "a.jsonl").write_text('{"question": "언제?", "context": "어제"}\n', encoding="utf-8")
    asked = ("predict", untrained_reader, "a.jsonl", "--mask-personal")
    assert "--mask-personal: is for models of labels and numbers" in command(*asked, code=2).err


def test_columns_of_different_types_stay_as_they_are(here, command, untrained_models, caplog):
    pd.DataFrame({"text": ["가"], "n": [1]}).to_parquet("a.parquet")
    pd.DataFrame({"text": ["나"], "n": ["하나"]}).to_parquet("b.parquet")
    command("predict", untrained_models / "nsmc", "*.parquet", "--output", "o", "--workers", 1)
    assert "columns of different types" in caplog.text
    assert [pq.read_table(path).to_pylist()[0]["n"] for path in sorted((here / "o").iterdir())] == [1, "하나"]


def test_a_model_in_an_onnx_file_reads_folders(here, corpus, command, untrained_models):
    for name in ("onnx", "onnxruntime"):
        pytest.importorskip(name)
    command("export", untrained_models / "nsmc", here / "fast", "--onnx")
    command("predict", here / "fast", corpus, "--output", here / "out", code=1)  # three records cannot be read
    command("predict", untrained_models / "nsmc", corpus, "--output", here / "same", code=1)
    assert read(here / "out")["label"].tolist() == read(here / "same")["label"].tolist()
