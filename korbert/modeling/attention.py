"""Self-attention of flat batches, global or local, with or without rotary positions.

On a GPU in bf16 one kernel handles all rows as they are (`varlen_attn`). Elsewhere rows of similar length are grouped
into blocks, and local layers attend window by window, so that time and memory are linear in the length of a row.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from korbert.modeling.config import EncoderConfig
from korbert.modeling.rows import Block, Rows

_SHORT = 256  # pieces per row up to which computing all scores at once is faster on CPU

Rotation = tuple[Tensor, Tensor]
"""Cosines and sines of the rotary embeddings, (N, D/H/2) each."""


class View(NamedTuple):
    """Which pieces a layer attends to, which layers that share weights may do differently.

    rotation: rotary embeddings, or None. radius: pieces seen to each side; None: the whole row.
    """

    rotation: Rotation | None = None
    radius: int | None = None


def rotation(positions: Tensor, size: int, theta: float) -> Rotation:
    """Rotary embeddings (Su et al. 2021): dimensions i and i + size/2 rotate by position x theta^(-2i/size).

    positions: (N,). size: D/H.
    """
    turns = 1.0 / theta ** (torch.arange(0, size, 2, dtype=torch.float32, device=positions.device) / size)  # (D/H/2,)
    angles = positions.to(torch.float32)[:, None] * turns
    return angles.cos(), angles.sin()


class Rotated(torch.autograd.Function):
    """Queries and keys rotated, and values: (N, 3, H, D/H), computed in float32 -> the same shape and dtype.

    The gradient is the inverse rotation.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, qkv: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
        ctx.save_for_backward(cosines, sines)
        return _rotate(qkv, cosines, sines)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        cosines, sines = ctx.saved_tensors
        return _rotate(gradient, cosines, -sines), None, None


def _rotate(qkv: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    first, second = qkv[:, :2].float().chunk(2, dim=-1)  # (N, 2, H, D/H/2)
    cosines = cosines[:, None, None]
    sines = sines[:, None, None]
    rotated = qkv.clone()
    half = qkv.shape[-1] // 2
    rotated[:, :2, :, :half] = (first * cosines).addcmul_(second, sines, value=-1)
    rotated[:, :2, :, half:] = (second * cosines).addcmul_(first, sines)
    return rotated


def attend(qkv: Tensor, rows: Rows, radius: int | None = None, dropout: float = 0.0) -> Tensor:
    """Attention of each piece over its row. qkv: (N, 3, H, D/H). Returns (N, H, D/H). radius: see View."""
    if qkv.is_cuda and qkv.dtype in (torch.bfloat16, torch.float16) and not dropout:
        from torch.nn.attention.varlen import varlen_attn

        query, key, value = qkv.unbind(1)
        side = -1 if radius is None else radius
        layout = (rows.starts, rows.starts, rows.longest, rows.longest)  # of queries, of keys
        attended = varlen_attn(query, key, value, *layout, window_size=(side, side))
        assert isinstance(attended, Tensor)
        return attended
    dtype = qkv.dtype
    if qkv.device.type == "cpu":
        qkv = qkv.float()  # the bf16 backward pass takes 2.4 times as long on CPU
    slots = rows.slots
    if slots is not None:
        qkv = qkv.new_zeros(rows.num_slots, *qkv.shape[1:]).index_copy(0, slots, qkv)
    parts = torch.split(qkv, [block.rows * block.length for block in rows.blocks])
    blocks = zip(parts, rows.blocks, strict=True)
    attended = torch.cat([_in_block(part, block, radius, dropout) for part, block in blocks])
    return select_rows(attended, slots).to(dtype)


def select_rows(values: Tensor, positions: Tensor | None) -> Tensor:
    """values[positions] for distinct positions; None: all values, unchanged."""
    if positions is None:
        return values
    return _SelectRows.apply(values, positions)  # type: ignore[no-untyped-call]


class _SelectRows(torch.autograd.Function):
    """index_select whose backward copies gradients instead of adding them up."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, positions: Tensor) -> Tensor:
        ctx.save_for_backward(positions)
        ctx.total = len(values)
        return values.index_select(0, positions)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (positions,) = ctx.saved_tensors
        return gradient.new_zeros(ctx.total, *gradient.shape[1:]).index_copy_(0, positions, gradient), None


def _in_block(qkv: Tensor, block: Block, radius: int | None, dropout: float) -> Tensor:
    """qkv: (B x T, 3, H, D/H) of a block. Returns (B x T, H, D/H)."""
    heads, size = qkv.shape[2:]
    windowed = radius is not None and block.length > 3 * radius
    mask = None if windowed else _mask(block, radius, qkv.device)
    states = qkv.view(block.rows, block.length, 3, heads, size).permute(2, 0, 3, 1, 4)  # (3, B, H, T, D/H)
    if qkv.device.type == "cpu" and block.length <= _SHORT and not windowed and not dropout:
        # All scores in memory at once: faster than PyTorch's kernel for short rows on CPU. Each (B x H, T, D/H).
        query, key, value = states.reshape(3, block.rows * heads, block.length, size)
        with torch.autocast("cpu", enabled=False):
            scores = torch.bmm(query * size**-0.5, key.transpose(1, 2))  # (B x H, T, T)
            if mask is not None:  # unseen by autograd, as the softmax gives masked scores a gradient of 0
                scores.detach().view(block.rows, heads, *scores.shape[1:]).masked_fill_(~mask, float("-inf"))
            attended = torch.bmm(scores.softmax(dim=-1), value)  # (B x H, T, D/H)
        return attended.view(block.rows, heads, -1, size).transpose(1, 2).reshape(-1, heads, size)
    query, key, value = states
    if windowed and radius is not None:
        attended = _attend_windows(query, key, value, block, radius, dropout)
    else:
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
    return attended.transpose(1, 2).reshape(-1, heads, size)


def _mask(block: Block, radius: int | None, device: torch.device) -> Tensor | None:
    """True where a piece sees another, broadcastable to (B, H, T, T); None: all see all, the fastest kernel."""
    if block.lengths is None and (radius is None or block.length <= radius + 1):
        return None
    positions = torch.arange(block.length, device=device)
    mask = torch.ones((1, 1), dtype=torch.bool, device=device)[None, None]
    if block.lengths is not None:
        mask = (positions < block.lengths[:, None])[:, None, None, :]  # (B, 1, 1, T)
    if radius is not None and block.length > radius + 1:
        distance = (positions[:, None] - positions).abs()
        mask = (mask & (distance <= radius)) | (distance == 0)  # padding sees itself: a softmax over nothing is NaN
    return mask


def _attend_windows(query: Tensor, key: Tensor, value: Tensor, block: Block, radius: int, dropout: float) -> Tensor:
    """Local attention in windows of `radius` queries, each over the keys of three windows. All (B, H, T, D/H)."""
    batch, heads, length, size = query.shape
    windows = -(-length // radius)
    spare = windows * radius - length

    def cut(states: Tensor, around: int) -> Tensor:
        """(B, H, T, D/H) -> (B x windows, H, (1 + 2 x around) x radius, D/H): each window with its neighbours."""
        filled = F.pad(states, (0, 0, around * radius, spare + around * radius))
        parts = filled.unfold(2, (1 + 2 * around) * radius, radius)  # (B, H, windows, D/H, keys)
        return parts.permute(0, 2, 1, 4, 3).flatten(0, 1)

    # A key is seen if it is within the radius and in the row; padding sees itself.
    positions = torch.arange(windows * radius, device=query.device).view(windows, radius, 1)
    keys = positions[:, :1] - radius + torch.arange(3 * radius, device=query.device)  # (windows, 1, 3 radius)
    ends = torch.tensor([length], device=query.device) if block.lengths is None else block.lengths
    in_row = (keys >= 0) & (keys < ends[:, None, None, None])  # (B or 1, windows, 1, 3 radius)
    distance = (positions - keys).abs()
    mask = ((distance <= radius) & in_row) | (distance == 0)  # (B or 1, windows, radius, 3 radius)
    mask = mask.expand(batch, -1, -1, -1).flatten(0, 1)[:, None]
    states = cut(query, 0), cut(key, 1), cut(value, 1)
    attended = F.scaled_dot_product_attention(
        *states, attn_mask=mask, dropout_p=dropout
    )  # (B x windows, H, radius, D/H)
    return attended.view(batch, windows, heads, radius, size).transpose(1, 2).flatten(2, 3)[:, :, :length]


class SelfAttention(nn.Module):
    """The weights of multi-head self-attention (Vaswani et al. 2017, 3.2): `attend` comes between them."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        biased = config.architecture == "bert"
        self.num_heads = config.num_attention_heads
        self.head_size = config.head_size
        self.dropout = config.attention_probs_dropout_prob
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size, bias=biased)
        self.output = nn.Linear(config.hidden_size, config.hidden_size, bias=biased)

    def project(self, hidden: Tensor, rotation: Rotation | None) -> Tensor:
        """Queries, keys and values of each piece, the first two rotated by its position: (N, D) -> (N, 3, H, D/H)."""
        qkv: Tensor = self.qkv(hidden).view(-1, 3, self.num_heads, self.head_size)
        if rotation is None:
            return qkv
        if torch.compiler.is_compiling():
            return _rotate(qkv, *rotation)
        return Rotated.apply(qkv, *rotation)  # type: ignore[no-untyped-call]
