"""Losses over the vocabulary: cross-entropy over all entries, in parts, or over a sample of them.

With 100,000 entries these scores are most of the arithmetic of a step. The exact loss takes three matrix products
(scores, and the gradients of vectors and matrix) and holds the scores of some rows at a time; the sampled one takes a
few thousand entries for all rows of a step.
"""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from korbert.training import Batch

_ROWS_AT_ONCE = 512  # rows whose vocabulary scores are in memory: 200 MB for 102,400 entries


def full_loss(vectors: Tensor, weight: Tensor, bias: Tensor, labels: Tensor) -> Tensor:
    """Sum over rows of the cross-entropy of their labels.

    vectors: (M, E), the output of the head's transform; weight: (V, E); bias: (V,); labels: (M,) int64. Under autocast
    the products are in its type, sums in float32.
    """
    kind = vectors.dtype
    if torch.is_autocast_enabled(vectors.device.type):
        kind = torch.get_autocast_dtype(vectors.device.type)
    return _FullLoss.apply(vectors, weight, bias, labels, kind)  # type: ignore[no-untyped-call]


class _FullLoss(torch.autograd.Function):
    """Computes gradients together with the loss, while the scores are in memory."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, kind: torch.dtype) -> Tensor:
        vectors = vectors.detach()
        cast = weight.detach().to(kind)
        loss = torch.zeros((), dtype=torch.float32, device=vectors.device)
        needs_gradient = any(ctx.needs_input_grad)
        to_vectors = torch.empty(vectors.shape, dtype=torch.float32, device=vectors.device)
        to_weight = to_bias = None
        for start in range(0, len(vectors), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            part_vectors = vectors[part].to(kind)
            part_labels = labels[part, None]
            scores = torch.addmm(bias.detach().to(kind), part_vectors, cast.T).float()  # (m, V)
            # In place: log probabilities, then probabilities, then the gradient of the scores.
            probabilities = torch.log_softmax(scores, dim=1, out=scores)
            loss -= probabilities.gather(1, part_labels).sum()
            if not needs_gradient:
                continue
            probabilities.exp_()
            probabilities.scatter_add_(1, part_labels, torch.full_like(part_labels, -1, dtype=probabilities.dtype))
            slope = probabilities.to(kind)
            to_vectors[part] = slope @ cast
            if ctx.needs_input_grad[1]:  # frozen embeddings need none
                grown = (slope.T @ part_vectors).float()
                to_weight = grown if to_weight is None else to_weight.add_(grown)
            to_bias = probabilities.sum(dim=0) if to_bias is None else to_bias.add_(probabilities.sum(dim=0))
        if needs_gradient:
            if to_bias is None:  # no rows
                to_bias = torch.zeros_like(bias)
                to_weight = torch.zeros_like(weight) if ctx.needs_input_grad[1] else None
            ctx.save_for_backward(to_vectors, to_weight, to_bias)
            ctx.kind = vectors.dtype
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        to_vectors, to_weight, to_bias = ctx.saved_tensors
        to_weight = None if to_weight is None else to_weight.mul_(gradient)
        return (to_vectors * gradient).to(ctx.kind), to_weight, to_bias.mul_(gradient), None, None


def sampled_loss(
    vectors: Tensor, entries: Tensor, bias: Tensor, labels: Tensor, negatives: Tensor, log_expected: Tensor
) -> Tensor:
    """As full_loss, with Z, the sum of all exp(scores), estimated from the label and a sample of entries (importance
    sampling, Bengio and Senécal 2003): exp(score of the label) + sum over negatives other than it of exp(score) /
    expected.

    entries: (M + S, E), the vocabulary's vectors of labels and negatives. negatives: (S,) int64, all different;
    log_expected: (S,) float32, the log of how often each was to be drawn, divided by how often it was (Negatives). The
    estimate of Z is unbiased; that of the loss is a little low.
    """
    label_entries, negative_entries = torch.split(entries, [len(labels), len(negatives)])
    label_scores = (vectors * label_entries).sum(dim=1).float() + bias[labels]  # (M,)
    scores = F.linear(vectors, negative_entries, bias[negatives]).float() - log_expected  # (M, S)
    scores = scores.masked_fill(labels[:, None] == negatives, float("-inf"))
    return (torch.logaddexp(scores.logsumexp(dim=1), label_scores) - label_scores).sum()


def look_up_embeddings(batch: Batch, weight: Tensor) -> tuple[Tensor | None, Batch]:
    """The token embeddings of a batch with negatives, (N, E), and the batch with those of labels and negatives
    (`entries`: (M + S, E)). Of a batch without negatives None, and the batch.

    One lookup serves them all, because the gradient of each is as large as the matrix. weight: (V, E).
    """
    if "negatives" not in batch:
        return None, batch
    ids = torch.cat([batch["input_ids"], batch["labels"], batch["negatives"]])
    vectors, entries = F.embedding(ids, weight).tensor_split([len(batch["input_ids"])])
    return vectors, {**batch, "entries": entries}


class Negatives:
    """A sample of entries by how often they occur, shared by all rows of a step.

    counts: (V,) of each piece in the training text; one more is counted for each, so that all can be drawn. number: how
    many are drawn, with replacement and in strata: an entry with the probability q is drawn number x q times on
    average, and frequent ones by nearly that number in every step. Specials and bytes are entries like others.
    """

    def __init__(self, counts: NDArray[np.int64], number: int) -> None:
        self._probabilities = (counts + 1) / (counts + 1).sum()
        self._upper = np.cumsum(self._probabilities)
        self._number = number

    def draw(self, rng: np.random.Generator) -> dict[str, Tensor]:
        """negatives: (S,) int64, ascending; log_expected: (S,) float32; S at most `number`."""
        points = (np.arange(self._number) + rng.random(self._number)) / self._number
        sample = np.minimum(self._upper.searchsorted(points * self._upper[-1], side="right"), len(self._upper) - 1)
        entries, repeats = np.unique(sample, return_counts=True)
        expected = self._number * self._probabilities[entries]
        return {
            "negatives": torch.from_numpy(entries),
            "log_expected": torch.from_numpy(np.log(expected / repeats).astype(np.float32)),
        }
