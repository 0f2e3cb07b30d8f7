"""Converts texts of any length to rows of labelled pieces, and scores of rows back to texts.

A long text is cut into overlapping windows. Each piece is trained on and labelled in one of them: the one in which its
shorter side of context is longest, near the middle of the window and not its edge. At the beginning and the end of the
text, no context is missing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from korbert.errors import SettingsError
from korbert.tasks.passages import Passage, join_segments
from korbert.tokenization import AnyTokenizer
from korbert.training import Examples

IGNORED = -100  # target without loss, as in PyTorch's cross_entropy

_SPECIAL_TOKENS = 2


class TextWindow(NamedTuple):
    """The pieces [first, last) of a text; those in [low, high) are labelled here, the others in a neighbour.

    text: the number of the text.
    """

    text: int
    first: int
    last: int
    low: int
    high: int


def cut_windows(count: int, *, max_length: int, stride: int, text: int = 0) -> list[TextWindow]:
    """Windows over a text of `count` pieces, at least one; neighbours share `stride` pieces.

    max_length: in pieces, special tokens included. SettingsError for a stride of a whole window or more.
    """
    room = max_length - _SPECIAL_TOKENS
    if not 0 <= stride < room:
        raise SettingsError(
            "stride {stride} is not below the window of {room} pieces (max_length {max_length} without "
            "special tokens): lower stride or raise max_length",
            stride=stride,
            room=room,
            max_length=max_length,
        )
    firsts = range(0, max(count - stride, 1), room - stride)
    lasts = [min(first + room, count) for first in firsts]
    # Where two windows overlap, the first half is closer to the middle of the earlier one.
    turns = [(last - 1 + first) // 2 + 1 for last, first in zip(lasts, firsts[1:], strict=False)]
    bounds = pairwise([0, *turns, count])
    return [
        TextWindow(text, *ends, *bound) for ends, bound in zip(zip(firsts, lasts, strict=True), bounds, strict=True)
    ]


@dataclass(frozen=True)
class TaggedExamples(Examples):
    """Examples with one label per piece: `labels` is (offsets[-1],) int64, like input_ids; IGNORED for no loss.

    windows: the part of a text that each row holds. shares: (offsets[-1], C), for each piece with a label,
    how probable the labels are, as the target instead of the label; None: the label is the target.
    """

    windows: Sequence[TextWindow] = ()
    shares: NDArray[np.floating[Any]] | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def targets_per_row(self) -> float:
        """Mean number of pieces with a target."""
        return float((self.labels != IGNORED).sum()) / max(len(self), 1)

    def batch(self, rows: NDArray[np.int64]) -> dict[str, Any]:
        """The given rows, padded: input_ids, attention_mask, boundaries, labels (B, T) int64; IGNORED at padding.

        lengths: as in Examples.batch. targets_per_row: (), over all examples, for tagging_loss. shares: (B, T, C)
        float32, zeros at padding, if the examples have them.
        """
        batch = self.pad_rows(rows, {"input_ids": self.pad_id, "boundaries": 0, "labels": IGNORED})
        if self.shares is not None:
            batch["shares"] = self.pad_columns(self.shares, rows)
        return {**batch, "targets_per_row": torch.tensor(self.targets_per_row)}


def encode_tags(tags: Iterable[str | None], labels: Sequence[str]) -> NDArray[np.int64]:
    """The id of each tag, IGNORED for None."""
    numbers: dict[str | None, int] = {label: number for number, label in enumerate(labels)} | {None: IGNORED}
    return np.array([numbers[tag] for tag in tags], dtype=np.int64)


def make_examples(
    passages: Sequence[Passage], targets: Sequence[NDArray[np.int64]], tokenizer: AnyTokenizer, *,
    max_length: int, stride: int,
) -> TaggedExamples:  # fmt: skip
    """One row per window, [CLS] pieces [SEP], text by text.

    targets: (P,) for each text, from encode_tags.
    """
    windows = [
        window
        for number, passage in enumerate(passages)
        for window in cut_windows(len(passage.ids), max_length=max_length, stride=stride, text=number)
    ]
    rows = []
    labels = [np.empty(0, dtype=np.int64)]
    for text, first, last, low, high in windows:
        row_labels = np.full(last - first + _SPECIAL_TOKENS, IGNORED)
        row_labels[low - first + 1 : high - first + 1] = targets[text][low:high]
        labels.append(row_labels)
        rows.append(join_segments(tokenizer.frame, passages[text].part(first, last))[:2])
    examples = TaggedExamples.of_rows(rows, np.concatenate(labels), tokenizer.pad_id)
    return replace(examples, windows=windows)


def by_text(scores: NDArray[np.float32], windows: Sequence[TextWindow]) -> Iterator[NDArray[np.float32]]:
    """Collects the scores of each text's P pieces, (P, C), from those of all rows, (N, T, C)."""
    for _, group in groupby(zip(scores, windows, strict=True), lambda pair: pair[1].text):
        yield np.concatenate([row[1 + low - first : 1 + high - first] for row, (_, first, _, low, high) in group])
