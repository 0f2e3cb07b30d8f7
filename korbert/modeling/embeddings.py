"""Embeddings of pieces, positions, token types and boundaries."""

import torch
from torch import Tensor, nn

from korbert.modeling.config import BOUNDARY_LEVELS, EncoderConfig, check_row
from korbert.modeling.rows import Rows
from korbert.tokenization import FIRST_PIECE

OVERLAP = "embeddings.overlap.weight"  # its key in an encoder's state dict


class Embeddings(nn.Module):
    """Sum of the piece, position, token type, boundary and overlap embeddings that are configured; norm; dropout.

    The overlap embedding is added to pieces of a text pair that also occur in the other text: the word-in-question
    feature of Weissenborn et al. 2017, 3, and the exact match of Chen et al. 2017, 3.2.

    If embedding_size E differs from hidden_size D, all of these have width E, and a projection to D follows (Lan et
    al. 2020, 3.1).
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        width = config.embedding_width
        learned = config.architecture == "bert"
        self.token = nn.Embedding(config.vocab_size, width)
        self.position = nn.Embedding(config.max_position_embeddings, width) if learned else None
        self.token_type = nn.Embedding(config.type_vocab_size, width) if config.type_vocab_size else None
        self.boundary = nn.Embedding(BOUNDARY_LEVELS, width) if config.boundary_embedding else None
        self.overlap = nn.Embedding(1, width) if config.overlap_embedding else None
        self.norm = nn.LayerNorm(width, eps=config.layer_norm_eps, bias=learned)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.piece_dropout = 0.0  # share of pieces that a training step sees without their vector; set by fine-tuning
        narrow = width != config.hidden_size
        self.projection = nn.Linear(width, config.hidden_size, bias=learned) if narrow else nn.Identity()

    def forward(
        self,
        input_ids: Tensor,
        rows: Rows,
        token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None,
        vectors: Tensor | None = None,
    ) -> Tensor:
        """input_ids, token_type_ids, boundaries: (N,) integers. Returns (N, D).

        token_type_ids: 0 in segment A, 1 in B; None: A everywhere. Used for token types and overlap only.
        boundaries: required by encoders that embed them, ignored by others.
        vectors: (N, E), token embeddings of input_ids, if already looked up.
        """
        check_row(
            self.config, rows.longest, is_limited=self.position is not None, has_boundaries=boundaries is not None
        )
        hidden: Tensor = self.token(input_ids) if vectors is None else vectors
        if self.piece_dropout and self.training:
            hidden = hidden * (torch.rand(len(hidden), 1, device=hidden.device) >= self.piece_dropout)
        if self.token_type is not None:
            segments = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
            hidden = hidden + self.token_type(segments)
        if self.position is not None:
            hidden = hidden + self.position(rows.positions)
        if self.boundary is not None and boundaries is not None:
            hidden = hidden + self.boundary(boundaries.long())
        if self.overlap is not None and token_type_ids is not None:
            hidden = hidden + self.overlap.weight * occurs_in_both(input_ids, rows, token_type_ids)[:, None]
        return self.projection(self.dropout(self.norm(hidden)))


def scaled_overlap(overlap: Tensor, tokens: Tensor) -> Tensor:
    """A random overlap embedding, scaled to the mean norm of the token embeddings: from zeros it would take hundreds
    of steps to matter. overlap: (1, E); tokens: (V, E).
    """
    return overlap * tokens.norm(dim=1).mean() / overlap.norm()


def occurs_in_both(ids: Tensor, rows: Rows, segments: Tensor) -> Tensor:
    """Whether each piece also occurs in the other segment of its row; False for special tokens.

    ids, segments: (N,) integers, segments 0 or 1. Returns (N,) bool.
    """
    row = rows.of_pieces(torch.arange(len(rows.lengths), device=ids.device))
    keys = 2 * (row * (1 + ids.max()) + ids)  # the same for equal pieces of a row
    return torch.isin(keys + 1 - segments, keys + segments) & (ids >= FIRST_PIECE)
