"""The page of an artifact: what the module of its stage says, how to use it, and the record.

The record is the end of every page: run time, machine, counts, settings, inputs and versions, as tables.
"""

import json
import pkgutil
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from korbert.pipelines.artifacts.store import PAGE
from korbert.pipelines.reports import formatting
from korbert.pipelines.reports.elements import Code, Section, Story, Table
from korbert.pipelines.reports.figures import Figure, label
from korbert.pipelines.reports.page import write
from korbert.pipelines.reports.record import Artifact, drawing
from korbert.pipelines.stages.table import stage_named

_DIGEST_CHARS = 12  # enough to tell digests apart by eye
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


def figures_of(artifact: Artifact) -> Sequence[Figure]:
    """The main figures of an artifact. ArtifactError if its files hold other values than the stage writes."""
    with drawing(artifact):
        figures: Sequence[Figure] = page_of(artifact.stage).figures(artifact)
        return figures


def render(folder: Path) -> Path:
    """Writes `report.html` into a finished artifact's folder and returns its path.

    The same artifact (run.json included) gives the same bytes. Raises ArtifactError, naming the file, if the folder
    holds no finished artifact, or if a file is unreadable or incomplete.
    """
    artifact = Artifact.open(folder)
    resolved = folder.resolve()
    with drawing(artifact):
        story = page_of(artifact.stage).story(artifact)
        # A figure in the title is not repeated below it. A no-break space keeps "92.4 %" one word.
        in_title = [word.rstrip(",") for word in story.title.split(" ")]
        return write(
            folder / PAGE,
            "report.html",
            scratch=resolved.parent,  # a killed run leaves nothing in the artifact
            artifact=artifact,
            indexed=resolved.name == artifact.stage,  # else the artifact lies outside a recipe
            figures=[figure for figure in figures_of(artifact) if figure.value not in in_title],
            story=story,
            sections=[*story.sections, usage({artifact.stage: folder})],
            facts=facts(artifact),
            origins=origins(artifact),
        )


def shown(folder: Path) -> str:
    """The folder for display: a relative path as given, else its last three parts, artifacts/RECIPE/STAGE."""
    return "/".join(folder.parts[-3:]) if folder.is_absolute() else folder.as_posix()


def usage(artifacts: Mapping[str, Path]) -> Section:
    """A command for each artifact that can be used, and Python for the last of them; empty if none can.

    artifacts: stage -> its folder.
    """
    commands, python = [], ""
    for stage, folder in artifacts.items():
        if hasattr(page_of(stage), "use"):
            use = page_of(stage).use(folder)
            path = f"{shown(folder)}/{use.folder}"
            commands += [use.command.replace("{}", shlex.quote(path))] if use.command else []
            python = use.python.replace("{}", json.dumps(path, ensure_ascii=False))
    codes = [Code("Command line", "\n".join(commands))] if commands else []
    return Section("Usage", [*codes, Code("Python", python)] if python else ())


def facts(artifact: Artifact) -> Table:
    """Run time and machine, always visible."""
    run = artifact.run
    rows = []
    if artifact.seconds is not None:
        resumed = " (last session of a resumed run)" if run.get("resumed") else ""
        rows.append(("duration", formatting.duration(artifact.seconds) + resumed))
    if isinstance(run.get("memory_peak_bytes"), int | float):
        rows.append(("peak memory of the largest process", formatting.megabytes(run["memory_peak_bytes"])))
    keys = ("started", "machine", "workers", "command")
    rows += [(key, formatting.value(run[key])) for key in keys if run.get(key) is not None]
    return Table("Time and machine", ("", ""), rows, "ll")


def origins(artifact: Artifact) -> list[Table]:
    """Counts, settings, inputs, versions and numerics, collapsed on the page. Empty tables are left out."""
    record = artifact.record
    artifacts = [(stage, digest[:_DIGEST_CHARS]) for stage, digest in record["inputs"]["artifacts"].items()]
    files = []
    for role, of_role in record["inputs"]["files"].items():
        for file in of_role:
            digest = str(file["version"] if "version" in file else file["sha256"])  # a version if remote
            files.append((role, str(file["name"]), formatting.megabytes(file["size"]), digest[:_DIGEST_CHARS]))
    counts, numerics = ([(label(key), text) for key, text in _flat(record[part])] for part in ("counts", "numerics"))
    tables = (
        Table("Counts", ("", ""), counts, "lr"),
        Table("Settings", ("setting", "value"), list(_flat(record["settings"])), "nk"),
        Table("Input artifacts", ("stage", "digest"), artifacts, "nn"),
        Table("Input files", ("role", "file", "size", "SHA-256 or version"), files, "nkrn"),
        Table("Library versions", ("library", "version"), list(_flat(record["versions"])), "nn"),
        Table("Numerical environment", ("", ""), numerics, "nn"),
    )
    return [table for table in tables if table.rows]


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Nested values by their dotted names, in the order of the record; lists of plain values on one line."""
    if isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value):
        value = {f"[{index}]": inner for index, inner in enumerate(value)}
    if isinstance(value, dict) and (value or not name):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}".lstrip(".").replace(".[", "["))
    elif isinstance(value, dict | list):
        yield name, ", ".join(map(formatting.value, value)) or "none"
    else:
        yield name, formatting.value(value)
