"""Tagging metrics: entity F1 as in seqeval, and F1 of tags, as in KLUE-NER on characters."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Spans = Sequence[tuple[int, int, str]]


def span_counts(gold: Sequence[Spans], predicted: Sequence[Spans], labels: Sequence[str]) -> NDArray[np.int64]:
    """(N, labels, 3) int64: correct, predicted and gold spans of each text and label.

    A span is correct only if both ends and the label match. A tag is a span of one unit.
    """
    column = {label: number for number, label in enumerate(labels)}
    counts = np.zeros((len(gold), len(labels), 3), np.int64)
    for row, right, given in zip(counts, gold, predicted, strict=True):
        for number, side in enumerate((set(right) & set(given), given, right)):
            for *_, label in side:
                row[column[label], number] += 1
    return counts


def entity_f1(counts: NDArray[np.int64]) -> float:
    """F1 over all entities, of `span_counts` summed over texts: (types, 3). 0 if there are none (seqeval)."""
    right, predicted, gold = counts.sum(axis=0).tolist()
    return 2 * right / (predicted + gold) if predicted + gold else 0.0


def tag_f1(counts: NDArray[np.int64], without: int | None = None) -> float | None:
    """Unweighted mean of the F1 of the tags that occur on either side. counts: (tags, 3), right, predicted and gold.

    Of types of entities it is seqeval's macro F1.
    On characters it is KLUE-NER's second score, in both forms. With all tags, `O` too, as the official script computes
    it, though its docstring says "except O tag" (KLUE-baseline, klue_baseline/metrics/functional.py,
    klue_ner_char_macro_f1; it also scores an `O` each for [CLS] and [SEP], and tags that never occur as 1). without:
    the tag to leave out, `O`, as the paper says (Park et al. 2021, as quoted in KLUE-baseline's pull request 7).
    None if no tag is left.
    """
    kept = [row for tag, row in enumerate(counts.tolist()) if tag != without]
    f1s = [2 * right / (predicted + gold) for right, predicted, gold in kept if predicted + gold]
    return sum(f1s) / len(f1s) if f1s else None
