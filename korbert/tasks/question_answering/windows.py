"""Windows over long texts: cutting, batching, and the loss.

A window is `[CLS] question [SEP] pieces of the context [SEP]`. Start and end of the answer are each chosen among the
window's context pieces and [CLS], which means "not in this window". Windows without the answer are trained on, not
dropped: inference searches all windows of a text, so the model must recognise those without the answer. For a question
without an answer, the target is [CLS] in all windows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from korbert.tasks.passages import Passage, join_segments, pieces_of_span
from korbert.tasks.question_answering.window_settings import WindowSettings
from korbert.tokenization import AnyTokenizer
from korbert.training import Batch, Examples, model_inputs


@dataclass(frozen=True, slots=True)
class Window:
    """The question's first pieces and the context's pieces [first, last).

    gold: the answer's first and last piece (inclusive), counted in the context; None if the window does not contain
    the whole answer. index: of the question, to merge the answers of its windows.
    """

    question: Passage
    context: Passage
    first: int
    last: int
    index: int = 0
    gold: tuple[int, int] | None = None


Scored = tuple[Window, NDArray[np.float64], NDArray[np.float64], float]
"""A window, the log probabilities of its P context pieces as start and end, (P,) both, and of [CLS] as both."""


def cut_windows(
    question: Passage, context: Passage, settings: WindowSettings, *,
    index: int = 0, answer: tuple[int, int] | None = None, special: int,
) -> list[Window]:  # fmt: skip
    """Windows of at most max_length pieces; neighbours share `stride` pieces of context.

    answer: the gold answer's span in characters of the context. special: special tokens of a pair (Frame.special).
    """
    gold = pieces_of_span(context, *answer) if answer else None
    room = settings.max_length - special - min(len(question.ids), settings.max_query_pieces)
    windows = []
    for first in range(0, max(len(context.ids) - settings.stride, 1), room - settings.stride):
        last = min(first + room, len(context.ids))
        window_gold = gold if gold and first <= gold[0] and gold[1] < last else None
        windows.append(Window(question, context, first, last, index, window_gold))
    return windows


@dataclass(frozen=True)
class WindowExamples(Examples):
    """Windows as training examples. labels: (N, 2) int64, the answer's first and last piece in the row, or 0, [CLS].

    separator: whether an answer may also be the [SEP] after the question, for an answer that no piece of the context
    expresses. shares: (offsets[-1], 2), how probable it is that the answer begins and ends at each piece, as targets
    instead of the labels; None: the labels are the targets.
    """

    seconds: NDArray[np.int64] = None  # type: ignore[assignment]
    windows: Sequence[Window] = ()
    separator: bool = False
    shares: NDArray[np.floating[Any]] | None = None

    @classmethod
    def of(cls, windows: Sequence[Window], tokenizer: AnyTokenizer, settings: WindowSettings) -> Self:
        """One row per window; questions are truncated."""
        rows = []
        labels = np.zeros((len(windows), 2), np.int64)
        seconds = np.empty(len(windows), np.int64)
        for number, window in enumerate(windows):
            question = window.question.part(0, settings.max_query_pieces)
            context = window.context.part(window.first, window.last)
            ids, boundaries, seconds[number] = join_segments(tokenizer.frame, question, context)
            rows.append((ids, boundaries))
            if window.gold:
                labels[number] = np.array(window.gold) - window.first + seconds[number]
        return replace(cls.of_rows(rows, labels, tokenizer.pad_id, seconds), windows=windows)

    def batch(self, rows: NDArray[np.int64]) -> dict[str, Any]:
        """Returns a batch as Examples.batch, but without labels.

        Instead, it has start_positions and end_positions: (B,) int64, the answer's first and last piece; choices:
        (B, T) bool, True on [CLS], on pieces of the context, and on the separator if an answer may be there; and if the
        examples have them, shares: (B, T, 2) float32, zeros at padding.
        """
        batch = super().batch(rows)
        start, end = batch.pop("labels").unbind(1)
        positions = torch.arange(batch["input_ids"].shape[1])
        last = torch.tensor(batch["lengths"])[:, None] - 1  # [SEP]
        separator = torch.from_numpy(self.seconds[rows, None] - 1) if self.separator else 0
        choices = (positions == 0) | (positions == separator) | (batch["token_type_ids"].bool() & (positions < last))
        targets = {} if self.shares is None else {"shares": self.pad_columns(self.shares, rows)}
        return {**batch, **targets, "start_positions": start, "end_positions": end, "choices": choices}

    def scored(self, scores: NDArray[np.floating]) -> Iterator[Scored]:
        """Yields each window with its log probabilities.

        scores: (N, 2 T), log probabilities of each piece as start and end, interleaved.
        """
        contexts = map(slice, self.seconds, self.lengths - 1)
        for window, row, context in zip(self.windows, scores, contexts, strict=True):
            start, end = row.reshape(-1, 2).T.astype(np.float64)  # (T,) both
            yield window, start[context], end[context], float(start[0] + end[0])


def reading_loss(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """`loss`, the mean of `start_loss` and `end_loss`: cross-entropies over a window's choices, mean of windows."""
    start, end = choice_logits(model, batch)
    if "shares" in batch:
        start_loss, end_loss = (
            -(scores.log_softmax(dim=-1).masked_fill(~batch["choices"], 0.0) * shares).sum(dim=-1).mean()
            for scores, shares in zip((start, end), batch["shares"].unbind(-1), strict=True)
        )
    else:
        start_loss = F.cross_entropy(start, batch["start_positions"])
        end_loss = F.cross_entropy(end, batch["end_positions"])
    return {"loss": (start_loss + end_loss) / 2, "start_loss": start_loss, "end_loss": end_loss}


def ends(model: nn.Module, batch: Batch) -> Tensor:
    """(B, 2 T): log probabilities of each piece as start and end, interleaved."""
    return torch.stack([part.log_softmax(dim=-1) for part in choice_logits(model, batch)], dim=-1).flatten(1)


def choice_logits(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Scores of each piece as start and end, (B, T) float32 both; -inf where not a choice."""
    start, end = model(**model_inputs(batch))
    is_barred = ~batch["choices"]
    return start.float().masked_fill(is_barred, float("-inf")), end.float().masked_fill(is_barred, float("-inf"))
