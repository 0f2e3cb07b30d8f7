"""Slots of a sentence, each with a description: a slot is absent, may have any value, or has a value in the text."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from korbert.errors import CorpusError
from korbert.modeling import QuestionAnsweringModel
from korbert.modeling.config import AnyConfig
from korbert.tasks.files import ANY, ROLES, Role, Row, Rows
from korbert.tasks.kinds.base import Baseline, Encoded, Kind, Morphemes, Prediction, Prepared, among
from korbert.tasks.kinds.sections import SlotsSection
from korbert.tasks.metrics.statistics import Score
from korbert.tasks.question_answering.answers import found_in
from korbert.tasks.question_answering.rows import right_answers
from korbert.tasks.question_answering.settings import WindowSettings
from korbert.tasks.question_answering.windows import WindowExamples, cut_windows, ends, reading_loss
from korbert.tasks.splits import Parts
from korbert.tokenization import AnyTokenizer
from korbert.tokenization.analyzer import Analyzer
from korbert.training.devices import Batch
from korbert.training.scoring import Scoring, outputs

_NOUNS = ("NNG", "NNP", "NNB", "NR", "SN", "SL", "XPN", "XSN")


@dataclass(frozen=True)
class Filled:
    """The slots of a text: name -> {"value", "start", "end"}, where the value is `text[start:end]`, ANY, or None."""

    slots: Mapping[str, Any]


class _Examples(WindowExamples):
    """Windows, each for one slot. Start and end may also be the [SEP] behind the description: any value will do."""

    def batch(self, rows: NDArray[np.int64]) -> dict[str, Any]:
        batch = super().batch(rows)
        batch["choices"][np.arange(len(rows)), self.seconds[rows] - 1] = True
        return batch


class Slots(WindowSettings, Kind, frozen=True):
    """Slots that are described in words. The description of a slot is read before the text, like a question.

    The model chooses three ways by where it points: at [CLS] (absent), at the [SEP] behind the description (any value
    will do), or at pieces of the text.

    A target and a prediction are {name: {"value", "start", "end"}, ANY, or None for an absent slot}.

    descriptions: the names of training, with the descriptions that each had there, the most frequent one first.
    """

    name: ClassVar[str] = "slots"
    roles: ClassVar[tuple[Role, ...]] = tuple(ROLES[name] for name in ("text", "slots", "descriptions"))
    needs: ClassVar[tuple[str, ...]] = ("text",)
    takes: ClassVar[tuple[str, ...]] = ("descriptions",)
    reads_pairs: ClassVar[bool] = True
    example: ClassVar[tuple[str, str]] = ("texts.txt", "'내일 부산 가는 표 두 장 주세요'")
    reads_all: ClassVar[bool] = True

    descriptions: Mapping[str, tuple[str, ...]]

    @classmethod
    def learned_from(cls, rows: Rows, settings: SlotsSection) -> Self:
        counts: dict[str, dict[str, int]] = {}
        for row in rows:
            for name, description in _asked(row).items():
                own = counts.setdefault(name, {})
                own[description] = own.get(description, 0) + 1
        values = [value for row in rows for value in row["slots"].values()]
        if not any(values):
            raise CorpusError(f"{rows.files}: no slot has a value")
        if all(values):
            rows.notes.append("no slot is absent: name those of a row that it leaves open, too, with null")
        descriptions = {name: tuple(sorted(own, key=own.__getitem__, reverse=True)) for name, own in counts.items()}
        return cls.of_settings(settings, tuple(_METRICS), descriptions=descriptions)

    def about(self) -> str:
        return f"values of {len(self.descriptions)} slots ({', '.join([*self.descriptions][:5])})"

    def asked(self, row: Row) -> dict[str, str]:
        """Name -> description of the slots to fill: those of the row, or those of training."""
        return _asked(row) or {name: own[0] for name, own in self.descriptions.items()}

    def texts(self, row: Row) -> list[str]:
        return [row["text"], *self.asked(row).values()]

    def together(self, row: Row) -> list[str]:
        return [row["text"]]

    def target(self, row: Row) -> dict[str, Any]:
        slots: dict[str, Any] = dict.fromkeys(self.asked(row))
        for name, value in (row.get("slots") or {}).items():
            if value is None or value == ANY:
                slots[name] = value
                continue
            try:
                (answer,) = right_answers({"context": row["text"], "answers": [value]})
            except ValueError as error:
                raise ValueError(f"slot {name!r}: {error}") from None
            start, end = answer.span
            slots[name] = {"value": answer.text, "start": start, "end": end}
        return slots

    def prepare(self, rows: Sequence[Row], encoded: Encoded, tokenizer: AnyTokenizer) -> Prepared:
        windows = []
        values = [value for row in rows for value in self.target(row).values()]
        asked = [(row["text"], description) for row in rows for description in self.asked(row).values()]
        for index, ((text, description), value) in enumerate(zip(asked, values, strict=True)):
            answer = (value["start"], value["end"]) if value and value != ANY else None
            special = tokenizer.frame.special
            windows += cut_windows(
                encoded[description], encoded[text], self, index=index, answer=answer, special=special
            )
        examples = _Examples.of(windows, tokenizer, self)
        is_any = np.array([values[window.index] == ANY for window in windows], dtype=bool)
        examples.labels[is_any] = examples.seconds[is_any, None] - 1
        return Prepared(rows, examples)

    def model(self, config: AnyConfig, generator: torch.Generator | None = None) -> QuestionAnsweringModel:
        return QuestionAnsweringModel(config, generator)

    def loss(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        return reading_loss(model, batch)

    def predict(self, model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]) -> list[Prediction]:
        """A text of several windows is filled by the one that is least likely to leave the slot open."""
        examples: Any = prepared.examples
        names = [[*self.asked(row)] for row in prepared.rows]
        count = sum(map(len, names))
        scores = outputs(model, examples, ends, batch_size=64, **how)
        found = found_in(examples.scored(scores), count, self)
        chosen = np.zeros((count, 3))  # probabilities of absent, any, a value: means over start and end
        chosen[:, 0] = np.inf
        for window, row, second in zip(examples.windows, scores, examples.seconds, strict=True):
            absent, any_value = np.exp(row.reshape(-1, 2)[[0, second - 1]]).mean(axis=1)
            if absent < chosen[window.index, 0]:
                chosen[window.index] = absent, any_value, 1 - absent - any_value
        values: list[Any] = []
        for way, answers in zip(chosen.argmax(axis=1), found, strict=True):
            best = next(iter(answers.candidates), None)
            value = best and {"value": best.answer, "start": best.start, "end": best.end}
            values.append((None, ANY, value)[way])
        following = iter(values)
        return [{name: next(following) for name in own} for own in names]

    def result(self, prediction: Prediction) -> Filled:
        return Filled(prediction)

    def baselines(self, parts: Parts, morphemes: Morphemes) -> Iterator[Baseline]:
        """All slots have the longest noun phrase of the text."""
        predictions: list[Prediction] = []
        phrases = longest_noun_phrases([row["text"] for row in parts.scored])
        for row, (start, end) in zip(parts.scored, phrases, strict=True):
            value = {"value": row["text"][start:end], "start": start, "end": end} if end else None
            predictions.append(dict.fromkeys(self.asked(row), value))
        yield Baseline("noun_phrase", {}, predictions)

    def run(self, rows: Sequence[Row], predictions: Sequence[Prediction]) -> NDArray[Any]:
        """(N, 2, 5) counts, of slots with a description of training and of the others: slots, right ones; right,
        predicted and gold values, where ANY is a value, too. A value is right if it is spelled as the gold one."""
        known = {description for own in self.descriptions.values() for description in own}
        counts = np.zeros((len(rows), 2, 5), dtype=np.int64)
        for number, (row, prediction) in enumerate(zip(rows, predictions, strict=True)):
            target = self.target(row)
            for name, description in self.asked(row).items():
                true, given = (_spelled(slots.get(name)) for slots in (target, prediction))
                is_right = true == given
                more = 1, is_right, is_right and true is not None, given is not None, true is not None
                counts[number, int(description not in known)] += np.array(more, dtype=np.int64)
        return counts

    def score(self, metric: str) -> Score:
        of, measure = among(_METRICS, metric)
        return lambda run, counts: measure(of(run), counts)


def _asked(row: Row) -> dict[str, str]:
    """Name -> description of the slots that a row names; a name without a description describes itself."""
    return {**{name: name for name in row.get("slots") or ()}, **(row.get("descriptions") or {})}


def _spelled(value: Any) -> Any:
    return value["value"] if isinstance(value, Mapping) else value


def longest_noun_phrases(texts: Sequence[str]) -> list[tuple[int, int]]:
    """The span of the longest sequence of nouns and numbers of each text, the first among equals; (0, 0) for none."""
    phrases = []
    for analysis in Analyzer().analyze_many(texts):
        spans = [(0, 0)]
        for is_noun, group in groupby(zip(analysis.tags, analysis.starts, analysis.ends, strict=True), _is_noun):
            own = list(group)
            if is_noun:
                spans.append((own[0][1], own[-1][2]))
        phrases.append(max(spans, key=lambda span: span[1] - span[0]))
    return phrases


def _is_noun(morpheme: tuple[str, int, int]) -> bool:
    return morpheme[0] in _NOUNS


def _joint_accuracy(run: NDArray[Any], counts: NDArray[np.int64]) -> float | None:
    """Share of texts whose slots are all right, among those that have any."""
    weights = counts * (run[:, 0] > 0)
    return float(weights @ (run[:, 0] == run[:, 1]) / weights.sum()) if weights.any() else None


def _slot_f1(run: NDArray[Any], counts: NDArray[np.int64]) -> float | None:
    right, predicted, true = (counts @ run[:, 2:]).tolist()
    return 2 * right / (predicted + true) if predicted + true else None


_PARTS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "": lambda run: run.sum(axis=1),
    "seen_": lambda run: run[:, 0],
    "unseen_": lambda run: run[:, 1],
}
_MEASURES: dict[str, Score] = {"slot_f1": _slot_f1, "joint_accuracy": _joint_accuracy}
_METRICS = {f"{part}{name}": (of, measure) for part, of in _PARTS.items() for name, measure in _MEASURES.items()}
