"""The files that metrics and times are written to, and TensorBoard."""

import json
import logging
import math
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from korbert.errors import ArtifactError
from korbert.messages import Message
from korbert.system import write_whole
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
        write_whole(path, b"".join(lines))
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


@dataclass
class MetricFiles:
    """Open files; None: not written. A step is a number of updates done. draw: (name, value, step) -> TensorBoard."""

    metrics: JsonLines | None = None
    timing: JsonLines | None = None
    draw: Callable[[str, float, int], object] = lambda name, value, step: None

    def train(self, step: int, values: Mapping[str, float], seconds: float, waited: float, pieces: int) -> None:
        """values: means since the line before. seconds, those of them waited for rows, and pieces: sums since then."""
        speed = pieces / seconds if seconds else 0.0
        if self.timing:
            times = {"seconds": seconds, "waited_seconds": waited, "pieces_per_second": speed}
            self.timing.write({"kind": "train", "step": step, **times})
        self.write("train", step, values)
        self.draw("train/pieces_per_second", speed, step)

    def write(self, kind: str, step: int, values: Mapping[str, float]) -> None:
        """A line of "train", or of "heldout", the result of `evaluate`."""
        if self.metrics:
            self.metrics.write({"kind": kind, "step": step, **values})
        for name, value in values.items():
            self.draw(f"{kind}/{name}", value, step)


@contextmanager
def open_metric_files(output: TrainingOutput, first_step: int) -> Iterator[MetricFiles]:
    """Opens the files of `output`, without what earlier runs wrote about steps after `first_step`."""
    with ExitStack() as stack:
        files = MetricFiles()
        if output.metrics is not None:
            files.metrics = stack.enter_context(closing(JsonLines(output.metrics, first_step)))
        if output.timing is not None:
            files.timing = stack.enter_context(closing(JsonLines(output.timing, first_step)))
            files.timing.write({"kind": "start", "step": first_step})
        if output.tensorboard is not None:
            from torch.utils.tensorboard import SummaryWriter  # a second to import

            board = stack.enter_context(closing(SummaryWriter(str(output.tensorboard), purge_step=first_step + 1)))
            files.draw = board.add_scalar
            folder = shlex.quote(str(output.tensorboard))
            _logger.info(Message("curves: tensorboard --logdir {folder}", folder=folder))
        yield files
