"""The files that metrics and times are written to, and TensorBoard."""

import logging
import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from korbert.training.meters import JsonLines
from korbert.training.plan import TrainingOutput

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

__all__ = ["Records", "recorded"]

_logger = logging.getLogger(__name__)


class Records:
    """Open files; None: not written. A step is a number of updates done."""

    def __init__(self, metrics: JsonLines | None, timing: JsonLines | None, board: "SummaryWriter | None") -> None:
        self._metrics, self._timing, self._board = metrics, timing, board

    def start(self, step: int) -> None:
        """A run starts or resumes after `step`."""
        if self._timing:
            self._timing.write({"kind": "start", "step": step})

    def train(self, step: int, values: Mapping[str, float], seconds: float, waited: float, pieces: int) -> None:
        """values: means since the line before. seconds, those of them waited for rows, and pieces: sums since then."""
        if self._metrics:
            self._metrics.write({"kind": "train", "step": step, **values})
        speed = pieces / seconds if seconds else 0.0
        times = {"seconds": seconds, "waited_seconds": waited, "pieces_per_second": speed}
        if self._timing:
            self._timing.write({"kind": "train", "step": step, **times})
        self._draw("train", step, {**values, "pieces_per_second": speed})

    def heldout(self, step: int, values: Mapping[str, float]) -> None:
        """The result of `evaluate`."""
        if self._metrics:
            self._metrics.write({"kind": "heldout", "step": step, **values})
        self._draw("heldout", step, values)

    def left_out(self, step: int) -> None:
        """No update was made at this step, which counts all the same."""
        if self._metrics:
            self._metrics.write({"kind": "left_out", "step": step})

    def sync(self) -> None:
        """Syncs the metrics to disk, before a checkpoint marks their steps as done."""
        if self._metrics:
            self._metrics.sync()

    def _draw(self, kind: str, step: int, values: Mapping[str, float]) -> None:
        if self._board:
            for name, value in values.items():
                self._board.add_scalar(f"{kind}/{name}", value, step)


@contextmanager
def recorded(output: TrainingOutput, first_step: int) -> Iterator[Records]:
    """Opens the files of `output`, without what earlier runs wrote about steps behind `first_step`."""
    with ExitStack() as stack:
        opened = [None if path is None else JsonLines(path, first_step) for path in (output.metrics, output.timing)]
        for lines in filter(None, opened):
            stack.callback(lines.close)
        board = None
        if output.tensorboard is not None:
            from torch.utils.tensorboard import SummaryWriter  # a second to import

            board = SummaryWriter(str(output.tensorboard), purge_step=first_step + 1)
            stack.callback(board.close)
            _logger.info("curves: tensorboard --logdir %s", shlex.quote(str(output.tensorboard)))
        records = Records(opened[0], opened[1], board)
        records.start(first_step)
        yield records
