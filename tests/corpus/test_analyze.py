"""The analyze stage: Kiwi's own result for each document, and what happens to documents that crash or hang it."""

import faults
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpus import analyze as stage
from corpus.analyze import analyze
from corpus.morphemes import SCHEMA
from corpus.parts import write_parquet
from corpus.settings import AnalyzeSettings
from korbert.errors import CorpusError
from korbert.tokenization.analyzer import Analyzer

TEXTS = [
    "학교에 간다.\n오늘도 했다.",
    "이걸 예뻐해요 😀 또 왔다!",
    "",
    "엌ㅋㅋㅋ 재밌음",
    "한국어 문장을 읽는다. 그리고 쓴다.",
]


def write_documents(folder, texts, part=0):
    ids = [f"s:{part}-{number}" for number in range(len(texts))]
    table = pa.table({"id": ids, "source": ["s"] * len(ids), "text": pa.array(texts, pa.large_string())})
    write_parquet(folder / "documents" / f"part-{part:05d}.parquet", table, folder, rows=3)
    return folder / "documents"


def read(folder):
    return pq.read_table(folder / "morphemes").to_pylist()


@pytest.fixture
def whitespace(monkeypatch):
    monkeypatch.setattr(stage, "_load_analyzer", faults.load_whitespace)


@pytest.fixture
def documents(tmp_path):
    for part in range(2):
        folder = write_documents(tmp_path, [f"문서 {number} 번 글\n둘째 줄 {part}" for number in range(40)], part)
    return folder


def test_morphemes_are_what_kiwi_says(tmp_path):
    documents = write_documents(tmp_path, TEXTS)
    counts = analyze(AnalyzeSettings(), documents, tmp_path / "out", workers=1)
    analyzer = Analyzer()
    found = read(tmp_path / "out")
    assert pq.read_schema(next((tmp_path / "out" / "morphemes").iterdir())).equals(SCHEMA)
    for row, text in zip(found, TEXTS, strict=True):
        expected = analyzer.analyze(text)
        assert (row["form"], row["tag"]) == (expected.forms, expected.tags)
        assert (row["start"], row["end"]) == (expected.starts, expected.ends)
        assert (row["sentence"], row["eojeol"]) == (expected.sentences, expected.eojeols)
    assert counts == {
        "documents": 5,
        "failed": 0,
        "sentences": sum(len(set(row["sentence"])) for row in found),
        "eojeols": sum(len(set(row["eojeol"])) for row in found),
        "morphemes": sum(len(row["form"]) for row in found),
    }


@pytest.mark.usefixtures("whitespace")
def test_the_same_bytes_for_one_and_two_workers(tmp_path, documents, bytes_below):
    for workers in (1, 2):
        analyze(AnalyzeSettings(part_bytes=1024), documents, tmp_path / str(workers), workers=workers)
    assert bytes_below(tmp_path / "1") == bytes_below(tmp_path / "2")
    assert [row["id"] for row in read(tmp_path / "1")] == pq.read_table(documents)["id"].to_pylist()
    assert len(bytes_below(tmp_path / "1")) > 4


@pytest.mark.usefixtures("whitespace")
@pytest.mark.parametrize(("mark", "reason"), [(faults.CRASH, "kiwi_crashed"), (faults.HANG, "kiwi_timeout")])
def test_a_document_that_crashes_or_hangs_kiwi_is_the_only_one_lost(tmp_path, mark, reason, bytes_below):
    texts = [f"문서 {number} 번 글" for number in range(20)]
    bad = [*texts[:13], f"이 글은 {mark} 한다", *texts[13:]]
    settings = AnalyzeSettings(part_bytes=1 << 20, deadline_seconds=40)
    counts = analyze(settings, write_documents(tmp_path / "bad", bad), tmp_path / "out", workers=2)
    assert (counts["documents"], counts["failed"]) == (20, 1)
    (failed,) = pq.read_table(tmp_path / "out" / "failed").to_pylist()
    assert (failed["id"], failed["source"], failed["reason"]) == ("s:0-13", "s", reason)
    kept = read(tmp_path / "out")
    assert [row["id"] for row in kept] == [f"s:0-{number}" for number in range(21) if number != 13]
    assert [" ".join(row["form"]) for row in kept] == texts


@pytest.mark.usefixtures("whitespace")
def test_a_halved_part_has_the_bytes_of_a_whole_one(tmp_path, documents, monkeypatch, bytes_below):
    analyze(AnalyzeSettings(), documents, tmp_path / "whole", workers=1)
    monkeypatch.setattr(stage, "_analyze", faults.analyze_small_slices)
    counts = analyze(AnalyzeSettings(), documents, tmp_path / "halved", workers=2)
    assert (counts["documents"], counts["failed"]) == (80, 0)
    assert bytes_below(tmp_path / "halved") == bytes_below(tmp_path / "whole")
    assert not list((tmp_path / "halved" / "work" / "analyze").glob("*.parquet"))


@pytest.mark.usefixtures("whitespace")
def test_killed_and_run_again(tmp_path, documents, bytes_below, kill_when):
    settings = AnalyzeSettings(part_bytes=1024)
    analyze(settings, documents, tmp_path / "whole", workers=2)
    output = tmp_path / "out"
    script = (
        "import faults; from pathlib import Path; from corpus import analyze as stage\n"
        "from corpus.settings import AnalyzeSettings\n"
        "stage._load_analyzer = faults.load_slow_whitespace\n"
        f"settings = AnalyzeSettings(part_bytes=1024)\n"
        f"stage.analyze(settings, Path({str(documents)!r}), Path({str(output)!r}), workers=2)"
    )
    kill_when(script, lambda: len(list(output.glob("work/analyze/*.json"))) >= 1)
    finished = {path: path.stat() for path in output.glob("work/analyze/*.json")}
    parts = {
        path: path.stat()
        for path in output.glob("morphemes/*")
        if output / "work/analyze" / f"{path.stem}.json" in finished
    }
    assert 0 < len(finished) < len(list((tmp_path / "whole" / "morphemes").iterdir()))
    analyze(settings, documents, output, workers=2)
    for path, stat in (finished | parts).items():
        assert (path.stat().st_ino, path.stat().st_mtime_ns) == (stat.st_ino, stat.st_mtime_ns)
    assert bytes_below(output) == bytes_below(tmp_path / "whole")


def test_no_documents(tmp_path):
    with pytest.raises(CorpusError, match=r"no part-\*.parquet in there: run `korbert clean` first"):
        analyze(AnalyzeSettings(), tmp_path, tmp_path / "out", workers=1)
