"""The learning curves of a training by step, pieces and seconds, from metrics.jsonl and timing.jsonl."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.artifacts.store import Json

__all__ = ["Course", "time_axis"]

_MINUTE, _HOUR = 60.0, 3600.0


@dataclass(frozen=True)
class Course:
    """Log lines of a training by kind. timing: train lines of timing.jsonl, over all sessions; may be empty."""

    train: list[Json]
    heldout: list[Json]
    timing: list[Json]

    @classmethod
    def of(cls, metrics: Sequence[Json], timing: Sequence[Json]) -> "Course":
        """Builds the course from the lines of both files."""
        train, heldout = ([line for line in metrics if line["kind"] == kind] for kind in ("train", "heldout"))
        return cls(train, heldout, [line for line in timing if line["kind"] == "train"])

    def seconds(self, lines: Sequence[Json]) -> NDArray[np.float64] | None:
        """Training time in seconds at each line, without evaluations and checkpoints; None if not measured."""
        return self._measured(lines, [line["seconds"] for line in self.timing])

    def pieces(self, lines: Sequence[Json]) -> NDArray[np.float64] | None:
        """Pieces trained on up to each line, without padding. Runs without counts are reconstructed from speed."""
        if all("pieces" in line for line in lines):
            return np.array([line["pieces"] for line in lines], dtype=np.float64)
        return self._measured(lines, [line["seconds"] * line["pieces_per_second"] for line in self.timing])

    def _measured(self, lines: Sequence[Json], amounts: Sequence[float]) -> NDArray[np.float64] | None:
        if not amounts:
            return None
        measured = [0, *(line["step"] for line in self.timing)]
        at: NDArray[np.float64] = np.interp([line["step"] for line in lines], measured, np.cumsum([0.0, *amounts]))
        return at

    @property
    def waiting(self) -> float | None:
        """Share of the time that the device waited for rows; None if not measured."""
        timed = [line for line in self.timing if line.get("waited_seconds") is not None]
        seconds = sum(line["seconds"] for line in timed)
        return sum(line["waited_seconds"] for line in timed) / seconds if seconds else None

    @property
    def pieces_per_second(self) -> float | None:
        """Over all measured steps; None if not measured."""
        seconds = sum(line["seconds"] for line in self.timing)
        pieces = sum(line["seconds"] * line["pieces_per_second"] for line in self.timing)
        return pieces / seconds if seconds else None


def time_axis(longest: float) -> tuple[float, str]:
    """The time unit in seconds, and its name, for an axis up to `longest` seconds."""
    for size, name in ((_HOUR, "hours"), (_MINUTE, "minutes")):
        if longest >= 2 * size:
            return size, name
    return 1.0, "seconds"
