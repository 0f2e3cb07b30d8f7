from functools import partial

import planted
import pyarrow.parquet as pq
import pytest

from korbert.corpus.cleaning.frequent_lines import find_frequent, line_table, without_lines
from korbert.corpus.execution.database import connect

NOTICE = "이 글은 어디에나 붙어 있는 안내문이다."


def find(folder, documents, gone):
    """Where the lines of at least 5 characters and more than 2 documents stand, and these lines by frequency."""
    rows = planted.parts(folder / "rows", {"text": documents}, 2)
    lines = planted.parts(folder / "lines", {"text": documents}, 2, partial(line_table, min_chars=5))
    positions = folder / "places.parquet"
    texts = folder / "texts.parquet"
    with connect(folder, 1, without=planted.gone(folder, gone), lines=lines, read=rows) as database:
        number = find_frequent(database, 2, texts, positions, folder)
    tables = [pq.read_table(path).to_pylist() for path in (positions, texts)]
    assert number == len(tables[1])
    return tuple([tuple(row.values()) for row in rows] for rows in tables)


@pytest.mark.parametrize(
    ("documents", "gone", "texts", "positions"),
    [
        ([f"첫 글의 첫 줄\n\n{NOTICE}", f"{NOTICE}\n둘째 글", f"셋째 글\n{NOTICE}\n끝 줄이다", "넷째 글"], [],
         [(NOTICE, 3)], [(0, 0, 2), (0, 1, 0), (1, 0, 1)]),
        ([f"{NOTICE}\n{NOTICE}\n{NOTICE}", f"글 하나\n{NOTICE}"], [], [], []),  # counts once per document
        (["같은 줄\n가"] * 5, [], [], []),  # too short
        (["같은 줄이다\n가"] * 2, [], [], []),  # of too few documents
        (["같은 줄이다\n가"] * 3, [], [("같은 줄이다", 3)], [(0, 0, 0), (0, 1, 0), (1, 0, 0)]),
        ([NOTICE, f"{NOTICE}\n나", f"{NOTICE}\n다"], [(1, 0)], [], []),  # dropped documents do not count
        (["나나나나나\n가가가가가\n다다다다다"] * 3 + ["다다다다다"], [],
         [("다다다다다", 4), ("가가가가가", 3), ("나나나나나", 3)],
         [*((part, place, line) for part, place in ((0, 0), (0, 1), (1, 0)) for line in range(3)), (1, 1, 0)]),
    ],
)  # fmt: skip
def test_lines_of_many_documents_are_found(tmp_path, documents, gone, texts, positions):
    assert find(tmp_path, documents, gone) == (positions, texts)


@pytest.mark.parametrize(
    ("text", "gone", "left"),
    [
        ("가\n나\n다", [1], "가\n다"), ("가\n\n나\n\n다", [2], "가\n\n다"), ("가\n나", [0, 1], ""),
        ("가\n\n나", [0], "나"), ("가\n\n나", [2], "가"), ("가\n나", [], "가\n나"),
    ],
)  # fmt: skip
def test_text_without_lines(text, gone, left):
    assert without_lines(text, gone) == left
