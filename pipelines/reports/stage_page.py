"""The page of an artifact: what the module of its stage says, how to use it, and the record."""

import json
import pkgutil
import shlex
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pipelines.artifacts.store import PAGE
from pipelines.reports import provenance
from pipelines.reports.elements import Code, Section, Story, Use
from pipelines.reports.page import write
from pipelines.reports.record import Artifact, drawing
from pipelines.stages.table import stage_named

_DEFAULT = SimpleNamespace(
    figures=lambda artifact: (),
    story=lambda artifact: Story("Run record", "This stage has no page of its own.", ()),
)


def page_of(stage: str) -> Any:
    """The page module of a stage: `figures(artifact)`, `story(artifact)` and, where there is a use, `use(folder)`.

    Without a module, the page is the record alone.
    """
    entry = stage_named(stage)
    return pkgutil.resolve_name(entry.page) if entry is not None and entry.page else _DEFAULT


def render(folder: Path) -> Path:
    """Writes `report.html` into a finished artifact's folder and returns its path.

    The same artifact (run.json included) gives the same bytes. Raises ArtifactError, naming the file, if the folder
    holds no finished artifact, or if a file is unreadable or incomplete.
    """
    artifact = Artifact.open(folder)
    module = page_of(artifact.stage)
    resolved = folder.resolve()
    with drawing(artifact):
        story = module.story(artifact)
        # A figure in the title is not repeated below it. A no-break space keeps "92.4 %" one word.
        in_title = [word.rstrip(",") for word in story.title.split(" ")]
        return write(
            folder / PAGE,
            "report.html",
            # Inside the folder, a half-written page would count as output.
            aside=resolved.with_name(f".korbert-{resolved.name}.{PAGE}.tmp"),
            artifact=artifact,
            indexed=resolved.name == artifact.stage,  # else the artifact lies outside a recipe
            figures=[figure for figure in module.figures(artifact) if figure.value not in in_title],
            story=story,
            sections=[*story.sections, usage({artifact.stage: folder})],
            facts=provenance.facts(artifact),
            origins=provenance.origins(artifact),
        )


def shown(folder: Path) -> str:
    """The folder for display: a relative path as given, else its last three parts, artifacts/RECIPE/STAGE."""
    return "/".join(folder.parts[-3:]) if folder.is_absolute() else folder.as_posix()


def usage(artifacts: Mapping[str, Path]) -> Section:
    """A command for each artifact that can be used, and Python for the last of them; empty if none can.

    artifacts: stage -> its folder.
    """
    uses: list[tuple[Use, str]] = []
    for stage, folder in artifacts.items():
        if hasattr(module := page_of(stage), "use"):
            use = module.use(folder)
            uses.append((use, f"{shown(folder)}/{use.folder}"))
    if not uses:
        return Section("Usage", ())
    commands = "\n".join(use.command.format(shlex.quote(path)) for use, path in uses)
    use, path = uses[-1]
    python = use.python.format(json.dumps(path, ensure_ascii=False))
    return Section("Usage", (Code("Command line", commands), Code("Python", python)))
