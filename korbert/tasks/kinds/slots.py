"""Slots of a sentence, each with a description: a slot is absent, may have any value, or has a value in the text."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from korbert.errors import CorpusError
from korbert.messages import Message
from korbert.modeling import AnyConfig, SlotsModel
from korbert.system import JsonObject
from korbert.tasks.files import ANY, ROLES, Role, TaskRow, TaskRows
from korbert.tasks.kinds.kind import Baseline, Kind, Morphemes, Prepared, TaskPrediction, score_named
from korbert.tasks.kinds.sections import SlotsSection
from korbert.tasks.metrics.statistics import RunArray, Score
from korbert.tasks.passages import Passage
from korbert.tasks.question_answering import (
    WindowExamples,
    WindowSettings,
    cut_windows,
    ends,
    found_in,
    reading_loss,
    right_answers,
)
from korbert.tasks.splits import Splits
from korbert.tokenization import Analysis, Analyzer, AnyTokenizer
from korbert.training import Batch, Scoring, outputs

_NOUNS = ("NNG", "NNP", "NNB", "NR", "SN", "SL", "XPN", "XSN")


class Slots(WindowSettings, Kind, frozen=True):
    """Slots that are described in words. The description of a slot is read before the text, like a question.

    The model chooses one of three cases by where it points: at [CLS] (absent), at the [SEP] after the description (any
    value will do), or at pieces of the text. A target and a prediction are {name: {"value", "start", "end"}, ANY, or
    None for an absent slot}, where the value is `text[start:end]`.

    descriptions: the names of training, with the descriptions that each had there, the most frequent one first.
    """

    name: ClassVar[str] = "slots"
    roles: ClassVar[tuple[Role, ...]] = tuple(ROLES[name] for name in ("text", "slots", "descriptions"))
    needs: ClassVar[tuple[str, ...]] = ("text",)
    takes: ClassVar[tuple[str, ...]] = ("descriptions",)
    reads_pairs: ClassVar[bool] = True
    reads_all: ClassVar[bool] = True

    descriptions: Mapping[str, tuple[str, ...]]

    @classmethod
    def from_training_rows(cls, rows: TaskRows, settings: SlotsSection) -> Self:
        if not any(value for row in rows for value in row["slots"].values()):
            raise CorpusError("{files}: no slot has a value", files=rows.files)
        kind = cls.of_settings(settings, tuple(_METRICS), descriptions={})
        counts = Counter(pair for row in rows for pair in kind.asked(row).items()).most_common()
        descriptions = {name: tuple(text for (other, text), _ in counts if other == name) for (name, _), _ in counts}
        return kind.model_copy(update={"descriptions": descriptions})

    def description(self) -> Message:
        names = ", ".join([*self.descriptions][:5])
        return Message(
            "values of {count} slot ({names})", "values of {count} slots ({names})",
            count=len(self.descriptions), names=names,
        )  # fmt: skip

    def asked(self, row: TaskRow) -> dict[str, str]:
        """Name -> description of the slots to fill: those that the row names, or else those of training.

        A name without a description describes itself.
        """
        named = {**{name: name for name in row.get("slots") or ()}, **(row.get("descriptions") or {})}
        return named or {name: texts[0] for name, texts in self.descriptions.items()}

    def texts(self, row: TaskRow) -> list[str]:
        return [row["text"], *self.asked(row).values()]

    def group_texts(self, row: TaskRow) -> list[str]:
        return [row["text"]]

    def target(self, row: TaskRow) -> JsonObject:
        slots: JsonObject = {**dict.fromkeys(self.asked(row)), **(row.get("slots") or {})}
        for name, value in slots.items():
            if value not in (None, ANY):
                answers = right_answers({"context": row["text"], "answers": [value]})
                if not answers:
                    raise ValueError(Message("slot {name!r} has an empty value", name=name))
                (answer,) = answers
                slots[name] = {"value": answer.text, "start": answer.start, "end": answer.span[1]}
        return slots

    def prepare(
        self, rows: Sequence[TaskRow], passages: Sequence[Sequence[Passage]], tokenizer: AnyTokenizer
    ) -> Prepared:
        windows = []
        values = [value for row in rows for value in self.target(row).values()]
        questions = [(description, text) for text, *descriptions in passages for description in descriptions]
        for index, (pair, value) in enumerate(zip(questions, values, strict=True)):
            answer = (value["start"], value["end"]) if isinstance(value, dict) else None
            windows += cut_windows(*pair, self, index=index, answer=answer, special=tokenizer.frame.special)
        examples = replace(WindowExamples.of(windows, tokenizer, self), separator=True)
        is_any = np.array([values[window.index] == ANY for window in windows], dtype=bool)
        examples.labels[is_any] = examples.seconds[is_any, None] - 1
        return Prepared(rows, examples)

    def model(self, config: AnyConfig, generator: Generator | None = None) -> SlotsModel:
        return SlotsModel(config, generator)

    def loss(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        return reading_loss(model, batch)

    def predict(self, model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]) -> list[TaskPrediction]:
        """Of several windows of a text, the one that is least likely to leave the slot empty chooses the case."""
        examples: Any = prepared.examples
        scores = outputs(model, examples, ends, batch_size=64, **how)
        results = found_in(examples.scored(scores), sum(len(self.asked(row)) for row in prepared.rows), self)
        shares = np.full((len(results), 3), np.inf)  # probabilities of absent, any, a value: means over start and end
        for window, row, second in zip(examples.windows, scores, examples.seconds, strict=True):
            absent, any_value = np.exp(row.reshape(-1, 2)[[0, second - 1]]).mean(axis=1)
            if absent < shares[window.index, 0]:
                shares[window.index] = absent, any_value, 1 - absent - any_value
        best = [
            next(
                ({"value": answer.answer, "start": answer.start, "end": answer.end} for answer in answers.candidates),
                None,
            )
            for answers in results
        ]
        values = iter([(None, ANY, value)[way] for way, value in zip(shares.argmax(axis=1), best, strict=True)])
        return [{name: next(values) for name in self.asked(row)} for row in prepared.rows]

    def baselines(self, parts: Splits, morphemes: Morphemes) -> Iterator[Baseline]:
        """All slots have the longest noun phrase of the text."""
        analyses = Analyzer().analyze_many(row["text"] for row in parts.scored)
        analysed = zip(parts.scored, analyses, strict=True)
        filled = [
            dict.fromkeys(self.asked(row), longest_noun_phrase(row["text"], analysis)) for row, analysis in analysed
        ]
        yield Baseline("noun_phrase", {}, filled)

    def run(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> RunArray:
        """(N, 3, 4): four numbers for all slots, for those with a description of training, and for the others.

        The numbers are: 1 if there is such a slot; 1 if there is one and all values are right; twice the number of
        right values; the number of gold values plus that of predicted values. ANY is a value, too. A value is right if
        it is spelled as the gold one.
        """
        seen_descriptions = {description for descriptions in self.descriptions.values() for description in descriptions}
        run = np.zeros((len(rows), 3, 4), dtype=np.int64)
        for counts, row, prediction in zip(run, rows, predictions, strict=True):
            description_of = self.asked(row)
            seen_names = {name for name in description_of if description_of[name] in seen_descriptions}
            for place, names in enumerate((description_of.keys(), seen_names, description_of.keys() - seen_names)):
                gold, predicted = (_values(slots, names) for slots in (self.target(row), prediction))
                counts[place] = (
                    bool(names),
                    bool(names) and gold == predicted,
                    2 * len(gold & predicted),
                    len(gold) + len(predicted),
                )
        return run

    def score(self, metric: str) -> Score:
        place, above, below = score_named(_METRICS, metric)

        def ratio(run: RunArray, counts: NDArray[np.int64]) -> float | None:
            total = counts @ run[:, place, below]
            return float(counts @ run[:, place, above] / total) if total else None

        return ratio


def _values(slots: JsonObject, names: Collection[str]) -> set[tuple[str, str]]:
    """The given names of slots that have a value, each with its value as it is spelled."""
    values = ((name, slots[name]) for name in names if slots[name])
    return {(name, value["value"] if isinstance(value, dict) else value) for name, value in values}


def longest_noun_phrase(text: str, analysis: Analysis) -> JsonObject | None:
    """The longest sequence of nouns and numbers, the first among equals, as a value; None without any."""
    morphemes = zip(analysis.tags, analysis.starts, analysis.ends, strict=True)
    phrases = [list(group) for is_noun, group in groupby(morphemes, lambda morpheme: morpheme[0] in _NOUNS) if is_noun]
    start, end = max(
        ((phrase[0][1], phrase[-1][2]) for phrase in phrases), key=lambda span: span[1] - span[0], default=(0, 0)
    )
    return {"value": text[start:end], "start": start, "end": end} if end else None


# Place in a run, and the columns of a ratio.
_METRICS = {
    f"{part}{name}": (place, *columns)
    for place, part in enumerate(("", "seen_", "unseen_"))
    for name, columns in (("slot_f1", (2, 3)), ("joint_accuracy", (1, 0)))
}
