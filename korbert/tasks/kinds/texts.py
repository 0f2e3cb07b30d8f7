"""Training examples of one or two texts: cut to the model's length, in windows for linear models, or as choices."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import not_
from typing import Any, Self, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from korbert.messages import Message
from korbert.personal_data import mask_text
from korbert.records import is_empty
from korbert.tasks.baselines.features import TextPairs, Texts
from korbert.tasks.files import TaskRow
from korbert.tasks.kinds.kind import Morphemes, Prepared, TaskPrediction, TaughtKind, TeacherOutputs
from korbert.tasks.metrics.statistics import RunArray
from korbert.tasks.passages import Passage, join_segments
from korbert.tasks.splits import Splits
from korbert.tasks.terms import Terms, terms_of
from korbert.tokenization import AnyTokenizer, truncated_lengths
from korbert.training import Batch, Examples, Scoring, outputs, positions_of

NO_TEXT = Message("the text is empty")
"""Why a row gets no label."""


def blank_rows(rows: Sequence[Sequence[Passage]]) -> list[bool]:
    """Whether one of the texts of each row is empty, or white space."""
    return [any(is_empty(passage.text) for passage in passages) for passages in rows]


def equal_in_run(run: RunArray) -> NDArray[np.float64]:
    """Whether target and prediction of a run (N, 2, ...) are equal, (N,): 1 or 0."""
    return np.asarray((run[:, 0] == run[:, 1]).reshape(len(run), -1).all(axis=1), dtype=np.float64)


def morphemes_of(
    parts: Splits, texts_of: Callable[[TaskRow], Sequence[str]], morphemes: Morphemes
) -> list[Texts | TextPairs]:
    """The morphemes of training, validation and scored rows, of one or two texts each, as baselines expect them."""
    inputs: list[Texts | TextPairs] = []
    for rows in (parts.train, parts.valid, parts.scored):
        first, *second = ([morphemes[text] for text in side] for side in zip(*map(texts_of, rows), strict=True))
        inputs += [TextPairs(first, *second)] if second else [first]
    return inputs


def examples_of(
    rows: Sequence[Sequence[Passage]], labels: NDArray[np.generic], tokenizer: AnyTokenizer, max_length: int
) -> Examples:
    """[CLS] A [SEP], or [CLS] A [SEP] B [SEP], for one or two texts per row, truncated as in Tokenizer.encode."""
    frame = tokenizer.frame
    flat: list[tuple[NDArray[Any], NDArray[Any]]] = []
    seconds = np.empty(len(rows), dtype=np.int64)
    cut = 0
    for number, passages in enumerate(rows):
        limits: tuple[int, ...] = (max_length - 2,)
        if len(passages) == 2:
            limits = truncated_lengths(len(passages[0].ids), len(passages[1].ids), frame, max_length)
        cut += any(len(passage.ids) > limit for passage, limit in zip(passages, limits, strict=True))
        parts = (passage.part(0, limit) for passage, limit in zip(passages, limits, strict=True))
        ids, boundaries, seconds[number] = join_segments(frame, *parts)
        flat.append((ids, boundaries))
    are_single = all(len(passages) == 1 for passages in rows)
    examples = Examples.of_rows(flat, labels, tokenizer.pad_id, None if are_single else seconds)
    return replace(examples, cut=cut)


@dataclass(frozen=True)
class Groups(Examples):
    """Examples of several rows each. firsts: (N + 1,) first row of each example; labels: (N, ...), per example."""

    firsts: NDArray[np.int64] = None  # type: ignore[assignment]  # after fields that have a default

    @classmethod
    def of(
        cls, groups: Sequence[Sequence[Sequence[Passage]]], labels: NDArray[np.generic],
        tokenizer: AnyTokenizer, max_length: int,
    ) -> Self:  # fmt: skip
        """groups: the rows of each example, of one or two texts each."""
        members = [passages for group in groups for passages in group]
        rows = examples_of(members, np.zeros(len(members)), tokenizer, max_length)
        firsts = np.cumsum([0, *map(len, groups)])
        return cls(rows.input_ids, rows.boundaries, rows.offsets, labels, rows.pad_id, rows.seconds, rows.cut, firsts)

    def __len__(self) -> int:
        return len(self.firsts) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(N,) pieces per example, over all its rows."""
        return np.diff(self.offsets[self.firsts])

    @property
    def members(self) -> Examples:
        """The rows of all examples, each an example of its own, without a label."""
        labels = np.zeros(len(self.offsets) - 1)
        return Examples(self.input_ids, self.boundaries, self.offsets, labels, self.pad_id, self.seconds)

    def batch(self, rows: NDArray[np.int64]) -> dict[str, Any]:
        """The rows of the given examples as in Examples.batch, with labels (B, ...) and `sizes`, rows per example."""
        members = positions_of(self.firsts, rows)
        sizes = tuple(np.diff(self.firsts)[rows].tolist())
        return {**self.members.batch(members), "labels": torch.from_numpy(self.labels[rows]), "sizes": sizes}


@dataclass(frozen=True)
class NearGroups(Groups):
    """Groups whose labels are vectors, (N, K): a batch has rows that are near each other."""

    def order(self, batch_size: int, generator: np.random.Generator) -> list[NDArray[np.int64]]:
        return near_batches(self.labels, batch_size, generator)


def near_batches(
    vectors: NDArray[np.floating[Any]], batch_size: int, generator: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Batches of row numbers, covering all rows once, each of rows whose vectors are near each other.

    Rows are halved along the line through two randomly drawn rows, until a half is a batch (random projection trees,
    Dasgupta and Freund 2008). vectors: (N, K). There are ceil(N / batch_size) batches; one may be smaller.
    """

    def parts_of(rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        if len(rows) <= batch_size:
            yield rows
            return
        half = -(-len(rows) // batch_size) // 2 * batch_size
        first, second = generator.choice(rows, 2, replace=False)
        order = np.argpartition(vectors[rows] @ (vectors[first] - vectors[second]), half)
        yield from parts_of(rows[order[:half]])
        yield from parts_of(rows[order[half:]])

    batches = list(parts_of(np.arange(len(vectors))))
    return [batches[number] for number in generator.permutation(len(batches))]


@dataclass(frozen=True)
class LinearExamples(Groups):
    """Examples of a linear model: each has the windows of its texts, and its terms.

    text_numbers: (W,) of each window, the number of its example x num_texts + that of its text in the example.
    terms: of all examples.
    """

    text_numbers: NDArray[np.int64] = None  # type: ignore[assignment]  # after fields that have a default
    num_texts: int = 1
    terms: Terms = None  # type: ignore[assignment]

    @classmethod
    def of_texts(
        cls, rows: Sequence[Sequence[Passage]], labels: NDArray[np.generic], tokenizer: AnyTokenizer, max_length: int
    ) -> Self:
        """rows: the texts of each example, one or two, the same number in all. max_length: pieces of a window."""
        num_texts = max(map(len, rows), default=1)
        size = max_length - 2  # [CLS] and [SEP]
        groups = []
        text_numbers = []
        for row, passages in enumerate(rows):
            group = []
            for text, passage in enumerate(passages, row * num_texts):
                windows = [passage.window(start, size) for start in range(0, max(1, len(passage.ids)), size)]
                text_numbers += [text] * len(windows)
                group += [(window,) for window in windows]
            groups.append(group)
        examples = cls.of(groups, labels, tokenizer, max_length)
        return replace(
            examples, text_numbers=np.array(text_numbers, dtype=np.int64), num_texts=num_texts, terms=terms_of(rows)
        )

    def shortened(self, most: int) -> Self:
        """The examples with at most `most` windows of each text: the first ones, and the last one."""
        sizes = np.unique(self.text_numbers, return_counts=True)[1]
        first_window = np.repeat(np.cumsum(sizes) - sizes, sizes)  # of the text of each window
        window = np.arange(len(self.text_numbers)) - first_window  # its number in its text
        kept = np.flatnonzero((window < most - 1) | (window == np.repeat(sizes, sizes) - 1))
        pieces = positions_of(self.offsets, kept)
        return replace(
            self,
            input_ids=self.input_ids[pieces],
            boundaries=self.boundaries[pieces],
            offsets=np.cumsum([0, *np.diff(self.offsets)[kept]], dtype=np.int64),
            text_numbers=self.text_numbers[kept],
            firsts=np.searchsorted(kept, self.firsts),
        )

    def first(self, count: int) -> Self:
        """The first examples, at most `count`."""
        rows = np.arange(min(count, len(self)))
        windows = int(self.firsts[len(rows)])
        pieces = int(self.offsets[windows])
        return replace(
            self,
            input_ids=self.input_ids[:pieces],
            boundaries=self.boundaries[:pieces],
            offsets=self.offsets[: windows + 1],
            labels=self.labels[: len(rows)],
            text_numbers=self.text_numbers[:windows],
            firsts=self.firsts[: len(rows) + 1],
            terms=self.terms.select(rows),
        )

    def batch(self, rows: NDArray[np.int64]) -> dict[str, Any]:
        """The windows of the given examples as in Groups.batch, with text_numbers, terms, counts and rows as
        LinearModel.forward takes them.
        """
        batch = super().batch(rows)
        windows = positions_of(self.firsts, rows)
        # From the number of an example to its row in the batch.
        shifts = np.repeat(np.arange(len(rows)) - rows, batch["sizes"])
        terms = self.terms.select(rows)
        batch["text_numbers"] = torch.from_numpy(self.text_numbers[windows] + shifts * self.num_texts)
        batch["terms"] = torch.from_numpy(terms.ids)
        batch["counts"] = torch.from_numpy(terms.counts)
        batch["rows"] = torch.from_numpy(np.repeat(np.arange(len(rows)), np.diff(terms.offsets)))
        return batch


def text_vectors(network: Any, examples: Examples, **how: Unpack[Scoring]) -> NDArray[np.float32]:
    """The vectors of the texts of rows, as LinearModel.text_vectors has them, (N, num_texts x D).

    network: a LinearModel, or a copy of one in 8 bits. how: as in `outputs`.
    """

    def of_batch(model: Any, batch: Batch) -> Tensor:
        names = ("input_ids", "attention_mask", "boundaries", "text_numbers")
        vectors: Tensor = model.text_vectors(*(batch[name] for name in names))
        return vectors

    return outputs(network, examples, of_batch, **how)


class TextKind(TaughtKind, frozen=True):
    """What is predicted for a whole text or a pair: labels, or a number.

    Its model may be a linear one on words and vectors. rungs: what the model is made of, as in ClassificationSection.
    mask_personal: whether it has learned texts with their personal data replaced by tags, and reads them so.
    """

    # Left out of a record where they have their default: such records stay as before these fields existed.
    rungs: tuple[str, ...] = Field(("encoder",), exclude_if=lambda rungs: rungs == ("encoder",))
    mask_personal: bool = Field(False, exclude_if=not_)

    @property
    def reads_all(self) -> bool:
        return self.has_rungs

    def texts(self, row: TaskRow) -> list[str]:
        texts = super().texts(row)
        return [mask_text(text)[0] for text in texts] if self.masks_personal else texts

    @property
    @abstractmethod
    def num_outputs(self) -> int:
        """Outputs of the model per row."""

    @abstractmethod
    def numbers(self, targets: Sequence[Any]) -> NDArray[Any]:
        """Targets as examples hold them, (N,) or (N, C); 0 for a row without a target."""

    @abstractmethod
    def predictions_of(self, found: NDArray[np.float64]) -> list[TaskPrediction]:
        """The predictions from the outputs of a model, (N, num_outputs)."""

    @abstractmethod
    def outputs_of(self, predictions: Sequence[TaskPrediction]) -> NDArray[np.float64]:
        """Outputs that give these predictions: the inverse of `predictions_of`."""

    @abstractmethod
    def shares_of(self, predictions: Sequence[TaskPrediction]) -> NDArray[np.float32]:
        """The probabilities of the labels, (N, C), or numbers, (N, 1)."""

    def teacher_outputs(self, model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]) -> TeacherOutputs:
        shares = self.shares_of(self.predict(model, prepared, **how))
        return TeacherOutputs(shares, np.zeros(len(shares), np.int32), np.ones(len(shares), np.int32))

    def soft_targets(self, outputs: TeacherOutputs, teacher: Any, prepared: Prepared) -> NDArray[np.float32]:
        labels = getattr(self, "labels", None)
        return (
            outputs.values if labels is None else outputs.values[:, [teacher.labels.index(label) for label in labels]]
        )

    def with_soft_targets(self, prepared: Prepared, soft: NDArray[np.float32], labelled: int) -> Prepared:
        examples = prepared.examples
        hard_targets = examples.labels[:labelled]
        are_numbers = hard_targets.ndim == 1 and hard_targets.dtype == np.float32
        if hard_targets.ndim == 1:
            hard_targets = (
                hard_targets[:, None] if are_numbers else np.eye(soft.shape[1], dtype=np.float32)[hard_targets]
            )
        targets = soft.copy()
        targets[:labelled] = (targets[:labelled] + hard_targets) / 2
        examples = replace(examples, labels=targets[:, 0] if are_numbers else targets)
        if isinstance(examples, LinearExamples):  # words are not learned from teachers
            examples = replace(examples, terms=examples.terms.without_terms())
        return replace(prepared, examples=examples)

    def prepare(
        self, rows: Sequence[TaskRow], passages: Sequence[Sequence[Passage]], tokenizer: AnyTokenizer
    ) -> Prepared:
        targets = self.numbers([row.get(self.label_role) for row in rows])
        make = LinearExamples.of_texts if self.has_rungs else examples_of
        examples: Examples = make(passages, targets, tokenizer, self.max_length)
        return Prepared(rows, examples, blank=blank_rows(passages))
