"""What every page ends with: an artifact's counts, time, machine, settings, inputs, versions and files, as tables."""

from collections.abc import Iterator
from typing import Any

from pipelines.reports import formatting
from pipelines.reports.elements import Table
from pipelines.reports.labels import label
from pipelines.reports.record import Artifact

__all__ = ["facts", "origins"]

_DIGEST_CHARS = 12  # enough to tell two digests apart by eye


def facts(artifact: Artifact) -> tuple[Table, ...]:
    """How long it took where: short enough to be shown at once. Tables without rows are left out."""
    return _filled(Table("Time and machine", ("", ""), tuple(_run(artifact)), "ll"))


def origins(artifact: Artifact) -> tuple[Table, ...]:
    """Counts, settings, inputs, versions, numerics and files: folded on the page."""
    record = artifact.record
    inputs = record.get("inputs") or {}
    return _filled(
        Table("Counts", ("", ""), tuple(_labelled(record.get("counts"))), "lr"),
        Table("Settings", ("setting", "value"), tuple(_rows(record.get("settings"))), "lk"),
        Table("Artifacts read", ("stage", "digest"), tuple(_digests(inputs.get("artifacts"))), "ll"),
        Table(
            "Source files read",
            ("role", "file", "size", "SHA-256 or version"),
            tuple(_sources(inputs.get("files"))),
            "lkrl",
        ),
        Table("Versions", ("library", "version"), tuple(_rows(record.get("versions"))), "ll"),
        Table("Numerics of training", ("", ""), tuple(_labelled(record.get("numerics"))), "ll"),
        Table("Files of this artifact", ("folder or file", "files", "size"), tuple(_files(record.get("files"))), "lrr"),
    )


def _filled(*tables: Table) -> tuple[Table, ...]:
    return tuple(table for table in tables if table.rows)


def _rows(values: Any) -> Iterator[tuple[str, str]]:
    if values:
        yield from ((name, formatting.value(value)) for name, value in _flat(values, ""))


def _labelled(values: Any) -> Iterator[tuple[str, str]]:
    return ((label(name), text) for name, text in _rows(values))


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Nested objects as dotted names, in the order of the record; lists of plain values on one line."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value):
        for place, inner in enumerate(value):
            yield from _flat(inner, f"{name}[{place}]")
    elif isinstance(value, dict | list):
        yield name, ", ".join(formatting.value(inner) for inner in value) or "none"
    else:
        yield name, value


def _run(artifact: Artifact) -> Iterator[tuple[str, str]]:
    run = artifact.run
    if artifact.seconds is not None:
        again = " (the last sitting of a run that was resumed)" if run.get("resumed") else ""
        yield "took", formatting.duration(artifact.seconds) + again
    if isinstance(run.get("memory_peak_bytes"), int | float):
        yield "most memory in one process", formatting.megabytes(run["memory_peak_bytes"])
    for key in ("started", "machine", "workers", "command"):
        if run.get(key) is not None:
            yield key, formatting.value(run[key])


def _digests(digests: Any) -> Iterator[tuple[str, str]]:
    for stage, digest in (digests or {}).items():
        yield stage, str(digest)[:_DIGEST_CHARS]


def _sources(files: Any) -> Iterator[tuple[str, str, str, str]]:
    for role, found in (files or {}).items():
        for file in found:
            version = file["version"] if "version" in file else file["sha256"]  # the former behind an address
            yield role, str(file["name"]), formatting.megabytes(file["size"]), str(version)[:_DIGEST_CHARS]


def _files(files: Any) -> Iterator[tuple[str, str, str]]:
    """A row for each folder, however many parts it has, and one for each file that is in none."""
    sizes: dict[str, list[int]] = {}
    for name, facts_ in sorted((files or {}).items()):
        folder, slash, _ = name.rpartition("/")
        sizes.setdefault(folder + slash if slash else name, []).append(facts_["size"])
    for name, found in sizes.items():
        yield name, str(len(found)), formatting.megabytes(sum(found))
