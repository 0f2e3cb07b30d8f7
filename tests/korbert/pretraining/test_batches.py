import numpy as np
import pytest
import torch

from korbert.errors import SettingsError
from korbert.pretraining import MaskingSettings, PairSettings, Phase, PretrainingRows, heldout_batches, in_phases
from korbert.world import World

KEYS = ["attention_mask", "boundaries", "input_ids", "labels", "next_sentence_label", "token_type_ids"]


@pytest.fixture(scope="module")
def rows(corpus, ids):
    return PretrainingRows(corpus.files, ids, 64, MaskingSettings(), PairSettings(), seed=3)


def unpadded(batch):
    """Each row of a batch as bytes, without its padding."""
    lengths = batch["attention_mask"].sum(dim=1).tolist()
    names = ("input_ids", "token_type_ids", "boundaries", "labels")
    return [
        b"".join(batch[name][row, :length].numpy().tobytes() for name in names)
        + batch["next_sentence_label"][row].numpy().tobytes()
        for row, length in enumerate(lengths)
    ]


def test_a_row_by_hand(shards, ids):
    written = shards([("wiki", [4, 3])], files=1)
    rows = PretrainingRows(written.files, ids, 64, MaskingSettings(rate=0.5), PairSettings(), seed=0)
    row = rows.row(0, 0)
    text = written.input_ids[0]
    original = np.where(row["labels"] == -100, row["input_ids"], row["labels"])
    assert original.tolist() == [ids.cls, *text[:4], ids.sep, *text[4:], ids.sep]
    assert row["token_type_ids"].tolist() == [0] * 6 + [1] * 4
    assert row["boundaries"].tolist() == [0, *written.boundaries[0][:4], 0, *written.boundaries[0][4:], 0]
    assert row["next_sentence_label"].tolist() == [-100]  # there is no other document
    assert (row["labels"][[0, 5, 9]] == -100).all()


def test_a_document_of_one_sentence_is_one_segment(shards, ids):
    rows = PretrainingRows(shards([("reviews", [5])]).files, ids, 64, MaskingSettings(), PairSettings(), seed=0)
    row = rows.row(0, 0)
    assert row["token_type_ids"].tolist() == [0] * 7
    assert row["next_sentence_label"].tolist() == [-100]


def test_every_epoch_masks_and_pairs_anew(rows):
    first, again, second = rows.row(0, 17), rows.row(0, 17), rows.row(1, 17)
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["labels"], second["labels"])


def test_shapes_and_padding(rows, ids):
    (batch,) = rows.batch(2, 8)
    known = ["label_rows", "label_columns", "layout"]
    assert sorted(batch) == sorted([*KEYS, *known, "mlm_count", "nsp_count", "weight"])
    lengths = batch["attention_mask"].sum(dim=1)
    assert lengths.tolist() == sorted(lengths.tolist())
    assert batch["input_ids"].shape == (8, int(lengths.max()))
    padding = batch["attention_mask"] == 0
    assert (batch["input_ids"][padding] == ids.pad).all()
    assert (batch["labels"][padding] == -100).all()
    assert all(batch[name].dtype == torch.int64 for name in KEYS)


def test_a_layout_says_where_rows_end_and_labels_are(rows):
    for batch in rows.batch(1, 16, micro_batches=3):
        chosen, layout = batch["labels"] != -100, batch["layout"]
        assert list(layout.lengths) == batch["attention_mask"].sum(dim=1).tolist()
        assert layout.labels_before[0] == 0
        assert np.diff(layout.labels_before).tolist() == chosen.sum(dim=1).tolist()
        places = batch["label_rows"], batch["label_columns"]
        assert torch.equal(batch["labels"][places], batch["labels"][chosen])  # all of them, row by row


def test_rows_do_not_depend_on_batch_size_or_accumulation(rows):
    one_by_one = [row for step in range(48) for batch in rows.batch(step, 1) for row in unpadded(batch)]
    for batch_size, micro_batches in [(4, 1), (16, 4), (48, 5), (3, 8)]:
        steps = 48 // batch_size
        made = [
            row
            for step in range(steps)
            for batch in rows.batch(step, batch_size, micro_batches)
            for row in unpadded(batch)
        ]
        assert sorted(made) == sorted(one_by_one)


@pytest.mark.parametrize(("micro_batches", "size"), [(1, 2), (4, 3), (2, 5), (8, 8), (8, 5)])
def test_processes_share_the_rows_of_a_step(rows, micro_batches, size):
    """3 ranks for 4 micro-batches, too: all have equally many, and none is larger, but for a row that is left over."""
    whole = rows.batch(1, 8, micro_batches)
    shares = [rows.batch(1, 8, micro_batches, World(rank, size)) for rank in range(size)]
    assert sorted(row for batches in shares for batch in batches for row in unpadded(batch)) == sorted(
        row for batch in whole for row in unpadded(batch)
    )
    assert len({len(batches) for batches in shares}) == 1
    largest = max(len(batch["input_ids"]) for batch in whole)
    assert all(
        0 < len(batch["input_ids"]) <= largest + (micro_batches == 8 and size == 5)
        for batches in shares
        for batch in batches
    )
    for name in ("mlm_count", "nsp_count"):
        assert sum(int(batches[0][name]) for batches in shares) == int(whole[0][name])


def test_each_process_makes_its_own_part(corpus, ids, rows, monkeypatch):
    made = []
    monkeypatch.setattr("korbert.pretraining.batches.connected", lambda: World(1, 2))
    monkeypatch.setattr("korbert.world.connected", lambda: World(1, 2))
    monkeypatch.setattr(
        PretrainingRows, "row", lambda self, *key, row=PretrainingRows.row: made.append(key) or row(self, *key)
    )
    in_phases([Phase(rows, 3, 8)])(0)
    assert len(made) == 4
    settings = (MaskingSettings(), PairSettings())
    heldout_batches(corpus.files, ids, 64, *settings, seed=3, limit_rows=9)
    assert len(made) == 4 + 4
    with pytest.raises(SettingsError, match=r"^heldout_rows 1: a batch has fewer rows than the 2 processes"):
        heldout_batches(corpus.files, ids, 64, *settings, seed=3, limit_rows=1)


def test_an_epoch_has_every_row_once_and_the_next_another_order(rows, monkeypatch):
    size, make = len(rows), rows.row
    places = []
    monkeypatch.setattr(rows, "row", lambda epoch, index: places.append((epoch, index)) or make(epoch, index))
    rows.batch(0, 2 * size)
    assert [epoch for epoch, _ in places] == [0] * size + [1] * size
    assert sorted(places[:size]) == [(0, row) for row in range(size)]
    assert [row for _, row in places[:size]] != [row for _, row in places[size:]]


def test_counts_are_those_of_the_whole_step(rows):
    parts = rows.batch(0, 16, micro_batches=4)
    assert len(parts) == 4
    for name, labels in [("mlm_count", "labels"), ("nsp_count", "next_sentence_label")]:
        total = sum(int((part[labels] != -100).sum()) for part in parts)
        assert {int(part[name]) for part in parts} == {total}


def test_heldout_batches_are_fixed_and_hide_all_that_is_asked(corpus, ids):
    def make():
        settings = (MaskingSettings(), PairSettings())
        return heldout_batches(corpus.files, ids, 64, *settings, seed=3, limit_rows=100, batch_size=32)

    first, second = make(), make()
    assert sum(len(batch["input_ids"]) for batch in first) == 100
    assert max(len(batch["input_ids"]) for batch in first) <= 32
    for one, other in zip(first, second, strict=True):
        assert one["layout"] == other["layout"]
        assert all(torch.equal(one[name], other[name]) for name in one.keys() - {"layout"})
        assert (one["input_ids"][one["labels"] != -100] == ids.mask).all()
        assert (one["input_ids"][one["labels"] == -100] != ids.mask).all()


def test_phases_follow_each_other(corpus, ids):
    short, long = (
        PretrainingRows(corpus.files, ids, length, MaskingSettings(), PairSettings(), seed=3) for length in (32, 64)
    )
    batches = in_phases([Phase(short, steps=3, batch_size=8), Phase(long, steps=2, batch_size=4, micro_batches=2)])
    wanted = [short.batch(0, 8), short.batch(1, 8), short.batch(2, 8), long.batch(0, 4, 2), long.batch(1, 4, 2)]
    for step, parts in enumerate(wanted):
        assert [unpadded(part) for part in batches(step)] == [unpadded(part) for part in parts]


def test_too_short_rows(corpus, ids):
    with pytest.raises(SettingsError, match="max_length 4: 3 of these are special; take at least 5"):
        PretrainingRows(corpus.files, ids, 4, MaskingSettings(), PairSettings(), seed=0)
