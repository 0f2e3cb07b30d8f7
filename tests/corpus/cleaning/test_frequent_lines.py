"""Frequent lines: which are found, where, and the text without them."""

from functools import partial

import planted
import pyarrow.parquet as pq
import pytest

from korbert.corpus.cleaning.frequent_lines import find_frequent, line_table, without_lines
from korbert.corpus.execution.database import connect

NOTICE = "이 글은 어디에나 붙어 있는 안내문이다."


def find(folder, documents, most=2, min_chars=5, gone=(), per_part=2):
    rows = planted.parts(folder / "rows", {"text": documents}, per_part)
    lines = planted.parts(folder / "lines", {"text": documents}, per_part, partial(line_table, min_chars=min_chars))
    positions, texts = folder / "places.parquet", folder / "texts.parquet"
    with connect(folder, 1, without=planted.gone(folder, gone), lines=lines, read=rows) as database:
        number = find_frequent(database, most, texts, positions, folder)
    tables = [pq.read_table(path).to_pylist() for path in (positions, texts)]
    assert number == len(tables[1])
    return tuple([tuple(row.values()) for row in rows] for rows in tables)


def test_a_line_of_many_documents_is_found_at_any_position(tmp_path):
    documents = [f"첫 글의 첫 줄\n\n{NOTICE}", f"{NOTICE}\n둘째 글", f"셋째 글\n{NOTICE}\n끝 줄이다", "넷째 글"]
    positions, texts = find(tmp_path, documents)
    assert positions == [(0, 0, 2), (0, 1, 0), (1, 0, 1)]
    assert texts == [(NOTICE, 3)]


def test_a_line_counts_once_per_document(tmp_path):
    assert find(tmp_path, [f"{NOTICE}\n{NOTICE}\n{NOTICE}", f"글 하나\n{NOTICE}"]) == ([], [])


def test_short_lines_and_lines_of_few_documents_stay(tmp_path):
    assert find(tmp_path, ["같은 줄\n가"] * 5) == ([], [])
    assert find(tmp_path, ["같은 줄이다\n가"] * 2) == ([], [])
    assert find(tmp_path, ["같은 줄이다\n가"] * 3)[1] == [("같은 줄이다", 3)]


def test_dropped_documents_do_not_count(tmp_path):
    documents = [NOTICE, f"{NOTICE}\n나", f"{NOTICE}\n다"]
    assert find(tmp_path, documents, gone=[(1, 0)]) == ([], [])
    assert find(tmp_path, documents)[0] == [(0, 0, 0), (0, 1, 0), (1, 0, 0)]


def test_lines_are_ordered_by_frequency_then_text(tmp_path):
    documents = ["나나나나나\n가가가가가\n다다다다다"] * 3 + ["다다다다다"]
    assert find(tmp_path, documents)[1] == [("다다다다다", 4), ("가가가가가", 3), ("나나나나나", 3)]


@pytest.mark.parametrize(
    ("text", "gone", "left"),
    [
        ("가\n나\n다", [1], "가\n다"),
        ("가\n\n나\n\n다", [2], "가\n\n다"),
        ("가\n나", [0, 1], ""),
        ("가\n\n나", [0], "나"),
        ("가\n\n나", [2], "가"),
        ("가\n나", [], "가\n나"),
    ],
)
def test_text_without_lines(text, gone, left):
    assert without_lines(text, gone) == left
