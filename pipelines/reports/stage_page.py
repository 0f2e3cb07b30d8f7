"""How to use an artifact: a command and Python code, with the path of the artifact."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipelines.reports.elements import Code
from pipelines.reports.modules import page_of

__all__ = ["Use", "shown", "usage"]


@dataclass(frozen=True)
class Use:
    """Usage of an artifact: the `USE` of a page module, or the result of its `use(folder)`.

    folder: what to load, inside the artifact. command, python: `{}` stands for its path.
    """

    folder: str
    command: str
    python: str


def shown(folder: Path) -> str:
    """The folder for display: a relative path as given, else its last three parts, artifacts/RECIPE/STAGE."""
    return "/".join(folder.parts[-3:]) if folder.is_absolute() else folder.as_posix()


def usage(artifacts: Mapping[str, Path]) -> tuple[Code, ...]:
    """A command for each artifact that can be used, and Python for the last of them; empty if none can.

    artifacts: stage -> its folder.
    """
    uses: list[tuple[Use, str]] = []
    for stage, folder in artifacts.items():
        module = page_of(stage)
        use = module.use(folder) if hasattr(module, "use") else getattr(module, "USE", None)
        if use is not None:
            uses.append((use, f"{shown(folder)}/{use.folder}"))
    if not uses:
        return ()
    commands = "\n".join(use.command.format(shlex.quote(path)) for use, path in uses)
    use, path = uses[-1]
    return Code("Command line", commands), Code("Python", use.python.format(json.dumps(path, ensure_ascii=False)))
