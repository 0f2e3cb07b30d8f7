"""Inference with models trained by `korbert finetune`."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from korbert.errors import ModelError, SettingsError
from korbert.modeling import Model, load_model, read_config
from korbert.processor import cores
from korbert.tasks.files import Row
from korbert.tasks.kinds import kind_of_task
from korbert.tasks.kinds.base import Encoded, Kind, Prediction
from korbert.tasks.passages import encode_passages
from korbert.tokenization import AnyTokenizer
from korbert.training.devices import choose_device
from korbert.vectors.encoder import TextEncoder

__all__ = ["Predictor"]

ROWS_AT_ONCE = 8_192  # whose pieces are in memory; more rows give batches of more similar lengths


class Predictor(TextEncoder[Model]):
    """Predicts texts, pairs or rows with a model folder written by `korbert finetune`.

        >>> predictor = Predictor.load("models/mood")
        >>> predictor.predict("정말 좋은 영화")
        {"label": "긍정", "probabilities": {"부정": 0.04, "긍정": 0.96}}

    kind: the task.
    """

    def __init__(self, kind: Kind, model: Model, tokenizer: AnyTokenizer) -> None:
        super().__init__(model, tokenizer)
        self.kind = kind

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> Self:
        """Loads a folder written by korbert. Raises ModelError if it is not one, or was not fine-tuned on a task."""
        model, tokenizer = load_model(folder, device=choose_device(device))
        predictor = cls(kind_of_task(read_config(folder)["task"], str(folder)), model, tokenizer)
        predictor.name = str(folder)
        return predictor

    def predict(self, given: Any) -> Any:
        """Predicts one text, pair of texts or row, or a list for many, in order.

        given: a string, a tuple of two, or a mapping by role ({"text": .., "choices": [..]}); or an iterable of these,
        also a table of pandas with a column for each role. Raises SettingsError for anything else, ModelError if the
        model's scores are NaN.
        """
        if isinstance(given, str | Mapping) or _is_pair(given):
            return self._predict([self.row(given)])[0]
        if hasattr(given, "iloc") and hasattr(given, "columns"):  # it iterates over the names of its columns
            given = given.to_dict("records")
        if isinstance(given, bytes) or not isinstance(given, Iterable):
            raise SettingsError(f"{given!r:.40}: give a text, a pair of texts, a row, or a list of these")
        return self.predict_rows([self.row(one, f"[{place}]") for place, one in enumerate(given)])

    def predict_rows(self, rows: Sequence[Row]) -> list[Prediction]:
        """Predicts each row by role; targets may be absent. ValueError for a row without its texts."""
        predictions: list[Prediction] = []
        for start in range(0, len(rows), ROWS_AT_ONCE):
            predictions += self._predict(rows[start : start + ROWS_AT_ONCE])
        return predictions

    def row(self, given: Any, place: str = "") -> Row:
        """Converts a text, a pair or a row to a row by role. SettingsError if the task cannot read it."""
        row: Row = {"text": given} if isinstance(given, str) else dict(given) if isinstance(given, Mapping) else {}
        if _is_pair(given):
            if "pair" not in self.kind.needs:
                raise SettingsError(f"{given!r:.40}{place}: is a pair of texts: this model takes {self.kind.about()}")
            row = {"text": given[0], "pair": given[1]}
        try:
            texts = self.kind.texts(row)
        except (ValueError, KeyError, TypeError) as error:
            why = f"has no {error.args[0]}" if isinstance(error, KeyError) else str(error)
            raise SettingsError(f"{given!r:.40}{place}: {why}: this model takes {self.kind.about()}") from None
        if not texts or not all(isinstance(text, str) for text in texts):
            raise SettingsError(f"{given!r:.40}{place}: is not a row of texts: this model takes {self.kind.about()}")
        return row

    def _predict(self, rows: Sequence[Row]) -> list[Prediction]:
        texts = list(dict.fromkeys(text for row in rows for text in self.kind.texts(row)))
        passages = dict(zip(texts, encode_passages(self.tokenizer, texts, workers=cores()), strict=True))
        return self.predict_encoded(rows, passages)

    def predict_encoded(self, rows: Sequence[Row], passages: Encoded) -> list[Prediction]:
        """Predicts rows whose texts are already encoded. passages: for every text of the rows."""
        prepared = self.kind.prepare(rows, passages, self.tokenizer)
        predictions = self.kind.predict(self.model, prepared, **self.scoring)
        if not all(map(_is_finite, predictions)):
            raise ModelError(f"{self.name}: its scores are not finite: train it again with a lower learning_rate")
        return predictions


def _is_pair(given: Any) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and all(isinstance(text, str) for text in given)


def _is_finite(prediction: Prediction) -> bool:
    numbers = prediction.get("probabilities", 0.0) if isinstance(prediction, dict) else prediction
    if isinstance(numbers, dict):
        numbers = list(numbers.values())
    if isinstance(numbers, list) and not all(isinstance(number, float) for number in numbers):
        return True  # spans, tags
    return bool(np.isfinite(numbers).all())
