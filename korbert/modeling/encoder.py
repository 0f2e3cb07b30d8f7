"""Layers and the encoder they make."""

import torch.nn.functional as F
from torch import Tensor, nn

from korbert.modeling.attention import Rotation, SelfAttention, global_mask, local_mask, rotation
from korbert.modeling.config import EncoderConfig
from korbert.modeling.embeddings import Embeddings

__all__ = ["Encoder"]


class _BertLayer(nn.Module):
    """Attention and feed-forward part, each added to its input and normed afterwards (post-norm)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.attention = SelfAttention(config)
        self.attention_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.up = nn.Linear(width, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, width)
        self.feed_forward_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, hidden: Tensor, mask: Tensor | None, turn: Rotation | None) -> Tensor:
        hidden = self.attention_norm(hidden + self.dropout(self.attention(hidden, mask, turn)))
        normed: Tensor = self.feed_forward_norm(hidden + self.dropout(self.down(F.gelu(self.up(hidden)))))
        return normed


class _ModernLayer(nn.Module):
    """Attention and gated feed-forward part, each normed first (pre-norm); the first layer's input is normed."""

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

    def forward(self, hidden: Tensor, mask: Tensor | None, turn: Rotation | None) -> Tensor:
        hidden = hidden + self.attention_dropout(self.attention(self.attention_norm(hidden), mask, turn))
        content, gate = self.up(self.feed_forward_norm(hidden)).chunk(2, dim=-1)  # GeGLU, Shazeer 2020
        added: Tensor = hidden + self.down(self.dropout(F.gelu(content) * gate))
        return added


class Encoder(nn.Module):
    """Pieces in, one vector a piece out. Padding changes nothing at real pieces, to rounding."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        modern = config.architecture == "modern"
        self.embeddings = Embeddings(config)
        self.layers = nn.ModuleList(
            _ModernLayer(config, first=layer == 0) if modern else _BertLayer(config)
            for layer in range(config.num_hidden_layers)
        )
        self.final_norm = (
            nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps, bias=False) if modern else nn.Identity()
        )

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None,
        *,
        padded: bool | None = None,
    ) -> Tensor:
        """All tensors: (B, T) whole numbers. Returns (B, T, D); what stands at padding is finite and means nothing.

        attention_mask: 1 on pieces, 0 on padding; None: no padding. padded: whether attention_mask has a 0, where that
        is known; None: looked up, which waits for the device.
        """
        hidden = self.embeddings(input_ids, token_type_ids, boundaries)
        masks = self._masks(input_ids, attention_mask, padded)
        turns = self._rotations(input_ids)
        for place, layer in enumerate(self.layers):
            everywhere = self.config.is_global(place)
            hidden = layer(hidden, masks[everywhere], turns[everywhere])
        normed: Tensor = self.final_norm(hidden)
        return normed

    def _masks(
        self, input_ids: Tensor, attention_mask: Tensor | None, padded: bool | None
    ) -> dict[bool, Tensor | None]:
        """Masks of layers that see everything (True) and of local ones (False)."""
        visible = global_mask(attention_mask, padded)
        if self._all_global():
            return {True: visible}
        reach = self.config.local_attention // 2
        return {True: visible, False: local_mask(visible, input_ids.shape[1], reach, input_ids.device)}

    def _rotations(self, input_ids: Tensor) -> dict[bool, Rotation | None]:
        if self.config.architecture == "bert":
            return {True: None}
        length, size, device = input_ids.shape[1], self.config.head_size, input_ids.device
        turns: dict[bool, Rotation | None] = {True: rotation(length, size, self.config.global_rope_theta, device)}
        if not self._all_global():
            turns[False] = rotation(length, size, self.config.local_rope_theta, device)
        return turns

    def _all_global(self) -> bool:
        return all(map(self.config.is_global, range(self.config.num_hidden_layers)))
