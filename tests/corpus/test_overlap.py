import unicodedata

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from korbert.corpus.overlap import found_in


@pytest.fixture
def documents(tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    parts = ["첫째 문서다.\n둘째  줄이다.\n", "정말\u00a0좋아요"], ["지루함", 'it\'s "quoted"']
    for number, texts in enumerate(parts):
        table = pa.table({"id": [f"s:{number}-{at}" for at in range(2)], "source": ["s"] * 2, "text": texts})
        pq.write_table(table, folder / f"part-{number:05d}.parquet")
    return folder


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("지루함", True), (" 지루함\n", True), (unicodedata.normalize("NFD", "지루함"), True),
        ("정말 좋아요", True), ("정말\u3000  좋아요", True), ("정말좋아요", False),  # a no-break space is one
        ("둘째 줄이다.", True), ("첫째 문서다. 둘째 줄이다.", True), ("문서다.", False),  # a part of a line
        ('it\'s "quoted"', True), ("it''s", False), ("훈련에서 본 글", True), ("처음 보는 글", False),
    ],
)  # fmt: skip
def test_documents_and_lines_are_found_whatever_their_spaces(tmp_path, documents, text, found):
    assert found_in([text], ["훈련에서  본 글"], documents, tmp_path, threads=1).tolist() == [found]


def test_results_are_in_the_order_of_the_texts(tmp_path, documents):
    texts = ["지루함", "x", "지루함", "", "정말 좋아요"]
    assert found_in(texts, [], documents, tmp_path, threads=2).tolist() == [True, False, True, True, True]
    assert not (tmp_path / "work" / "spill").exists()
    assert found_in(["가", "나"], ["나"], tmp_path / "none", tmp_path, threads=1).tolist() == [False, True]
