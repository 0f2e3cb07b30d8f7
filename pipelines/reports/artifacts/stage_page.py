"""The page of an artifact: the story told by its stage's module, how to use the artifact, and its record.

The record is the end of every page: run time, machine, counts, settings, inputs and versions, as tables.
"""

import importlib
import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace

from korbert.messages import Message, join_messages
from korbert.pipelines.artifacts import PAGE, Artifact, ShownFigure, drawing, formatting, label
from korbert.pipelines.reports.drawing import Code, Section, Story, TableElement, write
from korbert.pipelines.stages.table import stage_named

_DIGEST_CHARS = 12  # enough to tell digests apart by eye
_RUN = {  # of run.json
    "started": Message("started"),
    "machine": Message("machine"),
    "workers": Message("workers"),
    "command": Message("command"),
}
_DEFAULT = SimpleNamespace(
    figures=lambda artifact: (),
    story=lambda artifact: Story(Message("Run record"), Message("This stage has no page of its own."), ()),
)


def page_of(stage: str) -> ModuleType | SimpleNamespace:
    """The page module of a stage: `figures(artifact)`, `story(artifact)` and, where there is a use, `use(folder)`.

    Without a module, the page is the record alone.
    """
    entry = stage_named(stage)
    if entry is None or not entry.page:
        return _DEFAULT
    return importlib.import_module(entry.page)


def figures_of(artifact: Artifact) -> list[ShownFigure]:
    """The main figures of an artifact. Raises ArtifactError if its files hold other values than the stage writes."""
    with drawing(artifact):
        return list(page_of(artifact.stage).figures(artifact))


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


def displayed_path(folder: Path) -> str:
    """The folder for display: a relative path as given, else its last three parts, artifacts/RECIPE/STAGE."""
    return "/".join(folder.parts[-3:]) if folder.is_absolute() else folder.as_posix()


def usage(artifacts: Mapping[str, Path]) -> Section:
    """A section with a command for each usable artifact, and Python code for the last one; empty if none is usable.

    artifacts: stage -> its folder.
    """
    commands = []
    python = ""
    for stage, folder in artifacts.items():
        if hasattr(page_of(stage), "use"):
            use = page_of(stage).use(folder)
            path = f"{displayed_path(folder)}/{use.folder}"
            if use.command:
                commands.append(use.command.replace("{}", shlex.quote(path)))
            python = use.python.replace("{}", json.dumps(path, ensure_ascii=False))
    elements = [Code(Message("Python"), python)] if python else []
    if commands:
        elements.insert(0, Code(Message("Command line"), "\n".join(commands)))
    return Section(Message("Usage"), elements)


def facts(artifact: Artifact) -> TableElement:
    """Run time and machine, always visible."""
    run = artifact.run
    rows: list[tuple[str, str]] = []
    if artifact.seconds is not None:
        duration = formatting.duration(artifact.seconds)
        if run.get("resumed"):
            duration = Message("{duration} (last session of a resumed run)", duration=duration)
        rows.append((Message("duration"), duration))
    if isinstance(run.get("memory_peak_bytes"), int | float):
        rows.append((Message("peak memory of the largest process"), formatting.megabytes(run["memory_peak_bytes"])))
    rows += [(name, formatting.value(run[key])) for key, name in _RUN.items() if run.get(key) is not None]
    return TableElement(Message("Time and machine"), ("", ""), rows, "ll")


def origins(artifact: Artifact) -> list[TableElement]:
    """Counts, settings, inputs, versions and numerics, collapsed on the page. Empty tables are left out."""
    record = artifact.record
    artifacts = [(stage, digest[:_DIGEST_CHARS]) for stage, digest in record["inputs"]["artifacts"].items()]
    files = []
    for role, role_files in record["inputs"]["files"].items():
        for file in role_files:
            digest = file["version"] if "version" in file else file["sha256"]  # a version if remote
            files.append((role, str(file["name"]), formatting.megabytes(file["size"]), str(digest)[:_DIGEST_CHARS]))
    entry = stage_named(artifact.stage)
    names = entry.count_labels if entry else {}
    counts = [(names.get(key) or label(key), text) for key, text in _flatten(record["counts"])]
    numerics = [(label(key), text) for key, text in _flatten(record["numerics"])]
    tables = (
        TableElement(Message("Counts"), ("", ""), counts, "lr"),
        TableElement(
            Message("Settings"), (Message("setting"), Message("value")), list(_flatten(record["settings"])), "nk"
        ),
        TableElement(Message("Input artifacts"), (Message("stage"), Message("digest")), artifacts, "nn"),
        TableElement(
            Message("Input files"),
            (Message("role"), Message("file"), Message("size"), Message("SHA-256 or version")),
            files,
            "nkrn",
        ),
        TableElement(
            Message("Library versions"),
            (Message("library"), Message("version")),
            list(_flatten(record["versions"])),
            "nn",
        ),
        TableElement(Message("Numerical environment"), ("", ""), numerics, "nn"),
    )
    return [table for table in tables if table.rows]


def _flatten(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Yields nested values with their dotted names, in the order of the record; a list of plain values is one text."""
    if isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value):
        value = {f"[{index}]": inner for index, inner in enumerate(value)}
    if isinstance(value, dict) and (value or not name):
        for key, inner in value.items():
            yield from _flatten(inner, f"{name}.{key}".lstrip(".").replace(".[", "["))
    elif isinstance(value, dict | list):
        yield name, join_messages(map(formatting.value, value), ", ") or Message("none")
    else:
        yield name, formatting.value(value)
