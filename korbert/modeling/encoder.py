"""The encoder, and the layers of both architectures."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from korbert.modeling.attention import Rotation, SelfAttention, View, attend, rotation, select_rows
from korbert.modeling.config import EncoderConfig
from korbert.modeling.embeddings import Embeddings
from korbert.modeling.rows import Rows

_RECOMPILE_LIMIT = 64  # variants by class, width, training or evaluation; PyTorch's default is 8


class Layer(nn.Module):
    """A layer in two parts that can be compiled: what comes before attention, and what comes after it.

    compiled: whether both parts are compiled, by torch.compile with dynamic shapes.
    """

    attention: SelfAttention
    compiled = False

    def before_attention(self, hidden: Tensor, rotation: Rotation | None) -> Tensor:
        """Queries, keys and values: (N, D) -> (N, 3, H, D/H)."""
        raise NotImplementedError

    def after_attention(self, hidden: Tensor, attended: Tensor) -> Tensor:
        """The output of the layer, (W, D). hidden: its input, (W, D). attended: attention's, (W, H, D/H)."""
        raise NotImplementedError

    def forward(self, hidden: Tensor, rows: Rows, view: View, wanted: Tensor | None = None) -> Tensor:
        """hidden: (N, D). Returns (N, D), or (W, D) with `wanted` (see Encoder.forward_flat)."""
        before, after = _compiled_steps() if self.compiled else (_before, _after)
        dropout = self.attention.dropout if self.training else 0.0
        attended = attend(before(self, hidden, view.rotation), rows, view.radius, dropout)
        return after(self, select_rows(hidden, wanted), select_rows(attended, wanted))


def _before(layer: Layer, hidden: Tensor, rotation: Rotation | None) -> Tensor:
    return layer.before_attention(hidden, rotation)


def _after(layer: Layer, hidden: Tensor, attended: Tensor) -> Tensor:
    return layer.after_attention(hidden, attended)


@functools.cache
def _compiled_steps() -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """Compiled once for all layers of a class: weights are inputs."""
    torch._dynamo.config.recompile_limit = max(_RECOMPILE_LIMIT, torch._dynamo.config.recompile_limit)
    return torch.compile(_before, dynamic=True), torch.compile(_after, dynamic=True)


class BertLayer(Layer):
    """Attention and feed-forward block, each added to its input, then normalized (post-norm)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.attention = SelfAttention(config)
        self.attention_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.up = nn.Linear(width, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, width)
        self.feed_forward_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def before_attention(self, hidden: Tensor, rotation: Rotation | None) -> Tensor:
        return self.attention.project(hidden, rotation)

    def after_attention(self, hidden: Tensor, attended: Tensor) -> Tensor:
        hidden = self.attention_norm(hidden + self.dropout(self.attention.output(attended.flatten(1))))
        return self.feed_forward_norm(hidden + self.dropout(self.down(F.gelu(self.up(hidden)))))


class ModernLayer(Layer):
    """Attention and gated feed-forward block, each on normalized input (pre-norm).

    first: the input comes from the embeddings, which are normalized, before their projection where they are narrower.
    """

    def __init__(self, config: EncoderConfig, first: bool) -> None:
        super().__init__()
        width = config.hidden_size
        self.attention_norm = nn.Identity() if first else nn.LayerNorm(width, eps=config.layer_norm_eps, bias=False)
        self.attention = SelfAttention(config)
        self.feed_forward_norm = nn.LayerNorm(width, eps=config.layer_norm_eps, bias=False)
        self.up = nn.Linear(width, 2 * config.intermediate_size, bias=False)
        self.down = nn.Linear(config.intermediate_size, width, bias=False)
        self.attention_dropout = nn.Dropout(config.attention_probs_dropout_prob)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def before_attention(self, hidden: Tensor, rotation: Rotation | None) -> Tensor:
        return self.attention.project(self.attention_norm(hidden), rotation)

    def after_attention(self, hidden: Tensor, attended: Tensor) -> Tensor:
        hidden = hidden + self.attention_dropout(self.attention.output(attended.flatten(1)))
        return hidden + self.down(self.dropout(_gated(self.up(self.feed_forward_norm(hidden)))))


def _gated(halves: Tensor) -> Tensor:
    if torch.compiler.is_compiling():
        content, gate = halves.chunk(2, dim=-1)
        return F.gelu(content) * gate
    return _Gated.apply(halves)  # type: ignore[no-untyped-call]


class _Gated(torch.autograd.Function):
    """GeGLU (Shazeer 2020): gelu(content) x gate. (..., 2 x I), content first -> (..., I).

    Writes the gradients of both halves in place instead of concatenating them.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, halves: Tensor) -> Tensor:
        ctx.save_for_backward(halves)
        content, gate = halves.chunk(2, dim=-1)
        return F.gelu(content).mul_(gate)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (halves,) = ctx.saved_tensors
        content, gate = halves.chunk(2, dim=-1)
        slopes = torch.empty_like(halves)
        to_content, to_gate = slopes.chunk(2, dim=-1)
        torch.mul(F.gelu(content), gradient, out=to_gate)
        to_content.copy_(torch.ops.aten.gelu_backward(gradient * gate, content))
        return slopes


class Encoder(nn.Module):
    """Maps ids to one vector per piece. Padding at the end and other rows of the batch do not change the vectors, up to
    rounding.

    With piece_weights, the vectors are scaled, so that their mean is a weighted one: frequent pieces say little of what
    a text is about.

    Neighbouring layers may share weights (Lan et al. 2020, 3.1): `layers` holds each set of weights once. Global and
    local layers of `modern` may share them, too: a layer's view has no weights.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        modern = config.architecture == "modern"
        self.embeddings = Embeddings(config)
        numbers = range(config.distinct_layers)
        unshared = config.layers_per_set == 1  # a first layer that shares its weights has a norm, too
        self.layers = nn.ModuleList(
            ModernLayer(config, first=unshared and number == 0) if modern else BertLayer(config) for number in numbers
        )
        norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps, bias=False)
        self.final_norm = norm if modern else nn.Identity()
        self.piece_weight = nn.Linear(config.hidden_size, 1) if config.piece_weights else None

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None,
        *,
        lengths: Sequence[int] | None = None,
    ) -> Tensor:
        """All tensors: (B, T) integers. Returns (B, T, D); vectors at padding are 0.

        attention_mask: 1 on pieces, 0 on padding; None: no padding. lengths: pieces of each row, with padding on the
        right; None: read from attention_mask, which synchronizes with the device.
        """
        flat, rows, positions = _flatten(input_ids, attention_mask, token_type_ids, boundaries, lengths)
        return _unflatten(self.forward_flat(flat[0], rows, flat[1], flat[2]), positions, input_ids.shape)

    def all_layers(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None,
        *,
        lengths: Sequence[int] | None = None,
        only: Sequence[int] | None = None,
    ) -> Tensor:
        """The input of the first layer and the output of each layer: (L + 1, B, T, D). Arguments as forward.

        only: indices to return, from 0; None: all.
        The last is the result of forward. In `modern` the others are not normalized: each layer normalizes its input.
        """
        flat, rows, positions = _flatten(input_ids, attention_mask, token_type_ids, boundaries, lengths)
        layers: list[Tensor] = []
        layers.append(self.forward_flat(flat[0], rows, flat[1], flat[2], layer_inputs=layers))
        layers = layers if only is None else [layers[index] for index in only]
        return torch.stack([_unflatten(hidden, positions, input_ids.shape) for hidden in layers])

    def compile_layers(self) -> None:
        """Compiles the layers with torch.compile: fewer, larger kernels.

        Results are equal up to rounding; dropout masks differ. Needs a C++ compiler. PyTorch caches the result
        (TORCHINDUCTOR_CACHE_DIR).
        """
        for layer in self.layers:
            assert isinstance(layer, Layer)
            layer.compiled = True

    @property
    def token_weight(self) -> Tensor:
        """The token embedding matrix, (V, E)."""
        return self.embeddings.token.weight

    def forward_flat(
        self,
        input_ids: Tensor,
        rows: Rows,
        token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None,
        *,
        vectors: Tensor | None = None,
        wanted: Tensor | None = None,
        layer_inputs: list[Tensor] | None = None,
    ) -> Tensor:
        """Encodes a flat batch. Returns (N, D).

        input_ids, token_type_ids, boundaries: (N,) integers, the rows concatenated.
        vectors: (N, E), token embeddings of input_ids, if already looked up. wanted: (W,) int64, distinct positions:
        the last layer computes only these, and the result is (W, D). layer_inputs: the input of each layer is appended.
        """
        config = self.config
        views = {True: View()}  # True: global layers, False: local ones
        if config.architecture == "modern":
            views[True] = View(rotation(rows.positions, config.head_size, config.global_rope_theta))
            local = rotation(rows.positions, config.head_size, config.local_rope_theta)
            views[False] = View(local, config.local_attention // 2)
        hidden = self.embeddings(input_ids, rows, token_type_ids, boundaries, vectors)
        wanted_of = {config.num_hidden_layers - 1: wanted}
        for number in range(config.num_hidden_layers):
            if layer_inputs is not None:
                layer_inputs.append(hidden)
            layer = self.layers[number // config.layers_per_set]
            hidden = layer(hidden, rows, views[config.is_global(number)], wanted_of.get(number))
        hidden = self.final_norm(hidden)
        if self.piece_weight is not None:  # mean pooling becomes a weighted mean, up to a scale factor
            hidden = hidden * torch.sigmoid(self.piece_weight(hidden))
        return hidden


def _flatten(
    input_ids: Tensor,
    attention_mask: Tensor | None,
    token_type_ids: Tensor | None,
    boundaries: Tensor | None,
    lengths: Sequence[int] | None,
) -> tuple[tuple[Tensor, Tensor | None, Tensor | None], Rows, Tensor | None]:
    """input_ids, token_type_ids and boundaries as (N,) tensors; their Rows; the positions of the N pieces in (B x T,),
    or None without padding.
    """
    batch, length = input_ids.shape
    device = input_ids.device
    columns = torch.arange(length, device=device).expand(batch, length)
    if lengths is None and attention_mask is not None:
        attention_mask = attention_mask.bool()
        lengths = attention_mask.sum(dim=1).tolist()
    if lengths is None:
        lengths = [length] * batch
    segments, levels = (None if ids is None else ids.flatten() for ids in (token_type_ids, boundaries))
    if sum(lengths) == batch * length:
        return (input_ids.flatten(), segments, levels), Rows(lengths, device), None
    ends = torch.tensor(lengths, device=device)[:, None]
    pieces = columns < ends if attention_mask is None else attention_mask.bool()
    # Their number is known, so avoid `nonzero`, which synchronizes with the device.
    positions = torch.nonzero_static(pieces.flatten(), size=sum(lengths)).flatten()
    segments, levels = (None if ids is None else ids[positions] for ids in (segments, levels))
    rows = Rows(lengths, device, columns.flatten()[positions])
    return (input_ids.flatten()[positions], segments, levels), rows, positions


def _unflatten(hidden: Tensor, positions: Tensor | None, shape: Sequence[int]) -> Tensor:
    """(N, D) -> (B, T, D), 0 at padding."""
    batch, length = shape
    if positions is not None:
        hidden = hidden.new_zeros(batch * length, hidden.shape[1]).index_copy(0, positions, hidden)
    return hidden.view(batch, length, -1)
