"""The reader of NSMC files: every byte of a review is kept, every fault is named by its line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.errors import CorpusError
from korbert.tasks import nsmc

HEADER = b"id\tdocument\tlabel\n"


def _file(folder: Path, data: bytes) -> Path:
    path = folder / "ratings.txt"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    "text",
    [
        '"따옴표가 하나뿐',
        '""',
        "'",
        "NA",
        "null",
        "nan",
        "",
        "NULL",
        "None",
        "-inf",
        "  앞뒤 공백  ",
        "# 주석 아님",
        "1,000원",
        "a\rb",
        "\\N",
        "한 줄\u2028두 줄\x85세 줄\x0b",
        "\x00",
        "😀𠀀",
        "\ufeff",
    ],
)
def test_texts_come_back_as_they_stand_in_the_file(tmp_path: Path, text: str) -> None:
    table = nsmc.read(_file(tmp_path, HEADER + f"00123\t{text}\t1\n77\t다음 줄\t0\n".encode()))
    assert table.to_dict("list") == {"id": ["00123", "77"], "text": [text, "다음 줄"], "label": [1, 0]}
    assert table["label"].dtype == "int64"


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n")), min_size=1))
def test_any_text_without_tab_and_line_feed_is_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    rows = "".join(f"{number}\t{text}\t{number % 2}\n" for number, text in enumerate(texts))
    table = nsmc.read(_file(tmp_path_factory.mktemp("law"), HEADER + rows.encode()))
    assert table["text"].tolist() == texts
    assert table["id"].tolist() == [str(number) for number in range(len(texts))]


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + HEADER + b"1\tx\t0\n2\t\t1\n",
        (HEADER + b"1\tx\t0\n2\t\t1\n").replace(b"\n", b"\r\n"),
        HEADER + b"1\tx\t0\n2\t\t1",
    ],
    ids=["byte-order mark", "CRLF", "no line feed at the end"],
)
def test_other_ways_to_write_the_same_file(tmp_path: Path, data: bytes) -> None:
    assert nsmc.read(_file(tmp_path, data)).to_numpy().tolist() == [["1", "x", 0], ["2", "", 1]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            HEADER + b"1\tx\t0\n2\ta\tb\t1\n",
            r"ratings\.txt, line 3: 4 fields between tabs, not 3, in '2\\ta\\tb\\t1': mend it",
        ),
        (HEADER + b"1\ta\tb\t0\n2\ta\tb\t1\n", r"line 2: 4 fields"),  # the same number in all rows: no index column
        (HEADER + b"1\tx\t0\n2 x 1\n", r"line 3: 1 fields"),
        (HEADER + b"1\tx\t0\n\n2\tx\t1\n", r"line 3: 1 fields between tabs, not 3, in ''"),
        (HEADER + b"1\tx\t0\n2\tx\t2\n", r"line 3: the label is '2', not 0 or 1"),
        (HEADER + b"1\tx\t\n", r"line 2: the label is '', not 0 or 1"),
        (HEADER + b"1\tx\t1.0\n", r"line 2: the label is '1\.0'"),
        (HEADER + b"1\tx\t0\n2\t\xff\t1\n", r"line 3: '2\\t\\udcff\\t1' is not UTF-8: mend it"),
        (b"\xff\xfei\x00d\x00", r"line 1: the header is 'id', not"),
        (b"id,document,label\n1,x,0\n", r"line 1: the header is 'id,document,label', not 'id\\tdocument\\tlabel'"),
        (b"1\tx\t0\n", r"line 1: the header is"),
        (b"", r"ratings\.txt: is empty"),
        (HEADER, r"holds no review below its header"),
    ],
)
def test_faults_are_named_by_file_and_line(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        nsmc.read(_file(tmp_path, data))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"none\.txt: no such file: see docs/data\.md"):
        nsmc.read(tmp_path / "none.txt")


def test_the_official_test_file_is_read_whole(korbert_data: Path) -> None:
    table = nsmc.read(korbert_data / "nsmc" / "ratings_test.txt")
    assert len(table) == 50_000
    assert table["label"].sum() == 25_173
    assert (table["text"] == "").sum() == 3
