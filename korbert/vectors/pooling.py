"""Poolings: piece vectors -> one text vector."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from korbert.modeling import mean_of_pieces
from korbert.vectors.names import PoolingName


class PoolingFunction(NamedTuple):
    """pool: (vectors of pieces (B, T, D), 0 at padding; weights (B, T), some above 0 in each row) -> (B, width x D)."""

    pool: Callable[[Tensor, Tensor], Tensor]
    width: int = 1


def _first(hidden: Tensor, weights: Tensor) -> Tensor:
    first = (weights > 0).int().argmax(dim=1)
    return hidden[torch.arange(len(hidden), device=hidden.device), first]


def _max(hidden: Tensor, weights: Tensor) -> Tensor:
    return hidden.masked_fill(weights[:, :, None] <= 0, float("-inf")).amax(dim=1)


POOLINGS: Mapping[PoolingName, PoolingFunction] = {
    "mean": PoolingFunction(mean_of_pieces),
    "first": PoolingFunction(_first),  # [CLS], unless special tokens are left out
    "max": PoolingFunction(_max),
    "mean-max": PoolingFunction(lambda *states: torch.cat([mean_of_pieces(*states), _max(*states)], dim=-1), width=2),
}


def weights_of(attention_mask: Tensor, special_tokens: bool) -> Tensor:
    """(B, T) float: the weight of each piece, 1 or 0. attention_mask: (B, T), rows of [CLS] text [SEP] and padding.

    Padding has weight 0, and so have special tokens without special_tokens; but in a text without other pieces they
    have weight 1, so that it has a vector.
    """
    real = attention_mask.float()
    if special_tokens:
        return real
    inner = real.clone()
    inner[:, 0] = 0
    inner[torch.arange(len(real), device=real.device), attention_mask.sum(dim=1) - 1] = 0
    return torch.where(inner.sum(dim=1, keepdim=True) > 0, inner, real)
