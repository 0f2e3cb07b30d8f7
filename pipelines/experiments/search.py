"""Hyperparameter search over ways to train, and seeds. Results are kept, so an interrupted run resumes.

1. Train every way (learning rate, batch size, epochs) with the first seed, and keep the best epoch of each.
2. Choose the way with the best validation score, and remove the weights of the others.
3. Train that way with every other seed.
4. Predict the test examples once with the model of each seed.

Each training has a folder `work/rows/NAME-rate-RATE-..-seed-SEED`: `best.safetensors` after its best epoch,
`result.json` (epoch and score) when it is finished, `predictions.json` when it is tested. Damaged files are logged and
written again.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from torch import nn

from korbert.errors import CorpusError
from korbert.messages import Message
from korbert.pipelines.experiments.preparing import Build, PreparedTask
from korbert.system import (
    JsonObject,
    MissingPackage,
    add_checksum,
    broadcast,
    current_world,
    needed_for,
    track,
    verify_checksum,
    write_bytes_atomically,
)
from korbert.tasks.finetuning import (
    WEIGHTS,
    Best,
    Way,
    finetune,
    load_best,
    read_best,
    seconds_per_epoch,
    training_name,
)
from korbert.tasks.kinds.kind import TaskPrediction
from korbert.training import Batches, remove_all

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ModelResult:
    """A model chosen on validation examples and tested: an encoder trained with one seed, or a baseline.

    facts: name, seed, and how it was trained and chosen. predictions: one JSON value per scored example. folder: of the
    training.
    """

    facts: Mapping[str, Any]
    predictions: list[Any]
    folder: Path


def learn(ready: PreparedTask, builds: Mapping[str, Build]) -> list[ModelResult]:
    """Trains and tests every model: one result per seed. Curves are written to `output/metrics`.

    With several connected processes, all train and predict; rank 0 looks up finished work and writes.
    """
    settings = ready.settings
    if not settings.epochs:
        # Few rows need more epochs than 3 (Mosbach et al. 2021, 6).
        steps_per_epoch = Batches(ready.training.examples, max(settings.batch_size), seed=0).steps_per_epoch
        epochs = min(20, max(3, -(-200 // steps_per_epoch)))
        ready = replace(ready, settings=settings.model_copy(update={"epochs": (epochs,)}))
    ready = within_minutes(ready, *builds.values(), least=1)
    searches = [Search(ready, name, build) for name, build in builds.items()]
    return [
        ModelResult(training.facts, search.predictions(training.seed, training.folder), training.folder)
        for search in searches
        for training in search.trainings()
    ]


def within_minutes(ready: PreparedTask, *builds: Build, least: int = 0) -> PreparedTask:
    """Returns the task with as many epochs as its `minutes` allow for all trainings; epochs = () if not even one fits.

    builds: of the models that are trained. least: fewest epochs, whatever the time. The number of epochs is kept in a
    file, so that a resumed run has the same.
    """
    settings = ready.settings
    if settings.minutes is None:
        return ready
    end = ready.started + 60 * settings.minutes
    path = ready.output / "work" / "epochs.json"

    def measured() -> int:
        record = _read_record(path)
        if record is None:
            size = max(settings.batch_size)
            train = ready.training.examples
            seconds = sum(
                seconds_per_epoch(build(0), train, ready.task.loss, size, ready.device, settings) for build in builds
            )
            trainings = sum(1 for _ in settings.ways()) / len(settings.epochs) + len(settings.seeds) - 1
            record = {"epochs": max(0, int((end - time.monotonic()) / (seconds * trainings)))}
            write_bytes_atomically(path, add_checksum(record))
        return int(record["epochs"])

    max_epochs = max(least, broadcast(measured))
    if max_epochs >= max(settings.epochs):
        return ready
    ready.say(
        Message(
            "{minutes:g} minutes are enough for {most} epochs, not for {epochs}",
            minutes=settings.minutes, most=max_epochs, epochs=max(settings.epochs),
        )
    )  # fmt: skip
    epochs = tuple(dict.fromkeys(min(count, max_epochs) for count in settings.epochs)) if max_epochs else ()
    return replace(ready, settings=settings.model_copy(update={"epochs": epochs}))


def baselines(ready: PreparedTask) -> Iterator[ModelResult]:
    """Results of the baselines. Those that cannot be fitted on the rows, or need an extra, are logged and left out."""
    try:
        with needed_for(f"{ready.task.name} without an encoder"):
            for name, facts, predictions in ready.task.baselines(ready.rows, ready.morphemes()):
                yield ModelResult({"name": name, "seed": None, **facts}, predictions, ready.output)
    except (CorpusError, MissingPackage) as error:
        _logger.warning("baseline: %s", error)


class Training(NamedTuple):
    """A finished training. facts: as in ModelResult. folder: with the weights of its best epoch."""

    seed: int
    facts: JsonObject
    folder: Path


@dataclass(frozen=True)
class Search:
    """The trainings of one encoder. keeps_last: keep the weights of the last epoch, not of that with the best score."""

    ready: PreparedTask
    name: str
    build: Build
    keeps_last: ClassVar[bool] = False

    def trainings(self) -> Iterator[Training]:
        """Yields one training per seed, all in the way that was chosen with the first seed."""
        seeds = self.ready.settings.seeds
        trials = {way: self.train_once(way, seeds[0]) for way in self.ready.settings.ways()}
        chosen = max(trials, key=lambda way: trials[way].score)  # the first one if scores are equal
        if current_world().is_main_process:
            for way in trials.keys() - {chosen}:  # large, and no longer needed
                (self.folder(way, seeds[0]) / WEIGHTS).unlink(missing_ok=True)
        trial_facts = [self.facts(way, best) for way, best in trials.items()]
        for seed in seeds:
            best = self.train_once(chosen, seed, with_weights=True)
            facts = {"name": self.name, "seed": seed, **self.facts(chosen, best), "trials": trial_facts}
            yield Training(seed, facts, self.folder(chosen, seed))

    def varied(self, way: Way) -> JsonObject:
        """The hyperparameters that name a training, with their values: the rate, and others with several values."""
        values = zip(Way._fields, way, zip(*self.ready.settings.ways(), strict=True), strict=True)
        return {name: value for name, value, choices in values if name == "learning_rate" or len(set(choices)) > 1}

    def facts(self, way: Way, best: Best) -> JsonObject:
        return {**self.varied(way), "epoch": best.epoch, **self.score_fact(best.score)}

    def score_fact(self, score: float) -> JsonObject:
        """Returns name of the validation score -> the score of the best epoch."""
        return {f"validation_{self.ready.task.metrics[0]}": score}

    def folder(self, way: Way, seed: int) -> Path:
        named = {"name": self.name, "seed": seed, **self.varied(way)}
        return self.ready.output / "work" / "rows" / training_name(named)

    def train_once(self, way: Way, seed: int, *, with_weights: bool = False) -> Best:
        """Returns the result of one training, looked up if finished, else trained. with_weights: weights must exist."""
        folder = self.folder(way, seed)
        path = folder / "result.json"

        def look_up() -> Best | None:
            """The result of a finished training, unless its weights are needed and missing."""
            record = _read_record(path)
            return None if record is None or (with_weights and read_best(folder) is None) else Best(**record)

        # Rank 0 looks it up for all ranks: if only some of them trained, these would wait for ever.
        best = broadcast(look_up)
        if best is None:
            ready = self.ready
            model = self.build(seed)
            best = finetune(
                model, ready.training.examples, ready.task.loss, self.measure, ready.settings, way,
                seed=seed, work=folder, metrics=ready.output / "metrics" / f"{folder.name}.jsonl",
                device=ready.device, description=self.name, keeps_last=self.keeps_last,
            )  # fmt: skip
            if self.keeps_last:
                best = replace(best, score=self.measure(model)[0])
            if current_world().is_main_process:
                write_bytes_atomically(path, add_checksum(asdict(best)))
                remove_all(folder / "checkpoints")
        return best

    def measure(self, model: nn.Module) -> tuple[float, dict[str, float]]:
        """Returns the validation score that chooses the epoch, and all scores that are defined."""
        task, predictions = self.ready.with_chosen_thresholds(model)
        scores = task.scores(self.ready.parts["valid"].rows, predictions)
        defined = {metric: score for metric, score in scores.items() if score is not None}
        # An undefined score, as of a model that predicts one label for all rows, counts as less than all others.
        return defined.get(task.metrics[0], -1.0), defined

    def predictions(self, seed: int, folder: Path) -> list[TaskPrediction]:
        """Returns the predictions of a finished training, looked up or made: one JSON value per scored example."""
        path = folder / "predictions.json"
        record = broadcast(lambda: _read_record(path))
        if record is None:
            ready = self.ready
            model = self.build(seed).to(self.ready.device)
            load_best(folder, model)
            task = ready.task if ready.task.has_chosen_thresholds else ready.with_chosen_thresholds(model)[0]
            with track(f"score {self.name}", total=len(ready.scored.examples), unit="examples") as advance:
                record = {"predictions": task.predict(model, ready.scored, advance=advance, device=ready.device)}
            if current_world().is_main_process:
                write_bytes_atomically(path, add_checksum(record))
        return list(record["predictions"])


def _read_record(path: Path) -> JsonObject | None:
    """The record in a file; None if there is no file, or, with a warning in the log, if it is damaged."""
    try:
        return verify_checksum(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        _logger.warning("%s: damaged (%s): made again", path, error)
        return None
