"""The losses of pretraining (MLM, NSP), and held-out figures beside the unigram baseline."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from korbert.pretraining.batches import Layout
from korbert.training.devices import Batch, moved
from korbert.training.distributed import add_over_world
from korbert.training.sharding import is_sharded
from korbert.world import connected

__all__ = ["evaluate", "pretraining_loss", "unigram_log_probabilities"]

_ENCODER_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "boundaries")
_SCORED_AT_ONCE = 256  # masked pieces; their scores over the vocabulary are the largest tensor, and chunks are faster
_GROUP_COST = {"cpu": 128, "cuda": 16_384}  # pieces that are encoded in the time that one more group costs


class _Model(Protocol):
    """The parts of korbert.modeling.PretrainingModel that the losses use."""

    encoder: nn.Module
    decoder_weight: Tensor
    decoder_bias: Tensor

    def mlm_hidden(self, rows: Tensor) -> Tensor: ...

    def nsp_head(self, hidden: Tensor) -> Tensor: ...


def pretraining_loss(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """loss = mlm_loss + nsp_loss, each a mean over its labels, or 0 without labels. batch: of PretrainingRows.

    If the batch has mlm_count and nsp_count, the labels of the whole step, the sums are divided by these instead, so
    that the losses of its micro-batches add up. Waits for nothing on the device.
    """
    pretraining = cast(_Model, model)
    masked, labels, first = _encoded(pretraining, batch)

    # MLM over the vocabulary. linear_cross_entropy never holds all scores at once, but stays in fp32 under autocast.
    if torch.is_autocast_enabled(masked.device.type):
        mlm_sum = F.cross_entropy(_scores(pretraining, masked), labels, reduction="sum")
    else:
        mlm_sum = F.linear_cross_entropy(
            pretraining.mlm_hidden(masked),
            pretraining.decoder_weight,
            labels,
            linear_bias=pretraining.decoder_bias,
            reduction="sum",
            options=nn.LinearCrossEntropyOptions(batch_chunk_size=_SCORED_AT_ONCE),
        )
    pair_labels = batch["next_sentence_label"]
    nsp_sum = F.cross_entropy(pretraining.nsp_head(first), pair_labels, ignore_index=-100, reduction="sum")

    mlm_count = batch["mlm_count"] if "mlm_count" in batch else (batch["labels"] != -100).sum()
    nsp_count = batch["nsp_count"] if "nsp_count" in batch else (pair_labels != -100).sum()
    mlm_loss = mlm_sum / mlm_count.clamp(min=1)
    nsp_loss = nsp_sum / nsp_count.clamp(min=1)
    return {"loss": mlm_loss + nsp_loss, "mlm_loss": mlm_loss, "nsp_loss": nsp_loss}


@torch.no_grad()
def evaluate(model: nn.Module, batches: Iterable[Batch], unigram: NDArray[np.int64]) -> dict[str, float | int]:
    """Loss and accuracy of MLM and NSP, means over all labels of the batches; nan without labels.

    Of several connected processes each gives its own batches, and all get the means over all.
    unigram: (V,) counts of the pieces in the training text. unigram_loss is the cross-entropy of the same MLM labels
    under these counts (unigram_log_probabilities): the baseline of a model that makes no use of context.
    """
    pretraining = cast(_Model, model)
    device = pretraining.decoder_weight.device
    expected = torch.from_numpy(unigram_log_probabilities(unigram))
    totals = torch.zeros(7, dtype=torch.float64)
    for batch in batches:
        there = moved(batch, device)
        masked, labels, first = _encoded(pretraining, there)
        pairs = there["next_sentence_label"] != -100
        for start in range(0, len(labels), _SCORED_AT_ONCE):
            part = slice(start, start + _SCORED_AT_ONCE)
            totals[:3] += _scored(_scores(pretraining, masked[part]), labels[part])
        totals[3:6] += _scored(pretraining.nsp_head(first)[pairs], there["next_sentence_label"][pairs])
        totals[6] -= expected[labels.cpu()].sum()
    add_over_world(totals, connected())
    mlm_loss, mlm_right, mlm_count, nsp_loss, nsp_right, nsp_count, unigram_loss = totals.tolist()
    return {
        "mlm_loss": _ratio(mlm_loss, mlm_count),
        "mlm_accuracy": _ratio(mlm_right, mlm_count),
        "mlm_count": int(mlm_count),
        "nsp_loss": _ratio(nsp_loss, nsp_count),
        "nsp_accuracy": _ratio(nsp_right, nsp_count),
        "nsp_count": int(nsp_count),
        "unigram_loss": _ratio(unigram_loss, mlm_count),
    }


def unigram_log_probabilities(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Log probability of each piece, (V,), with add-one smoothing (Laplace) for pieces that never occur."""
    smoothed = counts.astype(np.float64) + 1
    logarithms: NDArray[np.float64] = np.log(smoothed) - np.log(smoothed.sum())
    return logarithms


def _encoded(model: _Model, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Vectors of the pieces with a label (N, D), their labels (N,), and vectors of the first pieces (B, 1, D).

    The heads see no others. Rows are sorted by length; groups of similar length are encoded apart, with less padding.
    """
    layout: Layout = batch["layout"]
    label_rows, label_columns = batch["label_rows"], batch["label_columns"]
    masked, first = [], []
    whole = is_sharded(cast(nn.Module, model))  # then all processes must call the layers equally often
    groups = _groups(layout.lengths, batch["input_ids"].device.type)
    for rows, length in [(slice(0, len(layout.lengths)), max(layout.lengths))] if whole else groups:
        inputs = {name: batch[name][rows, :length] for name in _ENCODER_INPUTS}
        padded = min(layout.lengths[rows]) < length
        hidden = model.encoder(**inputs, padded=padded)  # (rows, length, D)
        here = slice(layout.labels_before[rows.start], layout.labels_before[rows.stop])
        masked.append(hidden[label_rows[here] - rows.start, label_columns[here]])
        first.append(hidden[:, :1])
    return torch.cat(masked), batch["labels"][label_rows, label_columns], torch.cat(first)


def _groups(lengths: Sequence[int], device: str) -> Iterator[tuple[slice, int]]:
    """Neighbouring rows and their longest length: a new group begins where it saves more padding than it costs."""
    worth = _GROUP_COST["cpu" if device == "cpu" else "cuda"]
    start, longest = 0, lengths[0]
    for row, length in enumerate(lengths):
        if (length - longest) * (row - start) > worth:
            yield slice(start, row), longest
            start, longest = row, length
        longest = max(longest, length)
    yield slice(start, len(lengths)), longest


def _scores(model: _Model, rows: Tensor) -> Tensor:
    """Scores over the vocabulary: (N, D) -> (N, V)."""
    return F.linear(model.mlm_hidden(rows), model.decoder_weight, model.decoder_bias)


def _scored(scores: Tensor, labels: Tensor) -> Tensor:
    """Sum of losses, correct predictions, labels: (3,) float64."""
    losses = F.cross_entropy(scores.float(), labels, reduction="sum")
    right = (scores.argmax(dim=1) == labels).sum()
    return torch.tensor([float(losses), float(right), len(labels)], dtype=torch.float64)


def _ratio(total: float, count: float) -> float:
    return total / count if count else float("nan")
