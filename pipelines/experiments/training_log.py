"""The log of a pretraining run by step, pieces and seconds, from metrics.jsonl and timing.jsonl."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from korbert.messages import Message
from korbert.system import JsonObject


@dataclass(frozen=True)
class TrainingLog:
    """Log lines of a training by kind. timing: train lines of timing.jsonl, over all sessions; may be empty."""

    train: list[JsonObject]
    heldout: list[JsonObject]
    timing: list[JsonObject]

    @classmethod
    def of(cls, metrics: Sequence[JsonObject], timing: Iterable[JsonObject]) -> "TrainingLog":
        """Sorts the lines of both files."""
        train, heldout = ([line for line in metrics if line["kind"] == kind] for kind in ("train", "heldout"))
        return cls(train, heldout, [line for line in timing if line["kind"] == "train"])

    def seconds(self, lines: Sequence[JsonObject]) -> NDArray[np.float64] | None:
        """Training time in seconds at each line, without evaluations and checkpoints; None if not measured."""
        if not self.timing:
            return None
        measured = [0, *(line["step"] for line in self.timing)]
        elapsed = np.cumsum([0.0, *(line["seconds"] for line in self.timing)])
        return np.asarray(np.interp([line["step"] for line in lines], measured, elapsed))

    def pieces(self, lines: Sequence[JsonObject]) -> NDArray[np.float64]:
        """Pieces trained on up to the step of each line, without padding."""
        counted = sorted({(0, 0), *((line["step"], line["pieces"]) for line in (*self.train, *self.heldout))})
        steps, pieces = np.array(counted).T
        return np.asarray(np.interp([line["step"] for line in lines], steps, pieces))

    @property
    def waiting(self) -> float | None:
        """Share of the time that the device waited for rows; None if not measured."""
        seconds = sum(line["seconds"] for line in self.timing)
        return sum(line["waited_seconds"] for line in self.timing) / seconds if seconds else None

    @property
    def pieces_per_second(self) -> float | None:
        """Over all measured steps; None if not measured."""
        seconds = sum(line["seconds"] for line in self.timing)
        pieces = sum(line["seconds"] * line["pieces_per_second"] for line in self.timing)
        return pieces / seconds if seconds else None


def time_axis(longest: float) -> tuple[float, Message]:
    """The time unit in seconds, and its name, for an axis up to `longest` seconds."""
    for size, name in ((3600.0, Message("hours")), (60.0, Message("minutes"))):
        if longest >= 2 * size:
            return size, name
    return 1.0, Message("seconds")
