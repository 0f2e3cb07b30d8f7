"""What may differ between machines without changing an artifact's bytes."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from korbert.processor import cores

if TYPE_CHECKING:
    from corpus.execution.workers import Workers


@dataclass(frozen=True)
class Runtime:
    """Where a run reads and writes, and how it runs: workers, device, runner.

    root: folder of all artifacts. data: the folder that paths in a recipe are relative to. workers: processes of the
    corpus stages. runner, address: where those are. device: "auto", "cpu" or "cuda". debug: show traces of errors.
    sharding: of several processes that pretrain, whether each has all of the model (ddp) or a part (fsdp).
    given: the options on the command line, `--set` included, for the commands that errors suggest.
    """

    root: Path
    data: Path
    workers: int = field(default_factory=cores)
    runner: Literal["native", "ray"] = "native"
    address: str | None = None
    device: str = "auto"
    sharding: Literal["ddp", "fsdp"] = "ddp"
    debug: bool = False
    given: tuple[str, ...] = ()

    @property
    def units(self) -> "Workers":
        """The workers of the corpus stages."""
        from corpus.execution.workers import Workers

        return Workers(self.workers, self.runner, self.address)
