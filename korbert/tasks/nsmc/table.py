"""The table of NSMC scores: encoders and a baseline, chosen on validation reviews; the test reviews are scored once."""

import hashlib
import io
import logging
import math
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from korbert.durable import checksummed, verified, write_whole
from korbert.modeling import ClassificationModel
from korbert.progress import track
from korbert.tasks.classification import Best, finetune, load_best, probabilities, read_best
from korbert.tasks.encoded import Encoded
from korbert.tasks.examples import Examples
from korbert.tasks.nsmc.settings import NsmcSettings

__all__ = ["Build", "Reviews", "Row", "baseline_row", "confusion", "encoder_rows", "scores", "trained_model"]

_logger = logging.getLogger(__name__)

_SHA256_BYTES = 32

Build = Callable[[int], ClassificationModel]  # seed -> the model before its first step


@dataclass(frozen=True)
class Reviews:
    """All that rows are made from, in memory as pieces, in files as morphemes.

    train, test: all rows of either file. validation: (train,) bool, the ones that choose and are not learned from.
    """

    train: Examples
    test: Examples
    train_morphemes: Encoded
    test_morphemes: Encoded
    validation: NDArray[np.bool_]


@dataclass(frozen=True)
class Row:
    """One line of the table: an encoder from one seed, or the baseline.

    facts: name, seed, learning_rate or c, epoch, validation_accuracy, trials. probability: (test,) float64, of label 1.
    """

    facts: Mapping[str, Any]
    probability: NDArray[np.float64]


def encoder_rows(
    name: str, build: Build, reviews: Reviews, settings: NsmcSettings, output: Path, device: torch.device
) -> list[Row]:
    """An encoder's rows, one a seed. The first seed tries all rates; the others take the rate that it chose.

    What is finished stays in `output/work`, so that a run that was cut off goes on behind it.
    """
    fitting = reviews.train.select(np.flatnonzero(~reviews.validation))
    choosing = reviews.train.select(np.flatnonzero(reviews.validation))

    def training(rate: float, seed: int) -> _Training:
        return _Training(name, rate, seed, build, settings, output, device)

    first = settings.seeds[0]
    trials = {rate: training(rate, first).best(fitting, choosing) for rate in settings.learning_rates}
    chosen = max(trials, key=lambda rate: trials[rate].correct)  # the first of equals
    for rate in trials.keys() - {chosen}:
        training(rate, first).weights.unlink(missing_ok=True)  # large, and not needed again
    tried = [{"learning_rate": rate, **_in_facts(best)} for rate, best in trials.items()]
    rows = []
    for seed in settings.seeds:
        best = training(chosen, seed).best(fitting, choosing, with_weights=True)
        facts = {"name": name, "seed": seed, "learning_rate": chosen, **_in_facts(best), "trials": tried}
        rows.append(Row(facts, training(chosen, seed).probability(reviews.test)))
    return rows


def trained_model(row: Row, build: Build, output: Path) -> ClassificationModel:
    """The model of a row that `encoder_rows` made, in eval mode, on the processor."""
    model = build(row.facts["seed"])
    load_best(_folder(output, row.facts["name"], row.facts["learning_rate"], row.facts["seed"]), model)
    return model


@dataclass(frozen=True)
class _Training:
    """One training of an encoder, from one rate and one seed: run if it has not been, looked up if it has."""

    name: str
    rate: float
    seed: int
    build: Build
    settings: NsmcSettings
    output: Path
    device: torch.device

    @property
    def folder(self) -> Path:
        return _folder(self.output, self.name, self.rate, self.seed)

    @property
    def weights(self) -> Path:
        return self.folder / "best.safetensors"

    def best(self, fitting: Examples, choosing: Examples, *, with_weights: bool = False) -> Best:
        """What its training came to. with_weights: they are there, too; those of a rate not chosen are removed."""
        record = self.folder / "best.json"
        known = _read_record(record)
        kept = read_best(self.folder) if with_weights or known is None else None
        if known is not None and (not with_weights or kept is not None):
            return Best(**known)
        if kept is None or not record.exists():
            kept = finetune(
                self.build(self.seed),
                fitting,
                choosing,
                self.settings,
                learning_rate=self.rate,
                seed=self.seed,
                work=self.folder,
                metrics=self.output / "metrics" / f"{self.folder.name}.jsonl",
                device=self.device,
                description=f"nsmc {self.name}",
            )
        write_whole(record, checksummed(asdict(kept)))
        shutil.rmtree(self.folder / "checkpoints", ignore_errors=True)
        return kept

    def probability(self, test: Examples) -> NDArray[np.float64]:
        path = self.folder / "probability.npy"
        known = _load(path)
        if known is None:
            model = self.build(self.seed).to(self.device)
            load_best(self.folder, model)
            with track(f"score {self.name}", total=len(test), unit="texts") as advance:
                found = probabilities(
                    model, test, device=self.device, precision=self.settings.precision, advance=advance
                )
            known = found[:, 1].astype(np.float64)
            _save(path, known)
        return known


def _folder(output: Path, name: str, rate: float, seed: int) -> Path:
    return output / "work" / "rows" / f"{name}-rate-{rate:g}-seed-{seed}"


def _in_facts(best: Best) -> dict[str, Any]:
    return {"epoch": best.epoch, "validation_accuracy": best.accuracy}


def baseline_row(reviews: Reviews, settings: NsmcSettings, output: Path) -> Row:
    """TF-IDF over the same morphemes and logistic regression; C is chosen as epoch and rate are."""
    folder = output / "work" / "rows" / "tfidf"
    record = folder / "facts.json"
    facts, probability = _read_record(record), _load(folder / "probability.npy")
    if facts is None or probability is None:
        from korbert.tasks.tfidf import fit_baseline

        def part(mask: NDArray[np.bool_]) -> tuple[Iterable[list[str]], NDArray[np.int64]]:
            return compress(reviews.train_morphemes.morphemes(), mask), reviews.train.labels[mask]

        with track("tf-idf", total=1 + len(settings.baseline_c), unit="steps") as advance:
            found = fit_baseline(
                part(~reviews.validation),
                part(reviews.validation),
                reviews.test_morphemes.morphemes(),
                settings.baseline_c,
                advance,
            )
        count = int(reviews.validation.sum())
        trials = [{"c": c, "validation_accuracy": correct / count} for c, correct in found.trials.items()]
        facts = {"name": "tfidf", "seed": settings.seeds[0], "c": found.c, "epoch": None, "trials": trials}
        facts["validation_accuracy"] = found.trials[found.c] / count
        probability = found.probability
        _save(folder / "probability.npy", probability)
        write_whole(record, checksummed(facts))
    return Row(facts, probability)


def scores(row: Row, labels: NDArray[np.int64], unseen: NDArray[np.bool_]) -> dict[str, Any]:
    """The row as it stands in scores.json: its facts, and "test" on all reviews and on the unseen ones."""
    right = (row.probability > 0.5) == (labels == 1)
    return {**row.facts, "test": {"all": _measure(right), "unseen": _measure(right[unseen])}}


def _measure(right: NDArray[np.bool_]) -> dict[str, float | int | None]:
    """Accuracy with its binomial standard error sqrt(p (1 - p) / n); None for both where there is nothing to count."""
    if not len(right):
        return {"accuracy": None, "standard_error": None, "count": 0}
    accuracy = int(right.sum()) / len(right)
    return {
        "accuracy": accuracy,
        "standard_error": math.sqrt(accuracy * (1 - accuracy) / len(right)),
        "count": len(right),
    }


def confusion(row: Row, labels: NDArray[np.int64]) -> list[list[int]]:
    """[[true negatives, false positives], [false negatives, true positives]]."""
    said = row.probability > 0.5
    return [[int(((labels == label) & (said == answer)).sum()) for answer in (0, 1)] for label in (0, 1)]


def _read_record(path: Path) -> dict[str, Any] | None:
    """None where there is none, or where it is damaged, which is logged."""
    try:
        return verified(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        _logger.warning("%s: damaged (%s): made anew", path, error)
        return None


def _save(path: Path, array: NDArray[np.float64]) -> None:
    """An .npy file, with its SHA-256 behind it, where numpy does not look."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    buffer.write(hashlib.sha256(buffer.getbuffer()).digest())
    write_whole(path, buffer.getbuffer())


def _load(path: Path) -> NDArray[np.float64] | None:
    """What _save was given; None where there is none, or where it is damaged, which is logged."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    if hashlib.sha256(data[:-_SHA256_BYTES]).digest() != data[-_SHA256_BYTES:]:
        _logger.warning("%s: damaged: made anew", path)
        return None
    array: NDArray[np.float64] = np.load(io.BytesIO(data))
    return array
