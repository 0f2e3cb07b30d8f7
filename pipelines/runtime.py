"""What may differ from machine to machine without changing an artifact's bytes (DESIGN 3)."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from korbert.processor import cores

if TYPE_CHECKING:
    from corpus.execution.workers import Workers


@dataclass(frozen=True)
class Runtime:
    """Where a run reads and writes, and with what hands.

    root: folder of all artifacts. data: the folder that paths in a recipe are relative to. workers: processes of the
    corpus stages. runner, address: where those are. device: "auto", "cpu" or "cuda". debug: show traces of errors.
    given: what of this, and which changes of the recipe, stood on the command line, for the commands that errors
    suggest.
    """

    root: Path
    data: Path
    workers: int = field(default_factory=cores)
    runner: Literal["native", "ray"] = "native"
    address: str | None = None
    device: str = "auto"
    debug: bool = False
    given: tuple[str, ...] = ()

    @property
    def units(self) -> "Workers":
        """Who does the work units of the corpus stages."""
        from corpus.execution.workers import Workers

        return Workers(self.workers, self.runner, self.address)
