"""The interface of an objective, and the objectives that need only a head."""

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from korbert.modeling import DetectionModel, PretrainingModel, Rows
from korbert.pretraining.objectives.vocabulary import full_loss, sampled_loss
from korbert.training import Batch

SCORED_AT_ONCE = 256  # predicted pieces; their scores over the vocabulary are the largest tensor


class Objective:
    """A loss on encoder vectors. name: prefix of its figures and of its count in a batch. weight: in the whole loss."""

    name: str
    weight: float = 1.0

    def places(self, batch: Batch, rows: Rows) -> Tensor | None:
        """Positions of the vectors that the loss needs, (M,) int64 among the N pieces; None: all."""
        return None

    def loss(self, model: Any, vectors: Tensor, batch: Batch, rows: Rows) -> Tensor:
        """The sum of the losses of all labels. vectors: (M, D), at `places`."""
        raise NotImplementedError

    def score(self, model: Any, vectors: Tensor, batch: Batch, rows: Rows) -> Tensor:
        """Sum of losses, correct predictions, labels: (3,) float64."""
        raise NotImplementedError


class Prediction(Objective):
    """Masked pieces, from the vectors at label_places. compiled: the sampled loss, by torch.compile."""

    name = "mlm"

    def __init__(self, *, compiled: bool = False) -> None:
        self._compiled = compiled

    def places(self, batch: Batch, rows: Rows) -> Tensor:
        return batch["label_places"]

    def loss(self, model: PretrainingModel, vectors: Tensor, batch: Batch, rows: Rows) -> Tensor:
        """Over the whole vocabulary, or over the batch's negatives; entries are its vectors of labels and negatives."""
        hidden = model.mlm.transform(vectors)
        if "entries" not in batch:
            return full_loss(hidden, model.encoder.token_weight, model.mlm.bias, batch["labels"])
        estimate = _compiled_loss() if self._compiled else sampled_loss
        return estimate(
            hidden, batch["entries"], model.mlm.bias, batch["labels"], batch["negatives"], batch["log_expected"]
        )

    def score(self, model: PretrainingModel, vectors: Tensor, batch: Batch, rows: Rows) -> Tensor:
        total = torch.zeros(3, dtype=torch.float64)
        for start in range(0, len(vectors), SCORED_AT_ONCE):
            part = slice(start, start + SCORED_AT_ONCE)
            total += _cross_entropy_sums(model.mlm_head(vectors[part]), batch["labels"][part])
        return total


@functools.cache
def _compiled_loss() -> Callable[..., Tensor]:
    return torch.compile(sampled_loss, dynamic=True)


class Pairing(Objective):
    """One of two labels for the pair of segments of a row: B follows A or not (nsp), in order or swapped (sop)."""

    def __init__(self, name: str) -> None:
        self.name = name

    def places(self, batch: Batch, rows: Rows) -> Tensor:
        return rows.first

    def loss(self, model: PretrainingModel | DetectionModel, vectors: Tensor, batch: Batch, rows: Rows) -> Tensor:
        scores = model.nsp(vectors).float()
        return F.cross_entropy(scores, batch["pair_label"], ignore_index=-100, reduction="sum")

    def score(self, model: PretrainingModel | DetectionModel, vectors: Tensor, batch: Batch, rows: Rows) -> Tensor:
        labelled = batch["pair_label"] != -100
        return _cross_entropy_sums(model.nsp(vectors)[labelled], batch["pair_label"][labelled])


def _cross_entropy_sums(scores: Tensor, labels: Tensor) -> Tensor:
    """The sums of labelled rows. scores: (N, C); labels: (N,)."""
    scores = scores.float()
    return sums(F.cross_entropy(scores, labels, reduction="sum"), best_classes(scores) == labels)


def sums(losses: Tensor, right: Tensor) -> Tensor:
    """Sum of losses, correct predictions, labels: (3,) float64. losses: their sum; right: (N,) bool."""
    return torch.tensor([float(losses), float(right.sum()), len(right)], dtype=torch.float64)


def best_classes(scores: Tensor) -> Tensor:
    """The highest-scoring class of each row, (N,) int64. scores: (N, C) float32, without gradients."""
    if scores.device.type == "cpu":  # over 100,000 classes NumPy's argmax is six times as fast
        return torch.from_numpy(scores.numpy().argmax(axis=1))
    return scores.argmax(dim=1)
