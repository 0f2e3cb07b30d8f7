"""The stages, in the order in which they run. A stage is a module with

    run(settings, inputs: Inputs, output: Path, runtime: Runtime) -> Counts

It reads only `inputs` and writes only below `output`, which may hold finished work of a run that was cut off, and into
the folder of encoded texts that the inputs name.
`output/work/` and `output/checkpoints/` are its scratch folders; the runner removes them at the end.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Counts", "Inputs"]

Counts = dict[str, int | float]


@dataclass(frozen=True)
class Inputs:
    """What a stage may read.

    artifacts: stage name -> that stage's finished artifact. files: the role of a file in the recipe -> its files, in
    sorted order (a source's name for `clean`, whose files may lie behind an address; "train", "test", "valid",
    "official" for the tasks). encoded: where texts of the tasks are kept as pieces, under names that say of which texts
    and by which tokenizer, so that another run analyses nothing; None: nothing is kept.
    """

    artifacts: Mapping[str, Path]
    files: Mapping[str, tuple[Any, ...]]
    encoded: Path | None = None
