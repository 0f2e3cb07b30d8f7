"""Tagging: the loss, scores of many rows, and the labels of a text: the most probable tags that BIO allows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from korbert.modeling import Steps, viterbi
from korbert.tasks.passages import Passage
from korbert.tasks.token_classification.bio import is_bio, read_bio, split_tag
from korbert.tasks.token_classification.examples import IGNORED, TaggedExamples
from korbert.tasks.token_classification.labels import first_pieces, owners
from korbert.tokenization.pieces import Span
from korbert.training import Batch, Scoring, model_inputs, outputs


@dataclass(frozen=True)
class TaggedSpan:
    """A label on `text`, [start, end) in characters of the whole text.

    score: the mean probability of the tags of its pieces; for a word, that of its first piece.
    """

    start: int
    end: int
    label: str
    text: str
    score: float


def tagging_loss(model: nn.Module, batch: Batch, *, in_sequence: bool = False) -> dict[str, Tensor]:
    """{"loss": in nats per target piece}: cross-entropy, or in_sequence, the loss of a CrfModel.

    Targets are labels, or the shares of all of them.
    batch: from TaggedExamples.batch.
    The loss is the sum over the batch, divided by its number of rows times the mean number of targets per row over all
    examples: every piece has the same weight in any batch, and processes that share a batch get the same update.
    """
    if in_sequence:
        sums = model(**model_inputs(batch), targets=batch["labels"], shares=batch.get("shares")).float()
    elif "shares" in batch:
        used = batch["labels"] != IGNORED
        sums = F.cross_entropy(model(**model_inputs(batch)).float()[used], batch["shares"][used], reduction="sum")
    else:
        sums = F.cross_entropy(
            model(**model_inputs(batch)).float().flatten(0, 1),
            batch["labels"].flatten(),
            ignore_index=IGNORED,
            reduction="sum",
        )
    targets = len(batch["labels"]) * batch["targets_per_row"]  # as many as the batch has on average
    return {"loss": sums / targets.clamp(min=1e-9)}


def piece_scores(
    model: nn.Module, examples: TaggedExamples, num_labels: int, *, in_sequence: bool = False, **how: Unpack[Scoring]
) -> NDArray[np.float32]:
    """Scores of the labels for each piece: (N, T, num_labels), zeros after the end of a row.

    They are log probabilities, or in_sequence, what a CrfModel decodes.
    """

    def of_rows(model: nn.Module, batch: Batch) -> Tensor:
        scores: Tensor = model(**model_inputs(batch)).float()  # (B, T, C)
        return (scores if in_sequence else scores.log_softmax(dim=-1)).flatten(1)

    return outputs(model, examples, of_rows, batch_size=64, **how).reshape(len(examples), -1, num_labels)


@lru_cache
def transitions(labels: tuple[str, ...]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which labels may come first, (C,), and which may follow which, (C, C), from the row's label to the column's.

    I-X comes only after B-X or I-X, all others after anything. Labels other than BIO tags, such as parts of speech, may
    come in any order; so may I-X if there is no B-X, as in models that use B- only between adjacent spans (IOB1).
    """
    first = np.ones(len(labels), dtype=bool)
    follows = np.ones((len(labels), len(labels)), dtype=bool)
    parts = [split_tag(label) for label in labels] if is_bio(labels) else []
    for number, (prefix, label) in enumerate(parts):
        if prefix == "I" and ("B", label) in parts:
            first[number] = False
            follows[:, number] = [other == label for _, other in parts]
    return first, follows


def best_path(scores: NDArray[np.floating], labels: Sequence[str]) -> NDArray[np.int64]:
    """The sequence of labels with the highest sum of scores that BIO allows: (N,) int64 ids. Exact (Viterbi 1967).

    scores: (N, C) log probabilities of each unit's labels. Ties are broken arbitrarily.
    """
    first, follows = transitions(tuple(labels))
    path = scores.argmax(axis=1).astype(np.int64) if len(scores) else np.empty(0, dtype=np.int64)
    if not len(path) or (first[path[0]] and follows[path[:-1], path[1:]].all()):
        return path  # already legal, so optimal
    steps, starts = (np.where(legal, 0.0, -np.inf) for legal in (follows, first))
    return viterbi(scores.astype(np.float64), steps, starts, Steps.of([len(scores)]))


def units_of(words: Sequence[Span] | None, passage: Passage) -> NDArray[np.int64]:
    """The pieces whose labels count: those that own characters; of words, the first piece of each word that has one.

    A piece that several words share counts once.
    """
    if words is None:
        return owners(passage.spans)[0]
    pieces = dict.fromkeys(piece for piece in first_pieces(words, passage) if piece >= 0)
    return np.array([*pieces], dtype=np.int64)


def unit_starts(words: Sequence[Span] | None, passage: Passage) -> NDArray[np.int32]:
    """Where the pieces of `units_of` begin: at the first character that each owns; of words, where the word begins, of
    several the first.
    """
    if words is None:
        return owners(passage.spans)[1][:, 0].astype(np.int32)
    starts: dict[int, int] = {}
    for piece, (start, _) in zip(first_pieces(words, passage), words, strict=True):
        starts.setdefault(piece, start)
    return np.array([start for piece, start in starts.items() if piece >= 0], dtype=np.int32)


class UnitTags(NamedTuple):
    """The labels of the U units of a text, (U,) ids, and their probabilities, (U,)."""

    path: NDArray[np.int64]
    probabilities: NDArray[np.float64]


def best_tags(scores: NDArray[np.float32], labels: Sequence[str]) -> UnitTags:
    """The best legal labels. scores: (U, C) log probabilities."""
    path = best_path(scores, labels)
    return UnitTags(path, np.exp(scores[np.arange(len(path)), path].astype(np.float64)))


def sure_spans(tags: UnitTags, labels: Sequence[str], least: float) -> UnitTags:
    """Replaces the tags of spans whose mean probability is below `least` by O."""
    path = tags.path.copy()
    for first, last, _ in read_bio([labels[number] for number in tags.path]):
        if tags.probabilities[first:last].mean() < least:
            path[first:last] = labels.index("O")
    return UnitTags(path, tags.probabilities)


def tagged_spans(passage: Passage, tags: UnitTags, labels: Sequence[str]) -> list[tuple[int, int, str, float]]:
    """Start, end, label and mean probability of the spans of BIO tags, in characters."""
    _, runs = owners(passage.spans)
    return [
        (int(runs[first, 0]), int(runs[last - 1, 1]), label, float(tags.probabilities[first:last].mean()))
        for first, last, label in read_bio([labels[label] for label in tags.path])
    ]


def tagged_words(
    words: Sequence[Span], passage: Passage, tags: UnitTags, labels: Sequence[str]
) -> list[tuple[str | None, float]]:
    """The label of each word by its first piece, None for a word without pieces, and its probability."""
    units = zip(units_of(words, passage).tolist(), *(column.tolist() for column in tags), strict=True)
    found = {piece: (labels[label], probability) for piece, label, probability in units}
    return [found.get(piece, (None, 0.0)) for piece in first_pieces(words, passage)]
