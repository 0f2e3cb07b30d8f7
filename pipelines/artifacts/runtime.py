"""Options that may differ between machines without changing the bytes of an artifact."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from korbert import corpus
from korbert.system import cores, number_in

_ROW_WORKERS_OF_A_GPU = 4  # make a million pieces per second


@dataclass(frozen=True)
class Runtime:
    """Where a run reads and writes, and how it runs: workers, device, runner.

    root: folder of all artifacts. data: the folder that paths in a recipe are relative to. workers: processes of the
    corpus stages. runner, address: where those run. device: "auto", "cpu" or "cuda". row_workers: processes of this
    machine that make the rows of pretraining; None: see `rows_by`.
    given: the options on the command line, `--set` included, or the arguments in Python, for the runs that errors
    suggest. call: the function of Python that runs it, such as "korbert.run"; "": the command line does.
    """

    root: Path
    data: Path
    workers: int = field(default_factory=cores)
    runner: Literal["native", "ray"] = "native"
    address: str | None = None
    device: str = "auto"
    row_workers: int | None = None
    given: tuple[str, ...] = ()
    call: str = ""

    def rows_by(self, device: str) -> int:
        """Number of row processes of this rank for "cpu" or "cuda"; the ranks of a machine share its row workers.

        By default none on a CPU, which needs its cores for training, and several on a GPU.
        """
        ranks = max(1, number_in("LOCAL_WORLD_SIZE", 1))  # of this machine, as set by torchrun
        if self.row_workers is None:
            return max(0, min(_ROW_WORKERS_OF_A_GPU, cores() // ranks - 1)) if device == "cuda" else 0
        return max(self.row_workers // ranks, min(1, self.row_workers))

    @property
    def units(self) -> "corpus.Workers":
        """The workers of the corpus stages."""
        return corpus.Workers(self.workers, self.runner, self.address)
