"""How to use what a stage made: the command and the lines of Python, with the artifact's own path."""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipelines.reports.elements import Code
from pipelines.stages import imported
from pipelines.stages.table import STAGES

__all__ = ["Use", "shown", "usage"]


@dataclass(frozen=True)
class Use:
    """`USE` of a page's module. folder: what is loaded, in the artifact. command, python: `{}` is its path, quoted."""

    folder: str
    command: str
    python: str


def shown(folder: Path) -> str:
    """The folder as a page names it: as given if relative, else its last three parts, artifacts/RECIPE/STAGE."""
    return "/".join(folder.parts[-3:]) if folder.is_absolute() else folder.as_posix()


def usage(artifacts: Mapping[str, Path]) -> tuple[Code, ...]:
    """A command for each artifact that can be used, and Python for the last of them; nothing where none can.

    artifacts: stage -> its folder.
    """
    found = list(_uses(artifacts))
    if not found:
        return ()
    commands = "\n".join(use.command.format(shlex.quote(path)) for use, path in found)
    use, path = found[-1]
    return Code("In a shell", commands), Code("In Python", use.python.format(json.dumps(path, ensure_ascii=False)))


def _uses(artifacts: Mapping[str, Path]) -> Iterator[tuple[Use, str]]:
    for stage, folder in artifacts.items():
        page = imported(STAGES[stage].page) if stage in STAGES and STAGES[stage].page else None
        if (use := getattr(page, "USE", None)) is not None:
            yield use, f"{shown(folder)}/{use.folder}"
