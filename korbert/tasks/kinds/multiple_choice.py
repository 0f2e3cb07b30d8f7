"""Multiple choice: the correct continuation or answer of several (SWAG, COPA, HellaSwag)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from korbert.errors import CorpusError
from korbert.messages import Message
from korbert.modeling import AnyConfig, MultipleChoiceModel, Pooling
from korbert.tasks.files import ROLES, Role, TaskRow, TaskRows
from korbert.tasks.kinds.kind import Baseline, Head, Kind, Morphemes, Prepared, TaskPrediction, score_named
from korbert.tasks.kinds.sections import MultipleChoiceSection
from korbert.tasks.kinds.texts import NO_TEXT, Groups, blank_rows, equal_in_run
from korbert.tasks.metrics.classification import METRICS, confusion
from korbert.tasks.metrics.statistics import RunArray, Score
from korbert.tasks.passages import Passage
from korbert.tasks.splits import Splits
from korbert.tokenization import AnyTokenizer
from korbert.training import Batch, Scoring, model_inputs, outputs


@dataclass(frozen=True)
class Choice:
    """The most probable choice.

    choice: its index; None if a text is empty, as `why` says. probabilities: of each choice.
    """

    choice: int | None
    probabilities: list[float]
    why: str | None = None


class MultipleChoice(Kind, frozen=True):
    """One of several choices. most: the largest number of them in training. label_names: as in Classification.

    A target is the index of the correct choice; a prediction is {"choice": index, "probabilities": of each}.
    """

    name: ClassVar[str] = "multiple-choice"
    roles: ClassVar[tuple[Role, ...]] = (ROLES["text"], ROLES["choices"], ROLES["label"])
    needs: ClassVar[tuple[str, ...]] = ("text", "choices")
    result_of_blank: ClassVar[object] = Choice(None, [], NO_TEXT)
    reads_pairs: ClassVar[bool] = True
    example: ClassVar[tuple[str, str]] = (
        "rows.jsonl", "{'text': '비가 왔다.', 'choices': ['우산을 폈다.', '모자를 벗었다.']}"
    )  # fmt: skip

    most: int
    label_names: Mapping[str, str] = {}
    pooling: Pooling = "mean"

    @classmethod
    def from_training_rows(cls, rows: TaskRows, settings: MultipleChoiceSection) -> Self:
        most = max(len(row["choices"]) for row in rows)
        # Labels count from 1 if no row has 0, and some row has the number of its choices.
        from_one = all(row["label"] != "0" for row in rows)
        for number, row in enumerate(rows):
            if from_one and row["label"] == str(len(row["choices"])) and row["label"] not in row["choices"]:
                raise CorpusError(
                    "{places}: label {row!r} of {num_row} choices: labels count from 0: subtract one from each, or "
                    "give the texts of the choices",
                    places=rows.places[number],
                    row=row["label"],
                    num_row=len(row["choices"]),
                )
        return cls.of_settings(settings, ("accuracy",), most=most)

    def description(self) -> Message:
        return Message("one of up to {most} choices", most=self.most)

    def texts(self, row: TaskRow) -> list[str]:
        if not isinstance(row["choices"], list | tuple) or not row["choices"]:
            raise ValueError(Message("choices is not a list of texts"))
        return [row["text"], *row["choices"]]

    def target(self, row: TaskRow) -> int:
        """The label is the index of the correct choice, from 0, or its exact text."""
        label = row["label"]
        choices = row["choices"]
        if label in choices:
            return int(choices.index(label))
        index = int(label) if isinstance(label, int) or label.isdecimal() else -1
        if not 0 <= index < len(choices):
            raise ValueError(
                Message(
                    "label {label!r} is neither one of the {count} choices nor the place of one, from 0",
                    label=label, count=len(choices),
                )
            )  # fmt: skip
        return index

    def prepare(
        self, rows: Sequence[TaskRow], passages: Sequence[Sequence[Passage]], tokenizer: AnyTokenizer
    ) -> Prepared:
        labels = np.array([0 if row.get("label") is None else self.target(row) for row in rows], dtype=np.int64)
        groups = [[(text, choice) for choice in choices] for text, *choices in passages]
        examples = Groups.of(groups, labels, tokenizer, self.max_length)
        return Prepared(rows, examples, blank=blank_rows(passages))

    def model(self, config: AnyConfig, generator: torch.Generator | None = None) -> MultipleChoiceModel:
        return MultipleChoiceModel(config, self.pooling, generator)

    def head(self) -> Head:
        return Head(1, self.pooling)

    def loss(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Cross-entropy over the choices, in nats per row."""
        return {"loss": F.cross_entropy(scores_of_choices(model, batch), batch["labels"])}

    def predict(self, model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]) -> list[TaskPrediction]:
        def shares(model: nn.Module, batch: Batch) -> Tensor:
            return scores_of_choices(model, batch).softmax(dim=-1)

        return self._predictions(outputs(model, prepared.examples, shares, batch_size=64, **how), prepared.rows)

    def result(self, prediction: TaskPrediction) -> Choice:
        return Choice(**prediction)

    def baselines(self, parts: Splits, morphemes: Morphemes) -> Iterator[Baseline]:
        from korbert.tasks import baselines

        train_indices = np.array([self.target(row) for row in parts.train], np.int64)
        most = max([int(train_indices.max()) + 1, *(len(row["choices"]) for row in parts.scored)])
        frequencies = np.bincount(train_indices, minlength=most).astype(np.float64)
        shares = []  # how often each index was right in training; all are equally likely if none of them ever was
        for row in parts.scored:
            frequencies_of_row = frequencies[: len(row["choices"])]
            frequencies_of_row = frequencies_of_row if frequencies_of_row.any() else np.ones(len(frequencies_of_row))
            shares.append(frequencies_of_row / frequencies_of_row.sum())
        yield Baseline("majority", {}, self._predictions(shares, parts.scored))
        # A binary model scores each choice with its text; the probabilities of a row are scaled to sum to 1.
        inputs = []
        for rows in (parts.train, parts.valid, parts.scored):
            pairs = [(morphemes[row["text"]], morphemes[choice]) for row in rows for choice in row["choices"]]
            inputs.append(baselines.TextPairs(*zip(*pairs, strict=True)))
        counts = [len(row["choices"]) for row in parts.train]
        is_right = np.concatenate(
            [np.arange(count) == index for count, index in zip(counts, train_indices, strict=True)]
        )

        def predictions(probabilities: NDArray[np.float64], rows: TaskRows) -> list[TaskPrediction]:
            ends = np.cumsum([len(row["choices"]) for row in rows])
            return self._predictions((row / row.sum() for row in np.split(probabilities[:, 0], ends[:-1])), rows)

        def score(probabilities: NDArray[np.float64]) -> float | None:
            return self.scores(parts.valid.rows, predictions(probabilities, parts.valid))[self.metrics[0]]

        texts = [morphemes[text] for row in parts.train for text in self.texts(row)]
        probabilities, c = baselines.fit_multilabel(inputs, is_right[:, None], score, vocabulary_texts=texts)
        yield Baseline("tfidf", {"c": c}, predictions(probabilities, parts.scored))

    def _predictions(self, probabilities: Iterable[NDArray[Any]], rows: Iterable[TaskRow]) -> list[TaskPrediction]:
        """Makes predictions. probabilities: for each row, one per choice; any further ones are ignored."""
        row_shares = (shares[: len(row["choices"])] for shares, row in zip(probabilities, rows, strict=True))
        return [
            {"choice": int(shares.argmax()), "probabilities": shares.astype(np.float64).tolist()}
            for shares in row_shares
        ]

    def run(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> RunArray:
        """(N, 2) indices of the correct and the predicted choice."""
        choices = [prediction["choice"] for prediction in predictions]
        return np.array([list(map(self.target, rows)), choices], dtype=np.int64).T

    def row_scores(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> NDArray[np.float64]:
        return equal_in_run(self.run(rows, predictions))

    def score(self, metric: str) -> Score:
        metric_function = score_named(METRICS, metric)
        return lambda run, counts: metric_function(confusion(run[:, 0], run[:, 1], int(run.max()) + 1, counts))


def scores_of_choices(model: nn.Module, batch: Batch) -> Tensor:
    """(B, K) float32, K the maximum number of choices in the batch; rows with fewer are padded with -inf."""
    flat = model(**model_inputs(batch)).float()[:, 0]
    return torch.nn.utils.rnn.pad_sequence(flat.split(batch["sizes"]), batch_first=True, padding_value=float("-inf"))
