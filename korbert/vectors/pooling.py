"""From the vectors of a text's pieces to one vector: the table of poolings."""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from korbert.vectors.counts import PieceCounts
from korbert.vectors.names import PoolingName

__all__ = ["POOLINGS", "Pooling", "weights_of"]


class Pooling(NamedTuple):
    """pool: vectors of pieces (B, T, D), 0 at padding, and their weights (B, T), of which each row has one above 0 ->
    (B, width x D). counts: whose frequencies weigh a piece; None: all weigh 1. about: for people."""

    pool: Callable[[Tensor, Tensor], Tensor]
    about: str
    width: int = 1
    counts: Literal["idf", "bm25"] | None = None


def _mean(hidden: Tensor, weights: Tensor) -> Tensor:
    weighted: Tensor = (hidden * weights[:, :, None]).sum(dim=1) / weights.sum(dim=1, keepdim=True)
    return weighted


def _first(hidden: Tensor, weights: Tensor) -> Tensor:
    places = (weights > 0).int().argmax(dim=1)
    return hidden[torch.arange(len(hidden), device=hidden.device), places]


def _max(hidden: Tensor, weights: Tensor) -> Tensor:
    return hidden.masked_fill(weights[:, :, None] <= 0, float("-inf")).amax(dim=1)


def _mean_max(hidden: Tensor, weights: Tensor) -> Tensor:
    return torch.cat([_mean(hidden, weights), _max(hidden, weights)], dim=-1)


POOLINGS: Mapping[PoolingName, Pooling] = {
    "mean": Pooling(_mean, "the mean of the pieces"),
    "first": Pooling(_first, "the first piece, which is [CLS] unless special tokens are left out"),
    "max": Pooling(_max, "the greatest number of each dimension"),
    "mean-max": Pooling(_mean_max, "mean and max side by side", width=2),
    "idf": Pooling(_mean, "the mean, rare pieces weighing more", counts="idf"),
    "bm25": Pooling(_mean, "the mean, weighted as BM25 weighs words", counts="bm25"),
}


def weights_of(
    pooling: Pooling, input_ids: Tensor, attention_mask: Tensor, special_tokens: bool, counts: PieceCounts | None
) -> Tensor:
    """(B, T) float: what each piece weighs. input_ids, attention_mask: (B, T), rows [CLS] text [SEP] before padding.

    Padding weighs 0; so do special tokens where they are left out, and always under idf and BM25, which know nothing of
    them. A text without any other piece keeps them, so that its vector is one.
    """
    real = attention_mask.float()
    inner = real.clone()
    inner[:, 0] = 0
    inner[torch.arange(len(real), device=real.device), attention_mask.sum(dim=1) - 1] = 0
    if pooling.counts is None:
        weights = real if special_tokens else inner
    else:
        assert counts is not None
        weights = counts.weights(pooling.counts, input_ids, inner.bool())
    return torch.where(weights.sum(dim=1, keepdim=True) > 0, weights, real)
