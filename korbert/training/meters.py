"""Numbers of a run: means since the last line, and the files they go to."""

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
    """Means of named numbers over steps. Sums stay on the device as float64: adding waits for no computation."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._sums: dict[str, Tensor] = {}
        self._steps = 0

    def add(self, values: Mapping[str, Tensor]) -> None:
        """One step's numbers, scalars."""
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value.detach().to(torch.float64)
        self._steps += 1

    def means(self) -> dict[str, float]:
        """The mean of each since the last call, in the order of first appearance; starts anew."""
        means = {name: value.item() / self._steps for name, value in self._sums.items()}
        self._sums, self._steps = {}, 0
        return means

    def state(self) -> dict[str, Any]:
        """For a checkpoint: JSON keeps every bit of a float64."""
        return {"steps": self._steps, "sums": {name: value.item() for name, value in self._sums.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """What `state` gave."""
        self._steps = state["steps"]
        self._sums = {
            name: torch.tensor(value, dtype=torch.float64, device=self._device) for name, value in state["sums"].items()
        }


class JsonLines:
    """A file of one JSON object a line, each with a "step". Opened at `first_step`, lines after it are cut off.

    Lines past a checkpoint come from a run that was killed; the steps that made them are about to be made again.
    """

    def __init__(self, path: Path, first_step: int) -> None:
        write_whole(path, _until(first_step, path) if path.exists() else b"")
        self._file = path.open("a", encoding="utf-8")

    def write(self, line: Mapping[str, Any]) -> None:
        """Appends it, so that readers see it now. What is no number (nan) becomes null: JSON has none."""
        known = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in line.items()
        }
        self._file.write(json.dumps(known, ensure_ascii=False, allow_nan=False) + "\n")
        self._file.flush()

    def sync(self) -> None:
        """Onto the disk, before a checkpoint says that these steps are done."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def _until(step: int, path: Path) -> bytes:
    """The leading lines whose step is at most `step`. A last line without its end was being written when a run died.

    Raises ArtifactError where a line before it is none that was written: what it said is lost.
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
