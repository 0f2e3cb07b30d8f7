"""Windows over long texts: cutting, batching, and the loss.

A window is `[CLS] question [SEP] pieces of the context [SEP]`. Start and end of the answer are each chosen among the
window's context pieces and [CLS], which means "not in this window". Windows without the answer are trained on, not
dropped: inference searches all windows of a text, so the model must recognise those without the answer. For a question
without an answer, the target is [CLS] in all windows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from korbert.tasks.passages import Passage, pieces_of_span
from korbert.tasks.question_answering.settings import WindowSettings
from korbert.tokenization import AnyTokenizer
from korbert.training.devices import Batch
from korbert.training.examples import padded
from korbert.training.scoring import model_inputs


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
        held = gold if gold and first <= gold[0] and gold[1] < last else None
        windows.append(Window(question, context, first, last, index, held))
    return windows


@dataclass(frozen=True)
class WindowExamples:
    """Windows as training examples (korbert.training.examples.Learnable)."""

    windows: Sequence[Window]
    tokenizer: AnyTokenizer
    settings: WindowSettings

    def __len__(self) -> int:
        return len(self.windows)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """(N,) pieces per window, special tokens included."""
        ends = (self._context(window).stop + 1 for window in self.windows)  # behind it stands [SEP]
        return np.fromiter(ends, np.int64, len(self.windows))

    def _context(self, window: Window) -> slice:
        """Positions of the context in a window's row: after [CLS], the question and its separators."""
        start = 1 + min(len(window.question.ids), self.settings.max_query_pieces) + self.tokenizer.frame.between
        return slice(start, start + window.last - window.first)

    def batch(self, rows: NDArray[np.int64]) -> dict[str, Any]:
        """Windows as tensors, padded to the longest one.

        input_ids, attention_mask, token_type_ids, boundaries: (B, T) int64; choices: (B, T) bool, True on [CLS] and on
        pieces of the context; start_positions, end_positions: (B,) int64, the answer's first and last piece, or 0
        ([CLS]); lengths: pieces of each window, on CPU.
        """
        frame, asked = self.tokenizer.frame, slice(self.settings.max_query_pieces)
        cls, sep, between, none = [frame.cls_id], [frame.sep_id], [frame.sep_id] * frame.between, [0]
        columns = []
        gold = torch.zeros((2, len(rows)), dtype=torch.int64)
        for number, row in enumerate(rows):
            window = self.windows[row]
            question, context, inside = window.question, window.context, slice(window.first, window.last)
            ids = np.concatenate([cls, question.ids[asked], between, context.ids[inside], sep])
            levels = [none, question.boundaries[asked], none * frame.between, context.boundaries[inside], none]
            boundaries: NDArray[Any] = np.concatenate(levels)
            offset = self._context(window).start
            positions = np.arange(len(ids))
            choices = (positions == 0) | ((positions >= offset) & (positions < len(ids) - 1))
            segments = (positions >= offset).astype(np.int64)
            columns.append({"input_ids": ids, "token_type_ids": segments, "boundaries": boundaries, "choices": choices})
            if window.gold:
                gold[:, number] = torch.tensor(window.gold) - window.first + offset
        fillers = {"input_ids": self.tokenizer.pad_id, "token_type_ids": 0, "boundaries": 0, "choices": False}
        return {**padded(columns, fillers), "start_positions": gold[0], "end_positions": gold[1]}

    def scored(self, scores: NDArray[np.floating[Any]]) -> Iterator[Scored]:
        """scores: (N, 2 T), log probabilities of each piece as start and end, interleaved."""
        for window, row in zip(self.windows, scores, strict=True):
            start, end = row.reshape(-1, 2).T.astype(np.float64)  # (T,) both
            inside = self._context(window)
            yield window, start[inside], end[inside], float(start[0] + end[0])


def reading_loss(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """`loss`, the mean of `start_loss` and `end_loss`: cross-entropies over a window's choices, mean of windows."""
    start, end = choice_logits(model, batch)
    start_loss = F.cross_entropy(start, batch["start_positions"])
    end_loss = F.cross_entropy(end, batch["end_positions"])
    return {"loss": (start_loss + end_loss) / 2, "start_loss": start_loss, "end_loss": end_loss}


def choice_logits(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Scores of each piece as start and end, (B, T) float32 both; -inf where not a choice."""
    start, end = model(**model_inputs(batch))
    barred = ~batch["choices"]
    return start.float().masked_fill(barred, float("-inf")), end.float().masked_fill(barred, float("-inf"))
