"""Attention weights of all layers and heads for one text or pair, between pieces, morphemes or eojeols.

The encoder's attention kernels do not return weights. They are recomputed from the inputs of each layer's
attention, with its own projections, positions and window.
"""

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from korbert.modeling import Encoder, Layer, Network, TransformersEncoder, View
from korbert.tokenization import AnyTokenizer, Encoding, span_of
from korbert.tokenization.pieces import Span
from korbert.training import NotFinite, device_of
from korbert.vectors.encoder import encode_whole
from korbert.vectors.names import Unit
from korbert.vectors.parts import pieces_of_units

UNITS: tuple[Unit, ...] = get_args(Unit)


@dataclass(frozen=True)
class Attention:
    """Attention between all pieces of a text or pair, in every layer and head.

    texts: one or two. encoding: the T pieces, special tokens included; token_type_ids says which text each belongs to,
    whether or not the encoder is told.
    weights: (L, H, T, T) float32; [l, h, i, j] is the attention of piece i to piece j. Rows sum to 1.
    queries, keys: (L, H, T, D/H) float32, rotated where the encoder has rotary positions: the weights are the softmax
    of their products / sqrt(D/H) over the pieces in the layer's window. None for encoders of `transformers`.
    """

    texts: tuple[str, ...]
    encoding: Encoding
    weights: NDArray[np.float32]
    queries: NDArray[np.float32] | None = None
    keys: NDArray[np.float32] | None = None

    def groups(self, unit: Unit) -> NDArray[np.int64]:
        """The unit of each piece, (T,), numbered from 0 in text order. Each special token is a unit of its own."""
        groups = np.zeros(len(self.encoding), np.int64)
        for number, pieces in enumerate(pieces_of_units(self.texts, self.encoding, unit)):
            groups[pieces] = number
        return groups

    def labels(self, unit: Unit) -> list[str]:
        """The text of each unit: its pieces (했: 하, 었), or its characters if the pieces are bytes."""
        encoding = self.encoding
        names = []
        units = pieces_of_units(self.texts, encoding, unit)
        for pieces, (start, end) in zip(units, self.spans(unit), strict=True):
            name = "".join(encoding.pieces[index].removeprefix("▁") for index in pieces)
            of_text = self.texts[encoding.token_type_ids[pieces[0]]][start:end]
            if of_text and (unit == "eojeol" or (len(pieces) > 1 and len(name) > len(of_text))):
                name = of_text
            names.append(name)
        return names

    def spans(self, unit: Unit) -> list[Span]:
        """The characters of each unit in its own text, (0, 0) for special tokens."""
        units = pieces_of_units(self.texts, self.encoding, unit)
        return [span_of([self.encoding.spans[index] for index in pieces], 0, len(pieces) - 1) for pieces in units]


def attention(model: Network, tokenizer: AnyTokenizer, text: str, pair: str | None = None) -> Attention:
    """Attention of a model's encoder on a text or pair, in which `[MASK]` and the like are special tokens.

    model: any of korbert.modeling, in eval mode. ModelError for more pieces than it has positions, for weights that
    are not finite, and for an encoder without weights between all pieces (Funnel, Longformer).
    """
    texts = (text,) if pair is None else (text, pair)
    encoding = encode_whole(model, tokenizer, text, pair)
    device = device_of(model)
    columns = [encoding.input_ids, encoding.token_type_ids, encoding.boundaries]
    ids, segments, boundaries = (torch.tensor([column], device=device) for column in columns)
    with torch.inference_mode():
        if isinstance(model.encoder, TransformersEncoder):
            arrays = [model.encoder.attentions(ids, segments)[:, 0]]
        else:
            layers = []  # weights (H, T, T), queries and keys (H, T, D/H) of each
            for layer, hidden, view in _layer_inputs(model.encoder, ids, segments, boundaries):
                query, key = layer.before_attention(hidden, view.rotation).transpose(0, 2)[:, :2].unbind(1)
                scores = query @ key.transpose(1, 2) * layer.attention.head_size**-0.5
                if view.radius is not None:
                    positions = torch.arange(len(hidden), device=hidden.device)
                    scores = scores.masked_fill((positions[:, None] - positions).abs() > view.radius, float("-inf"))
                layers.append((scores.softmax(dim=-1), query, key))
            arrays = [torch.stack(parts) for parts in zip(*layers, strict=True)]
    result = Attention(texts, encoding, *(array.float().cpu().numpy() for array in arrays))
    if not np.isfinite(result.weights).all():
        raise NotFinite("attention weights")
    return result


def _layer_inputs(
    encoder: Encoder, ids: Tensor, segments: Tensor, boundaries: Tensor
) -> list[tuple[Layer, Tensor, View]]:
    """Each layer with its inputs, (T, D) and a View, from one pass. Arguments: (1, T)."""
    calls: list[tuple[Layer, Tensor, View]] = []

    def note(layer: Layer, inputs: tuple[Tensor, Tensor, View]) -> None:
        hidden, _, view = inputs[:3]
        calls.append((layer, hidden, view))

    modules: list[Any] = list(encoder.layers)  # layers that share weights are called several times
    hooks = [layer.register_forward_pre_hook(note) for layer in modules]
    try:
        encoder(ids, token_type_ids=segments, boundaries=boundaries)
    finally:
        for hook in hooks:
            hook.remove()
    return calls
