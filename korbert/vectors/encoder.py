"""Piece vectors, from the encoder of any network."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from korbert.errors import ModelError
from korbert.modeling import Network
from korbert.tokenization import AnyTokenizer, Encoding
from korbert.training import Batch, model_inputs
from korbert.vectors.settings import VectorSettings

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


def hidden_of(model: Any, batch: Batch, settings: VectorSettings, layers: tuple[int, ...]) -> Tensor:
    """Piece vectors from the layers in the settings: (B, T, D), or (B, T, K x D) for K concatenated layers.

    layers: their indices, from 0.
    """
    if layers == (model.config.num_hidden_layers,):
        last: Tensor = model.encoder(**model_inputs(batch))
        return last
    vectors = model.encoder.all_layers(**model_inputs(batch), only=layers)  # (K, B, T, D)
    if settings.mix == "concat":
        return torch.cat(list(vectors), dim=-1)
    mixed: Tensor = vectors.sum(dim=0) if settings.mix == "sum" else vectors.mean(dim=0)
    return mixed


def unit(vectors: _Vectors) -> _Vectors:
    """Scales vectors, (..., D), to length 1; zero vectors stay zero."""
    lengths: Any = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12))
