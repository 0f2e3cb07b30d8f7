"""Extractive question answering on texts of any length; a question may have no answer."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from korbert.errors import CorpusError
from korbert.messages import Message
from korbert.modeling import AnyConfig, QuestionAnsweringModel
from korbert.system import JsonObject
from korbert.tasks.files import ROLES, Role, TaskRow, TaskRows
from korbert.tasks.kinds.kind import (
    Baseline,
    Morphemes,
    Prepared,
    TaskPrediction,
    TaughtKind,
    TeacherOutputs,
    score_named,
)
from korbert.tasks.kinds.sections import QuestionAnsweringSection
from korbert.tasks.metrics.misses import explain_misses
from korbert.tasks.metrics.question_answering import KLUE_MRC, KORQUAD, answer_scores, best_threshold
from korbert.tasks.metrics.statistics import RunArray, Score
from korbert.tasks.passages import Passage
from korbert.tasks.question_answering import (
    Answer,
    Found,
    WindowExamples,
    WindowSettings,
    cut_windows,
    ends,
    found_in,
    reading_loss,
    right_answers,
)
from korbert.tasks.splits import Splits
from korbert.tokenization import AnyTokenizer
from korbert.training import Batch, Scoring, outputs

_NOT_CHOSEN = 1e30  # a threshold by which every question is answered
_NOTHING = Answer("", 0, 0, 0.0)  # in a context of white space


class QuestionAnswering(WindowSettings, TaughtKind, frozen=True):
    """Questions on contexts.

    A target is the list of gold answers, {"text", "start"}, empty for none. A prediction is {"answer", "start", "end",
    "score"}, with "no_answer_score" if questions may have no answer.

    unanswerable: whether questions may have no answer. threshold: no answer is given if its score exceeds the best
    answer's by more than this. Until it is chosen from validation predictions, every question is answered.
    """

    name: ClassVar[str] = "question-answering"
    roles: ClassVar[tuple[Role, ...]] = tuple(
        ROLES[name] for name in ("context", "question", "answers", "starts", "impossible")
    )
    needs: ClassVar[tuple[str, ...]] = ("context", "question")
    reads_pairs: ClassVar[bool] = True
    reads_all: ClassVar[bool] = True
    example: ClassVar[tuple[str, str]] = (
        "questions.jsonl", "'한글은 언제 만들었나?', '세종은 1443년에 한글을 만들었다.'"
    )  # fmt: skip
    operation: ClassVar[str] = "answer"
    teacher_fields: ClassVar[tuple[str, ...]] = ("max_length", "stride", "max_query_pieces")

    unanswerable: bool = False
    threshold: float = Field(0.0, allow_inf_nan=False)

    @classmethod
    def from_training_rows(cls, rows: TaskRows, settings: QuestionAnsweringSection) -> Self:
        answers = [row["answers"] or () for row in rows if not row.get("impossible")]
        if not any(answers):
            raise CorpusError("{files}: no question has an answer", files=rows.files)
        repeated = sum(
            answer.start is None and row["context"].count(answer.text.strip()) > 1
            for row in rows
            for answer in (() if row.get("impossible") else row["answers"] or ())
        )
        if repeated:
            rows.notes.append(
                Message(
                    "{count:,} answers without a start occur several times in their context: the first one is used",
                    count=repeated,
                )
            )
        unanswerable = settings.unanswerable
        if unanswerable is None:
            unanswerable = len(answers) < len(rows) or not all(answers)
        metrics = ("f1", "exact_match", *(("has_answer_f1", "no_answer_accuracy") if unanswerable else ()))
        threshold = _NOT_CHOSEN if unanswerable else 0.0
        return cls.of_settings(settings, metrics, unanswerable=unanswerable, threshold=threshold)

    def description(self) -> Message:
        if self.unanswerable:
            return Message("answers to questions, cut out of texts, or none")
        return Message("answers to questions, cut out of texts")

    def texts(self, row: TaskRow) -> list[str]:
        return [row["question"], row["context"]]

    def group_texts(self, row: TaskRow) -> list[str]:
        return [row["context"]]

    def target(self, row: TaskRow) -> list[JsonObject]:
        return [{"text": answer.text, "start": answer.start} for answer in right_answers(row)]

    def prepare(
        self, rows: Sequence[TaskRow], passages: Sequence[Sequence[Passage]], tokenizer: AnyTokenizer
    ) -> Prepared:
        """The target is the first gold answer. A question without an answer has none in any window."""
        windows = []
        for index, (row, (question, context)) in enumerate(zip(rows, passages, strict=True)):
            answer = next((answer.span for answer in right_answers(row)), None) if row.get("answers") else None
            windows += cut_windows(question, context, self, index=index, answer=answer, special=tokenizer.frame.special)
        return Prepared(rows, WindowExamples.of(windows, tokenizer, self), passages)

    def model(self, config: AnyConfig, generator: torch.Generator | None = None) -> QuestionAnsweringModel:
        return QuestionAnsweringModel(config, generator)

    def loss(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        return reading_loss(model, batch)

    def teacher_outputs(self, model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]) -> TeacherOutputs:
        """For each piece of a window, returns how probable it is that the answer begins there, and ends there."""
        examples = prepared.examples
        assert isinstance(examples, WindowExamples)
        scores = outputs(model, examples, ends, batch_size=64, **how).reshape(len(examples), -1, 2)
        present = np.arange(scores.shape[1]) < examples.lengths[:, None]
        counts = np.zeros(len(prepared.rows), np.int32)
        np.add.at(counts, [window.index for window in examples.windows], examples.lengths.astype(np.int32))
        return TeacherOutputs(np.exp(scores[present]), np.zeros(int(counts.sum()), np.int32), counts)

    def soft_targets(self, outputs: TeacherOutputs, teacher: Any, prepared: Prepared) -> NDArray[np.float32]:
        """The windows are those of the teacher."""
        return outputs.values

    def with_soft_targets(self, prepared: Prepared, soft: NDArray[np.float32], labelled: int) -> Prepared:
        examples = prepared.examples
        assert isinstance(examples, WindowExamples)
        hard_targets = np.zeros_like(soft)
        hard_targets[examples.offsets[:-1, None] + examples.labels, [0, 1]] = 1
        is_labelled = np.repeat([window.index < labelled for window in examples.windows], examples.lengths)
        targets = np.where(is_labelled[:, None], (soft + hard_targets) / 2, soft).astype(np.float16)
        return replace(prepared, examples=replace(examples, shares=targets))

    def predict(self, model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]) -> list[TaskPrediction]:
        predictions: list[TaskPrediction] = []  # the best answers, whatever the threshold
        for answers in self.search(model, prepared, **how):
            none = answers.none if self.unanswerable else _NOTHING
            best = next(iter(answers.candidates), none)
            prediction = {"answer": best.answer, "start": best.start, "end": best.end, "score": best.score}
            if self.unanswerable:
                prediction["no_answer_score"] = answers.no_answer
            predictions.append(prediction)
        return self._with_threshold(predictions)

    def search(self, model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]) -> list[Found]:
        """The answers of each row, from which a threshold can be chosen."""
        examples: Any = prepared.examples
        scored = examples.scored(outputs(model, examples, ends, batch_size=64, **how))
        return found_in(scored, len(prepared.rows), self)

    def best_answers(self, answers: Found) -> list[Answer]:
        """The n_best answers of a row; the empty one comes first if its score is above the threshold."""
        if self._declines(answers.no_answer):
            return [answers.none, *answers.candidates][: self.n_best]
        return answers.candidates

    def result(self, prediction: TaskPrediction) -> Answer:
        return Answer(**prediction)

    def _with_threshold(self, predictions: Sequence[TaskPrediction]) -> list[TaskPrediction]:
        """Empties the answers of declined questions; their score becomes the probability of no answer."""
        decided = []
        for prediction in predictions:
            if prediction["answer"] and self._declines(prediction.get("no_answer_score", 0.0)):
                score = min(prediction["score"] * float(np.exp(min(prediction["no_answer_score"], 700.0))), 1.0)
                prediction = {**prediction, "answer": "", "start": 0, "end": 0, "score": score}
            decided.append(prediction)
        return decided

    def _declines(self, no_answer_score: float) -> bool:
        """Whether a question gets no answer. The threshold of no answer acts here alone."""
        return self.unanswerable and no_answer_score > self.threshold

    @property
    def has_chosen_thresholds(self) -> bool:
        return not self.unanswerable or self.threshold != _NOT_CHOSEN

    def with_chosen_thresholds(
        self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]
    ) -> tuple[Self, list[TaskPrediction]]:
        """Chooses the threshold that maximizes the first metric.

        If that metric covers only the questions with, or without, an answer, F1 is taken instead. The threshold lies
        midway between the values of two questions, so that rounding does not move a question across it.
        """
        if self.has_chosen_thresholds:
            return self, list(predictions)
        run = self.run(rows, predictions)
        no_answer = np.array([prediction["no_answer_score"] for prediction in predictions])
        column, has_answer = _METRICS[self.metrics[0]]
        scores = run[:, _METRICS["f1"][0] if has_answer is not None else column]
        value = best_threshold(scores, run[:, -1] > 0, no_answer)
        # Midway to the next question above it.
        above = no_answer[no_answer > value]
        middle = (value + above.min()) / 2 if len(above) else value
        kind = self.model_copy(update={"threshold": float(middle)})
        return kind, kind._with_threshold(predictions)

    def baselines(self, parts: Splits, morphemes: Morphemes) -> Iterator[Baseline]:
        """The sentence nearest to the question; and if questions may have no answer, no answer to any question."""
        from korbert.tasks.baselines.tfidf import nearest_sentences

        if self.unanswerable:
            nothing = {"answer": "", "start": 0, "end": 0, "score": 1.0, "no_answer_score": 0.0}
            yield Baseline("no_answer", {}, [nothing] * len(parts.scored))
        questions = [(row["question"], row["context"]) for row in (*parts.valid, *parts.scored)]
        nearest = nearest_sentences(dict.fromkeys(text for row in parts.train for text in self.texts(row)), questions)
        predictions: list[TaskPrediction] = [
            {"answer": context[start:end], "start": start, "end": end, "score": cosine}
            | ({"no_answer_score": -cosine} if self.unanswerable else {})
            for (_, context), (start, end, cosine) in zip(questions, nearest, strict=True)
        ]
        undecided = self.model_copy(update={"threshold": _NOT_CHOSEN})
        num_valid = len(parts.valid)
        kind, _ = undecided.with_chosen_thresholds(parts.valid.rows, predictions[:num_valid])
        facts = {"threshold": kind.threshold} if self.unanswerable else {}
        yield Baseline("sentence", facts, kind._with_threshold(predictions[num_valid:]))

    def run(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> RunArray:
        """(N, 5): KorQuAD exact match and F1, KLUE-MRC exact match and ROUGE-W, whether there is an answer."""
        gold_texts = [[answer["text"] for answer in self.target(row)] for row in rows]
        predicted = [prediction["answer"] for prediction in predictions]
        columns = [*answer_scores(predicted, gold_texts, KORQUAD), *answer_scores(predicted, gold_texts, KLUE_MRC)]
        return np.stack([*columns, np.array([bool(answers) for answers in gold_texts], dtype=np.float64)], axis=1)

    def details(self, prepared: Prepared, predictions: Sequence[TaskPrediction]) -> JsonObject:
        """`windows`, `questions_cut` (longer than max_query_pieces), and what korbert.tasks.metrics.misses finds."""
        windows = prepared.examples.windows  # type: ignore[attr-defined]
        num_cut = sum(len(question.ids) > self.max_query_pieces for question, _ in prepared.passages)
        contexts = [context for _, context in prepared.passages]
        return {
            "windows": len(windows),
            "questions_cut": num_cut,
            **explain_misses(prepared.rows, contexts, predictions),
        }

    def score(self, metric: str) -> Score:
        column, has_answer = score_named(_METRICS, metric)

        def mean(run: RunArray, counts: NDArray[np.int64]) -> float | None:
            weights = counts if has_answer is None else counts * (run[:, -1] == has_answer)
            return float(weights @ run[:, column] / weights.sum()) if weights.any() else None

        return mean


# Column of a run; True: only questions with an answer, False: only those without, None: all.
_METRICS: dict[str, tuple[int, bool | None]] = {
    "exact_match": (0, None),
    "f1": (1, None),
    "klue_exact_match": (2, None),
    "rouge_w": (3, None),
    "has_answer_f1": (1, True),
    "no_answer_accuracy": (0, False),
}
