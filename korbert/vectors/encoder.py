"""Vectors of texts, from the encoder of any network."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from korbert.errors import ModelError, SettingsError
from korbert.modeling import EmbeddingModel
from korbert.modeling import Model as Network
from korbert.modeling.onnx_encoder import OnnxEncoder
from korbert.tokenization import AnyTokenizer, Encoding
from korbert.training.devices import Batch
from korbert.training.examples import Examples
from korbert.training.scoring import NotFinite, Scoring, model_inputs, outputs
from korbert.vectors.counts import PieceCounts
from korbert.vectors.pooling import POOLINGS, weights_of
from korbert.vectors.settings import Asked, VectorSettings

_Vectors = NDArray[np.float32]


def vector_defaults(network: Network) -> Asked:
    """The settings that a network was trained with, as far as they differ from VectorSettings."""
    if isinstance(network, EmbeddingModel):
        return {"pooling": network.pooling, "normalize": network.normalize}
    return {}


def vector_settings(network: Network, asked: Asked) -> VectorSettings:
    """Merges settings with the network's defaults. SettingsError for values that the network does not support."""
    settings = VectorSettings.of({**vector_defaults(network), **asked})
    last = network.config.num_hidden_layers
    if len(set(settings.places(last))) < len(settings.layer):
        raise SettingsError(f"layer {list(settings.layer)}: name each layer once")
    if settings.size is not None and settings.size > (width := width_of(network, settings)):
        raise SettingsError(f"size {settings.size}: the vectors have {width} numbers: take that many or fewer")
    if not settings.reads_last(last) and isinstance(network.encoder, OnnxEncoder):
        raise SettingsError("layer: an encoder in an ONNX file has only its last layer: omit layer")
    return settings


def width_of(network: Network, settings: VectorSettings) -> int:
    """Numbers per vector, before it is cut."""
    layers = len(settings.layer) if settings.mix == "concat" else 1
    return int(network.config.hidden_size) * layers * POOLINGS[settings.pooling].width


def text_vectors(
    network: Network,
    tokenizer: AnyTokenizer,
    encodings: Sequence[Encoding],
    settings: VectorSettings,
    batch_size: int = 64,
    *,
    counts: PieceCounts | None = None,
    **how: Unpack[Scoring],
) -> _Vectors:
    """The vector of each text, (N, D), computed shortest first.

    counts: of the pieces, for the poolings that need them.
    NotFinite if a vector is not finite.
    """
    pooling, layers = POOLINGS[settings.pooling], settings.places(network.config.num_hidden_layers)

    def vector_of(model: nn.Module, batch: Batch) -> Tensor:
        hidden = hidden_of(model, batch, settings, layers).float()
        weights = weights_of(pooling, batch["input_ids"], batch["attention_mask"], settings.special_tokens, counts)
        return pooling.pool(hidden, weights)  # (B, D)

    vectors = np.zeros((0, width_of(network, settings)), np.float32)
    if encodings:
        rows = ((encoding.input_ids, encoding.boundaries) for encoding in encodings)
        examples = Examples.of_rows(rows, [0] * len(encodings), tokenizer.pad_id)
        try:
            vectors = outputs(network, examples, vector_of, batch_size, **how)
        except NotFinite:
            raise NotFinite("vectors") from None
    if settings.size is not None:
        vectors = vectors[:, : settings.size]
    return unit(vectors) if settings.normalize else vectors


def encode_whole(network: Network, tokenizer: AnyTokenizer, text: str, pair: str | None = None) -> Encoding:
    """Encodes a text or pair without truncation, special tokens included. ModelError if it is too long."""
    encoding = tokenizer.encode(text, pair, special_tokens=True)
    longest: int = network.config.max_position_embeddings
    if len(encoding) > longest:
        raise ModelError(f"the text has {len(encoding):,} pieces, the model reads {longest:,}: shorten it")
    return encoding


def digest_of(network: Network, tokenizer: AnyTokenizer, max_length: int, prompts: Sequence[str] = ()) -> str:
    """SHA-256 (hex) over everything that determines vectors: config, encoder weights, tokenizer, maximum length,
    prompts."""
    encoder: nn.Module = network.encoder
    facts = [network.config.model_dump(mode="json"), tokenizer.digest, max_length, *prompts]
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    if isinstance(encoder, OnnxEncoder):
        digest.update(encoder.sha256.encode())
        return digest.hexdigest()
    for name, tensor in sorted(encoder.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


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
