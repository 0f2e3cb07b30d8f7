"""The preview of cleaning, against clean itself."""

import json

import pyarrow.parquet as pq
import pytest

from korbert.corpus.cleaning.clean import clean
from korbert.corpus.cleaning.preview import preview
from korbert.corpus.corpus_settings import CleanSettings, SourceSettings
from korbert.errors import CorpusError


def settings(*names):
    return CleanSettings(sources=tuple({"name": name, "path": "x"} for name in names))


@pytest.fixture
def files(tmp_path):
    texts = [f"{number}번째 문서는 학교에서 읽은 책 이야기이다" for number in range(200)]
    texts[::20] = ["네"] * 10
    texts[1::20] = [f"{number}번 방으로 연락 주세요 010-1234-{number:04} &amp; 안녕히" for number in range(10)]
    lines = [json.dumps({"id": number, "text": text}) + "\n" for number, text in enumerate(texts)]
    (tmp_path / "a.jsonl").write_text("".join(lines) + "[]\n")
    (tmp_path / "b.txt").write_text("첫째 줄은 이만큼이나 길다\n둘째 줄도 이만큼이나 길다\n", encoding="utf-8")
    return {"a": [tmp_path / "a.jsonl"], "b": [tmp_path / "b.txt"]}


def test_preview_agrees_with_clean(files, tmp_path):
    sample = preview(settings("a", "b"), files, 1_000)
    counts = clean(settings("a", "b"), files, tmp_path / "out", workers=1)
    assert sample.read == {"a": 201, "b": 2}
    assert len(sample.rows) == counts["read"] == 203
    assert sample.reasons == {"too_short": 10, "bad_json": 1}
    assert sample.masked == {"phone": counts["masked.phone"]} == {"phone": 10}
    kept = pq.read_table(tmp_path / "out" / "documents")["text"].to_pylist()
    assert sorted(kept) == sorted(row.after for row in sample.rows if row.reason is None)
    changed = [row for row in sample.rows if row.changed]
    assert len(changed) == 10
    assert changed[0].after == "0번 방으로 연락 주세요 <전화번호> & 안녕히"
    assert {row.id for row in sample.rows if row.reason == "bad_json"} == {None}


def test_the_sample_is_stable_and_equal_per_source(files, tmp_path):
    sample = preview(settings("a", "b"), files, 20)
    assert [row.id for row in sample.rows] == [row.id for row in preview(settings("a", "b"), files, 20).rows]
    assert sum(row.place.startswith("a.jsonl") for row in sample.rows) == 10
    assert len(preview(settings("a"), files, 7).rows) == 7
    (tmp_path / "a.jsonl").write_text("\n")
    with pytest.raises(CorpusError, match="no document in source 'a': its files hold no record"):
        preview(settings("a"), files, 5)


@pytest.mark.parametrize("source", [{"id": "번호"}, {"text": "본문"}])
def test_preview_refuses_a_source_without_documents_as_clean_does(tmp_path, source):
    (tmp_path / "a.jsonl").write_text('{"id": 1, "text": "오늘은 학교에 갔다."}\n', encoding="utf-8")
    own = CleanSettings(sources=(SourceSettings(name="a", path="x", **source),))
    said = []
    for ask in (
        lambda: preview(own, {"a": [tmp_path / "a.jsonl"]}, 5),
        lambda: clean(own, {"a": [tmp_path / "a.jsonl"]}, tmp_path / "out", workers=1),
    ):
        with pytest.raises(CorpusError) as caught:
            ask()
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert 'set id (id = "" takes the number of the line), text or kind' in said[0]
