"""Text classification: fine-tuning and prediction.

1. `finetune` trains on labelled examples (examples.py, learning.py).
2. `probabilities` scores examples, shortest first.
3. `Classifier` loads a model folder, encodes texts and predicts their labels.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self, TypedDict, Unpack, overload

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from korbert.errors import ModelError
from korbert.modeling import ClassificationModel, load_model, read_config
from korbert.processor import cores
from korbert.tasks.best_epoch import Best
from korbert.tasks.classification_settings import ClassificationSettings
from korbert.tasks.examples import Examples
from korbert.tasks.learning import ROWS_AT_ONCE, Scoring, model_inputs, outputs
from korbert.tasks.learning import finetune as learn
from korbert.tasks.learning_settings import Way
from korbert.tasks.metrics import METRICS, Metric, confusion
from korbert.tasks.passages import MANY_TEXTS
from korbert.tasks.saved import Lengths, of_config
from korbert.tasks.texts import as_texts
from korbert.tokenization import Encoding
from korbert.training.devices import Batch, choose_device
from korbert.vectors.encoder import TextEncoder

__all__ = ["Classifier", "Prediction", "classification_loss", "finetune", "probabilities"]


class Prediction(TypedDict):
    """The most probable label of a text, and the probability of each label."""

    label: str
    probabilities: dict[str, float]


def classification_loss(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """{"loss": mean cross-entropy over the batch, in nats}. batch: from Examples.batch."""
    return {"loss": F.cross_entropy(model(**model_inputs(batch)).float(), batch["labels"])}


def probabilities(model: nn.Module, examples: Examples, **how: Unpack[Scoring]) -> NDArray[np.float32]:
    """Label probabilities of each row: (N, C). See korbert.tasks.learning.outputs."""

    def shares(model: nn.Module, batch: Batch) -> Tensor:
        scores: Tensor = model(**model_inputs(batch)).float()
        return scores.softmax(dim=-1)

    return outputs(model, examples, shares, **how)


def finetune(
    model: ClassificationModel,
    train: Examples,
    validation: Examples,
    settings: ClassificationSettings,
    way: Way,
    *,
    seed: int,
    work: Path,
    metrics: Path,
    device: torch.device,
    choose_by: Metric = "accuracy",
    description: str = "finetune",
    anomaly: bool = False,
) -> Best:
    """Trains `model` as korbert.tasks.learning.finetune does.

    choose_by: the validation metric that selects the best epoch.
    """

    def measure(model: nn.Module) -> tuple[float, dict[str, float]]:
        shares = probabilities(model, validation, device=device, precision=settings.precision)
        labels = validation.labels
        score = METRICS[choose_by](confusion(labels, shares.argmax(axis=1), shares.shape[1]))
        right = shares[np.arange(len(labels)), labels].astype(np.float64)
        loss = float(-np.log(np.maximum(right, np.finfo(np.float32).tiny)).mean())
        return score, {"loss": loss, choose_by: score}

    return learn(
        model, train, classification_loss, measure, settings, way, seed=seed, work=work, metrics=metrics,
        device=device, description=description, anomaly=anomaly,
    )  # fmt: skip


class Classifier(TextEncoder[ClassificationModel]):
    """Predicts labels of texts with a model folder of kind "classification".

    >>> classifier = Classifier.load("artifacts/demo/nsmc")
    >>> classifier.predict("정말 좋은 영화")
    {"label": "긍정", "probabilities": {"부정": 0.04, "긍정": 0.96}}
    """

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> Self:
        """Loads a folder written by korbert. Raises ModelError if it is not one, or of another kind."""
        model, tokenizer = load_model(folder, "classification", choose_device(device))
        task = of_config(Lengths, read_config(folder)["task"], folder)
        classifier = cls(model, tokenizer, task.max_length)
        classifier.name = str(folder)
        return classifier

    @property
    def labels(self) -> tuple[str, ...]:
        return self.model.labels

    @overload
    def predict(self, texts: str) -> Prediction: ...  # type: ignore[overload-overlap]
    @overload
    def predict(self, texts: Iterable[str]) -> list[Prediction]: ...
    def predict(self, texts: str | Iterable[str]) -> Prediction | list[Prediction]:
        """Predicts one text, or a list for many, in order. Any text is valid, even an empty one.

        Raises SettingsError for anything but strings, ModelError if the model's scores are NaN.
        """
        given, single = as_texts(texts, "texts")
        predictions: list[Prediction] = []
        for start in range(0, len(given), ROWS_AT_ONCE):
            part = given[start : start + ROWS_AT_ONCE]
            workers = cores() if len(part) > MANY_TEXTS else 0
            encodings = self.tokenizer.encode_batch(part, max_length=self.max_length, workers=workers)
            predictions += self.predict_encoded(encodings)
        return predictions[0] if single else predictions

    def predict_encoded(self, encodings: Sequence[Encoding]) -> list[Prediction]:
        """Predictions for texts already encoded, of at most max_length pieces."""
        rows = ((encoding.input_ids, encoding.boundaries) for encoding in encodings)
        examples = Examples.of_rows(rows, [0] * len(encodings), self.tokenizer.pad_id)
        shares = probabilities(self.model, examples, **self.scoring)
        if not np.isfinite(shares).all():
            raise ModelError(f"{self.name}: its scores are not finite: train it again with a lower learning_rate")
        return [
            {
                "label": self.labels[int(row.argmax())],
                "probabilities": dict(zip(self.labels, row.tolist(), strict=True)),
            }
            for row in shares
        ]
