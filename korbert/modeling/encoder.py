"""The layers of both architectures, and the encoder."""

import torch.nn.functional as F
from torch import Tensor, nn

from korbert.modeling.attention import Rotation, SelfAttention, global_mask, local_mask, rotation
from korbert.modeling.config import EncoderConfig
from korbert.modeling.embeddings import Embeddings

__all__ = ["Encoder"]


class _BertLayer(nn.Module):
    """Attention and feed-forward block, each added to its input and then normed (post-norm)."""

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
    """Attention and gated feed-forward block, each on normed input (pre-norm). The first layer's is normed already."""

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
    """Ids to one vector a piece. Padding does not change the vectors of pieces, up to rounding."""

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
        """All tensors: (B, T) integers. Returns (B, T, D); vectors at padding are finite and mean nothing.

        attention_mask: 1 on pieces, 0 on padding; None: no padding. padded: whether attention_mask has a 0; None:
        looked up, which waits for the device.
        """
        config, length, device = self.config, input_ids.shape[1], input_ids.device
        everywhere = [config.is_global(layer) for layer in range(len(self.layers))]

        # Masks and rotations of global layers (True) and of local ones (False).
        masks = {True: global_mask(attention_mask, padded)}
        turns: dict[bool, Rotation | None] = {True: None}
        if config.architecture == "modern":
            turns[True] = rotation(length, config.head_size, config.global_rope_theta, device)
        if not all(everywhere):
            masks[False] = local_mask(masks[True], length, config.local_attention // 2, device)
            turns[False] = rotation(length, config.head_size, config.local_rope_theta, device)

        hidden = self.embeddings(input_ids, token_type_ids, boundaries)
        for layer, is_global in zip(self.layers, everywhere, strict=True):
            hidden = layer(hidden, masks[is_global], turns[is_global])
        normed: Tensor = self.final_norm(hidden)
        return normed
