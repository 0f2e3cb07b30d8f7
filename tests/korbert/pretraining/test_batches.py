import numpy as np
import pytest
import torch

from korbert.errors import SettingsError
from korbert.pretraining import MaskingSettings, Phase, heldout_batches, in_phases
from korbert.pretraining.objectives import pairs
from korbert.pretraining.objectives.vocabulary import Negatives
from korbert.system.ranks import World
from tests.korbert.pretraining.conftest import rows_of

KEYS = ["boundaries", "input_ids", "label_places", "labels", "pair_label", "token_type_ids"]


def taken_apart(batch):
    """Each example of a flat batch as bytes."""
    labels = torch.full_like(batch["input_ids"], -100)
    labels[batch["label_places"]] = batch["labels"]
    columns = [batch["input_ids"], batch["token_type_ids"], batch["boundaries"], labels]
    parts = zip(*(column.split(batch["lengths"]) for column in columns), strict=True)
    return [
        b"".join(part.numpy().tobytes() for part in example) + pair.numpy().tobytes()
        for example, pair in zip(parts, batch["pair_label"], strict=True)
    ]


def test_a_row_of_two_segments(shards, ids):
    written = shards([("wiki", [4, 3])], files=1)
    row = rows_of(written.files, seed=0, masking=MaskingSettings(rate=0.5)).example(0, 0)
    text = written.input_ids[0]
    original = row["input_ids"].copy()
    original[row["label_places"]] = row["labels"]
    assert original.tolist() == [ids.cls, *text[:4], ids.sep, *text[4:], ids.sep]
    assert row["token_type_ids"].tolist() == [0] * 6 + [1] * 4
    assert row["boundaries"].tolist() == [0, *written.boundaries[0][:4], 0, *written.boundaries[0][4:], 0]
    assert row["pair_label"].tolist() == [-100]  # there is no other document
    for special, options in ((3, {}), (2, {"objectives": ("mlm",)})):
        said = f"max_length {special + 1}: {special} of these are special; take at least {special + 2}"
        with pytest.raises(SettingsError, match=said):
            rows_of(written.files, special + 1, **options)
    assert len(row["labels"]) == len(row["label_places"]) > 0
    assert not {0, 5, 9} & set(row["label_places"].tolist())


def test_each_epoch_masks_other_pieces(rows):
    first, again, second = rows.example(0, 17), rows.example(0, 17), rows.example(1, 17)
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["label_places"], second["label_places"])


def test_a_batch_is_its_examples_one_after_the_other(rows):
    (batch,) = rows.batch(2, 8)
    facts = ["lengths", "pieces", "slots", "mlm_count", "nsp_count", "weight"]
    assert sorted(batch) == sorted([*KEYS, *facts])
    assert all(batch[name].dtype == torch.int64 for name in KEYS)
    assert list(batch["lengths"]) == sorted(batch["lengths"])
    assert len(batch["lengths"]) == len(batch["pair_label"]) == 8
    assert sum(batch["lengths"]) == batch["pieces"] == len(batch["input_ids"]) <= batch["slots"]
    assert batch["label_places"].tolist() == sorted(set(batch["label_places"].tolist()))
    sizes = [part["pieces"] for part in rows.batch(1, 32, micro_batches=4)]
    assert max(sizes) < 1.25 * min(sizes)


def test_without_nsp_a_row_is_one_segment(corpus):
    rows = rows_of(corpus.files, objectives=("mlm",))
    (batch,) = rows.batch(0, 50)
    assert not batch["token_type_ids"].any()
    assert (batch["pair_label"] == -100).all()
    assert max(batch["lengths"]) <= 64
    pieces = sum(len(document) for document in corpus.input_ids)
    assert sum(len(rows.example(0, index)["input_ids"]) - 2 for index in range(len(rows))) == pieces


@pytest.mark.parametrize("objectives", [("mlm", "nsp"), ("mlm",)])
def test_filled_rows_hold_every_example_once(corpus, objectives, monkeypatch):
    monkeypatch.setattr(pairs, "_EXAMPLES_A_STRETCH", 50)  # after so many a row ends
    plain, filled = (rows_of(corpus.files, objectives=objectives, fill=fill) for fill in (False, True))
    assert len(filled) < 0.9 * len(plain)
    one_by_one, in_rows = (sorted(taken_apart(rows.batch(0, len(rows))[0])) for rows in (plain, filled))
    assert one_by_one == in_rows
    assert all(filled.batch(step, 1)[0]["pieces"] <= 64 for step in range(100))
    (batch,) = filled.batch(0, 40)
    assert len(batch["lengths"]) > 40


@pytest.mark.parametrize("objectives", [("mlm", "nsp"), ("mlm", "sop"), ("mlm",)])
def test_a_batch_has_the_examples_that_are_made_one_by_one(corpus, objectives):
    rows = rows_of(corpus.files, objectives=objectives)
    one_by_one = []
    for number in range(200):
        row = rows.example(0, number)
        labels = np.full_like(row["input_ids"], -100)
        labels[row["label_places"]] = row["labels"]
        columns = (row["input_ids"], row["token_type_ids"], row["boundaries"], labels, row["pair_label"])
        one_by_one.append(b"".join(column.tobytes() for column in columns))
    (epoch,) = rows.batch(0, len(rows))
    assert set(one_by_one) <= set(taken_apart(epoch))
    assert len(set(one_by_one)) == 200


def test_negatives_are_those_of_the_step_in_all_its_micro_batches(corpus, ids):
    rows = rows_of(corpus.files, negatives=Negatives(np.ones(ids.vocab_size, dtype=np.int64), 20))
    first, again, next_step = (rows.batch(step, 8, micro_batches=2) for step in (4, 4, 5))
    for name in ("negatives", "log_expected"):
        assert torch.equal(first[0][name], first[1][name])
        assert torch.equal(first[0][name], again[0][name])
    assert first[0]["negatives"].tolist() != next_step[0]["negatives"].tolist()


def test_rows_do_not_depend_on_batch_size_or_accumulation(rows):
    one_by_one = [row for step in range(48) for batch in rows.batch(step, 1) for row in taken_apart(batch)]
    for batch_size, micro_batches in [(4, 1), (16, 4), (48, 5), (3, 8)]:
        made = []
        for step in range(48 // batch_size):
            made += [row for batch in rows.batch(step, batch_size, micro_batches) for row in taken_apart(batch)]
        assert sorted(made) == sorted(one_by_one)


@pytest.mark.parametrize(("micro_batches", "size"), [(1, 2), (4, 3), (2, 5), (8, 8), (8, 5)])
def test_processes_share_the_rows_of_a_step(rows, micro_batches, size):
    """3 ranks for 4 micro-batches, too: all have equally many, and none is larger, but for a row that is left over."""
    whole = rows.batch(1, 8, micro_batches)
    shares = [rows.batch(1, 8, micro_batches, World(rank, size)) for rank in range(size)]
    made = [batch for batches in shares for batch in batches]
    assert sorted(row for batch in made for row in taken_apart(batch)) == sorted(
        row for batch in whole for row in taken_apart(batch)
    )
    assert len({len(batches) for batches in shares}) == 1
    largest = max(len(batch["lengths"]) for batch in whole) + (micro_batches == 8 and size == 5)
    assert all(0 < len(batch["lengths"]) <= largest for batch in made)
    for name, labels in (("mlm_count", "labels"), ("nsp_count", "pair_label")):
        total = sum(int((part[labels] != -100).sum()) for part in whole)
        assert {int(part[name]) for part in whole} == {total}
        assert sum(int(batches[0][name]) for batches in shares) == total


def test_each_process_makes_its_own_part(corpus, rows, monkeypatch):
    monkeypatch.setattr("korbert.pretraining.batches.current_world", lambda: World(1, 2))
    monkeypatch.setattr("korbert.system.ranks.current_world", lambda: World(1, 2))
    (made,) = in_phases([Phase(rows, 3, 8)])(0)
    assert len(made["lengths"]) == 4
    held_out = rows_of(corpus.files, masking=MaskingSettings().all_masked())
    (made,) = heldout_batches(held_out, 9)
    assert len(made["lengths"]) == 4
    with pytest.raises(SettingsError, match=r"^heldout_rows 1: a batch has fewer rows than the 2 processes"):
        heldout_batches(held_out, 1)


def test_an_epoch_has_every_row_once_in_its_own_order(rows, monkeypatch):
    size, draw = len(rows), rows._drawn
    made = []
    monkeypatch.setattr(rows, "_drawn", lambda *key: made.append(key) or draw(*key))
    rows.batch(0, 2 * size)
    ((epochs, numbers),) = made
    assert epochs.tolist() == [0] * size + [1] * size
    assert sorted(numbers[:size].tolist()) == list(range(size))
    assert numbers[:size].tolist() != numbers[size:].tolist()


def test_phases_follow_each_other_and_continue_the_rows_of_an_earlier_one(corpus, rows):
    short = rows_of(corpus.files, 32)
    batches = in_phases([Phase(short, steps=3, batch_size=8), Phase(rows, steps=2, batch_size=4, micro_batches=2)])
    wanted = [short.batch(0, 8), short.batch(1, 8), short.batch(2, 8), rows.batch(0, 4, 2), rows.batch(1, 4, 2)]
    for step, parts in enumerate(wanted):
        assert [taken_apart(part) for part in batches(step)] == [taken_apart(part) for part in parts]
    whole, halves = in_phases([Phase(rows, 6, 8)]), in_phases([Phase(rows, 2, 8), Phase(rows, 4, 8, before=16)])
    for step in range(6):
        (one,), (other,) = whole(step), halves(step)
        assert one["input_ids"].equal(other["input_ids"])


def test_heldout_batches_are_fixed_and_fully_masked(corpus, ids):
    made = rows_of(corpus.files, masking=MaskingSettings().all_masked())
    first, second = (heldout_batches(made, 100, 32) for _ in range(2))
    assert sum(len(batch["lengths"]) for batch in first) == 100
    assert max(len(batch["lengths"]) for batch in first) <= 32
    for one, other in zip(first, second, strict=True):
        assert taken_apart(one) == taken_apart(other)
        assert (one["input_ids"] == ids.mask).nonzero().flatten().tolist() == one["label_places"].tolist()
