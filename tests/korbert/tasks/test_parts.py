"""Which rows a limit leaves."""

import pytest

from korbert.errors import CorpusError
from korbert.tasks.files import ROLES, read_rows
from korbert.tasks.splits import drop_unusable, limit, split_by_texts

TEXTS = [f"문장 {number}" for number in range(50)]


def _rows(folder, texts):
    """Of a file with an empty row behind them, which is dropped."""
    path = folder / "a.csv"
    path.write_text("\n".join(["text,label", *(f"{text},1" for text in texts), ",1\n"]), encoding="utf-8")
    return read_rows(path, [ROLES["text"]])


def _texts(row):
    return [row["text"]]


def test_a_limit_takes_the_same_texts_in_any_order_and_keeps_notes(tmp_path):
    rows = _rows(tmp_path, TEXTS)
    kept = limit(rows, 20, _texts)
    found = [row["text"] for row in kept]
    assert len(found) == 20
    assert found == sorted(found, key=TEXTS.index)
    assert [kept.places[place].number for place in range(20)] == [TEXTS.index(text) + 2 for text in found]
    assert kept.dropped.keys() == {"no_text"}
    assert {row["text"] for row in limit(_rows(tmp_path, TEXTS[::-1]), 20, _texts)} == set(found)
    assert {row["text"] for row in limit(rows, 30, _texts)} > set(found)  # fewer are part of more
    assert limit(rows, 50, _texts) is rows

    def check(row):
        if row["text"] == TEXTS[1]:
            raise ValueError("is odd")

    rows = _rows(tmp_path, TEXTS)
    rows.notes.append("a remark")
    said = drop_unusable(rows, check).summary()
    assert said[-2:] == [f"dropped 1 as bad_row: {tmp_path / 'a.csv'}, line 3: is odd", "a remark"]


def test_a_share_of_limited_rows_validates_and_leaves_a_row_to_learn_from(tmp_path):
    for texts, share, lengths in ((TEXTS, 0.1, (18, 2)), (TEXTS[:3], 0.9, (1, 2))):
        train, valid = split_by_texts(limit(_rows(tmp_path, texts), 20, _texts), share, _texts)
        assert (len(train), len(valid)) == lengths


def test_one_usable_text_is_refused_with_what_was_dropped(tmp_path):
    rows = drop_unusable(_rows(tmp_path, TEXTS[:2]), lambda row: int(row["text"] == TEXTS[1]) and int("odd"))
    with pytest.raises(CorpusError, match=r"dropped 1 as bad_row: .*a\.csv, line 3: .*: all rows have the same text"):
        split_by_texts(rows, 0.1, _texts)
