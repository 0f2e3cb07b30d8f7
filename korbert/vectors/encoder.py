"""Vectors of pieces, from the encoder of any network, and poolings, which make one vector per text of them."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from korbert.errors import ModelError
from korbert.modeling import Network, mean_pooling
from korbert.tokenization import AnyTokenizer, Encoding
from korbert.training import Batch, model_inputs
from korbert.vectors.names import PoolingName
from korbert.vectors.vector_settings import VectorSettings

_Vectors = NDArray[np.float32]


def encode_whole(network: Network, tokenizer: AnyTokenizer, text: str, pair: str | None = None) -> Encoding:
    """Encodes a text or pair without truncation, special tokens included. ModelError if it is too long."""
    encoding = tokenizer.encode(text, pair, special_tokens=True)
    longest: int = network.config.max_position_embeddings
    if len(encoding) > longest:
        raise ModelError(
            "the text has {num_encoding:,} pieces, the model reads {longest:,}: shorten it",
            num_encoding=len(encoding),
            longest=longest,
        )
    return encoding


def hidden_of(model: Any, batch: Batch, settings: VectorSettings) -> Tensor:
    """Piece vectors from the layers in the settings: (B, T, D), or (B, T, K x D) for K concatenated layers."""
    count = model.config.num_hidden_layers
    if settings.reads_last(count):
        last: Tensor = model.encoder(**model_inputs(batch))
        return last
    vectors = model.encoder.all_layers(**model_inputs(batch), only=settings.layer_indices(count))  # (K, B, T, D)
    if settings.mix == "concat":
        return torch.cat(list(vectors), dim=-1)
    mixed: Tensor = vectors.sum(dim=0) if settings.mix == "sum" else vectors.mean(dim=0)
    return mixed


def to_unit_length(vectors: _Vectors) -> _Vectors:
    """Scales vectors, (..., D), to length 1; zero vectors stay zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12))


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
    "mean": PoolingFunction(mean_pooling),
    "first": PoolingFunction(_first),  # [CLS], unless special tokens are left out
    "max": PoolingFunction(_max),
    "mean-max": PoolingFunction(lambda *states: torch.cat([mean_pooling(*states), _max(*states)], dim=-1), width=2),
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
