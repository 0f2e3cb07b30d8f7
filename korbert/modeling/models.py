"""The models that are trained, saved and exported: an encoder with or without heads."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from korbert.errors import ModelError
from korbert.modeling import heads
from korbert.modeling.adapters.transformers_encoder import TransformersEncoder, encoder_of
from korbert.modeling.config import AnyConfig, EncoderConfig
from korbert.modeling.crf import CrfModel
from korbert.modeling.embeddings import OVERLAP, scaled_overlap
from korbert.modeling.encoder import Encoder
from korbert.modeling.features import FeatureModel
from korbert.modeling.linear import LinearModel
from korbert.modeling.model_base import AnyModel
from korbert.system import JsonObject

Pooling = Literal["mean", "first"]
ProblemType = Literal["single_label_classification", "multi_label_classification", "regression"]


class _EncoderWithHead(AnyModel):
    """Base class of these models. `scores` computes the outputs from the encoder's vectors (B, T, D) and its mask.

    generator: draws the initial weights; None: torch's global generator. encoder: with weights; None: a new one.
    """

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
        self, input_ids: Tensor, attention_mask: Tensor | None = None, *others: object, **named: object
    ) -> object:
        """Arguments as Encoder.forward. Returns what `scores` returns."""
        return self.scores(self.encoder(input_ids, attention_mask, *others, **named), attention_mask)

    def scores(self, hidden: Tensor, attention_mask: Tensor | None) -> object:
        raise NotImplementedError


class EncoderModel(_EncoderWithHead):
    """An encoder without a head, as imported: tasks start from its weights."""

    kind: ClassVar[str] = "encoder"
    not_exported: ClassVar[str] = "an encoder without a head: export a model that was trained with one"

    def scores(self, hidden: Tensor, attention_mask: Tensor | None) -> Tensor:
        return hidden


class PretrainingModel(_EncoderWithHead):
    """An encoder with heads that predict pieces (MLM) and classify pairs (NSP).

    Training calls `encoder`, and the heads only at labels: a large vocabulary makes `mlm_head` expensive.
    objectives: "spans" adds the head of a QuestionAnsweringModel (`reader`).
    """

    kind: ClassVar[str] = "pretraining"
    pipeline: ClassVar[str] = "fill-mask"
    config: EncoderConfig
    encoder: Encoder

    def __init__(
        self,
        config: EncoderConfig,
        generator: torch.Generator | None = None,
        objectives: Sequence[str] = ("mlm", "nsp"),
    ) -> None:
        super().__init__(config, generator)
        self.objectives = tuple(objectives)
        self.mlm = heads.VocabularyHead(config)
        self.nsp = heads.NextSentenceHead(config)
        self.reader = heads.SpanHead(config) if "spans" in objectives else None
        heads.initialize(self, config, generator)

    def scores(self, hidden: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """MLM scores at all positions, (B, T, V), and NSP scores, (B, 2)."""
        return self.mlm_head(hidden), self.nsp(hidden[:, 0])

    def mlm_head(self, rows: Tensor) -> Tensor:
        """Scores over the vocabulary, whose matrix (V, E) is tied to the embeddings: (N, D) -> (N, V)."""
        return self.mlm(rows, self.encoder.token_weight)

    def head_settings(self) -> JsonObject:
        return {"objectives": list(self.objectives)} if self.reader else {}


class DetectionModel(_EncoderWithHead):
    """An encoder with heads that detect replaced pieces (Clark et al. 2020) and classify pairs."""

    kind: ClassVar[str] = "detection"
    pipeline: ClassVar[str] = "feature-extraction"
    config: EncoderConfig
    encoder: Encoder

    def __init__(self, config: EncoderConfig, generator: torch.Generator | None = None) -> None:
        super().__init__(config, generator)
        self.head = heads.PredictionHead(config)
        if config.architecture == "bert":  # that of ELECTRA's discriminator has no norm
            self.head.norm = nn.Identity()
        self.classifier = nn.Linear(config.hidden_size, 1)
        self.nsp = heads.NextSentenceHead(config)
        heads.initialize(self, config, generator)

    def scores(self, hidden: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Scores of pieces, (..., D) -> (...): above 0, a piece is more likely replaced than not."""
        return self.classifier(self.head(hidden)).squeeze(-1)


class ClassificationModel(_EncoderWithHead):
    """An encoder that classifies a text or a pair of texts, or gives it a number.

    pooling: how the text vector is made: mean over its pieces, or the first piece.
    labels: label names; by default their numbers.
    problem_type: as in configs of `transformers`: one label per text (softmax), any number of labels (sigmoid), or
    regression, where the only score is the number itself.
    """

    kind: ClassVar[str] = "classification"
    saved: ClassVar[tuple[str, ...]] = ("num_labels", "pooling", "labels", "problem_type")
    exported: ClassVar[str] = "ForSequenceClassification"
    pipeline: ClassVar[str] = "text-classification"

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
            raise ModelError(
                "{num_labels} names for {num_labels2} labels: give one name per label",
                num_labels=len(labels),
                num_labels2=num_labels,
            )
        if problem_type == "regression" and num_labels != 1:
            raise ModelError("regression with {num_labels} labels: set num_labels to 1", num_labels=num_labels)
        if problem_type == "single_label_classification" and num_labels == 1:
            raise ModelError("single_label_classification with 1 label: give two or more, or another problem_type")
        super().__init__(config, generator)
        self.num_labels = num_labels
        self.pooling = pooling
        self.problem_type = problem_type
        self.labels = tuple(map(str, range(num_labels))) if labels is None else tuple(labels)
        self.head = heads.PredictionHead(config) if config.architecture == "modern" else heads.Pooler(config)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.hidden_size, num_labels)
        heads.initialize(self, config, generator)

    def scores(self, hidden: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Scores of the labels, (B, num_labels)."""
        pooled = hidden[:, 0] if self.pooling == "first" else heads.mean_pooling(hidden, attention_mask)
        return self.classifier(self.dropout(self.head(pooled)))


class MultipleChoiceModel(ClassificationModel):
    """An encoder that scores each row, a text with one of its choices. The highest-scoring choice is predicted.

    forward: one score per row, (B, 1), as in multiple choice of `transformers` before scores are grouped by text.
    """

    kind: ClassVar[str] = "multiple-choice"
    saved: ClassVar[tuple[str, ...]] = ("pooling",)
    exported: ClassVar[str] = "ForMultipleChoice"
    pipeline: ClassVar[str] = "multiple-choice"

    def __init__(self, config: AnyConfig, pooling: Pooling = "mean", generator: torch.Generator | None = None) -> None:
        super().__init__(config, 1, pooling, generator=generator, problem_type="regression")


class QuestionAnsweringModel(_EncoderWithHead):
    """An encoder that finds the first and the last piece of an answer."""

    kind: ClassVar[str] = "question-answering"
    exported: ClassVar[str] = "ForQuestionAnswering"
    pipeline: ClassVar[str] = "question-answering"

    def __init__(self, config: AnyConfig, generator: torch.Generator | None = None) -> None:
        super().__init__(config, generator)
        span = heads.SpanHead(config)
        self.head = span.head
        self.dropout = span.dropout
        self.classifier = span.classifier
        heads.initialize(self, config, generator)

    def scores(self, hidden: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, ...]:
        """Scores of each piece as the start and as the end, (B, T) both, padding and the question included."""
        ends: Tensor = self.classifier(self.dropout(self.head(hidden)))  # (B, T, 2)
        return ends[..., 0], ends[..., 1]


class SlotsModel(QuestionAnsweringModel):
    """Question answering where the question describes a slot; special tokens stand for an absent and for any value."""

    kind: ClassVar[str] = "slots"
    not_exported: ClassVar[str] = "no class of transformers fills slots: use the model with korbert"


class TokenClassificationModel(_EncoderWithHead):
    """An encoder that labels every piece.

    labels: label names, such as O, B-PS, I-PS, or parts of speech, in the order of the scores.
    The head is that of token classification in `transformers`: none for `bert`, dense layer and norm for `modern`.
    """

    kind: ClassVar[str] = "token-classification"
    saved: ClassVar[tuple[str, ...]] = ("labels",)
    exported: ClassVar[str] = "ForTokenClassification"
    pipeline: ClassVar[str] = "token-classification"

    def __init__(self, config: AnyConfig, labels: Sequence[str], generator: torch.Generator | None = None) -> None:
        if not labels or len(set(labels)) < len(labels):
            raise ModelError("labels {labels}: give at least one, without duplicates", labels=list(labels))
        super().__init__(config, generator)
        self.labels = tuple(labels)
        self.head = heads.PredictionHead(config) if config.architecture == "modern" else nn.Identity()
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.hidden_size, len(self.labels))
        heads.initialize(self, config, generator)

    def scores(self, hidden: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Label scores of each piece, (B, T, C), special tokens and padding included."""
        return self.classifier(self.dropout(self.head(hidden)))


class EmbeddingModel(_EncoderWithHead):
    """An encoder that pools piece vectors into one text vector: the mean over all pieces, or the first piece.

    normalize: scale vectors to length 1. There are no weights besides the encoder's, as in sentence-transformers
    (Reimers and Gurevych 2019, 3).
    """

    kind: ClassVar[str] = "embedding"
    saved: ClassVar[tuple[str, ...]] = ("pooling", "normalize")
    exported: ClassVar[str] = "Model"

    def __init__(
        self,
        config: AnyConfig,
        pooling: Pooling = "mean",
        normalize: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(config, generator)
        self.pooling = pooling
        self.normalize = normalize
        heads.initialize(self, config, generator)

    def scores(self, hidden: Tensor, attention_mask: Tensor | None) -> Tensor:
        """One vector per row, (B, D)."""
        pooled: Tensor = hidden[:, 0] if self.pooling == "first" else heads.mean_pooling(hidden, attention_mask)
        return F.normalize(pooled, dim=-1) if self.normalize else pooled


Network = (
    PretrainingModel
    | DetectionModel
    | ClassificationModel
    | MultipleChoiceModel
    | QuestionAnsweringModel
    | SlotsModel
    | TokenClassificationModel
    | EmbeddingModel
    | FeatureModel
    | LinearModel
    | CrfModel
    | EncoderModel
)
CLASSES: Mapping[str, type[Network]] = {cls.kind: cls for cls in get_args(Network)}
"""Kind of a saved folder -> its class."""


def init_encoder_from(model: Network, pretrained: Network) -> None:
    """Copies the encoder weights of `pretrained` into `model`, and those of a matching head, if there is one.

    As in `transformers`, that is the NSP pooler for `bert` and the MLM transform for `modern`, unless embeddings are
    narrower than the encoder. A question answering model takes the whole head of another one, or the one pretrained on
    spans. An overlap embedding that only `model` has keeps its direction (scaled_overlap); piece weights that only it
    has stay. ModelError if other weights of the encoders differ in name or shape.
    """
    source = pretrained.encoder.state_dict()
    target = model.encoder.state_dict()
    source |= {
        name: tensor for name, tensor in target.items() if name.startswith("piece_weight.") and name not in source
    }
    if OVERLAP in target.keys() - source.keys():
        source[OVERLAP] = scaled_overlap(target[OVERLAP], source["embeddings.token.weight"])
    for name in sorted(source.keys() | target.keys()):
        shape, pretrained_shape = (
            "absent" if tensor is None else "x".join(map(str, tensor.shape))
            for tensor in (target.get(name), source.get(name))
        )
        if shape != pretrained_shape:
            raise ModelError(
                "encoder weights {name}: {shape} in the model, {pretrained_shape} in the pretrained one: build the "
                "model with the config of the pretrained encoder",
                name=name,
                shape=shape,
                pretrained_shape=pretrained_shape,
            )
    model.encoder.load_state_dict(source)
    reader = pretrained if isinstance(pretrained, QuestionAnsweringModel) else getattr(pretrained, "reader", None)
    if isinstance(model, QuestionAnsweringModel) and reader is not None:
        model.head.load_state_dict(reader.head.state_dict())
        model.classifier.load_state_dict(reader.classifier.state_dict())
    elif isinstance(pretrained, PretrainingModel) and isinstance(
        model, ClassificationModel | QuestionAnsweringModel | TokenClassificationModel
    ):
        head = pretrained.nsp.pooler if isinstance(model.head, heads.Pooler) else pretrained.mlm.transform
        if not isinstance(model.head, nn.Identity) and head.dense.weight.shape == model.head.dense.weight.shape:
            model.head.load_state_dict(head.state_dict())
