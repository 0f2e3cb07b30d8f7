"""Slot filling by description: each slot has no value, any value, or a span of the text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from korbert.errors import CorpusError
from korbert.modeling import SlotsModel
from korbert.modeling.config import AnyConfig
from korbert.tasks.files import ROLES, Role, Row, Rows
from korbert.tasks.kinds.base import Baseline, Encoded, Kind, Morphemes, Prediction, Prepared, among
from korbert.tasks.kinds.sections import SlotsSection
from korbert.tasks.metrics.statistics import Score
from korbert.tasks.question_answering.answers import found_in
from korbert.tasks.question_answering.settings import QuestionAnsweringSettings
from korbert.tasks.question_answering.windows import Window, WindowExamples, among_choices, cut_windows
from korbert.tasks.splits import Parts
from korbert.tokenization import AnyTokenizer
from korbert.training.devices import Batch
from korbert.training.scoring import Scoring, model_inputs, outputs

ANY = "dontcare"
"""The value of a slot that may have any value, as spelled in MultiWOZ."""

_NONE, _ANY, _SPAN = range(3)  # of the gate


@dataclass(frozen=True)
class SlotValue:
    """The value of a slot, `text[start:end]`; ANY has the span (0, 0)."""

    value: str
    start: int
    end: int


@dataclass(frozen=True)
class _Examples(WindowExamples):
    """Windows, each for one slot. gates: (N,) int64, the gate's targets."""

    gates: NDArray[np.int64] = None  # type: ignore[assignment]

    def batch(self, rows: NDArray[np.int64]) -> dict[str, Any]:
        return {**super().batch(rows), "gates": torch.from_numpy(self.gates[rows])}


class Slots(QuestionAnsweringSettings, Kind, frozen=True):
    """Slots that are described in words.

    slots: the descriptions seen in training, which are queried for every text. A row's own `slots`, an object or a
    list of descriptions, may add more. A target is {description: value} of the slots with a value, a span of the text
    or ANY; a prediction is {description: {"value", "start", "end"}}, where ANY has the span (0, 0).
    """

    name: ClassVar[str] = "slots"
    roles: ClassVar[tuple[Role, ...]] = (ROLES["text"], ROLES["slots"])
    needs: ClassVar[tuple[str, ...]] = ("text",)
    reads_pairs: ClassVar[bool] = True
    reads_all: ClassVar[bool] = True

    slots: tuple[str, ...]

    @classmethod
    def learned_from(cls, rows: Rows, settings: SlotsSection) -> Self:
        slots = tuple(sorted({name for row in rows for name in row["slots"]}))
        if not any(value for row in rows for value in row["slots"].values()):
            raise CorpusError(f"{rows.files}: no slot has a value")
        return cls.of_settings(settings, ("joint_accuracy", "slot_f1"), slots=slots)

    def about(self) -> str:
        return f"values of {len(self.slots)} slots ({', '.join(self.slots[:5])})"

    def asked(self, row: Row) -> list[str]:
        """The descriptions of the slots queried for a row."""
        return list(dict.fromkeys([*self.slots, *(row.get("slots") or ())]))

    def texts(self, row: Row) -> list[str]:
        return [row["text"], *self.asked(row)]

    def together(self, row: Row) -> list[str]:
        return [row["text"]]

    def target(self, row: Row) -> dict[str, str]:
        """ValueError for a value that is not in the text."""
        values = {name: value for name, value in row["slots"].items() if value}
        for name, value in values.items():
            if value != ANY and value not in row["text"]:
                raise ValueError(f"slot {name!r} has the value {value!r:.60}, which its text does not have")
        return values

    def prepare(self, rows: Sequence[Row], encoded: Encoded, tokenizer: AnyTokenizer) -> Prepared:
        """The target of a value is its first occurrence in the text."""
        windows: list[Window] = []
        gates: list[int] = []
        questions: list[list[str]] = []
        index = 0
        for row in rows:
            values = self.target(row) if isinstance(row.get("slots"), Mapping) else {}
            questions.append(self.asked(row))
            for name in questions[-1]:
                value = values.get(name)
                start = row["text"].find(value) if value and value != ANY else -1
                answer = (start, start + len(value)) if value and start >= 0 else None
                special = tokenizer.frame.special
                own = cut_windows(
                    encoded[name], encoded[row["text"]], self, index=index, answer=answer, special=special
                )
                windows += own
                gates += [_ANY if value == ANY else _NONE if window.gold is None else _SPAN for window in own]
                index += 1
        return Prepared(rows, _Examples(windows, tokenizer, self, np.array(gates, dtype=np.int64)), questions)

    def model(self, config: AnyConfig, generator: torch.Generator | None = None) -> SlotsModel:
        return SlotsModel(config, generator)

    def loss(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """`loss`, the sum of `gate_loss` and `span_loss`, mean cross-entropies; the latter is 0 without a span."""
        start, end, gate = _scores(model, batch)
        ends = F.cross_entropy(start, batch["start_positions"], reduction="none")
        ends = ends + F.cross_entropy(end, batch["end_positions"], reduction="none")
        span_loss = (ends / 2 * (batch["gates"] == _SPAN)).mean()
        gate_loss = F.cross_entropy(gate, batch["gates"])
        return {"loss": gate_loss + span_loss, "gate_loss": gate_loss, "span_loss": span_loss}

    def predict(self, model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]) -> list[Prediction]:
        def log_probabilities(model: nn.Module, batch: Batch) -> Tensor:
            """(B, 3 + 2 T): of the gate, then of each piece as start and end, interleaved."""
            start, end, gate = (part.log_softmax(dim=-1) for part in _scores(model, batch))
            return torch.cat([gate, torch.stack([start, end], dim=-1).flatten(1)], dim=1)

        examples: Any = prepared.examples
        scores = outputs(model, examples, log_probabilities, batch_size=64, **how)
        count = sum(map(len, prepared.more))
        gates = np.full((count, 3), -np.inf)  # of the window most confident of a value
        for window, own in zip(examples.windows, scores[:, :3], strict=True):
            if np.isinf(gates[window.index]).all() or own[_NONE] < gates[window.index, _NONE]:
                gates[window.index] = own
        decoded = iter(zip(gates.argmax(axis=1), found_in(examples.scored(scores[:, 3:]), count, self), strict=True))
        predictions: list[Prediction] = []
        for names in prepared.more:
            values: dict[str, Any] = {}
            for name, (gate, spans) in zip(names, decoded, strict=False):
                if gate == _ANY:
                    values[name] = {"value": ANY, "start": 0, "end": 0}
                elif gate == _SPAN and spans.candidates:
                    best = spans.candidates[0]
                    values[name] = {"value": best.answer, "start": best.start, "end": best.end}
            predictions.append(values)
        return predictions

    def result(self, prediction: Prediction) -> dict[str, SlotValue]:
        return {name: SlotValue(**value) for name, value in prediction.items()}

    def baselines(self, parts: Parts, morphemes: Morphemes) -> Iterator[Baseline]:
        """Always no value; and for each slot, the longest of its training values that occurs in the text."""
        yield Baseline("no_value", {}, [{} for _ in parts.scored])
        known: dict[str, set[str]] = {}
        for row in parts.train:
            for name, value in self.target(row).items():
                known.setdefault(name, set()).add(value)
        predictions: list[Prediction] = []
        for row in parts.scored:
            values: dict[str, Any] = {}
            for name, own in known.items():
                longest = max(sorted(value for value in own if value in row["text"]), key=len, default=None)
                if longest is not None:
                    start = row["text"].index(longest)
                    values[name] = {"value": longest, "start": start, "end": start + len(longest)}
            predictions.append(values)
        yield Baseline("dictionary", {}, predictions)

    def run(self, rows: Sequence[Row], predictions: Sequence[Prediction]) -> NDArray[Any]:
        """(N, 4): whether all slots are right; number of right, predicted and gold values."""
        counts = np.zeros((len(rows), 4), dtype=np.int64)
        for number, (row, prediction) in enumerate(zip(rows, predictions, strict=True)):
            true = set(self.target(row).items())
            predicted = {(name, value["value"]) for name, value in prediction.items()}
            counts[number] = true == predicted, len(true & predicted), len(predicted), len(true)
        return counts

    def score(self, metric: str) -> Score:
        return among(_METRICS, metric)


def _slot_f1(run: NDArray[Any], counts: NDArray[np.int64]) -> float | None:
    right, predicted, true = (counts @ run[:, 1:]).tolist()
    return 2 * right / (predicted + true) if predicted + true else None


_METRICS: dict[str, Score] = {
    "joint_accuracy": lambda run, counts: float(counts @ run[:, 0] / counts.sum()) if counts.any() else None,
    "slot_f1": _slot_f1,
}


def _scores(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Scores of each piece as start and end, (B, T) both, and of the gate, (B, 3), float32."""
    start, end, gate = model(**model_inputs(batch))
    return *among_choices(batch, start, end), gate.float()
