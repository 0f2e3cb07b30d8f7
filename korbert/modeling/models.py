"""The models that are trained, saved and exported: an encoder with heads each, and one without."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from korbert.errors import ModelError
from korbert.modeling.adapter import TransformersEncoder, encoder_of
from korbert.modeling.config import AnyConfig
from korbert.modeling.embeddings import OVERLAP
from korbert.modeling.encoder import Encoder
from korbert.modeling.features import FeatureModel
from korbert.modeling.heads import (
    NextSentenceHead,
    Pooler,
    PredictionHead,
    SpanHead,
    Transform,
    VocabularyHead,
    initialize,
    mean_of_pieces,
)

__all__ = [
    "ChoiceModel",
    "ClassificationModel",
    "DetectionModel",
    "EmbeddingModel",
    "EncoderModel",
    "Model",
    "Pooling",
    "PretrainingModel",
    "ProblemType",
    "ReadingModel",
    "SlotsModel",
    "TaggingModel",
    "init_encoder_from",
]

Pooling = Literal["mean", "first"]
ProblemType = Literal["single_label_classification", "multi_label_classification", "regression"]


class _EncoderWithHead(nn.Module):
    """What all models share. `scores` computes the outputs from the encoder's vectors.

    encoder: with weights; None: a new one of `config`, which draws from `generator` if it is one of `transformers`.
    """

    kind: ClassVar[str]

    def __init__(
        self,
        config: AnyConfig,
        generator: torch.Generator | None = None,
        encoder: Encoder | TransformersEncoder | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.encoder = encoder_of(config, generator) if encoder is None else encoder

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None,
        *,
        lengths: Sequence[int] | None = None,
    ) -> Any:
        """Arguments as Encoder.forward. Returns what `scores` returns."""
        hidden = self.encoder(input_ids, attention_mask, token_type_ids, boundaries, lengths=lengths)
        return self.scores(hidden, attention_mask)

    def scores(self, hidden: Tensor, attention_mask: Tensor | None) -> Any:
        """The outputs, from the encoder's vectors (B, T, D) and the mask that it was given."""
        raise NotImplementedError

    def head_settings(self) -> dict[str, Any]:
        """What building this model needs besides the config of its encoder."""
        return {}


class EncoderModel(_EncoderWithHead):
    """An encoder without a head, as it is imported: tasks begin with its weights.

    encoder: with weights; None: drawn from `generator`, of torch's global one without.
    """

    kind: ClassVar[str] = "encoder"

    def __init__(
        self,
        config: AnyConfig,
        generator: torch.Generator | None = None,
        encoder: Encoder | TransformersEncoder | None = None,
    ) -> None:
        super().__init__(config, generator, encoder)
        if encoder is None:
            initialize(self, config, generator)

    def scores(self, hidden: Tensor, attention_mask: Tensor | None) -> Tensor:
        """The vectors as they are."""
        return hidden


class PretrainingModel(_EncoderWithHead):
    """An encoder with heads that predict pieces (MLM) and classify pairs (NSP).

    Training calls `encoder`, and the heads only where there are labels: a large vocabulary makes `mlm_head` expensive.
    generator: draws the initial weights; None: torch's global generator. objectives: "spans" adds the head of a
    ReadingModel (`reader`).
    """

    kind: ClassVar[str] = "pretraining"

    def __init__(
        self, config: AnyConfig, generator: torch.Generator | None = None, objectives: Sequence[str] = ("mlm", "nsp")
    ) -> None:
        super().__init__(config, generator)
        self.objectives = tuple(objectives)
        self.mlm = VocabularyHead(config)
        self.nsp = NextSentenceHead(config)
        self.reader = SpanHead(config) if "spans" in objectives else None
        initialize(self, config, generator)

    def scores(self, hidden: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """The scores of MLM at all positions (B, T, V), and of NSP (B, 2)."""
        return self.mlm_head(hidden), self.nsp_head(hidden[:, 0])

    def mlm_hidden(self, rows: Tensor) -> Tensor:
        """What is multiplied by the vocabulary's matrix: (N, D) -> (N, E)."""
        transformed: Tensor = self.mlm.transform(rows)
        return transformed

    def mlm_head(self, rows: Tensor) -> Tensor:
        """Scores over the vocabulary: (N, D) -> (N, V); mlm_hidden(rows) @ decoder_weight.T + decoder_bias."""
        scores: Tensor = self.mlm(rows, self.decoder_weight)
        return scores

    def nsp_head(self, first: Tensor) -> Tensor:
        """Scores of "B follows A" (label 0) and "B does not" (1) from rows' first vectors: (R, D) -> (R, 2)."""
        scores: Tensor = self.nsp(first)
        return scores

    @property
    def decoder_weight(self) -> Tensor:
        """The vocabulary's matrix (V, E), tied to the embeddings."""
        return self.encoder.token_weight

    @property
    def decoder_bias(self) -> Tensor:
        """(V,)"""
        return self.mlm.bias

    def head_settings(self) -> dict[str, Any]:
        """What building this model needs besides the config of its encoder."""
        return {"objectives": list(self.objectives)} if self.reader else {}


class DetectionModel(_EncoderWithHead):
    """An encoder with heads that detect replaced pieces (Clark et al. 2020) and classify pairs.

    generator: draws the initial weights; None: torch's global generator.
    """

    kind: ClassVar[str] = "detection"

    def __init__(self, config: AnyConfig, generator: torch.Generator | None = None) -> None:
        super().__init__(config, generator)
        self.head = PredictionHead(config) if config.architecture == "modern" else Transform(config)
        self.classifier = nn.Linear(config.hidden_size, 1)
        self.nsp = NextSentenceHead(config)
        initialize(self, config, generator)

    def scores(self, hidden: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Scores of all pieces, (B, T): above 0, a piece is more likely replaced than not."""
        return self.detect(hidden)

    def detect(self, hidden: Tensor) -> Tensor:
        """Those scores from vectors of pieces: (..., D) -> (...)."""
        scores: Tensor = self.classifier(self.head(hidden))
        return scores.squeeze(-1)

    def nsp_head(self, first: Tensor) -> Tensor:
        """As PretrainingModel.nsp_head."""
        scores: Tensor = self.nsp(first)
        return scores


class ClassificationModel(_EncoderWithHead):
    """An encoder that classifies a text or a pair of texts, or gives it a number.

    pooling: the vector of the text: the mean over its pieces, or that of the first piece.
    labels: names of the labels; by default their numbers.
    problem_type: what the scores mean, as in configs of `transformers`: softmax of them is the probability of each
    label, of which a text has one; sigmoid is that of each label, of which a text has any number; the only score is
    the number itself.
    """

    kind: ClassVar[str] = "classification"

    def __init__(
        self,
        config: AnyConfig,
        num_labels: int = 2,
        pooling: Pooling = "mean",
        labels: Sequence[str] | None = None,
        generator: torch.Generator | None = None,
        problem_type: ProblemType = "single_label_classification",
    ) -> None:
        if labels is not None and len(labels) != num_labels:
            raise ModelError(f"{len(labels)} names for {num_labels} labels: give one for each")
        if problem_type == "regression" and num_labels != 1:
            raise ModelError(f"regression with {num_labels} labels: give it one, the number that it predicts")
        if problem_type == "single_label_classification" and num_labels == 1:
            raise ModelError(
                "single_label_classification with 1 label: give two at least, or another problem_type (regression,"
                " multi_label_classification)"
            )
        super().__init__(config, generator)
        self.num_labels = num_labels
        self.problem_type: ProblemType = problem_type
        self.pooling: Pooling = pooling
        self.labels = tuple(map(str, range(num_labels))) if labels is None else tuple(labels)
        self.head = PredictionHead(config) if config.architecture == "modern" else Pooler(config)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.hidden_size, num_labels)
        initialize(self, config, generator)

    def scores(self, hidden: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Scores of the labels, (B, num_labels)."""
        pooled = hidden[:, 0] if self.pooling == "first" else mean_of_pieces(hidden, attention_mask)
        scores: Tensor = self.classifier(self.dropout(self.head(pooled)))
        return scores

    def head_settings(self) -> dict[str, Any]:
        """What building this model needs besides the config of its encoder."""
        return {
            "num_labels": self.num_labels,
            "pooling": self.pooling,
            "labels": list(self.labels),
            "problem_type": self.problem_type,
        }


class ChoiceModel(ClassificationModel):
    """An encoder that scores rows: a text with one of its continuations or answers each. The highest is chosen.

    forward: one score a row, (B, 1), as `transformers`' multiple choice before it puts those of a text in a row.
    """

    kind: ClassVar[str] = "choice"

    def __init__(self, config: AnyConfig, pooling: Pooling = "mean", generator: torch.Generator | None = None) -> None:
        super().__init__(config, 1, pooling, generator=generator, problem_type="regression")

    def head_settings(self) -> dict[str, Any]:
        """What building this model needs besides the config of its encoder."""
        return {"pooling": self.pooling}


class ReadingModel(_EncoderWithHead):
    """An encoder that finds the first and the last piece of an answer."""

    kind: ClassVar[str] = "reading"

    def __init__(self, config: AnyConfig, generator: torch.Generator | None = None) -> None:
        super().__init__(config, generator)
        span = SpanHead(config)
        self.head, self.dropout, self.classifier = span.head, span.dropout, span.classifier
        initialize(self, config, generator)

    def scores(self, hidden: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, ...]:
        """Each piece's scores as the first and as the last one, (B, T) both.

        Padding and pieces of the question have scores, too; the caller masks them.
        """
        return self.of_vectors(self.dropout(self.head(hidden)))

    def of_vectors(self, vectors: Tensor) -> tuple[Tensor, ...]:
        """What `scores` returns, from the head's vectors (B, T, D)."""
        ends: Tensor = self.classifier(vectors)  # (B, T, 2)
        return ends[..., 0], ends[..., 1]


class SlotsModel(ReadingModel):
    """A reading model with a gate: whether the slot described before the text has a value, and where.

    forward: each piece's scores as the first and as the last one, (B, T) both, and the scores of no value, any value
    and a span of the text, (B, 3), from the first piece's vector.
    """

    kind: ClassVar[str] = "slots"

    def __init__(self, config: AnyConfig, generator: torch.Generator | None = None) -> None:
        super().__init__(config, generator)
        self.gate = nn.Linear(config.hidden_size, 3)
        initialize(self.gate, config, generator)

    def of_vectors(self, vectors: Tensor) -> tuple[Tensor, ...]:
        return *super().of_vectors(vectors), self.gate(vectors[:, 0])


class TaggingModel(_EncoderWithHead):
    """An encoder that labels each piece.

    labels: their names, such as O, B-PS, I-PS, or parts of speech; their order is that of the scores.
    The head is that of `transformers`' token classification: none for `bert`, dense layer and norm for `modern`.
    """

    kind: ClassVar[str] = "tagging"

    def __init__(self, config: AnyConfig, labels: Sequence[str], generator: torch.Generator | None = None) -> None:
        if not labels or len(set(labels)) < len(labels):
            raise ModelError(f"labels {list(labels)}: name at least one, and each once")
        super().__init__(config, generator)
        self.labels = tuple(labels)
        self.head = PredictionHead(config) if config.architecture == "modern" else nn.Identity()
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.hidden_size, len(self.labels))
        initialize(self, config, generator)

    def scores(self, hidden: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Each piece's scores of the labels, (B, T, C).

        Special tokens and padding have scores, too; the caller leaves them out.
        """
        scores: Tensor = self.classifier(self.dropout(self.head(hidden)))
        return scores

    def head_settings(self) -> dict[str, Any]:
        """What building this model needs besides the config of its encoder."""
        return {"labels": list(self.labels)}


class EmbeddingModel(_EncoderWithHead):
    """An encoder whose vectors of pieces become one vector a text: its mean over all pieces, or that of the first one.

    normalize: scale each vector to length 1. There are no weights but the encoder's, as in sentence-transformers
    (Reimers and Gurevych 2019, 3).
    """

    kind: ClassVar[str] = "embedding"

    def __init__(
        self,
        config: AnyConfig,
        pooling: Pooling = "mean",
        normalize: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(config, generator)
        self.pooling: Pooling = pooling
        self.normalize = normalize
        initialize(self, config, generator)

    def scores(self, hidden: Tensor, attention_mask: Tensor | None) -> Tensor:
        """A vector a row, (B, D)."""
        pooled: Tensor = hidden[:, 0] if self.pooling == "first" else mean_of_pieces(hidden, attention_mask)
        return F.normalize(pooled, dim=-1) if self.normalize else pooled

    def head_settings(self) -> dict[str, Any]:
        """What building this model needs besides the config of its encoder."""
        return {"pooling": self.pooling, "normalize": self.normalize}


Model = (
    PretrainingModel
    | DetectionModel
    | ClassificationModel
    | ChoiceModel
    | ReadingModel
    | SlotsModel
    | TaggingModel
    | EmbeddingModel
    | FeatureModel
    | EncoderModel
)


def init_encoder_from(model: Model, pretrained: Model) -> None:
    """Copies the weights of the encoder into `model`, and those of the head that fits, if `pretrained` has one.

    As in `transformers`, that is the pooler of NSP for `bert`, and the transform of MLM for `modern`, unless its
    embeddings are narrower than the encoder. A reading model takes the whole head that was pretrained on spans.
    An overlap embedding that only `model` has gets the mean norm of the token embeddings: from zeros it would take
    hundreds of steps to matter. ModelError if the encoders differ in more than that and dropout.
    """
    theirs, ours = pretrained.encoder.state_dict(), model.encoder.state_dict()
    if OVERLAP in ours.keys() - theirs.keys():
        drawn, tokens = ours[OVERLAP], theirs["embeddings.token.weight"]
        theirs[OVERLAP] = drawn * tokens.norm(dim=1).mean() / drawn.norm()
    for name in sorted(theirs.keys() | ours.keys()):
        here, there = ours.get(name), theirs.get(name)
        if here is None or there is None or here.shape != there.shape:
            raise ModelError(
                f"encoder weights {name}: {_shape(here)} in the model, {_shape(there)} in the pretrained one:"
                " build the model with the config of the pretrained encoder"
            )
    model.encoder.load_state_dict(theirs)
    if isinstance(pretrained, PretrainingModel) and pretrained.reader and isinstance(model, ReadingModel):
        model.head.load_state_dict(pretrained.reader.head.state_dict())
        model.classifier.load_state_dict(pretrained.reader.classifier.state_dict())
    elif isinstance(pretrained, PretrainingModel) and isinstance(
        model, ClassificationModel | ReadingModel | SlotsModel | TaggingModel
    ):
        source = pretrained.nsp.pooler if isinstance(model.head, Pooler) else pretrained.mlm.transform
        if not isinstance(model.head, nn.Identity) and source.dense.weight.shape == model.head.dense.weight.shape:
            model.head.load_state_dict(source.state_dict())


def _shape(tensor: Tensor | None) -> str:
    return "absent" if tensor is None else "x".join(map(str, tensor.shape))
