"""A record that is too long becomes a row with a reason. Those after it are read, and its rest is never in memory."""

import json
from itertools import groupby

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from reading import put

from korbert.corpus.corpus_settings import FilterSettings, SourceSettings
from korbert.corpus.readers import chunks, rows
from korbert.errors import CorpusError

LONGEST = 2048
GOOD = "강가에는 포구가 생겨 쌀과 소금이 모였다."
LONG = "가나다라" * 400  # 4,800 bytes
PAGE = "<page><title>산</title><ns>0</ns><id>{}</id><revision><text>{}</text></revision></page>"


def read(path, part_bytes=512, **source):
    result = list(chunks(SourceSettings(name="s", path="x", **source), [path], part_bytes, LONGEST))
    most = part_bytes + LONGEST * (8 if source.get("kind") == "korquad" else 1)
    assert all(segment.size <= most for chunk in result for segment in chunk.segments)
    return [row for chunk in result for row in rows(chunk)]


@pytest.fixture(autouse=True)
def _little_is_shown(monkeypatch):
    for module in ("segments", "cutting"):
        monkeypatch.setattr(f"korbert.corpus.readers.{module}.SHOWN_BYTES", 100)
    monkeypatch.setattr("korbert.records.lines._CHUNK", 64)
    monkeypatch.setattr("korbert.corpus.readers.cutting._PASSED_BYTES", 64)
    monkeypatch.setattr("korbert.corpus.readers.wikipedia._READ_BYTES", 64)


@pytest.mark.parametrize(
    ("name", "content", "source", "place", "size"),
    [
        ("a.jsonl", '{{"id": 1, "text": "{good}"}}\n{long}\n{{"id": 2, "text": "{good}"}}\n', {}, "line 2", 4800),
        ("a.txt", "{good}\n{long}\n{good}", {}, "line 2", 4800),
        ("a.csv", 'id,text\n1,{good}\n2,"{long}"\n3,{good}\n', {}, "line 3", 4804),
        ("a.tsv", "id\ttext\n1\t{good}\n2\t{long}\n3\t{good}\n", {}, "line 3", 4802),
    ],
)
@pytest.mark.parametrize("part_bytes", [64, 1024, LONGEST])
def test_a_too_long_record_is_dropped_alone(tmp_path, name, content, source, place, size, part_bytes):
    path = put(tmp_path, name, content.format(good=GOOD, long=LONG))
    before, bad, after = read(path, part_bytes, **source)
    assert (before.text, before.reason, after.text, after.reason) == (GOOD, None, GOOD, None)
    detail = f"{name} {place}: {size:,} bytes, and a record may have 2,048: of its text only the beginning is kept"
    assert (bad.reason, bad.detail, bad.id) == ("too_long", detail, None)
    assert 97 <= len(bad.text.encode()) <= 100
    assert "가나다" in bad.text or bad.text.startswith(GOOD)


def test_a_too_long_file_is_dropped(tmp_path):
    (row,) = read(put(tmp_path, "a.txt", LONG), documents="file")
    assert row.reason == "too_long"
    assert row.detail.startswith("a.txt: 4,800 bytes, and a record may have 2,048: ")
    for contexts, reasons in ((300, ["too_long"]), (50, [None] * 50)):  # contexts are records
        content = json.dumps({"data": [{"paragraphs": [{"context": GOOD}] * contexts}]})
        assert [row.reason for row in read(put(tmp_path, "a.json", content), kind="korquad")] == reasons
    path = put(tmp_path, "a.xml", PAGE.format(1, GOOD) + PAGE.format(2, LONG) + PAGE.format(3, GOOD))
    with pytest.raises(CorpusError, match=r"a\.xml: page 2 does not end in 2,\d{3} bytes: not a dump .* or damaged"):
        read(path)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())])
def test_a_too_long_cell_of_parquet_is_dropped_alone(tmp_path, kind):
    path = tmp_path / "a.parquet"
    texts = [GOOD, LONG, GOOD, "", LONG]
    pq.write_table(pa.table({"id": [f"r{number}" for number in range(5)], "text": pa.array(texts).cast(kind)}), path)
    result = read(path, 1024)
    assert [row.reason for row in result] == [None, "too_long", None, None, "too_long"]
    assert [row.id for row in result] == ["r0", None, "r2", "r3", None]
    assert result[4].detail.startswith("a.parquet row 5: 4,803 bytes, ")
    assert result[4].text == LONG[:33]


@pytest.mark.parametrize(("encoding", "shown"), [("utf-8", 33), ("cp949", 32)])
def test_undecodable_bytes_are_shown_in_a_too_long_record(tmp_path, encoding, shown):
    (row,) = read(put(tmp_path, "a.txt", b"\xff" + LONG.encode(encoding)), encoding=encoding)
    assert row.text == "\\xff" + LONG[:shown]


@given(st.lists(st.integers(0, 12), max_size=30), st.integers(1, 40), st.booleans())
def test_every_record_is_read_or_reported_with_its_length(tmp_path_factory, sizes, part_bytes, ends):
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    lines = [("가나다라마바사아자차카타"[:size]) for size in sizes]
    path.write_text("\n".join(lines) + "\n" * ends, "utf-8")
    longest = max(20, part_bytes)
    settings = SourceSettings(name="s", path="x")
    result = [row for chunk in chunks(settings, [path], part_bytes, longest) for row in rows(chunk)]
    filled = [(f"a.txt line {number}", text) for number, text in enumerate(lines, 1) if text]
    assert [row.detail.partition(": ")[0] or row.place for row in result] == [place for place, _ in filled]
    for row, (_, text) in zip(result, filled, strict=True):
        if row.reason is None:
            assert row.text == text
            assert len(text.encode()) <= longest
        else:
            assert text.startswith(row.text)
            assert len(text.encode()) > longest


@given(
    st.lists(st.sampled_from(["", " ", "가", "나다라 마"]), max_size=20),
    st.integers(1, 40),
    st.sampled_from(["", "\n"]),
)
def test_paragraphs_stay_whole(tmp_path_factory, lines, part_bytes, end):
    path = tmp_path_factory.mktemp("paragraphs") / "a.txt"
    path.write_text("\n".join(lines) + end, "utf-8")
    settings = SourceSettings(name="s", path="x", documents="blank")
    result = [row for chunk in chunks(settings, [path], part_bytes) for row in rows(chunk)]
    groups = ["\n".join(group) for filled, group in groupby(lines, lambda line: bool(line.strip())) if filled]
    assert [row.text for row in result] == groups


def test_a_file_without_blank_lines_has_no_paragraphs(tmp_path, monkeypatch):
    monkeypatch.setattr("korbert.records.lines._MAX_OVERHANG", 200)
    path = put(tmp_path, "a.txt", f"{GOOD}\n\n" + f"{GOOD}\n" * 20)
    with pytest.raises(CorpusError, match=r'a\.txt, line \d+: no blank line before it, and documents = "blank" needs'):
        read(path, 64, documents="blank")


def test_a_compressed_file_of_zeros_is_one_too_long_record(tmp_path):
    (row,) = read(put(tmp_path, "a.jsonl.zst", zstandard.compress(b"\0" * 20_000_000)))
    assert row.detail.startswith("a.jsonl.zst line 1: 20,000,000 bytes, ")
    assert FilterSettings().max_record_bytes == 1 << 26
    assert FilterSettings(max_chars=100_000_000).max_record_bytes == 600_000_000
