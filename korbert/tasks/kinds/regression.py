"""A number for a text or a pair of texts, such as the similarity of two sentences."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from korbert.errors import CorpusError, SettingsError
from korbert.messages import Message
from korbert.modeling import AnyConfig, ClassificationModel, Pooling
from korbert.tasks.files import ROLES, Role, TaskRow, TaskRows
from korbert.tasks.kinds.kind import Baseline, Head, Morphemes, Prepared, TaskPrediction, score_named
from korbert.tasks.kinds.sections import RegressionSection
from korbert.tasks.kinds.texts import TextKind, morphemes_of
from korbert.tasks.metrics import regression
from korbert.tasks.metrics.statistics import RunArray, Score, repeated
from korbert.tasks.noise import NOISE
from korbert.tasks.splits import Splits
from korbert.training import Batch, Scoring, model_inputs, outputs


class Regression(TextKind, frozen=True):
    """A number for a text or a pair. mean, deviation: of the training scores. Target and prediction are numbers.

    A new model predicts the mean; the loss is in units of the training variance.
    """

    name: ClassVar[str] = "regression"
    roles: ClassVar[tuple[Role, ...]] = (ROLES["text"], replace(ROLES["pair"], required=False), ROLES["score"])
    label_role: ClassVar[str] = "score"
    noise: ClassVar[Sequence[str]] = tuple(NOISE)
    is_graded: ClassVar[bool] = True
    loss_unit: ClassVar[Message] = Message("variances")
    result_of_blank: ClassVar[object] = math.nan

    mean: float
    deviation: float
    pair: bool = False
    pooling: Pooling = "mean"

    @classmethod
    def from_training_rows(cls, rows: TaskRows, settings: RegressionSection) -> Self:
        scores = np.array([row["score"] for row in rows])
        if np.ptp(scores) == 0:
            raise CorpusError(
                "all {num_rows:,} rows have the score {scores:g}: give rows with different ones",
                num_rows=len(rows),
                scores=scores[0],
            )
        if settings.metrics[:1] == ("mae",):
            raise SettingsError("metrics: mae is lower for better models, so it cannot choose one: put another first")
        pair = any(row.get("pair") is not None for row in rows)
        default_metrics = ("pearson", "spearman", "mae")
        return cls.of_settings(
            settings, default_metrics, mean=float(scores.mean()), deviation=float(scores.std()), pair=pair
        )

    def description(self) -> Message:
        if self.pair:
            return Message(
                "a number (mean {mean:.3g} ± {deviation:.3g}) for two texts", mean=self.mean, deviation=self.deviation
            )
        return Message(
            "a number (mean {mean:.3g} ± {deviation:.3g}) for a text", mean=self.mean, deviation=self.deviation
        )

    def target(self, row: TaskRow) -> float:
        self.texts(row)
        return float(row["score"])

    @property
    def num_outputs(self) -> int:
        return 1

    def numbers(self, targets: Sequence[Any]) -> NDArray[Any]:
        """(N,) float32."""
        return np.array([score or 0.0 for score in targets], dtype=np.float32)

    def predictions_of(self, found: NDArray[np.float64]) -> list[TaskPrediction]:
        return [float(number) for number in found[:, 0]]

    def outputs_of(self, predictions: Sequence[TaskPrediction]) -> NDArray[np.float64]:
        return np.array(predictions, dtype=np.float64)[:, None]

    def shares_of(self, predictions: Sequence[TaskPrediction]) -> NDArray[np.float32]:
        return np.array(predictions, np.float32)[:, None]

    def model(self, config: AnyConfig, generator: torch.Generator | None = None) -> ClassificationModel:
        model = ClassificationModel(config, 1, self.pooling, generator=generator, problem_type="regression")
        nn.init.constant_(model.classifier.bias, self.mean)
        return model

    def head(self) -> Head:
        return Head(1, self.pooling, self.mean)

    def loss(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Mean squared error, divided by the variance of the training scores."""
        scores = model(**model_inputs(batch)).float()[:, 0]
        return {"loss": F.mse_loss(scores, batch["labels"]) / self.deviation**2}

    def predict(self, model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]) -> list[TaskPrediction]:
        scores = outputs(model, prepared.examples, lambda model, batch: model(**model_inputs(batch)), **how)
        return self.predictions_of(scores.astype(np.float64))

    def baselines(self, parts: Splits, morphemes: Morphemes) -> Iterator[Baseline]:
        from korbert.tasks import baselines

        train_scores, valid_scores = (
            np.array([self.target(row) for row in rows]) for rows in (parts.train, parts.valid)
        )
        yield Baseline("mean", {}, [float(train_scores.mean())] * len(parts.scored))
        if self.has_rungs:  # its words are the other baseline
            return
        inputs = morphemes_of(parts, self.texts, morphemes)
        metric_function = _METRICS[self.metrics[0]]
        predictions, alpha = baselines.fit_scores(
            inputs, train_scores, lambda predicted: metric_function(valid_scores, predicted)
        )
        yield Baseline("tfidf", {"alpha": alpha}, predictions.tolist())

    def run(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> RunArray:
        """(N, 2) right and predicted number."""
        return np.array([list(map(self.target, rows)), predictions], dtype=np.float64).T

    def row_scores(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> NDArray[np.float64]:
        run = self.run(rows, predictions)
        return np.asarray(-np.abs(run[:, 0] - run[:, 1]))

    def score(self, metric: str) -> Score:
        metric_function = score_named(_METRICS, metric)
        return repeated(lambda run: metric_function(run[:, 0], run[:, 1]))


_METRICS: dict[str, Callable[[Any, Any], float | None]] = {
    "pearson": regression.pearson,
    "spearman": regression.spearman,
    "mae": regression.mean_absolute_error,
    "f1_at_3": regression.f1_at_3,
}
