"""ModernBERT with embeddings of boundaries and of overlap, weights of pieces, and a linear head, for `transformers`:
AutoModel.from_pretrained(folder, trust_remote_code=True), and the other Auto classes alike.

An exported folder has this file as it stands; it needs nothing of korbert. The tokenizer of the folder returns what
the model asks for.
"""

from typing import Any

import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional as F

try:  # with peft, the default target of LoRA: the projection of queries, keys and values
    from peft.utils.constants import TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING as _LORA_TARGETS

    _LORA_TARGETS.setdefault("korbert-modernbert", ["Wqkv"])
except ImportError:
    pass

_LEVELS = 4  # nothing begins at the piece, a morpheme, an eojeol, a sentence


class KorbertModernBertConfig(transformers.ModernBertConfig):
    """The config of ModernBERT, with boundary_embedding, overlap_embedding, piece_weights and linear_head, true or
    false, and first_piece_id: lower ids, of special tokens and bytes, do not count as overlap.

    It has its own model_type: as "modernbert" the weights would be loaded without these embeddings.
    """

    model_type = "korbert-modernbert"

    boundary_embedding: bool = False
    overlap_embedding: bool = False
    piece_weights: bool = False
    linear_head: bool = False
    first_piece_id: int = 384
    pad_token_id: int | None = 0
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    cls_token_id: int | None = 2
    sep_token_id: int | None = 3


class _WeightedNorm(nn.LayerNorm):
    """The last norm, which then scales the vector of each piece by a number from 0 to 1, computed from it."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__(size, eps=eps, bias=False)
        self.piece_weight = nn.Linear(size, 1)

    def forward(self, hidden: Tensor) -> Tensor:
        hidden = super().forward(hidden)
        scaled: Tensor = hidden * self.piece_weight(hidden).sigmoid()
        return scaled


class KorbertModernBertModel(transformers.ModernBertModel):
    """The encoder. Adds to the vector of each piece, ahead of ModernBERT's first norm, that of the boundary before it,
    and one more if the piece is in both texts of a pair.
    """

    config_class = KorbertModernBertConfig

    def __init__(self, config: KorbertModernBertConfig) -> None:
        super().__init__(config)
        embeddings: Any = self.embeddings
        embeddings.boundary = nn.Embedding(_LEVELS, config.hidden_size) if config.boundary_embedding else None
        embeddings.overlap = nn.Embedding(1, config.hidden_size) if config.overlap_embedding else None
        if config.piece_weights:
            self.final_norm = _WeightedNorm(config.hidden_size, config.norm_eps)
        self.post_init()  # again, to initialize these three

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """input_ids, attention_mask, token_type_ids, boundaries: (B, T) integers, as the tokenizer returns them;
        boundaries from 0 to 3, None only for a model without them. inputs_embeds: (B, T, D), in place of input_ids, the
        vectors of pieces; overlap is found in input_ids alone. The others as in ModernBERT.
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("give either input_ids or inputs_embeds")
        embeddings: Any = self.embeddings
        vectors = embeddings.tok_embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        if embeddings.boundary is not None:
            if boundaries is None:
                raise ValueError("this encoder embeds boundaries: pass those that its tokenizer returns")
            vectors = vectors + embeddings.boundary(boundaries.view(vectors.shape[:-1]))
        if embeddings.overlap is not None and token_type_ids is not None:
            if input_ids is None:
                raise ValueError("this encoder marks what two texts share: with token_type_ids, pass input_ids")
            types = token_type_ids.view(input_ids.shape)
            same = input_ids[..., None, :] == input_ids[..., None]
            occurs_in_both = (same & (types[..., None, :] != types[..., None])).any(dim=-1)
            occurs_in_both = occurs_in_both & (input_ids >= self.config.first_piece_id)
            vectors = vectors + embeddings.overlap.weight * occurs_in_both[..., None]
        return super().forward(attention_mask=attention_mask, inputs_embeds=vectors, **kwargs)


class _OnEncoder(nn.Module):
    """A head of ModernBERT on the encoder above.

    Trainer and peft look up the columns of a model in the arguments of `forward`, so both embeddings' are named there.
    """

    config_class = KorbertModernBertConfig

    def __init__(self, config: KorbertModernBertConfig) -> None:
        super().__init__(config)
        self.model = KorbertModernBertModel(config)
        self.post_init()  # type: ignore[operator]  # of PreTrainedModel

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """As `forward` of the class of ModernBERT, with the columns of KorbertModernBertModel in addition."""
        kwargs |= {"token_type_ids": token_type_ids, "boundaries": boundaries, "inputs_embeds": inputs_embeds}
        if labels is not None:  # question answering has two others, start_positions and end_positions
            kwargs["labels"] = labels
        return super().forward(input_ids, attention_mask, **kwargs)


class KorbertModernBertForMaskedLM(_OnEncoder, transformers.ModernBertForMaskedLM):
    """Fills gaps."""


class KorbertModernBertForMultipleChoice(_OnEncoder, transformers.ModernBertForMultipleChoice):
    """Scores continuations."""


class _LinearHead(nn.Module):
    """Scales a vector to length 1, subtracts the center, and scales the rest to length 1."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.center = nn.Parameter(torch.zeros(size))

    def forward(self, vector: Tensor) -> Tensor:
        return F.normalize(F.normalize(vector, dim=-1) - self.center, dim=-1)


class KorbertModernBertForSequenceClassification(_OnEncoder, transformers.ModernBertForSequenceClassification):
    """Labels texts."""

    def __init__(self, config: KorbertModernBertConfig) -> None:
        super().__init__(config)
        if config.linear_head:
            own: Any = self
            own.head = _LinearHead(config.hidden_size)
            self.post_init()


class KorbertModernBertForTokenClassification(_OnEncoder, transformers.ModernBertForTokenClassification):
    """Labels pieces."""


class KorbertModernBertForQuestionAnswering(_OnEncoder, transformers.ModernBertForQuestionAnswering):
    """Finds answers."""

    def forward(  # type: ignore[override]  # as the heads of transformers differ
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """As `forward` of the other heads, but with start_positions and end_positions instead of labels."""
        kwargs |= {"start_positions": start_positions, "end_positions": end_positions}
        return super().forward(input_ids, attention_mask, token_type_ids, boundaries, **kwargs)
