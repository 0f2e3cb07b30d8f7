"""Attention masks, rotary positions and self-attention."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from korbert.modeling.config import EncoderConfig

__all__ = ["Rotation", "SelfAttention", "global_mask", "local_mask", "rotation"]

Rotation = tuple[Tensor, Tensor]
"""Cosines and sines of the rotary positions, (T, D/H) each."""


def global_mask(attention_mask: Tensor | None, padded: bool | None = None) -> Tensor | None:
    """The mask of global layers, True on pieces: (B, 1, 1, T) bool, or None without padding.

    attention_mask: (B, T), 0 on padding. Attention without a mask takes the fastest kernel. padded: whether there is a
    0; None: looked up, which waits for the device.
    """
    if attention_mask is None or padded is False or (padded is None and bool(attention_mask.all())):
        return None
    return attention_mask.bool()[:, None, None, :]


def local_mask(visible: Tensor | None, length: int, reach: int, device: torch.device) -> Tensor | None:
    """The mask of local layers, `reach` pieces to each side: (B or 1, 1, T, T) bool, or None if all see all.

    visible: the global mask. Padding far from every piece sees itself, as attention over no keys is NaN.
    """
    if length <= reach + 1:
        return visible
    places = torch.arange(length, device=device)
    distance = (places[:, None] - places[None, :]).abs()  # (T, T)
    near = (distance <= reach)[None, None]
    return near if visible is None else (near & visible) | (distance == 0)


def rotation(length: int, size: int, theta: float, device: torch.device) -> Rotation:
    """Rotary positions (Su et al. 2021): dimensions i and i + size/2 turn by position x theta^(-2i/size)."""
    turns = 1.0 / theta ** (torch.arange(0, size, 2, dtype=torch.float32, device=device) / size)  # (D/H/2,)
    angles = torch.arange(length, dtype=torch.float32, device=device)[:, None] * turns[None, :]
    both = torch.cat([angles, angles], dim=-1)  # (T, D/H)
    return both.cos(), both.sin()


def _rotate(vectors: Tensor, turn: Rotation) -> Tensor:
    """vectors: (B, H, T, D/H). Computed in float32; the result has the type of `vectors`."""
    cosines, sines = turn
    wide = vectors.float()
    first, second = wide.chunk(2, dim=-1)
    return (wide * cosines + torch.cat([-second, first], dim=-1) * sines).to(vectors.dtype)


class SelfAttention(nn.Module):
    """Multi-head self-attention (Vaswani et al. 2017, 3.2), with or without rotary positions."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        biased = config.architecture == "bert"
        self.num_heads = config.num_attention_heads
        self.head_size = config.head_size
        self.dropout = config.attention_probs_dropout_prob
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size, bias=biased)
        self.output = nn.Linear(config.hidden_size, config.hidden_size, bias=biased)

    def forward(self, hidden: Tensor, mask: Tensor | None, turn: Rotation | None) -> Tensor:
        """hidden: (B, T, D); mask: broadcast to (B, H, T, T), True is visible; None: all are. Returns (B, T, D)."""
        batch, length, _ = hidden.shape
        projected = self.qkv(hidden).view(batch, length, 3, self.num_heads, self.head_size)
        query, key, value = projected.permute(2, 0, 3, 1, 4)  # (B, H, T, D/H) each
        if turn is not None:
            query, key = _rotate(query, turn), _rotate(key, turn)
        rate = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=rate)
        joined: Tensor = self.output(mixed.transpose(1, 2).flatten(2))  # (B, H, T, D/H) -> (B, T, D)
        return joined
