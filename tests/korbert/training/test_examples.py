import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.system.ranks import World
from korbert.training.examples import Batches, Examples, bucket_by_length, by_length


def _examples(lengths):
    rows = [(range(10 * number, 10 * number + length), [1] * length) for number, length in enumerate(lengths)]
    return Examples.of_rows(rows, [number % 2 for number in range(len(lengths))], pad_id=0)


def test_a_batch_is_padded_to_its_longest_row():
    examples = _examples([2, 4, 1])
    batch = examples.batch(np.array([2, 0]))
    assert batch.pop("lengths") == (1, 2)
    assert batch.pop("pieces") == 3
    masks = {name: [[1, 0], [1, 1]] for name in ("attention_mask", "boundaries")}
    expected = {"input_ids": [[20, 0], [0, 1]], "labels": [0, 0], **masks}
    assert {name: tensor.tolist() for name, tensor in batch.items()} == expected
    assert [rows.tolist() for rows in by_length(examples.lengths, 2)] == [[2, 0], [1]]  # for scoring
    for rows in ([], [([], [])]):  # nothing is an example, too
        examples = Examples.of_rows(rows, [0] * len(rows), pad_id=0)
        assert len(examples) == len(rows)
        assert examples.input_ids.dtype == np.int32


@given(
    lengths=st.lists(st.integers(2, 40), min_size=1, max_size=300), batch_size=st.integers(1, 9), seed=st.integers(0, 9)
)
def test_every_epoch_shows_every_row_once(lengths, batch_size, seed):
    batches = bucket_by_length(np.array(lengths), batch_size, np.random.default_rng(seed))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert len(batches) == -(-len(lengths) // batch_size)
    assert all(1 <= len(batch) <= batch_size for batch in batches)


def test_rows_of_like_length_stand_together():
    lengths = np.random.default_rng(0).integers(3, 100, size=6_400)
    batches = bucket_by_length(lengths, 32, np.random.default_rng(1))
    padded = sum(int(lengths[batch].max()) * len(batch) for batch in batches)
    assert padded < 1.05 * lengths.sum()  # in random order it is 1.9 times
    means = np.array([lengths[batch].mean() for batch in batches])
    assert abs(means[:100].mean() - means[100:].mean()) < 5  # short and long ones at any time of the epoch


def test_batches_are_a_pure_function_of_the_step():
    examples = _examples([3, 5, 2, 7, 4, 6, 2])
    steps = [Batches(examples, 3, seed=5)(step)[0]["input_ids"].tolist() for step in range(9)]  # each time from nothing
    running = Batches(examples, 3, seed=5)
    assert running.steps_per_epoch == 3
    assert [running(step)[0]["input_ids"].tolist() for step in range(9)] == steps
    assert steps[:3] != steps[3:6]  # another order in the next epoch
    assert steps != [Batches(examples, 3, seed=6)(step)[0]["input_ids"].tolist() for step in range(9)]


@pytest.mark.parametrize("size", [2, 3])
def test_processes_share_the_rows_of_a_batch(size, monkeypatch):
    """The last batch has one row: a process without rows makes one that weighs nothing."""
    five = _examples([3, 4, 5, 6, 7])
    batches = Batches(five, batch_size=4, seed=1)
    wholes = [batches(step)[0] for step in range(batches.steps_per_epoch)]
    for step, whole in enumerate(wholes):
        rows, weights = [], []
        for rank in range(size):
            monkeypatch.setattr("korbert.training.examples.current_world", lambda rank=rank: World(rank, size))
            (batch,) = Batches(five, batch_size=4, seed=1)(step)
            weights.append(float(batch["weight"]))
            rows += batch["labels"].tolist() if weights[-1] else []
        assert sorted(rows) == sorted(whole["labels"].tolist())
        assert sum(weights) == pytest.approx(1)
    assert sorted(len(whole["labels"]) for whole in wholes) == [1, 4]
