"""Tagging metrics: entity F1 as in seqeval, and F1 of tags, as in KLUE-NER on characters.

A sequence is a list of tags, one per character or word: `O`, or a prefix (B, I, E, S), a hyphen and a type: `B-PS`.
Gold and predicted sequences correspond one to one and have equal lengths; ValueError names the first that does not.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Tags = Sequence[str]


class Entity(NamedTuple):
    """An entity of the given type over tags [start, end)."""

    type: str
    start: int
    end: int


def entities(tags: Tags) -> list[Entity]:
    """The entities of one sequence, in order, by the rules of conlleval (Tjong Kim Sang and De Meulder 2003).

    They forgive what is illegal and read BIO, IOB1 and BIOES alike, as seqeval does by default: a tag continues an
    entity if it is I or E, of the same type, and the previous tag is B or I; any other tag but O begins one. ValueError
    for an unknown prefix.
    """
    result: list[Entity] = []
    before, kind, start = "O", "", 0
    for i, tag in enumerate([*tags, "O"]):
        prefix, _, type_ = tag.partition("-")
        if prefix not in ("O", "B", "I", "E", "S"):
            raise ValueError(f"tag {i} is {tag!r}: tags are O or B, I, E, S, a hyphen and a type")
        if prefix in ("I", "E") and before in ("B", "I") and type_ == kind:
            before = prefix
            continue
        if before != "O":
            result.append(Entity(kind, start, i))
        before, kind, start = prefix, type_, i
    return result


def entity_counts(gold: Sequence[Tags], predicted: Sequence[Tags]) -> tuple[list[str], NDArray[np.int64]]:
    """The types found on either side, sorted, and (N, types, 3) int64: correct, predicted and gold entities of each
    sequence and type.

    An entity is correct only if both ends and the type match. `f1_from_counts` of the sum is seqeval's score. For
    statistics.py they are a run whose score is
    `lambda rows, counts: f1_from_counts(np.tensordot(counts, rows, 1))`, if the compared runs have the same types.
    """
    found = [[entities(tags) for tags in pair] for pair in _pairs(gold, predicted)]
    types = sorted({entity.type for pair in found for side in pair for entity in side})
    column = {name: i for i, name in enumerate(types)}
    counts = np.zeros((len(found), len(types), 3), np.int64)
    for row, (true, given) in zip(counts, found, strict=True):
        for i, side in enumerate((set(true) & set(given), given, true)):
            for entity in side:
                row[column[entity.type], i] += 1
    return types, counts


def f1_from_counts(counts: NDArray[np.int64], average: Literal["micro", "macro"] = "micro") -> float | None:
    """F1 of `entity_counts` summed over sequences: (types, 3).

    It is seqeval's f1_score. micro: over all entities; 0 if there are none. macro: the unweighted mean over the types
    with any entity; None if there are none (seqeval takes the mean of nothing).
    """
    if average == "macro":
        return tag_f1(counts)
    right, predicted, gold = counts.sum(axis=0).tolist()
    return 2 * right / (predicted + gold) if predicted + gold else 0.0


def tag_f1(counts: NDArray[np.int64], without: int | None = None) -> float | None:
    """Unweighted mean of the F1 of the tags that occur on either side. counts: (tags, 3), right, predicted and gold.

    On characters it is KLUE-NER's second score, in both forms. With all tags, `O` too, as the official script computes
    it, though its docstring says "except O tag" (KLUE-baseline, klue_baseline/metrics/functional.py,
    klue_ner_char_macro_f1; it also scores an `O` each for [CLS] and [SEP], and tags that never occur as 1). without:
    the tag to leave out, `O`, as the paper says (Park et al. 2021, as quoted in KLUE-baseline's pull request 7).
    None if no tag is left.
    """
    kept = [row for tag, row in enumerate(counts.tolist()) if tag != without]
    f1s = [2 * right / (predicted + gold) for right, predicted, gold in kept if predicted + gold]
    return sum(f1s) / len(f1s) if f1s else None


def _pairs(gold: Sequence[Tags], predicted: Sequence[Tags]) -> Iterator[tuple[Tags, Tags]]:
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold sequences and {len(predicted)} predicted ones: they must correspond")
    for i, (expected, found) in enumerate(zip(gold, predicted, strict=True)):
        if len(expected) != len(found):
            raise ValueError(f"sequence {i} has {len(expected)} gold tags and {len(found)} predicted ones")
        yield expected, found
