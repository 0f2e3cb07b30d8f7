"""Tagging metrics: entity F1 as in seqeval, and F1 of tags, as in KLUE-NER on characters.

A sequence is a list of BIO tags, one per character or word; gold and predicted ones correspond.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from korbert.tasks.token_classification.bio import read_bio

Tags = Sequence[str]


def entity_counts(gold: Sequence[Tags], predicted: Sequence[Tags]) -> tuple[list[str], NDArray[np.int64]]:
    """The types found on either side, sorted, and (N, types, 3) int64: correct, predicted and gold entities of each
    sequence and type.

    An entity is correct only if both ends and the type match.
    """
    entities = [[read_bio(tags) for tags in pair] for pair in zip(gold, predicted, strict=True)]
    types = sorted({entity.label for pair in entities for side in pair for entity in side})
    column = {name: i for i, name in enumerate(types)}
    counts = np.zeros((len(entities), len(types), 3), np.int64)
    for row, (true, predicted_entities) in zip(counts, entities, strict=True):
        for i, side in enumerate((set(true) & set(predicted_entities), predicted_entities, true)):
            for entity in side:
                row[column[entity.label], i] += 1
    return types, counts


def entity_f1(counts: NDArray[np.int64]) -> float:
    """F1 over all entities, of `entity_counts` summed over sequences: (types, 3). 0 if there are none (seqeval)."""
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
