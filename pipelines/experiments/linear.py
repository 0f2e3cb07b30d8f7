"""Fits, tunes and scores the linear model of words and vectors of a task.

1. Compute the vectors of all rows with the frozen encoder, and with that of `embedder`, if there is one.
2. On folds of the training rows, choose the encoder, C, and whether words help. Fit on the training rows.
3. With the rung "encoder" and enough rows: train the encoder and the weights of its vectors, beginning with those of
   the linear model (Kumar et al. 2022). Keep a mean of the weights before and after tuning (Wortsman et al. 2022),
   which is as accurate as the tuned weights and more robust to other texts. Keep the tuned weights instead if their
   validation loss is lower by more than two standard errors; leave tuning out if it raises the loss by as much. Words
   that helped the linear model are added again if they still help.
4. With several labels, choose thresholds, on the rows that were held out. Where these rows are scored, too, each is
   scored by thresholds that others chose.
5. Calibrate the scores on the rows that were held out, and balance them if `class_weights` asks for it.
6. Predict the rows to score, also with the baselines: words alone, vectors alone, and both without tuning. These rows
   are those of the test file; without one, the rows of the folds and of validation, each predicted by a model that had
   not learned it; or, for a tuned model, the validation rows. The linear weights are then fitted on the validation
   rows, too, and saved; with a test file, the model so fitted is the one that is scored.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from korbert.messages import Message, argument
from korbert.modeling import EmbeddingModel, LinearModel, Network
from korbert.pipelines.experiments.explaining import rows_like_wrong_ones, strongest_morphemes
from korbert.pipelines.experiments.linear_inputs import inputs_of, joined_inputs, targets_of
from korbert.pipelines.experiments.preparing import PreparedTask
from korbert.pipelines.experiments.search import ModelResult, Search, within_minutes
from korbert.pipelines.experiments.task_rows import notes_on_scored_rows
from korbert.system import JsonObject, track
from korbert.tasks.files import TaskRow, TaskRows
from korbert.tasks.finetuning import load_best
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.kinds.kind import Kind, Prepared, TaskPrediction
from korbert.tasks.kinds.texts import LinearExamples, TextKind
from korbert.tasks.linear import (
    COLUMNS,
    EASY,
    NOVELTY_ROWS,
    Column,
    FoldChoice,
    LinearInputs,
    best_share,
    choose,
    exceeds,
    fit,
    losses_of,
    merits_of,
    scale_on,
    sum_of_scores,
    usual_of,
)
from korbert.tasks.splits import hash_bucket
from korbert.training import model_inputs, outputs

_LEARNED = ("train", "valid")
_TUNING_ROWS = 500  # of training and validation; a tenth of fewer cannot tell whether tuning gains anything
_PAIR_ROWS = 1_000  # the same for pairs, whose encoder has to learn to compare
_TUNING_EPOCHS = 3
_TUNING_WINDOWS = 4  # of a long text that are trained on: three at its head, and its tail
TUNED_SHARE = 0.7  # of the weights after tuning, in their mean with those before

_Scores = NDArray[np.float64]
_Model = TypeVar("_Model", bound=nn.Module)


@dataclass(frozen=True)
class _HeldOut:
    """Rows that a model did not learn. scores: (N, C), outputs of the model."""

    rows: Sequence[TaskRow]
    targets: NDArray[Any]
    scores: _Scores

    @property
    def losses(self) -> _Scores:
        return losses_of(self.scores, self.targets)


@dataclass(frozen=True)
class _Candidate:
    """A way to make a model, and how good the model is.

    facts: as in ModelResult. fit_on: names of parts -> the model that has learned them. scores: (that model, name of a
    part) -> its outputs for the rows, (N, C). held_out: rows that it did not learn, to choose thresholds on.
    """

    facts: JsonObject
    fit_on: Callable[[Sequence[str]], LinearModel]
    scores: Callable[[LinearModel, str], _Scores]
    held_out: _HeldOut


class Learned(NamedTuple):
    """What a task has learned.

    results: scored, the main one first. model: that of the main result. task: with the thresholds of this model. folds:
    as in Splits. details: for the report.
    """

    results: list[ModelResult]
    model: Network
    task: Kind
    folds: TaskRows | None = None
    details: JsonObject | None = None


def learn_linear(ready: PreparedTask, learn_encoder: Callable[[PreparedTask], Learned]) -> Learned:
    """Learns the rungs of a task. learn_encoder: learns the rung "encoder" of a task of pairs, each read as one row."""
    rungs = _Rungs.of(ready)
    linear = rungs.linear()
    tunes = "encoder" in rungs.task.rungs and rungs.may_gain_by_tuning()
    tuned = rungs.tuned(linear) if tunes and not rungs.task.reads_pairs else []
    models = tuned or [replace(linear, facts={**linear.facts, "seed": ready.settings.seeds[0]})]
    baselines = [linear] if tuned else []
    if ready.settings.baselines:
        baselines += rungs.columns()
    models, baselines = ([rungs.balanced(candidate) for candidate in group] for group in (models, baselines))
    rows = ready.rows
    compares = tunes and rungs.task.reads_pairs
    held_out_by_time = "time" in ready.settings.columns
    in_folds = rows.splits_train and not (
        rows.test or tuned or compares or ready.settings.unseen or held_out_by_time
    )  # fmt: skip
    results = [_result(ready, candidate, in_folds=in_folds) for candidate in [*models, *baselines]]
    folds = TaskRows([*linear.held_out.rows, *rows.valid]) if in_folds else None
    model = models[0].fit_on(_LEARNED)
    if isinstance(ready.task, Classification) and model.reads_vectors and (usual := usual_of(rungs.vectors_of(model))):
        model.set_usual(*usual)
    task = _with_thresholds(ready.task, models[0].held_out)
    details = rungs.details(task, results[0].predictions, in_folds=in_folds)
    learned = Learned(results, model, task, folds, details)
    rungs.ready.say(*notes_on_scored_rows("folds" if in_folds else rows.scored_on, len(folds or rows.scored)))
    if not compares:
        return learned
    encoder_task = ready.with_kind(rungs.task.model_copy(update={"rungs": ("encoder",)}))
    return _better_of(rungs, linear, learned, learn_encoder(encoder_task), encoder_task.parts["valid"])


def _better_of(
    rungs: "_Rungs", linear: _Candidate, learned: Learned, encoder: Learned, valid: Prepared
) -> Learned:  # fmt: skip
    """Returns the encoder if its validation loss is lower by more than two standard errors, else the linear model.

    valid: the validation rows as examples of the encoder.
    """
    before = rungs.validated(rungs.scores_of_inputs(linear.fit_on(["train"]), "valid"))
    assert isinstance(encoder.task, TextKind)
    predictions = encoder.task.predict(encoder.model, valid, device=rungs.ready.device)
    after = rungs.validated(encoder.task.outputs_of(predictions) - rungs.shift)
    losses = {"before": before.losses.mean(), "after": after.losses.mean()}
    if exceeds(before.losses - after.losses):
        rungs.ready.say(
            Message("the encoder is tuned: the validation loss goes from {before:.3f} to {after:.3f}", **losses)
        )
        linear_results = [replace(result, facts={**result.facts, "seed": None}) for result in learned.results]
        return encoder._replace(results=encoder.results + linear_results)
    rungs.ready.say(Message("tuning is left out: the validation loss goes from {before:.3f} to {after:.3f}", **losses))
    return learned


def _result(ready: PreparedTask, candidate: _Candidate, *, in_folds: bool) -> ModelResult:
    """Chooses thresholds, and predicts the rows to score. in_folds: also score the rows of the folds."""
    task = _with_thresholds(ready.task, candidate.held_out)
    model = candidate.fit_on(_LEARNED if ready.rows.test else ["train"])
    predictions = task.predictions_of(candidate.scores(model, "test" if ready.rows.test else "valid"))
    held_out = candidate.held_out
    held_out_predictions = _by_others(ready.task, held_out) if in_folds else task.predictions_of(held_out.scores)
    metric = task.metrics[0]
    facts = {**candidate.facts, f"validation_{metric}": task.scores(held_out.rows, held_out_predictions)[metric]}
    if in_folds:
        predictions = held_out_predictions + predictions
    return ModelResult(facts, predictions, ready.output)


def _by_others(task: Kind, held_out: _HeldOut) -> list[TaskPrediction]:
    """Predicts held-out rows, each fifth of them by thresholds that were chosen on the others.

    Thresholds chosen on the rows that they are scored on would gain 1 to 3 points on 100 to 1,000 rows.
    """
    fifths = np.array([hash_bucket(_group_of(task, row)) for row in held_out.rows])
    predictions: dict[int, TaskPrediction] = {}
    for fifth in np.unique(fifths):
        numbers, others = np.flatnonzero(fifths == fifth), np.flatnonzero(fifths != fifth)
        others_rows = [held_out.rows[number] for number in others.tolist()]
        by_others = _with_thresholds(task, _HeldOut(others_rows, held_out.targets[others], held_out.scores[others]))
        predictions |= zip(numbers.tolist(), by_others.predictions_of(held_out.scores[numbers]), strict=True)
    return [predictions[number] for number in range(len(fifths))]


def _group_of(task: Kind, row: TaskRow) -> str:
    """The group of a row, or else its texts: rows of one group are held out together."""
    return row.get("group") or "\n".join(task.texts(row))


def _with_thresholds(task: Kind, held_out: _HeldOut) -> TextKind:
    assert isinstance(task, TextKind)
    if isinstance(task, Classification) and task.several and held_out.rows:
        return task.with_thresholds(held_out.scores, held_out.targets)
    return task


@dataclass(frozen=True)
class _Rungs:
    """What the models of a task share.

    reader: computes the vectors. inputs: of all parts. targets: of the parts to learn. choice: what the folds chose.
    models: the models fitted so far, by column and parts.
    """

    ready: PreparedTask
    task: TextKind
    reader: LinearModel
    inputs: Mapping[str, LinearInputs]
    targets: Mapping[str, NDArray[Any]]
    choice: FoldChoice
    models: dict[tuple[str, ...], LinearModel] = field(default_factory=dict)

    @classmethod
    def of(cls, ready: PreparedTask) -> "_Rungs":
        """Computes the vectors, and chooses encoder, columns and C on folds of the training rows."""
        task = ready.task
        assert isinstance(task, TextKind)
        targets = {name: targets_of(task, ready, name) for name in _LEARNED}
        starts = {**ready.embedders, ready.settings.init: ready.start}
        readers = [
            LinearModel.on(start, 1, 0, 2 if task.reads_pairs else 1).to(ready.device) for start in starts.values()
        ]
        reader_inputs = [
            inputs_of(ready, reader, _LEARNED, sets_center=not isinstance(start, EmbeddingModel))
            for reader, start in zip(readers, starts.values(), strict=True)
        ]
        columns = [column for column in COLUMNS if column in task.rungs]
        trials = ("vectors" in columns) * len(readers) + ("words" in columns)
        groups = [_group_of(task, row) for row in ready.parts["train"].rows]
        with track("fit", total=trials, unit="models") as advance:
            train_inputs = [inputs["train"] for inputs in reader_inputs]
            choice = choose(train_inputs, targets["train"], task.num_outputs, groups, columns, advance)
        reader, inputs = readers[choice.encoder], reader_inputs[choice.encoder]
        other_parts = [name for name in ready.parts if name not in inputs]
        rungs = cls(ready, task, reader, inputs | inputs_of(ready, reader, other_parts), targets, choice)
        rungs.ready.say(*_choice_lines(choice, list(starts)))
        return rungs

    def linear(self) -> _Candidate:
        """Returns the way to make the model that the folds chose.

        For labels, each column is calibrated; if both are used, their sum is calibrated once more.
        """
        choice = self.choice

        def model_of(parts: Sequence[str]) -> LinearModel:
            if choice.words_share == 1:
                return self.fit("words", parts)
            model = self.fit("vectors", parts)
            return model.with_words(self.fit("words", parts), choice.words_share) if choice.words_share else model

        facts: JsonObject = {"name": "linear", "seed": None, "words": choice.words_share}
        candidate = _Candidate(facts, model_of, self.scores_of_inputs, self.of_folds(choice.scores))
        if 0 < choice.words_share < 1:
            return self.calibrated(candidate)
        if isinstance(self.task, Classification):
            only_column: Column = "words" if choice.words_share else "vectors"  # the share is 0 or 1 here
            facts["temperature"] = 1 / choice.trials[only_column].scale
        return candidate

    def calibrated(self, candidate: _Candidate) -> _Candidate:
        """Returns the model with the temperature of least loss on its held-out rows; models of numbers unchanged."""
        if not isinstance(self.task, Classification):
            return candidate
        held_out = candidate.held_out
        scale = scale_on(held_out.scores, held_out.targets)
        return replace(
            candidate,
            facts={**candidate.facts, "temperature": 1 / scale},
            fit_on=lambda parts: candidate.fit_on(parts).scaled(scale),
            held_out=replace(held_out, scores=scale * held_out.scores),
        )

    @property
    def shift(self) -> _Scores:
        """The shift of the log-odds that balances the labels, (C,): 0 if `class_weights` does not ask for it.

        With several labels it is 0, too, as the thresholds balance them.
        """
        weights = getattr(self.task, "weights", None)
        if weights is None or getattr(self.task, "several", False):
            return np.zeros(self.task.num_outputs)
        return np.log(np.array(weights, np.float64))

    def balanced(self, candidate: _Candidate) -> _Candidate:
        """Returns the model as if all labels were equally frequent (Menon et al. 2021, 4), shifted by `shift`."""
        shift = self.shift
        if not shift.any():
            return candidate
        return replace(
            candidate,
            facts={name: fact for name, fact in candidate.facts.items() if name != "temperature"},  # of other scores
            fit_on=lambda parts: candidate.fit_on(parts).scaled(
                1.0, torch.from_numpy(shift).float().to(self.ready.device)
            ),
            held_out=replace(candidate.held_out, scores=candidate.held_out.scores + shift),
        )

    def columns(self) -> Iterator[_Candidate]:
        """Yields baselines: models of words alone and of vectors alone, except one that is the linear model itself."""
        linear_column = {0.0: "vectors", 1.0: "words"}.get(self.choice.words_share)  # if it has just one
        for name, trial in self.choice.trials.items():
            if name != linear_column and len(self.choice.trials) == 2:
                facts = {"name": name, "seed": None, "c": trial.c}
                yield _Candidate(facts, partial(self.fit, name), self.scores_of_inputs, self.of_folds(trial.scores))

    def fit(self, column: Column, parts: Sequence[str]) -> LinearModel:
        """Returns the model of one column, fitted on these parts and calibrated on folds."""
        key = (column, *parts)
        if key not in self.models:
            inputs = joined_inputs([self.inputs[part] for part in parts])
            targets = np.concatenate([self.targets[part] for part in parts])
            trial = self.choice.trials[column]
            model = fit(inputs, targets, self.task.num_outputs, column, trial.c, self.reader).scaled(trial.scale)
            self.models[key] = model.to(self.ready.device)
        return self.models[key]

    def details(self, task: Kind, predictions: Sequence[TaskPrediction], *, in_folds: bool) -> JsonObject:
        """Returns what the report shows of a model of labels; {} for numbers. predictions: of the scored rows."""
        if not isinstance(task, Classification):
            return {}
        shown: JsonObject = {}
        train = self.ready.parts["train"]
        if "words" in self.choice.trials:
            train_texts = {text for row in train.rows for text in task.texts(row)[:1]}
            passages = (passage for text, passage in self.ready.encoded.passages().items() if text in train_texts)
            shown["morphemes"] = strongest_morphemes(self.fit("words", _LEARNED), task, passages)
        train_vectors = self.inputs["train"].vectors
        part = "test" if self.ready.rows.test else "valid"
        rows, vectors = list(self.ready.parts[part].rows), self.inputs[part].vectors
        if in_folds:
            rows = [*(train.rows[number] for number in self.choice.rows), *rows]
            vectors = np.concatenate([train_vectors[self.choice.rows], vectors])
        if train_vectors.shape[1]:
            shown["nearest"] = rows_like_wrong_ones(task, rows, predictions, vectors, train.rows, train_vectors)
        return shown

    def of_folds(self, scores: _Scores) -> _HeldOut:
        """Returns the rows of the folds with these scores."""
        rows = [self.ready.parts["train"].rows[number] for number in self.choice.rows]
        return _HeldOut(rows, self.targets["train"][self.choice.rows], scores)

    def scores_of_inputs(self, model: LinearModel, part: str) -> _Scores:
        """Returns the scores of a model on the encoder of `reader`, from vectors kept in `inputs`: (N, C)."""
        inputs = self.inputs[part]
        rows = np.repeat(np.arange(len(inputs)), np.diff(inputs.terms.offsets))
        columns = (inputs.vectors, inputs.terms.ids, inputs.terms.counts, rows)
        with torch.inference_mode():
            vectors, *terms = (torch.from_numpy(column).to(self.ready.device) for column in columns)
            scores = model.scores(len(inputs), vectors if model.reads_vectors else None, *terms)
        return scores.cpu().numpy().astype(np.float64)

    # --- tuning ---

    def tuned(self, linear: _Candidate) -> list[_Candidate]:
        """Returns the tuned model of each seed; [] if tuning raises the validation loss, or there is no time for it."""
        ready = self.ready.with_teachers()
        start = self.fit("vectors", ["train"])
        before = self.validated(self.scores_of_inputs(linear.fit_on(["train"]), "valid"))

        def build(seed: int) -> LinearModel:
            model = copy.deepcopy(start)
            model.encoder.requires_grad_(True)
            model.vectors.requires_grad_(True)
            return model

        epochs = ready.settings.epochs or (_TUNING_EPOCHS,)
        part = ready.training
        assert isinstance(part.examples, LinearExamples)
        tuning_task = replace(
            ready,
            settings=ready.settings.model_copy(update={"epochs": epochs}),
            parts={**ready.parts, "taught": replace(part, examples=part.examples.shortened(_TUNING_WINDOWS))},
        )
        tuning_task = within_minutes(tuning_task, build)
        if not tuning_task.settings.epochs:
            return []
        tuned = []
        for training in _Tuning(tuning_task, "tuned", build, self).trainings():
            tuned_model = build(training.seed).to(ready.device)
            load_best(training.folder, tuned_model)
            mean = self.calibrated(self.joined(mean_of(start, tuned_model), {**training.facts, "tuned": TUNED_SHARE}))
            whole = self.calibrated(self.joined(tuned_model, {**training.facts, "tuned": 1.0}))
            tuned.append(whole if exceeds(mean.held_out.losses - whole.held_out.losses) else mean)
        losses = {"before": before.losses.mean(), "after": tuned[0].held_out.losses.mean()}
        if exceeds(tuned[0].held_out.losses - before.losses):
            self.ready.say(
                Message("tuning is left out: the validation loss goes from {before:.3f} to {after:.3f}", **losses)
            )
            return []
        self.ready.say(
            Message("the encoder is tuned: the validation loss goes from {before:.3f} to {after:.3f}", **losses)
        )
        return tuned

    def may_gain_by_tuning(self) -> bool:
        """Whether there are enough rows, and the linear model gets enough held-out rows wrong. Says so if not."""
        count = sum(map(len, self.targets.values())) + len(self.ready.unlabelled)
        merit = merits_of(self.choice.scores, self.targets["train"][self.choice.rows]).mean()
        least = _PAIR_ROWS if self.task.reads_pairs else _TUNING_ROWS
        if count < least:
            self.ready.say(
                Message("the encoder is not tuned: {count:,} rows, and {least:,} are needed", count=count, least=least)
            )
        elif merit >= EASY:
            self.ready.say(
                Message(
                    "the encoder is not tuned: held-out rows are right without it ({share:.1f} %)", share=100 * merit
                )
            )
        if (tunes := count >= least and merit < EASY) or not self.ready.teachers:
            return tunes
        self.ready.say(
            Message(
                "the teachers are not asked: only a tuned encoder learns from them; {option} encoder tunes it always",
                option=argument("only"),
            )
        )
        return False

    def joined(self, model: LinearModel, facts: JsonObject) -> _Candidate:
        """Returns a tuned model.

        If words helped the linear model, they are added at the weight that validation chooses, which may be 0.
        """
        scores: dict[Column, _Scores] = {"vectors": self.scores_of_model(model, "valid")}
        share = 0.0
        if self.choice.words_share:
            scores["words"] = self.scores_of_inputs(self.fit("words", ["train"]), "valid")
            share = best_share(scores, self.targets["valid"])
        if not share:
            return _Candidate(facts, lambda parts: model, self.scores_of_model, self.validated(scores["vectors"]))
        return _Candidate(
            {**facts, "words": share},
            lambda parts: model.with_words(self.fit("words", parts), share),
            self.scores_of_model,
            self.validated(sum_of_scores(scores, share)),
        )

    def scores_of_model(self, model: nn.Module, part: str) -> _Scores:
        examples = self.ready.parts[part].examples
        scores = outputs(model, examples, lambda model, batch: model(**model_inputs(batch)), device=self.ready.device)
        return scores.astype(np.float64)

    def vectors_of(self, model: LinearModel) -> NDArray[np.float32]:
        """Returns the vectors, not centred, that a model gives to the N texts of the first NOVELTY_ROWS training rows:
        (N, D).
        """
        train = self.inputs["train"]
        if model.encoder is not self.reader.encoder:  # a tuned one
            part = self.ready.parts["train"]
            assert isinstance(part.examples, LinearExamples)
            first_rows = replace(part, rows=part.rows[:NOVELTY_ROWS], examples=part.examples.first(NOVELTY_ROWS))
            train = inputs_of(replace(self.ready, parts={"train": first_rows}), model, ["train"])["train"]
        assert train.texts is not None
        return train.texts.reshape(-1, len(self.reader.center))

    def validated(self, scores: _Scores) -> _HeldOut:
        """The validation rows with these scores."""
        return _HeldOut(self.ready.parts["valid"].rows, self.targets["valid"], scores)


@dataclass(frozen=True)
class _Tuning(Search):
    """Trainings of an encoder that start from a linear model; the validation loss chooses the epoch."""

    rungs: _Rungs

    def measure(self, model: nn.Module) -> tuple[float, dict[str, float]]:
        loss = float(self.rungs.validated(self.rungs.scores_of_model(model, "valid")).losses.mean())
        return -loss, {"loss": loss}

    def score_fact(self, score: float) -> JsonObject:
        return {"validation_loss": -score}


def mean_of(before: _Model, after: _Model) -> _Model:
    """Returns a model whose weights are TUNED_SHARE of the way from those before to those after tuning."""
    mean = copy.deepcopy(before)
    with torch.no_grad():
        for weight, tuned_weight in zip(mean.parameters(), after.parameters(), strict=True):
            weight.lerp_(tuned_weight, TUNED_SHARE)
    return mean


def _choice_lines(choice: FoldChoice, names: Sequence[str]) -> Iterator[Message]:
    if len(choice.losses) > 1:
        losses = ", ".join(f"{name} {loss:.3f}" for name, loss in zip(names, choice.losses, strict=True))
        yield Message(
            "vectors are those of {name}: on held-out folds, the losses are {losses}",
            name=names[choice.encoder], losses=losses,
        )  # fmt: skip
        if choice.losses[choice.encoder] > min(choice.losses):
            yield Message("the lower loss may be chance: it is less than two standard errors below the other")
    if len(choice.trials) == 1:
        return
    gain, error = choice.gain
    if choice.words_share:
        yield Message(
            "words help: on held-out folds the loss falls by {gain:.3f} ± {error:.3f}", gain=gain, error=error
        )
    else:
        yield Message(
            "words are left out: on held-out folds the loss falls by {gain:.3f} ± {error:.3f}", gain=gain, error=error
        )
