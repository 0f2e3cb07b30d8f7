import faults
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from korbert.corpus import AnalyzeSettings
from korbert.corpus import analyze as stage
from korbert.corpus.analyze import analyze
from korbert.corpus.execution.parts import write_parquet
from korbert.corpus.morphemes import SCHEMA
from korbert.errors import CorpusError
from korbert.tokenization.analyzer import Analyzer

SMALL = AnalyzeSettings(part_bytes=1024)
TEXTS = [
    "학교에 간다.\n오늘도 했다.", "이걸 예뻐해요 😀 또 왔다!", "", "엌ㅋㅋㅋ 재밌음", "문장을 읽는다. 그리고 쓴다.",
]  # fmt: skip


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


def test_morphemes_are_those_of_kiwi(tmp_path):
    with pytest.raises(CorpusError, match=r"no part-\*.parquet in there: run `korbert clean` first"):
        analyze(AnalyzeSettings(), tmp_path, tmp_path / "out", workers=1)
    counts = analyze(AnalyzeSettings(), write_documents(tmp_path, TEXTS), tmp_path / "out", workers=1)
    analyzer = Analyzer()
    analyzed = read(tmp_path / "out")
    assert pq.read_schema(next((tmp_path / "out" / "morphemes").iterdir())).equals(SCHEMA)
    for row, text in zip(analyzed, TEXTS, strict=True):
        expected = analyzer.analyze(text)
        assert row["form"] == expected.forms
        assert row["tag"] == expected.tags
        assert row["start"] == expected.starts
        assert row["end"] == expected.ends
        assert row["sentence"] == expected.sentences
        assert row["eojeol"] == expected.eojeols
    assert counts == {
        "documents": 5, "failed": 0, "sentences": sum(len(set(row["sentence"])) for row in analyzed),
        "eojeols": sum(len(set(row["eojeol"])) for row in analyzed),
        "morphemes": sum(len(row["form"]) for row in analyzed),
    }  # fmt: skip


@pytest.fixture
def reference(tmp_path, whitespace, documents, bytes_below):
    """The files that a single worker makes of `documents` without interruption."""
    analyze(SMALL, documents, tmp_path / "whole", workers=1)
    files = bytes_below(tmp_path / "whole")
    assert len(files) == 4
    return files


@pytest.mark.usefixtures("whitespace")
@pytest.mark.parametrize(
    ("mark", "reason", "good"),
    [(faults.CRASH, "kiwi_crashed", 8), pytest.param(faults.HANG, "kiwi_timeout", 1, marks=pytest.mark.slow)],
)
def test_a_document_that_crashes_or_hangs_kiwi_is_the_only_one_lost(tmp_path, mark, reason, good):
    texts = [f"문서 {number} 번 글" for number in range(good)]
    bad = [*texts[:3], f"이 글은 {mark} 한다", *texts[3:]]
    settings = AnalyzeSettings(part_bytes=1 << 20, deadline_seconds=80)  # a 32nd of it for so little: 2.5 seconds
    counts = analyze(settings, write_documents(tmp_path / "bad", bad), tmp_path / "out", workers=2)
    assert (counts["documents"], counts["failed"]) == (good, 1)
    (failed,) = pq.read_table(tmp_path / "out" / "failed").to_pylist()
    assert (failed["id"], failed["source"], failed["reason"]) == (f"s:0-{len(texts[:3])}", "s", reason)
    kept = read(tmp_path / "out")
    assert [row["id"] for row in kept] == [f"s:0-{number}" for number in range(good + 1) if number != len(texts[:3])]
    assert [" ".join(row["form"]) for row in kept] == texts


@pytest.mark.slow
def test_a_halved_part_has_the_bytes_of_a_whole_one(tmp_path, documents, reference, monkeypatch, bytes_below):
    monkeypatch.setattr(stage, "_analyze", faults.analyze_small_slices)
    counts = analyze(SMALL, documents, tmp_path / "halved", workers=2)
    assert (counts["documents"], counts["failed"]) == (80, 0)
    assert bytes_below(tmp_path / "halved") == reference
    assert not list((tmp_path / "halved" / "work" / "analyze").glob("*.parquet"))


@pytest.mark.slow
def test_a_killed_run_is_resumed(tmp_path, documents, reference, bytes_below, kill_when):
    output = tmp_path / "out"
    script = (
        "import faults, functools; from pathlib import Path; from korbert.corpus import analyze as stage\n"
        "from korbert.corpus.corpus_settings import AnalyzeSettings\n"
        "stage._load_analyzer = functools.partial(faults.load_whitespace, seconds=0.02)\n"
        f"settings = AnalyzeSettings.model_validate_json({SMALL.model_dump_json()!r})\n"
        f"stage.analyze(settings, Path({str(documents)!r}), Path({str(output)!r}), workers=1)"
    )
    kill_when(script, lambda: len(list(output.glob("work/analyze/*.json"))) >= 1)
    names = [path.stem for path in output.glob("work/analyze/*.json")]
    assert 0 < len(names) < len(reference)
    finished = [path for path in output.rglob("part-*.*") if path.stem in names]
    before = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in finished}
    analyze(SMALL, documents, output, workers=2)
    assert {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in finished} == before
    assert bytes_below(output) == reference
    assert [row["id"] for row in read(output)] == pq.read_table(documents)["id"].to_pylist()


@pytest.mark.usefixtures("whitespace")
def test_another_library_version_makes_all_parts_anew(tmp_path, others_with):
    """Else a resumed run would mix the morphemes of two analyzers."""
    documents = write_documents(tmp_path, TEXTS)
    assert others_with(lambda: analyze(SMALL, documents, tmp_path / "out", workers=1), "kiwipiepy_model")


@pytest.mark.usefixtures("whitespace")
def test_a_file_that_changed_and_kept_its_size_is_read_again(tmp_path):
    documents = write_documents(tmp_path, ["나무가 산에 있다"])
    (path,) = documents.glob("*")
    analyze(SMALL, documents, tmp_path / "out", workers=1)
    before = path.stat().st_size
    path.unlink()
    write_documents(tmp_path, ["바다가 강에 있다"])
    assert path.stat().st_size == before
    analyze(SMALL, documents, tmp_path / "out", workers=1)
    assert read(tmp_path / "out")[0]["form"] == ["바다가", "강에", "있다"]
