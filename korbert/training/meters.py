"""Metrics of a run: means since the last line, and the JSON lines they are written to."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from korbert.durable import write_whole
from korbert.errors import ArtifactError

__all__ = ["JsonLines", "Meter"]


class Meter:
    """Means of metrics over steps. Sums stay on the device in float64, so that adding waits for nothing.

    steps: in the sums.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._sums: dict[str, Tensor] = {}
        self.steps = 0

    def add(self, values: Mapping[str, Tensor]) -> None:
        """The scalars of one step."""
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value.detach().to(torch.float64)
        self.steps += 1

    def means(self) -> dict[str, float]:
        """The mean of each metric since the last call, in order of first appearance. Resets the sums."""
        means = {name: value.item() / self.steps for name, value in self._sums.items()}
        self._sums, self.steps = {}, 0
        return means

    def state(self) -> dict[str, Any]:
        """The sums, for a checkpoint. JSON keeps every bit of a float64."""
        return {"steps": self.steps, "sums": {name: value.item() for name, value in self._sums.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes over what `state` returned."""
        self.steps = state["steps"]
        self._sums = {
            name: torch.tensor(value, dtype=torch.float64, device=self._device) for name, value in state["sums"].items()
        }


class JsonLines:
    """A file of JSON objects, one per line, each with a "step". Opening it truncates lines after `first_step`.

    Those come from a run that was killed after its last checkpoint; their steps will be repeated.
    """

    def __init__(self, path: Path, first_step: int) -> None:
        write_whole(path, _until(first_step, path) if path.exists() else b"")
        self._file = path.open("a", encoding="utf-8")

    def write(self, line: Mapping[str, Any]) -> None:
        """Appends a line and flushes it. NaN and infinities become null, as JSON has none."""
        values = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in line.items()
        }
        self._file.write(json.dumps(values, ensure_ascii=False, allow_nan=False) + "\n")
        self._file.flush()

    def sync(self) -> None:
        """Syncs all lines to disk, before a checkpoint marks their steps as done."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def _until(step: int, path: Path) -> bytes:
    """The leading lines up to `step`. A line without its end was being written when a run died, and is dropped.

    ArtifactError for a damaged line: its metrics are lost.
    """
    lines = path.read_bytes().splitlines(keepends=True) if step else []
    for number, line in enumerate(lines, 1):
        try:
            if not line.endswith(b"\n") or json.loads(line)["step"] > step:
                return b"".join(lines[: number - 1])
        except (ValueError, LookupError, TypeError, RecursionError):
            raise ArtifactError(
                f"{path}: line {number} is damaged: remove the file and the checkpoints beside it, and the same "
                "command trains from the start"
            ) from None
    return b"".join(lines)
