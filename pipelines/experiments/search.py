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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from korbert.durable import checksummed, verified, write_whole
from korbert.tasks.finetuning.best_epoch import WEIGHTS, Best, read_best
from korbert.tasks.finetuning.settings import WORDS, Way, training_name
from korbert.training.checkpoints import remove_all
from korbert.world import connected, from_first

_logger = logging.getLogger(__name__)


Train = Callable[[Way, int, Path, Path], Best]
"""(way, seed, folder, metrics) -> the best epoch; saves its weights in `folder`, resumes from there, and writes its
curve to the file `metrics`."""


@dataclass(frozen=True)
class ModelResult:
    """A model chosen on validation examples and tested: an encoder trained with one seed, or a baseline.

    facts: name, seed, and how it was trained and chosen. predictions: one JSON value per test example. folder: of the
    training.
    """

    facts: Mapping[str, Any]
    predictions: list[Any]
    folder: Path


def search(
    name: str, metric: str, train: Train, predict: Callable[[int, Path], list[Any]], ways: Sequence[Way],
    seeds: Sequence[int], output: Path,
) -> list[ModelResult]:  # fmt: skip
    """One result per seed, all trained in the way chosen with the first seed. Curves are written to `output/metrics`.

    metric: name of the validation score that chooses the epoch. predict: (seed, folder) -> predictions of those
    weights, one JSON value per test example.
    With several connected processes, all train and predict; rank 0 looks up finished work and writes.
    """
    first = seeds[0]
    values_of = dict(zip(WORDS, zip(*ways, strict=True), strict=True))
    varied = {word for word, values in values_of.items() if word == "rate" or len(set(values)) > 1}  # in names

    def varied_values(way: Way) -> dict[str, Any]:
        return {key: value for key, word, value in zip(Way._fields, WORDS, way, strict=True) if word in varied}

    def folder_of(way: Way, seed: int) -> Path:
        return output / "work" / "rows" / training_name({"name": name, "seed": seed, **varied_values(way)})

    trials = {way: _train(train, way, first, folder_of(way, first), output) for way in ways}
    chosen = max(trials, key=lambda way: trials[way].score)  # the first one if scores are equal

    def remove_other_weights() -> None:
        for way in trials.keys() - {chosen}:  # large, and no longer needed
            (folder_of(way, first) / WEIGHTS).unlink(missing_ok=True)

    from_first(remove_other_weights)

    def facts_of(way: Way, best: Best) -> dict[str, Any]:
        return {**varied_values(way), "epoch": best.epoch, f"validation_{metric}": best.score}

    tried = [facts_of(way, best) for way, best in trials.items()]
    results = []
    for seed in seeds:
        folder = folder_of(chosen, seed)
        best = _train(train, chosen, seed, folder, output, with_weights=True)
        facts = {"name": name, "seed": seed, **facts_of(chosen, best), "trials": tried}
        results.append(ModelResult(facts, _predictions(predict, seed, folder), folder))
    return results


def _predictions(predict: Callable[[int, Path], list[Any]], seed: int, folder: Path) -> list[Any]:
    """The predictions of a finished training, looked up or made."""
    path = folder / "predictions.json"
    record = from_first(lambda: _read_record(path))
    if record is None:
        record = {"predictions": predict(seed, folder)}
        if connected().writes:
            write_whole(path, checksummed(record))
    return list(record["predictions"])


def _train(train: Train, way: Way, seed: int, folder: Path, output: Path, *, with_weights: bool = False) -> Best:
    """The result of one training, looked up if finished, else trained. with_weights: make sure its weights exist."""
    path = folder / "result.json"

    def look_up() -> tuple[bool, Best | None]:
        """Whether the training is finished, and its result if it can be known without training."""
        known = _read_record(path)
        kept = read_best(folder) if with_weights or known is None else None
        if known is not None and (not with_weights or kept is not None):
            return True, Best(**known)
        return False, kept if path.exists() else None  # a damaged record is rewritten from the weights

    finished, kept = from_first(look_up)
    if finished and kept is not None:
        return kept
    if kept is None:
        kept = train(way, seed, folder, output / "metrics" / f"{folder.name}.jsonl")
    if connected().writes:
        write_whole(path, checksummed(asdict(kept)))
        remove_all(folder / "checkpoints")
    return kept


def _read_record(path: Path) -> dict[str, Any] | None:
    """The record in a file; None if there is no file, or, with a warning in the log, if it is damaged."""
    try:
        return verified(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        _logger.warning("%s: damaged (%s): made again", path, error)
        return None
