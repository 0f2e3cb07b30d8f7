"""The search over rates and seeds. Its results are kept, so that an interrupted run resumes after what is finished.

1. Every rate is trained at the first seed, and the best epoch of each training is kept.
2. The rate with the best validation score is chosen; the weights of the others are removed.
3. That rate is trained at every other seed.
4. The model of each seed predicts the test examples, once.

A training has a folder `work/rows/NAME-rate-RATE-seed-SEED`: `best.safetensors` from its best epoch on, `result.json`
(epoch and score) when it is finished, `predictions.npy` when it is tested. What is damaged is logged and made anew.
"""

import hashlib
import io
import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from korbert.durable import checksummed, verified, write_whole
from korbert.tasks.best_epoch import WEIGHTS, Best, read_best
from korbert.world import connected, from_first

__all__ = ["Experiment", "ModelResult", "kept_result", "search", "training_folder"]

_logger = logging.getLogger(__name__)

_SHA256_BYTES = 32


@dataclass(frozen=True)
class Experiment:
    """A model that is trained at many rates and seeds, whatever its task.

    train: (rate, seed, folder, metrics) -> the best epoch, whose weights it leaves in `folder`; it resumes there. It
    writes its curve to the file `metrics`. predict: (seed, folder) -> what those weights predict for the test examples,
    a row an example. metric: name of the score that the best epoch has.
    """

    name: str
    metric: str
    train: Callable[[float, int, Path, Path], Best]
    predict: Callable[[int, Path], NDArray[np.float64]]


@dataclass(frozen=True)
class ModelResult:
    """A model that was chosen on validation examples and tested: an encoder from one seed, or a baseline.

    facts: its name and seed, how it was trained and chosen. predictions: float64, a row a test example.
    """

    facts: Mapping[str, Any]
    predictions: NDArray[np.float64]


def search(experiment: Experiment, rates: Sequence[float], seeds: Sequence[int], output: Path) -> list[ModelResult]:
    """One result a seed, all at the rate that the first seed chose. Curves are written to `output/metrics`.

    Of several connected processes all train and predict; rank 0 finds what is finished, and writes.
    """
    first = seeds[0]
    trials = {rate: _train(experiment, rate, first, output) for rate in rates}
    chosen = max(trials, key=lambda rate: trials[rate].score)  # the first of equals

    def forget_the_others() -> None:
        for rate in trials.keys() - {chosen}:  # large, and not needed again
            (training_folder(output, experiment.name, rate, first) / WEIGHTS).unlink(missing_ok=True)

    from_first(forget_the_others)

    def kept(best: Best) -> dict[str, Any]:
        return {"epoch": best.epoch, f"validation_{experiment.metric}": best.score}

    tried = [{"learning_rate": rate, **kept(best)} for rate, best in trials.items()]
    results = []
    for seed in seeds:
        best = _train(experiment, chosen, seed, output, with_weights=True)
        folder = training_folder(output, experiment.name, chosen, seed)
        path = folder / "predictions.npy"
        predictions = from_first(partial(_load, path))
        if predictions is None:
            predictions = experiment.predict(seed, folder)
            if connected().writes:
                _save(path, predictions)
        facts = {"name": experiment.name, "seed": seed, "learning_rate": chosen, **kept(best), "trials": tried}
        results.append(ModelResult(facts, predictions))
    return results


def training_folder(output: Path, name: str, rate: float, seed: int) -> Path:
    """Where a training of `search` keeps its results."""
    return output / "work" / "rows" / f"{name}-rate-{rate:g}-seed-{seed}"


def kept_result(folder: Path, make: Callable[[], ModelResult]) -> ModelResult:
    """A result that is made in one go, such as a baseline's: the one kept in `folder`, else a new one that is kept."""
    facts, predictions = _read_record(folder / "facts.json"), _load(folder / "predictions.npy")
    if facts is not None and predictions is not None:
        return ModelResult(facts, predictions)
    result = make()
    _save(folder / "predictions.npy", result.predictions)
    write_whole(folder / "facts.json", checksummed(result.facts))
    return result


def _train(experiment: Experiment, rate: float, seed: int, output: Path, *, with_weights: bool = False) -> Best:
    """The result of one training: looked up where it is finished, else trained. with_weights: they are there, too."""
    folder = training_folder(output, experiment.name, rate, seed)
    record = folder / "result.json"
    finished, kept = from_first(lambda: _look_up(folder, record, with_weights))
    if finished and kept is not None:
        return kept
    if kept is None:
        kept = experiment.train(rate, seed, folder, output / "metrics" / f"{folder.name}.jsonl")
    if connected().writes:
        write_whole(record, checksummed(asdict(kept)))
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    return kept


def _look_up(folder: Path, record: Path, with_weights: bool) -> tuple[bool, Best | None]:
    """Whether that training is finished, and its result where that can be had without training."""
    known = _read_record(record)
    kept = read_best(folder) if with_weights or known is None else None
    if known is not None and (not with_weights or kept is not None):
        return True, Best(**known)
    return False, kept if record.exists() else None  # a damaged record is written anew from the weights


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
    """An .npy file, followed by its SHA-256, which numpy does not read."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    buffer.write(hashlib.sha256(buffer.getbuffer()).digest())
    write_whole(path, buffer.getbuffer())


def _load(path: Path) -> NDArray[np.float64] | None:
    """The array that _save wrote; None where there is none, or where it is damaged, which is logged."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    if hashlib.sha256(data[:-_SHA256_BYTES]).digest() != data[-_SHA256_BYTES:]:
        _logger.warning("%s: damaged: made anew", path)
        return None
    array: NDArray[np.float64] = np.load(io.BytesIO(data))
    return array
