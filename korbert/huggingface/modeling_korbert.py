"""ModernBERT with embeddings of boundaries and of overlap, and weights of pieces, for `transformers`:
AutoModel.from_pretrained(folder, trust_remote_code=True), and the other Auto classes alike.

An exported folder has this file as it stands; it needs nothing of korbert. The tokenizer of the folder returns what
the model asks for.
"""

from typing import Any

import transformers
from torch import Tensor, nn

__all__ = [
    "KorbertModernBertConfig",
    "KorbertModernBertForMaskedLM",
    "KorbertModernBertForMultipleChoice",
    "KorbertModernBertForQuestionAnswering",
    "KorbertModernBertForSequenceClassification",
    "KorbertModernBertForTokenClassification",
    "KorbertModernBertModel",
]

_LEVELS = 4  # nothing begins at the piece, a morpheme, an eojeol, a sentence


class KorbertModernBertConfig(transformers.ModernBertConfig):
    """That of ModernBERT, with boundary_embedding, overlap_embedding and piece_weights, true or false, and
    first_piece_id: the ids before it, of special tokens and bytes, do not count as overlap.

    A model_type of its own: as "modernbert" the weights would be loaded without these embeddings.
    """

    model_type = "korbert-modernbert"


class _WeightedNorm(nn.LayerNorm):
    """The last norm, which then scales the vector of each piece by a number from 0 to 1, computed from it."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__(size, eps=eps, bias=False)
        self.piece_weight = nn.Linear(size, 1)

    def forward(self, hidden: Tensor) -> Tensor:
        hidden = super().forward(hidden)
        return hidden * self.piece_weight(hidden).sigmoid()


class _WithEmbeddings(nn.Module):
    """Adds to the vector of each piece, ahead of ModernBERT's first norm, that of the boundary before it, and one more
    if the piece is in both texts of a pair.
    """

    config_class = KorbertModernBertConfig
    base_model: Any  # these three: of PreTrainedModel
    config: Any
    get_input_embeddings: Any

    def __init__(self, config: KorbertModernBertConfig) -> None:
        super().__init__(config)
        embeddings = self.base_model.embeddings
        embeddings.boundary = nn.Embedding(_LEVELS, config.hidden_size) if config.boundary_embedding else None
        embeddings.overlap = nn.Embedding(1, config.hidden_size) if config.overlap_embedding else None
        if config.piece_weights:
            self.base_model.final_norm = _WeightedNorm(config.hidden_size, config.norm_eps)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None,
        labels: Tensor | None = None,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """input_ids, attention_mask, token_type_ids, boundaries: (B, T) integers, as the tokenizer returns them;
        boundaries from 0 to 3, None only for a model without them. The others as in ModernBERT.
        """
        if input_ids is None:
            raise ValueError("this model takes input_ids, not inputs_embeds")
        embeddings = self.base_model.embeddings
        vectors = self.get_input_embeddings()(input_ids)
        if embeddings.boundary is not None:
            if boundaries is None:
                raise ValueError("this encoder embeds boundaries: pass those that its tokenizer returns")
            vectors = vectors + embeddings.boundary(boundaries)
        if embeddings.overlap is not None and token_type_ids is not None:
            same = input_ids[..., None, :] == input_ids[..., None]
            apart = token_type_ids[..., None, :] != token_type_ids[..., None]
            in_both = (same & apart).any(dim=-1) & (input_ids >= self.config.first_piece_id)
            vectors = vectors + embeddings.overlap.weight * in_both[..., None]
        given = {
            "attention_mask": attention_mask,
            "labels": labels,
            "start_positions": start_positions,
            "end_positions": end_positions,
        }
        kwargs |= {name: value for name, value in given.items() if value is not None}  # no class takes all of them
        return super().forward(inputs_embeds=vectors, **kwargs)


class KorbertModernBertModel(_WithEmbeddings, transformers.ModernBertModel):
    """The encoder."""


class KorbertModernBertForMaskedLM(_WithEmbeddings, transformers.ModernBertForMaskedLM):
    """Fills gaps."""


class KorbertModernBertForMultipleChoice(_WithEmbeddings, transformers.ModernBertForMultipleChoice):
    """Scores continuations."""


class KorbertModernBertForQuestionAnswering(_WithEmbeddings, transformers.ModernBertForQuestionAnswering):
    """Finds answers."""


class KorbertModernBertForSequenceClassification(_WithEmbeddings, transformers.ModernBertForSequenceClassification):
    """Labels texts."""


class KorbertModernBertForTokenClassification(_WithEmbeddings, transformers.ModernBertForTokenClassification):
    """Labels pieces."""
