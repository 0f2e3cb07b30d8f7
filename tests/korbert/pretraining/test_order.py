"""Sentence order (sop)."""

import numpy as np

from korbert.pretraining import MaskingSettings, PairSettings, PretrainingRows
from korbert.pretraining.objectives.pairs import IN_ORDER, SWAPPED


def rows_of(corpus, ids, *objectives):
    return PretrainingRows(corpus.files, ids, 64, MaskingSettings(), PairSettings(), 3, objectives=objectives)


def test_half_of_the_pairs_are_swapped(corpus, ids):
    ordered, swapped = rows_of(corpus, ids, "mlm", "nsp"), rows_of(corpus, ids, "mlm", "sop")
    labels = []
    for number in range(400):
        row = swapped.example(0, number)
        label = row["pair_label"][0]
        labels.append(label)
        original = row["input_ids"].copy()
        original[row["label_places"]] = row["labels"]
        first, second = (original[1:][row["token_type_ids"][1:] == segment][:-1] for segment in (0, 1))
        start, end = ordered._pairs.single(number).first
        text, levels = ordered._shards.pieces(start, end)
        if label == -100:
            assert original[1:-1].tolist() == text.tolist()
            continue
        together = [second, first] if label == SWAPPED else [first, second]
        assert np.concatenate(together).tolist() == text.tolist()
        assert levels[len(together[0])] == 3  # cut between two sentences
    pairs = [label for label in labels if label >= 0]
    assert set(pairs) == {IN_ORDER, SWAPPED}
    assert 0.4 < np.mean(pairs) < 0.6
