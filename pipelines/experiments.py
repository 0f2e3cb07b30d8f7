"""The search over ways and seeds. Its results are kept, so that an interrupted run resumes after what is finished.

1. Every way to learn (rate, batch size, epochs) is trained at the first seed; the best epoch of each training is kept.
2. The way with the best validation score is chosen; the weights of the others are removed.
3. That way is trained at every other seed.
4. The model of each seed predicts the test examples, once.

A training has a folder `work/rows/NAME-rate-RATE-..-seed-SEED`: `best.safetensors` from its best epoch on,
`result.json` (epoch and score) when it is finished, `predictions.json` when it is tested. Damaged files are logged and
made again.
"""

import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from korbert.durable import checksummed, verified, write_whole
from korbert.tasks.best_epoch import WEIGHTS, Best, read_best
from korbert.tasks.learning_settings import Way
from korbert.world import connected, from_first

__all__ = ["Experiment", "ModelResult", "kept_result", "search", "training_name"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Experiment:
    """A model that is trained in many ways and with many seeds, whatever its task.

    train: (way, seed, folder, metrics) -> the best epoch, whose weights it leaves in `folder`; it resumes there. It
    writes its curve to the file `metrics`. predict: (seed, folder) -> what those weights predict for the test examples,
    a JSON value an example. metric: name of the score that the best epoch has.
    """

    name: str
    metric: str
    train: Callable[[Way, int, Path, Path], Best]
    predict: Callable[[int, Path], list[Any]]


@dataclass(frozen=True)
class ModelResult:
    """A model that was chosen on validation examples and tested: an encoder from one seed, or a baseline.

    facts: its name and seed, how it was trained and chosen. predictions: a JSON value a test example. folder: of the
    training.
    """

    facts: Mapping[str, Any]
    predictions: list[Any]
    folder: Path


def search(experiment: Experiment, ways: Sequence[Way], seeds: Sequence[int], output: Path) -> list[ModelResult]:
    """One result a seed, all trained in the way that the first seed chose. Curves are written to `output/metrics`.

    Of several connected processes all train and predict; rank 0 finds what is finished, and writes.
    """
    first, varied = seeds[0], _varied(ways)

    def told(way: Way) -> dict[str, Any]:
        return {key: value for key, word, value in zip(Way._fields, _WORDS, way, strict=True) if word in varied}

    def folder_of(way: Way, seed: int) -> Path:
        return output / "work" / "rows" / training_name({"name": experiment.name, "seed": seed, **told(way)})

    trials = {way: _train(experiment, way, first, folder_of(way, first), output) for way in ways}
    chosen = max(trials, key=lambda way: trials[way].score)  # the first of equals

    def forget_the_others() -> None:
        for way in trials.keys() - {chosen}:  # large, and not needed again
            (folder_of(way, first) / WEIGHTS).unlink(missing_ok=True)

    from_first(forget_the_others)

    def facts_of(way: Way, best: Best) -> dict[str, Any]:
        return {**told(way), "epoch": best.epoch, f"validation_{experiment.metric}": best.score}

    tried = [facts_of(way, best) for way, best in trials.items()]
    results = []
    for seed in seeds:
        folder = folder_of(chosen, seed)
        best = _train(experiment, chosen, seed, folder, output, with_weights=True)
        path = folder / "predictions.json"
        predictions = from_first(partial(_load, path))
        if predictions is None:
            predictions = experiment.predict(seed, folder)
            if connected().writes:
                _save(path, predictions)
        facts = {"name": experiment.name, "seed": seed, **facts_of(chosen, best), "trials": tried}
        results.append(ModelResult(facts, predictions, folder))
    return results


_WORDS = ("rate", "batch", "epochs")  # of the fields of Way, in names of folders


def training_name(facts: Mapping[str, Any]) -> str:
    """The name of a training's folder and of its curve in metrics/, from the facts of its result."""
    chosen = [f"{word}-{facts[key]:g}" for key, word in zip(Way._fields, _WORDS, strict=True) if key in facts]
    return "-".join([facts["name"], *chosen, f"seed-{facts['seed']}"])


def _varied(ways: Sequence[Way]) -> set[str]:
    """The words that go into names: the rate always, the others only if several values are tried."""
    return {
        word
        for word, values in zip(_WORDS, zip(*ways, strict=True), strict=True)
        if word == "rate" or len(set(values)) > 1
    }


def kept_result(folder: Path, make: Callable[[], ModelResult]) -> ModelResult:
    """A result without resumable steps, such as a baseline's: the one kept in `folder`, else made and kept."""
    facts, predictions = _read_record(folder / "facts.json"), _load(folder / "predictions.json")
    if facts is not None and predictions is not None:
        return ModelResult(facts, predictions, folder)
    result = make()
    _save(folder / "predictions.json", result.predictions)
    write_whole(folder / "facts.json", checksummed(result.facts))
    return result


def _train(
    experiment: Experiment, way: Way, seed: int, folder: Path, output: Path, *, with_weights: bool = False
) -> Best:
    """The result of one training: looked up where it is finished, else trained. with_weights: they are there, too."""
    record = folder / "result.json"
    finished, kept = from_first(lambda: _look_up(folder, record, with_weights))
    if finished and kept is not None:
        return kept
    if kept is None:
        kept = experiment.train(way, seed, folder, output / "metrics" / f"{folder.name}.jsonl")
    if connected().writes:
        write_whole(record, checksummed(asdict(kept)))
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    return kept


def _look_up(folder: Path, record: Path, with_weights: bool) -> tuple[bool, Best | None]:
    """Whether that training is finished, and its result if it is known without training."""
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


def _save(path: Path, predictions: list[Any]) -> None:
    write_whole(path, checksummed({"predictions": predictions}))


def _load(path: Path) -> list[Any] | None:
    record = _read_record(path)
    return None if record is None else list(record["predictions"])
