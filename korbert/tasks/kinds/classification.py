"""Labels for a text or a pair of texts: one, or several at once."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import not_
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from korbert.errors import CorpusError, SettingsError
from korbert.messages import Message, argument
from korbert.modeling import AnyConfig, ClassificationModel, Pooling
from korbert.tasks.files import ROLES, Role, TaskRow, TaskRows, joined_labels
from korbert.tasks.kinds.kind import Baseline, Head, Morphemes, Prepared, TaskPrediction, checked_precision, score_named
from korbert.tasks.kinds.sections import ClassificationSection
from korbert.tasks.kinds.texts import NO_TEXT, TextKind, equal_in_run, morphemes_of
from korbert.tasks.metrics import multilabel
from korbert.tasks.metrics.classification import METRICS, confusion, f1_of, micro_f1
from korbert.tasks.metrics.statistics import RunArray, Score
from korbert.tasks.noise import NOISE
from korbert.tasks.passages import Passage
from korbert.tasks.splits import Splits
from korbert.training import Batch, Scoring, model_inputs, outputs

if TYPE_CHECKING:
    from korbert.tasks.reasons import Reason

_MOST_LABELS = 1_000
_MOST_REASONS = 10
_UNLIKE = 99  # percentile from which on a text is marked

NOT_SURE = Message("not sure enough")
"""Why a text gets no label when a precision is asked for."""


@dataclass(frozen=True)
class Label:
    """The most probable label.

    label: None for an empty text, or if the model abstains. probabilities: of all labels. why: the reason for None.
    reasons: the morphemes with the largest contributions to the most probable label, if they were asked for. unlike:
    the percentile of the text's distance among the training texts; None below 99.
    """

    label: str | None
    probabilities: Mapping[str, float]
    why: str | None = None
    reasons: "Sequence[Reason] | None" = None
    unlike: float | None = None


@dataclass(frozen=True)
class Labels:
    """The labels whose probability is above 0.5, or above their own thresholds.

    labels: None as in Label. probabilities: of all labels. why, unlike: as in Label. reasons: label -> its reasons, for
    each of the labels.
    """

    labels: list[str] | None
    probabilities: Mapping[str, float]
    why: str | None = None
    reasons: "Mapping[str, Sequence[Reason]] | None" = None
    unlike: float | None = None


class Classification(TextKind, frozen=True):
    """Labels of a text or a pair.

    labels: their names. label_names: of labels that files call something else. several: a text may have any number of
    labels. pair: rows have two texts. weights: of labels, in the loss of an encoder alone, or by which linear scores
    are balanced; None: equal. uncounted: the label that micro_f1 leaves out, such as no_relation in KLUE-RE.
    thresholds: with several labels, the probability above which a text has each; (): 0.5. at_least_one: a text
    without any such label has the one that comes nearest to its threshold. abstains_below: the probability in percent
    that a label needs to be given; 0: none is held back. A target is a label, or a list of labels; a prediction is
    {"label" or "labels", "probabilities"}.
    """

    name: ClassVar[str] = "classification"
    roles: ClassVar[tuple[Role, ...]] = (ROLES["text"], replace(ROLES["pair"], required=False), ROLES["label"])
    label_fields: ClassVar[tuple[str, ...]] = ("labels",)
    compared_fields: ClassVar[tuple[str, ...]] = ("several",)
    noise: ClassVar[Sequence[str]] = tuple(NOISE)

    labels: tuple[str, ...]
    label_names: Mapping[str, str] = {}
    several: bool = False
    pair: bool = False
    pooling: Pooling = "mean"
    weights: tuple[float, ...] | None = None
    uncounted: str = ""
    # Left out of the record of a task unless set: records from before these fields existed stay the same.
    thresholds: tuple[float, ...] = Field((), exclude_if=not_)
    at_least_one: bool = Field(False, exclude_if=not_)
    abstains_below: float = Field(0.0, exclude_if=not_)

    @classmethod
    def from_training_rows(cls, rows: TaskRows, settings: ClassificationSection) -> Self:
        several = any(isinstance(row["label"], list) for row in rows)
        counts = Counter(label for row in rows for label in _as_list(row["label"]))
        place_of_label = {label: number for number, label in enumerate(settings.label_names.values())}
        # In the order of label_names, then numbers by value, then names.
        labels = tuple(
            sorted(counts, key=lambda label: (place_of_label.get(label, len(place_of_label)), _natural(label)))
        )
        if several and (none := sum(not row["label"] for row in rows)):
            rows.notes.append(Message("{count:,} rows have no label: none of the labels is right for them", count=none))
        if not several:
            _refuse_joined(rows, counts)
        if len(labels) < 2 and not several:
            dropped = ", ".join(f"{drops.count:,} {reason}" for reason, drops in rows.dropped.items()) or "none"
            raise CorpusError(
                "{files}: all rows have the label {labels!r} (dropped rows: {dropped}): give rows of two "
                "labels or more",
                files=rows.files,
                labels=labels[0],
                dropped=dropped,
            )
        if len(labels) > _MOST_LABELS:
            raise CorpusError(
                "{files}: {num_labels:,} labels in {num_rows:,} rows: if they are numbers, use {option} "
                "regression; else name the column that holds labels",
                files=rows.files,
                num_labels=len(labels),
                num_rows=len(rows),
                option=argument("kind"),
            )
        if not labels:
            raise CorpusError("{files}: no row has a label: give rows with some", files=rows.files)
        uncounted = unicodedata.normalize("NFC", settings.uncounted)
        if uncounted and (several or uncounted not in labels):
            fault = Message("is not one of the labels {labels}", labels=", ".join(labels[:20]))
            if several:
                fault = Message("is for one label per text")
            raise SettingsError(
                "uncounted {label!r}: {fault}: correct it, or leave it out", label=settings.uncounted, fault=fault
            )
        weights = None
        if settings.class_weights == "balanced":
            weights = tuple(len(rows) / (len(labels) * counts[label]) for label in labels)
        default_metrics = ("micro_f1", "macro_f1", "exact_match") if several else ("accuracy", "macro_f1")
        pair = any(row.get("pair") is not None for row in rows)
        learned = {"labels": labels, "several": several, "pair": pair, "weights": weights, "uncounted": uncounted}
        return cls.of_settings(settings, default_metrics, **learned)

    @property
    def num_outputs(self) -> int:
        return len(self.labels)

    def description(self) -> Message:
        names = ", ".join(self.labels[:10]) + (", .." if len(self.labels) > 10 else "")
        values = {"number": len(self.labels), "names": names}
        if self.several and self.pair:
            return Message("any of {number} labels ({names}) for two texts", **values)
        if self.several:
            return Message("any of {number} labels ({names}) for a text", **values)
        if self.pair:
            return Message("one of {number} labels ({names}) for two texts", **values)
        return Message("one of {number} labels ({names}) for a text", **values)

    def target(self, row: TaskRow) -> str | list[str]:
        label = row["label"]
        self.texts(row)
        if unknown := [name for name in _as_list(label) if name not in self.labels]:
            raise ValueError(
                Message(
                    "label {label!r} is not one of training: {known}", label=unknown[0], known=", ".join(self.labels)
                )
            )
        return sorted(label, key=self.labels.index) if self.several else str(label)

    def numbers(self, targets: Sequence[Any]) -> NDArray[Any]:
        """(N,) int64, or (N, C) float32 for several."""
        ids = {label: place for place, label in enumerate(self.labels)}
        if not self.several:
            return np.array([ids.get(label, 0) for label in targets], dtype=np.int64)
        indicators = np.zeros((len(targets), len(self.labels)), dtype=np.float32)
        for number, names in enumerate(targets):
            indicators[number, [ids[label] for label in names or () if label in ids]] = 1
        return indicators

    def model(self, config: AnyConfig, generator: torch.Generator | None = None) -> ClassificationModel:
        problem: Literal["multi_label_classification", "single_label_classification"] = "single_label_classification"
        if self.several:
            problem = "multi_label_classification"
        return ClassificationModel(
            config, len(self.labels), self.pooling, labels=self.labels, generator=generator, problem_type=problem
        )

    def head(self) -> Head:
        return Head(len(self.labels), self.pooling)

    def loss(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """In nats per row: cross-entropy; with several labels, binary cross-entropy summed over the labels.

        Targets are labels, or their probabilities.
        """
        scores = model(**model_inputs(batch)).float()  # (B, C)
        weights = None
        if self.weights is not None and not self.has_rungs:  # with rungs, the learned scores are balanced
            weights = torch.tensor(self.weights, device=scores.device)
        if self.several:
            losses = F.binary_cross_entropy_with_logits(scores, batch["labels"], weight=weights, reduction="none")
            return {"loss": losses.sum(dim=-1).mean()}
        return {"loss": F.cross_entropy(scores, batch["labels"], weight=weights, reduction="none").mean()}

    def predict(self, model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]) -> list[TaskPrediction]:
        count = len(self.labels)
        options = {"with_percentiles": True} if getattr(model, "knows_usual", False) else {}

        def probabilities_of(model: nn.Module, batch: Batch) -> Tensor:
            scores = model(**model_inputs(batch), **options).float()
            return torch.cat([self.probabilities(scores[:, :count]), scores[:, count:]], dim=1)

        scored = outputs(model, prepared.examples, probabilities_of, **how).astype(np.float64)
        predictions = []
        for row in scored:
            prediction = self.prediction(row[:count])
            if options and row[count] >= _UNLIKE:
                prediction["unlike"] = row[count]
            predictions.append(prediction)
        return predictions

    def probabilities(self, logits: Tensor) -> Tensor:
        """Label probabilities (N, C): softmax, or with several labels the sigmoid of each."""
        return logits.sigmoid() if self.several else logits.softmax(dim=-1)

    def predictions_of(self, found: NDArray[np.float64]) -> list[TaskPrediction]:
        return [self.prediction(shares) for shares in self.probabilities(torch.from_numpy(found)).numpy()]

    def outputs_of(self, predictions: Sequence[TaskPrediction]) -> NDArray[np.float64]:
        """The log-odds of labels."""
        shares = np.array([list(prediction["probabilities"].values()) for prediction in predictions]).clip(1e-12, 1)
        scores: NDArray[np.float64] = np.log(shares)
        if self.several:
            scores -= np.log1p(-shares.clip(None, 1 - 1e-12))
        return scores

    def shares_of(self, predictions: Sequence[TaskPrediction]) -> NDArray[np.float32]:
        return np.array([list(prediction["probabilities"].values()) for prediction in predictions], np.float32)

    def result(self, prediction: TaskPrediction) -> Label | Labels:
        return Labels(**prediction) if self.several else Label(**prediction)

    @property
    def result_of_blank(self) -> Label | Labels:  # type: ignore[override]
        return Labels(None, {}, NO_TEXT) if self.several else Label(None, {}, NO_TEXT)

    def with_reasons(
        self, model: nn.Module, prepared: Prepared, number: int, passages: Sequence[Passage], result: Label | Labels
    ) -> Label | Labels:
        if not self.has_rungs:
            raise SettingsError(
                "{option}: this model has no linear part: use korbert look, or fine-tune it without {only}",
                option=argument("why"), only=argument("only"),
            )  # fmt: skip
        if not result.probabilities:  # of an empty text
            return result
        from korbert.tasks.reasons import reasons_of

        def reasons_for(label: str) -> "list[Reason]":
            place = self.labels.index(label)
            reasons = reasons_of(model, prepared.examples, number, passages, place, several=self.several)  # type: ignore[arg-type]
            return reasons[:_MOST_REASONS]

        if isinstance(result, Labels):
            return replace(result, reasons={label: reasons_for(label) for label in result.labels or ()})
        return replace(result, reasons=reasons_for(max(result.probabilities, key=result.probabilities.__getitem__)))

    def prediction(self, shares: NDArray[np.float64]) -> TaskPrediction:
        """The prediction for label probabilities (C,): the most probable label, or all above their thresholds."""
        probabilities = dict(zip(self.labels, shares.tolist(), strict=True))
        chosen = self.chosen(shares[None])[0]
        if self.abstains_below:
            sure = chosen & (shares >= self.abstains_below / 100)
            if chosen.any() and not sure.any():
                return {"labels" if self.several else "label": None, "probabilities": probabilities, "why": NOT_SURE}
            chosen = sure
        labels = [label for label, is_chosen in zip(self.labels, chosen, strict=True) if is_chosen]
        if self.several:
            return {"labels": labels, "probabilities": probabilities}
        return {"label": labels[0], "probabilities": probabilities}

    def chosen(self, shares: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Returns which labels each row of probabilities gives, (N, C)."""
        if not self.several:
            return np.asarray(np.eye(len(self.labels), dtype=bool)[shares.argmax(axis=1)])
        margins = shares - np.array(self.thresholds or [0.5] * len(self.labels))
        chosen = np.asarray(margins > 0)
        if self.at_least_one:
            chosen[np.arange(len(shares)), margins.argmax(axis=1)] = True
        return chosen

    def with_thresholds(self, scores: NDArray[np.float64], targets: NDArray[np.bool_]) -> Self:
        """The task with thresholds from the log-odds (N, C) of held-out rows."""
        thresholds = 1 / (1 + np.exp(-multilabel.thresholds(scores, targets)))
        has_one = bool(targets.any(axis=1).all())
        return self.model_copy(update={"thresholds": tuple(thresholds.tolist()), "at_least_one": has_one})

    def abstaining(self, precision: float) -> Self:
        return self.model_copy(update={"abstains_below": checked_precision(precision)})

    def baselines(self, parts: Splits, morphemes: Morphemes) -> Iterator[Baseline]:
        from korbert.tasks import baselines

        train_targets, valid_targets = (
            self.numbers([self.target(row) for row in rows]) for rows in (parts.train, parts.valid)
        )
        indicators = train_targets.astype(bool) if self.several else np.eye(len(self.labels), dtype=bool)[train_targets]
        yield Baseline("majority", {}, [self.prediction(indicators.mean(axis=0)) for _ in parts.scored])
        if self.has_rungs:  # its words are the other baseline
            return
        inputs = morphemes_of(parts, self.texts, morphemes)
        if self.several:
            multilabel_metric = score_named(_OF_MANY, self.metrics[0])
            probabilities, c = baselines.fit_multilabel(
                inputs, indicators, lambda shares: multilabel_metric(valid_targets.astype(bool), shares > 0.5)
            )
        else:
            label_score = self.score("accuracy" if self.metrics[0] == "f1" else self.metrics[0])
            once = np.ones(len(valid_targets), np.int64)
            probabilities, c = baselines.fit_labels(
                inputs,
                train_targets,
                lambda shares: label_score(np.stack([valid_targets, shares.argmax(axis=1)], axis=1), once),
                len(self.labels),
            )
        yield Baseline("tfidf", {"c": c}, [self.prediction(row) for row in probabilities])

    def run(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> RunArray:
        """(N, 2) ids of gold and predicted labels; (N, 2, C) bool for several."""
        key = "labels" if self.several else "label"
        predicted = self.numbers([prediction[key] for prediction in predictions])
        run = np.stack([self.numbers([self.target(row) for row in rows]), predicted], axis=1)
        return run.astype(bool) if self.several else run

    def row_scores(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> NDArray[np.float64]:
        return equal_in_run(self.run(rows, predictions))

    def score(self, metric: str) -> Score:
        if self.several:
            multilabel_metric = score_named(_OF_MANY, metric)
            return lambda run, counts: multilabel_metric(*np.repeat(run, counts, axis=0).swapaxes(0, 1))
        if metric == "micro_f1" and self.uncounted in self.labels:
            left_out = self.labels.index(self.uncounted)
            return lambda run, counts: micro_f1(confusion(run[:, 0], run[:, 1], len(self.labels), counts), left_out)
        label_metric = score_named(_OF_ONE, metric)
        return lambda run, counts: label_metric(confusion(run[:, 0], run[:, 1], len(self.labels), counts))


_OF_ONE: dict[str, Callable[[NDArray[np.int64]], float]] = {"f1": f1_of, **METRICS}
_OF_MANY: dict[str, Callable[[NDArray[np.bool_], NDArray[np.bool_]], float]] = {
    "micro_f1": multilabel.micro_f1,
    "macro_f1": multilabel.macro_f1,
    "exact_match": multilabel.exact_match,
}


def _as_list(label: str | list[str]) -> list[str]:
    return label if isinstance(label, list) else [label]


def _refuse_joined(rows: TaskRows, counts: Mapping[str, int]) -> None:
    """Raises CorpusError for a label such as "0,1" where there is a label "0", too: several labels, or one?"""
    parts_of = {label: joined_labels(label) for label in counts}
    single_labels = {parts[0] for parts in parts_of.values() if len(parts) == 1}
    for label, parts in parts_of.items():
        if len(parts) > 1 and (known_parts := [part for part in parts if part in single_labels]):
            place = next(rows.places[number] for number, row in enumerate(rows) if row["label"] == label)
            raise CorpusError(
                "{place}: label {label!r} joins others, such as {known!r}: if a text may have several "
                "labels, use {option}; if it is one label, write it without the comma, semicolon or bar",
                place=place,
                label=label,
                known=known_parts[0],
                option=argument("several"),
            )


def _natural(label: str) -> tuple[int, int, str]:
    """Sort key: numbers by value, before names."""
    return (0, int(label), "") if label.isascii() and label.isdecimal() else (1, 0, label)
