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
    for row, gold_spans, predicted_spans in zip(counts, gold, predicted, strict=True):
        for number, spans in enumerate((set(gold_spans) & set(predicted_spans), predicted_spans, gold_spans)):
            for *_, label in spans:
                row[column[label], number] += 1
    return counts


def entity_f1(counts: NDArray[np.int64]) -> float:
    """F1 over all entities, of `span_counts` summed over texts: (types, 3). 0 if there are none (seqeval)."""
    right, predicted, gold = counts.sum(axis=0).tolist()
    return 2 * right / (predicted + gold) if predicted + gold else 0.0


def tag_f1(counts: NDArray[np.int64], without: int | None = None) -> float | None:
    """Unweighted mean of the F1 of the tags that occur on either side. counts: (tags, 3), right, predicted and gold.

    without: a tag to leave out. None if no tag is left.
    Of types of entities, the score is seqeval's macro F1. On characters, it is KLUE-NER's second score, of which there
    are two forms. The official script computes it with all tags, `O` too, though its docstring says "except O tag"
    (KLUE-baseline, klue_baseline/metrics/functional.py, klue_ner_char_macro_f1; the script also scores an `O` each for
    [CLS] and [SEP], and tags that never occur as 1). The paper leaves `O` out (Park et al. 2021, as quoted in
    KLUE-baseline's pull request 7).
    """
    kept = [row for tag, row in enumerate(counts.tolist()) if tag != without]
    f1s = [2 * right / (predicted + gold) for right, predicted, gold in kept if predicted + gold]
    return sum(f1s) / len(f1s) if f1s else None
