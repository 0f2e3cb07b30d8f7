"""Text embeddings: similar texts get nearby vectors.

The training objective depends on the columns of the training rows:

| columns | positives and negatives |
|---|---|
| text | positive: the same text under another dropout mask; negatives: other texts of the batch |
| text, pair | positive: the two texts; negatives: texts of other rows of the batch |
| text, pair, label | the same for pairs with a label in `near`; pairs of the same text in `far` are hard negatives |
| text, pair, score | ranking: the higher the score, the nearer |

All but the last are SimCSE (Gao et al. 2021, 3 and 4). Validation and test rows have text, pair and score; the metric
is rank correlation of cosines and scores. With several processes, each has a part of the batch and so fewer
in-batch negatives.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from korbert.errors import CorpusError, SettingsError
from korbert.modeling import EmbeddingModel, Pooling
from korbert.modeling.config import AnyConfig, EncoderConfig
from korbert.tasks.embedding import contrastive_loss, cosines, ranking_loss
from korbert.tasks.files import ROLES, Role, Row, Rows
from korbert.tasks.kinds.base import Baseline, Encoded, Kind, Prediction, Prepared, among
from korbert.tasks.kinds.sections import EmbeddingSection
from korbert.tasks.kinds.texts import Groups, examples_of
from korbert.tasks.metrics import regression
from korbert.tasks.metrics.statistics import Score, repeated
from korbert.tokenization import AnyTokenizer
from korbert.training.devices import Batch
from korbert.training.scoring import Scoring, model_inputs, outputs

__all__ = ["Embedding"]

_logger = logging.getLogger(__name__)

_Form = Literal["texts", "pairs", "labels", "scores"]

_ABOUT: Mapping[_Form, str] = {
    "texts": "texts alone, each under two draws of dropout",
    "pairs": "pairs that are near",
    "labels": "pairs that are near or far by their label",
    "scores": "scores of pairs",
}


class Embedding(Kind, frozen=True):
    """Text embeddings. learns: form of the training rows.

    A target is a score, a prediction the cosine of the two vectors.
    """

    name: ClassVar[str] = "embedding"
    operation: ClassVar[str] = "embed"
    cuts_vectors: ClassVar[bool] = True
    predicts_untrained: ClassVar[bool] = True

    learns: _Form
    near: tuple[str, ...] = ("entailment",)
    far: tuple[str, ...] = ("contradiction",)
    temperature: float = 0.05
    dropout: float = 0.1
    pooling: Pooling = "mean"
    normalize: bool = False

    @staticmethod
    def roles() -> tuple[Role, ...]:
        return ROLES["text"], *(replace(ROLES[name], required=False) for name in ("pair", "label", "score"))

    @classmethod
    def roles_to_score(cls) -> tuple[Role, ...]:
        return ROLES["text"], ROLES["pair"], ROLES["score"]

    @classmethod
    def learned_from(cls, rows: Rows, settings: EmbeddingSection) -> Self:
        present = {role for role in ("pair", "label", "score") if any(row.get(role) is not None for row in rows)}
        learns: _Form = "scores" if "score" in present else "labels" if "label" in present else "pairs"
        learns = learns if "pair" in present else "texts"
        _refuse(learns, rows, settings)
        return cls(
            metrics=settings.metrics or ("spearman", "pearson"),
            max_length=settings.max_length,
            learns=learns,
            near=settings.near,
            far=settings.far,
            temperature=settings.temperature,
            dropout=settings.dropout,
            pooling=settings.pooling,
            normalize=settings.normalize,
        )

    def about(self) -> str:
        return f"vectors of texts, from {_ABOUT[self.learns]}"

    @property
    def needs(self) -> tuple[str, ...]:
        return "text", "pair"

    def texts(self, row: Row) -> list[str]:
        return [row["text"]] if row.get("pair") is None else [row["text"], row["pair"]]

    def target(self, row: Row) -> float:
        if row.get("pair") is None or row.get("score") is None:
            raise ValueError("has no second text or no score, which rows to score need")
        return float(row["score"])

    def check_training_row(self, row: Row) -> None:
        if self.learns == "scores":
            self.target(row)
        elif self.learns != "texts" and row.get("pair") is None:
            raise ValueError("has no second text")
        elif self.learns == "labels" and row.get("label") not in (*self.near, *self.far):
            raise ValueError(f"label {row.get('label')!r} is neither near nor far")

    def prepare(self, rows: Sequence[Row], encoded: Encoded, tokenizer: AnyTokenizer) -> Prepared:
        labelled = self.learns == "labels" and any(row.get("label") is not None for row in rows)
        groups = self._by_anchor(rows) if labelled else list(map(self.texts, rows))
        if self.learns == "scores":
            labels = np.array([row.get("score") or 0.0 for row in rows], dtype=np.float32)
        else:  # the number of the first text, to recognise equal ones
            numbers = {text: number for number, text in enumerate(dict.fromkeys(group[0] for group in groups))}
            labels = np.array([numbers[group[0]] for group in groups], dtype=np.int64)
        members = [(text,) for group in groups for text in group]
        examples = examples_of(members, np.zeros(len(members)), encoded, tokenizer, self.max_length)
        return Prepared(rows, Groups.of(examples, list(map(len, groups)), labels))

    def _by_anchor(self, rows: Sequence[Row]) -> list[list[str]]:
        """(text, near text, far text if any) for each near pair; far texts are assigned in turn."""
        pairs: dict[str, tuple[list[str], list[str]]] = {}
        for row in rows:
            pairs.setdefault(row["text"], ([], []))[row["label"] not in self.near].append(row["pair"])
        groups = [
            [text, positive, far[index % len(far)]] if far else [text, positive]
            for text, (near, far) in pairs.items()
            for index, positive in enumerate(near)
        ]
        unused = sum(len(far) for near, far in pairs.values() if not near)
        if unused:
            _logger.info("%d far pairs have a text without a near pair: they are left out", unused)
        return groups

    def model(self, config: AnyConfig, generator: torch.Generator | None = None) -> EmbeddingModel:
        return EmbeddingModel(_with_dropout(config, self.dropout), self.pooling, self.normalize, generator)

    def loss(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Contrastive loss, in nats per text, or ranking loss of scores, in nats per batch."""
        inputs, sizes, labels = model_inputs(batch), np.array(batch["sizes"]), batch["labels"]
        if self.learns == "texts":
            first, second = _vectors(model, _twice(inputs)).chunk(2)
            third = first[:0]
        else:
            vectors = _vectors(model, inputs)
            firsts = np.cumsum(sizes) - sizes
            first, second = vectors[firsts], vectors[firsts + 1]
            third = vectors[firsts[sizes == 3] + 2]
        if self.learns == "scores":
            return {"loss": ranking_loss(first, second, labels, self.temperature)}
        return {"loss": contrastive_loss(first, second, third, labels[:, None] == labels, self.temperature)}

    def predict(self, model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]) -> list[Prediction]:
        def cosines_of(model: nn.Module, batch: Batch) -> Tensor:
            vectors = _vectors(model, model_inputs(batch))
            return cosines(vectors[::2], vectors[1::2])[:, None]

        if any(row.get("pair") is None for row in prepared.rows):
            raise SettingsError(
                "a row has one text: give pairs, whose cosine is predicted; korbert.load(..).embed gives vectors"
            )
        scores = outputs(model, prepared.examples, cosines_of, **how)
        return [float(number) for number in scores[:, 0]]

    def baselines(
        self, train: Sequence[Row], valid: Sequence[Row], test: Sequence[Row], morphemes: Mapping[str, Sequence[str]]
    ) -> Iterator[Baseline]:
        """Cosine of TF-IDF over morphemes, fitted on the training texts."""
        from korbert.tasks.baselines.features import tfidf_features

        texts = [morphemes[text] for text in dict.fromkeys(text for row in train for text in self.texts(row))]
        sides = ([morphemes[row[role]] for row in test] for role in ("text", "pair"))
        _, first, second = tfidf_features(texts, *sides)
        yield Baseline("tfidf", {}, np.asarray(first.multiply(second).sum(axis=1)).ravel().tolist())

    def run(self, rows: Sequence[Row], predictions: Sequence[Prediction]) -> NDArray[Any]:
        """(N, 2) score and cosine."""
        return np.array([list(map(self.target, rows)), predictions], dtype=np.float64).T

    def score(self, metric: str) -> Score:
        correlation = among(_METRICS, metric)
        return repeated(lambda run: correlation(run[:, 0], run[:, 1]))


_METRICS: dict[str, Callable[[Any, Any], float | None]] = {
    "spearman": regression.spearman,
    "pearson": regression.pearson,
}


def _refuse(learns: _Form, rows: Rows, settings: EmbeddingSection) -> None:
    """CorpusError for rows without signal, SettingsError for settings that cannot learn from such rows."""
    if learns == "scores":
        scores = {row["score"] for row in rows if row.get("score") is not None}
        if len(scores) == 1:
            raise CorpusError(f"all rows have the score {min(scores):g}: give rows with others, too")
    elif not settings.valid:
        raise SettingsError(
            f"valid: the training rows are {_ABOUT[learns]}, which vectors cannot be validated on: take them from files"
            " (train), and name one of pairs with scores (valid)"
        )
    if learns == "labels":
        labels = {row["label"] for row in rows if row.get("pair") is not None and row.get("label") is not None}
        if not labels & set(settings.near):
            raise CorpusError(
                f"no pair has a label of near ({', '.join(settings.near)}); there are"
                f" {', '.join(sorted(labels)[:10])}: name those of pairs that are near, near = [..]"
            )
    if learns == "texts" and not settings.dropout:
        raise SettingsError("dropout 0: two vectors of a text do not differ then: take some, 0.1 is usual")
    if min(settings.batch_size) < 2:
        raise SettingsError("batch_size 1: rows are compared with others of their batch: take 2 at least")
    if settings.frozen_layers < 0:
        raise SettingsError("frozen_layers -1: nothing would learn, vectors have no weights but the encoder's: take 0")


def _vectors(model: nn.Module, inputs: Mapping[str, Any]) -> Tensor:
    vectors: Tensor = model(**inputs)
    return vectors.float()


def _twice(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The rows, followed by the same rows again."""
    return {
        name: torch.cat([value, value]) if isinstance(value, Tensor) else (*value, *value)
        for name, value in inputs.items()
    }


def _with_dropout(config: AnyConfig, least: float) -> AnyConfig:
    """The config with at least dropout `least` everywhere in the encoder."""
    if isinstance(config, EncoderConfig):
        names = ("hidden_dropout_prob", "attention_probs_dropout_prob")
        return config.model_copy(update={name: max(least, getattr(config, name)) for name in names})
    settings = dict(config.transformers)
    for name, value in settings.items():
        if "dropout" in name and "classifier" not in name and isinstance(value, float):
            settings[name] = max(least, value)
    return config.model_copy(update={"transformers": settings})
