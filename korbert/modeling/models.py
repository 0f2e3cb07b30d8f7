"""Encoders with heads: the three models that are trained, saved and exported."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from korbert.errors import ModelError
from korbert.modeling.config import EncoderConfig
from korbert.modeling.encoder import Encoder
from korbert.modeling.heads import (
    NextSentenceHead,
    Pooler,
    PredictionHead,
    VocabularyHead,
    initialize,
    mean_of_pieces,
)

__all__ = ["ClassificationModel", "Model", "Pooling", "PretrainingModel", "ReadingModel", "init_encoder_from"]

Pooling = Literal["mean", "first"]


class PretrainingModel(nn.Module):
    """An encoder that guesses masked pieces (MLM) and whether B follows A (NSP).

    Training calls `encoder` and then the heads on what it needs: of a large vocabulary `mlm_head` on masked rows alone.
    generator: where fresh weights come from; None: torch's own, see torch.manual_seed.
    """

    kind: ClassVar[str] = "pretraining"

    def __init__(self, config: EncoderConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.mlm = VocabularyHead(config)
        self.nsp = NextSentenceHead(config)
        initialize(self, config, generator)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Arguments as Encoder.forward. Returns scores of all pieces at all places (B, T, V), and of NSP (B, 2)."""
        hidden = self.encoder(input_ids, attention_mask, token_type_ids, boundaries)
        return self.mlm_head(hidden), self.nsp_head(hidden)

    def mlm_hidden(self, rows: Tensor) -> Tensor:
        """What meets the matrix of the vocabulary: (N, D) -> (N, D)."""
        transformed: Tensor = self.mlm.transform(rows)
        return transformed

    def mlm_head(self, rows: Tensor) -> Tensor:
        """Scores of all pieces: (N, D) -> (N, V). Equals mlm_hidden(rows) @ decoder_weight.T + decoder_bias."""
        scores: Tensor = self.mlm(rows, self.decoder_weight)
        return scores

    def nsp_head(self, hidden: Tensor) -> Tensor:
        """Scores of "B follows A" (label 0) and "B does not" (label 1): (B, T, D) -> (B, 2)."""
        scores: Tensor = self.nsp(hidden)
        return scores

    @property
    def decoder_weight(self) -> Tensor:
        """The matrix of the vocabulary (V, D): the embedding's own (tied)."""
        return self.encoder.embeddings.token.weight

    @property
    def decoder_bias(self) -> Tensor:
        """(V,)"""
        return self.mlm.bias

    def head_settings(self) -> dict[str, Any]:
        """What besides the encoder's config is needed to build this model again."""
        return {}


class ClassificationModel(nn.Module):
    """An encoder that labels a text or a pair of texts.

    pooling: the vector that stands for the text: the mean over its pieces, or the first one's.
    labels: a name for each label; numbers if not given.
    """

    kind: ClassVar[str] = "classification"

    def __init__(
        self,
        config: EncoderConfig,
        num_labels: int = 2,
        pooling: Pooling = "mean",
        labels: Sequence[str] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.num_labels = num_labels
        self.pooling: Pooling = pooling
        self.labels = tuple(map(str, range(num_labels))) if labels is None else tuple(labels)
        if len(self.labels) != num_labels:
            raise ModelError(f"{len(self.labels)} names for {num_labels} labels: give one for each")
        self.encoder = Encoder(config)
        self.head = Pooler(config) if config.architecture == "bert" else PredictionHead(config)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.hidden_size, num_labels)
        initialize(self, config, generator)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None,
        *,
        padded: bool | None = None,
    ) -> Tensor:
        """Arguments as Encoder.forward. Returns the scores of the labels, (B, num_labels)."""
        hidden = self.encoder(input_ids, attention_mask, token_type_ids, boundaries, padded=padded)
        pooled = hidden[:, 0] if self.pooling == "first" else mean_of_pieces(hidden, attention_mask)
        scores: Tensor = self.classifier(self.dropout(self.head(pooled)))
        return scores

    def head_settings(self) -> dict[str, Any]:
        """What besides the encoder's config is needed to build this model again."""
        return {"num_labels": self.num_labels, "pooling": self.pooling, "labels": list(self.labels)}


class ReadingModel(nn.Module):
    """An encoder that points at the first and the last piece of an answer."""

    kind: ClassVar[str] = "reading"

    def __init__(self, config: EncoderConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        modern = config.architecture == "modern"
        self.head = PredictionHead(config) if modern else nn.Identity()
        self.dropout = nn.Dropout(config.hidden_dropout_prob if modern else 0.0)
        self.classifier = nn.Linear(config.hidden_size, 2)
        initialize(self, config, generator)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None,
        *,
        padded: bool | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Arguments as Encoder.forward. Returns the scores of each piece as first and as last one, (B, T) both.

        Padding and question pieces have scores too: the caller leaves them out.
        """
        hidden = self.encoder(input_ids, attention_mask, token_type_ids, boundaries, padded=padded)
        scores: Tensor = self.classifier(self.dropout(self.head(hidden)))  # (B, T, 2)
        return scores[..., 0], scores[..., 1]

    def head_settings(self) -> dict[str, Any]:
        """What besides the encoder's config is needed to build this model again."""
        return {}


Model = PretrainingModel | ClassificationModel | ReadingModel


def init_encoder_from(model: Model, pretrained: Model) -> None:
    """Copies the encoder's weights of `pretrained` into `model`, and of a PretrainingModel what fits of its heads.

    That is what `transformers` takes over too: for `bert` the pooler of NSP, for `modern` the transform of MLM.
    ModelError where the encoders differ in more than dropout.
    """
    theirs, ours = pretrained.encoder.state_dict(), model.encoder.state_dict()
    for name in sorted(theirs.keys() | ours.keys()):
        here, there = ours.get(name), theirs.get(name)
        if here is None or there is None or here.shape != there.shape:
            raise ModelError(
                f"encoder weights {name}: {_shape(here)} in the model, {_shape(there)} in the pretrained one:"
                " build the model with the config of the pretrained encoder"
            )
    model.encoder.load_state_dict(theirs)
    if isinstance(pretrained, PretrainingModel) and not isinstance(model, PretrainingModel):
        source = pretrained.nsp.pooler if isinstance(model.head, Pooler) else pretrained.mlm.transform
        if not isinstance(model.head, nn.Identity):
            model.head.load_state_dict(source.state_dict())


def _shape(tensor: Tensor | None) -> str:
    return "absent" if tensor is None else "x".join(map(str, tensor.shape))
