"""The files that metrics and times are written to, and TensorBoard."""

import json
import logging
import math
import os
import shlex
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path

from korbert.errors import ArtifactError
from korbert.messages import Message
from korbert.system import write_bytes_atomically
from korbert.training.plan import TrainingOutput

_logger = logging.getLogger(__name__)


class JsonLines:
    """A file of JSON objects, one per line, each with a "step". Opening it truncates lines after `first_step`, which a
    run wrote that was killed after its last checkpoint, and a last line that is half-written.
    """

    def __init__(self, path: Path, first_step: int) -> None:
        lines = path.read_bytes().splitlines(keepends=True) if first_step and path.exists() else []
        for number, line in enumerate(lines, 1):
            try:
                if not line.endswith(b"\n") or json.loads(line)["step"] > first_step:
                    del lines[number - 1 :]
                    break
            except (ValueError, LookupError, TypeError, RecursionError):
                raise ArtifactError(
                    "{path}: line {number} is damaged: remove the file and the checkpoints next to it, and the same "
                    "command trains from the start",
                    path=path,
                    number=number,
                ) from None
        write_bytes_atomically(path, b"".join(lines))
        self._file = path.open("a", encoding="utf-8")

    def write(self, line: Mapping[str, object]) -> None:
        """Appends a line and flushes it. NaN and infinities become null, as JSON has none."""
        holes = {name: None for name, value in line.items() if isinstance(value, float) and not math.isfinite(value)}
        self._file.write(json.dumps({**line, **holes}, ensure_ascii=False, allow_nan=False) + "\n")
        self._file.flush()

    def sync(self) -> None:
        """Syncs all lines to disk, before a checkpoint marks their steps as done."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


class MetricFiles:
    """The files of `output`, open until `stack` ends. A step is a number of updates done.

    What earlier runs wrote about steps after `first_step` is removed from them. metrics: None if it is not written.
    """

    def __init__(self, output: TrainingOutput, first_step: int, stack: ExitStack) -> None:
        self.metrics: JsonLines | None = None
        self._timing: JsonLines | None = None
        self._draw: Callable[[str, float, int], object] = lambda name, value, step: None  # on TensorBoard
        if output.metrics is not None:
            self.metrics = stack.enter_context(closing(JsonLines(output.metrics, first_step)))
        if output.timing is not None:
            self._timing = stack.enter_context(closing(JsonLines(output.timing, first_step)))
            self._timing.write({"kind": "start", "step": first_step})
        if output.tensorboard is not None:
            from torch.utils.tensorboard import SummaryWriter  # a second to import

            board = stack.enter_context(closing(SummaryWriter(str(output.tensorboard), purge_step=first_step + 1)))
            self._draw = board.add_scalar
            folder = shlex.quote(str(output.tensorboard))
            _logger.info(Message("curves: tensorboard --logdir {folder}", folder=folder))

    def train(self, step: int, values: Mapping[str, float], seconds: float, waited: float, pieces: int) -> None:
        """Writes a line of metrics and one of times.

        values: means since the line before. seconds, waited (seconds waited for rows) and pieces: sums since then.
        """
        speed = pieces / seconds if seconds else 0.0
        if self._timing:
            times = {"seconds": seconds, "waited_seconds": waited, "pieces_per_second": speed}
            self._timing.write({"kind": "train", "step": step, **times})
        self.write("train", step, values)
        self._draw("train/pieces_per_second", speed, step)

    def write(self, kind: str, step: int, values: Mapping[str, float]) -> None:
        """Writes a line of metrics. kind: "train", or "heldout" for the result of `evaluate`."""
        if self.metrics:
            self.metrics.write({"kind": kind, "step": step, **values})
        for name, value in values.items():
            self._draw(f"{kind}/{name}", value, step)
