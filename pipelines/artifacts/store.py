"""Artifacts: folders, whole or absent, of data files and a `stage.json` that records their origin (docs/formats.md).

artifacts/<recipe>/<stage>/                    finished
artifacts/<recipe>/<stage>.partial/            in progress: `plan.json` records its settings and inputs, `.korbert` says
                                               that it is ours, `rebuild` that --rebuild has not yet remade the artifact
artifacts/<recipe>/<stage>.lock                held by the run that writes it

For a stage that runs outside a recipe, the user chooses the folder; the other two lie next to it. Of a finished
artifact, the files that its record lists are ours; where the record cannot be read, none is.
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal

from filelock import lock_descriptor
from pydantic import BaseModel, Field, ValidationError

from korbert.errors import ArtifactError
from korbert.messages import Message, argument
from korbert.names import is_litter
from korbert.system import (
    MARK,
    JsonObject,
    claim,
    durable,
    is_aside,
    is_marked,
    remove,
    remove_listed,
    sha256_of,
    sync,
    unlisted_paths,
)

FORMAT = 1
RECORD = "stage.json"
RUN = "run.json"
PLAN = "plan.json"
PAGE = "report.html"
REBUILD = "rebuild"
SCRATCH = frozenset({"work", "checkpoints"})  # removed when a stage ends
MOVE_IT = "if it is korbert's, it is damaged: move this folder away, and run the command again"
_MARKS = (MARK, REBUILD)  # of a partial folder
_UNRECORDED = frozenset({RECORD, RUN, "timing.jsonl", PAGE, *_MARKS})  # files of an artifact outside the digest
BESIDE = _UNRECORDED | SCRATCH | {PLAN, "tensorboard"}


@dataclass(frozen=True)
class Plan:
    """The settings and inputs of an artifact. The digest covers everything but `versions`.

    settings: the resolved settings of the stage.
    inputs: {"artifacts": {stage: digest}, "files": {role: [{name, size, sha256}]}}.
    versions: of the libraries that affect the bytes. A partial artifact is not resumed with other versions.
    """

    stage: str
    version: int
    settings: JsonObject
    inputs: JsonObject
    versions: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> JsonObject:
        return {
            "format": FORMAT,
            "stage": self.stage,
            "stage_version": self.version,
            "settings": self.settings,
            "inputs": self.inputs,
        }


class _Begun(BaseModel, strict=True):
    """The fields of `plan.json` that are read. What is in a file's entry is covered by the digest."""

    settings: JsonObject
    inputs: dict[Literal["artifacts", "files"], JsonObject]
    versions: dict[str, str]
    sittings: list[JsonObject] = []
    failed: dict[str, Any] = Field(default_factory=dict)


class _Record(_Begun):
    """The fields of `stage.json` that are read."""

    format: Literal[1]
    stage: str
    stage_version: int
    files: dict[str, JsonObject]
    counts: dict[str, Annotated[float, Field(allow_inf_nan=False)]]
    numerics: JsonObject
    digest: str


def read_record(folder: Path) -> JsonObject | None:
    """Returns `stage.json` of an artifact; None if absent.

    ArtifactError if it is not a valid record, or its digest does not match its settings, inputs and files.
    """
    record = read_json(folder / RECORD, _Record)
    if record is not None and digest_of(record) != record["digest"]:
        raise ArtifactError(
            "{folder}: its digest does not match its content, it was changed: {move_it}",
            folder=folder / RECORD,
            move_it=MOVE_IT,
        )
    return record


def read_plan(partial: Path) -> JsonObject | None:
    """The plan of a partial folder: `plan.json`, else its record; None if it has neither.

    ArtifactError if the file is invalid.
    """
    return read_json(partial / PLAN, _Begun) or read_json(partial / RECORD, _Record)


def read_json(path: Path, fields: type[BaseModel] | None = None) -> JsonObject | None:
    """The JSON object in a file; None if absent. ArtifactError if it is something else, or lacks one of the fields."""
    try:
        value = durable.read_json(path)
        if not isinstance(value, dict):
            raise ArtifactError(
                "{path}: holds a {name}, not an object: {move_it}",
                path=path,
                name=type(value).__name__,
                move_it=MOVE_IT,
            )
        if fields is not None:
            fields.model_validate(value)
    except FileNotFoundError:
        return None
    except ValidationError as error:
        first = error.errors()[0]
        raise ArtifactError(
            "{path}: {field}: {first}: {move_it}",
            path=path,
            field=".".join(map(str, first["loc"])),
            first=first["msg"],
            move_it=MOVE_IT,
        ) from error
    except (ValueError, OSError) as error:
        raise ArtifactError(
            "{path}: cannot be read ({error}): {move_it}", path=path, error=error, move_it=MOVE_IT
        ) from error
    return value


def digest_of(record: JsonObject) -> str:
    """SHA-256 over settings, inputs and data files, as canonical JSON."""
    # Versions and counts are left out: the same bytes made elsewhere have the same digest.
    covered = {key: record[key] for key in ("format", "stage", "stage_version", "settings", "inputs", "files")}
    text = json.dumps(covered, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def data_files(folder: Path) -> list[Path]:
    """The files that the digest covers, sorted by relative name."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and path.relative_to(folder).parts[0] not in BESIDE
        if not (is_aside(path.name) or is_litter(path.name))
    )


def differences(plan: Plan, record: JsonObject) -> list[Message]:
    """The fields in which a record differs from this plan, one line each, with the plan's value first.

    A record without files is the plan of a partial folder, which is not resumed with other versions of libraries.
    """
    here = plan.as_json()
    lines = [*_compare(here, {key: record.get(key) for key in here}, Message("in the artifact"))]
    if "files" not in record:
        begun = record["versions"]
        lines += _compare(dict(plan.versions), begun, Message("when it was begun"), "versions")
    return lines


_ABSENT = object()


def _compare(here: object, there: object, where: Message, name: str = "") -> Iterator[Message]:
    """Yields a line for each difference between two JSON values. where: says where the second one is. name: of both."""
    if here != there and _is_file(here) and _is_file(there):
        files = {"here": _file(here), "there": _file(there)}
        yield Message("{name}: {here} here, {there} {where}", name=name, where=where, **files)
    elif isinstance(here, dict) and isinstance(there, dict):
        for key in sorted(here.keys() | there.keys()):
            inner = f"{name}.{key}" if name else key
            yield from _compare(here.get(key, _ABSENT), there.get(key, _ABSENT), where, inner)
    elif isinstance(here, list) and isinstance(there, list) and any(isinstance(item, dict) for item in here + there):
        for number, pair in enumerate(zip_longest(here, there, fillvalue=_ABSENT)):
            here_name, there_name = (item.get("name") if isinstance(item, dict) else None for item in pair)
            yield from _compare(
                *pair, where, f"{name}.{here_name if here_name and here_name == there_name else number}"
            )
    elif here != there:
        # Values are shown as JSON; of long ones, the part where the difference begins.
        texts = ["nothing" if value is _ABSENT else json.dumps(value, ensure_ascii=False) for value in (here, there)]
        first = next((index for index, pair in enumerate(zip(*texts, strict=False)) if len(set(pair)) > 1), 0)
        start = max(0, first - 20) if max(map(len, texts)) > 60 else 0
        rests = [text[start:] for text in texts]
        here_text, there_text = (
            "..." * (start > 0) + (rest if len(rest) <= 60 else rest[:57] + "...") for rest in rests
        )
        here_text, there_text = (Message("nothing") if text == "nothing" else text for text in (here_text, there_text))
        yield Message(
            "{name}: {here} here, {there} {where}",
            name=name.removeprefix("settings."), here=here_text, there=there_text, where=where,
        )  # fmt: skip


def _is_file(value: object) -> bool:
    return isinstance(value, dict) and value.keys() == {"name", "sha256", "size"}


def _file(record: Any) -> Message:
    return Message(
        "{file} ({size:,} bytes, SHA-256 {digest}...)",
        file=record["name"], size=record["size"], digest=record["sha256"][:8],
    )  # fmt: skip


def damage(folder: Path, record: JsonObject, *, hashes: bool = False) -> Message | None:
    """Returns the first fault in the data files of an artifact, or None. Checks sizes; with `hashes`, SHA-256, too."""
    for name, wanted in record["files"].items():
        path = folder / name
        if not path.is_file():
            return Message("{path} is missing", path=path)
        if path.stat().st_size != wanted["size"]:
            return Message(
                "{path} has {size:,} bytes, {recorded:,} are recorded",
                path=path, size=path.stat().st_size, recorded=wanted["size"],
            )  # fmt: skip
        if hashes and sha256_of(path) != wanted["sha256"]:
            return Message("{path} has other bytes than recorded", path=path)
    extra = [path for path in data_files(folder) if path.relative_to(folder).as_posix() not in record["files"]]
    return Message("{path} is not in the record", path=extra[0]) if extra else None


def changed_file(folder: Path, record: JsonObject) -> Path | None:
    """The first data file whose bytes differ from the recorded SHA-256; None if none does.

    `run.json` keeps the size and mtime of each hashed file; a file is hashed again only if either changed.
    """
    try:
        run = read_json(folder / RUN) or {}
    except ArtifactError:
        run = None
    hashed: JsonObject = dict(run["hashed"]) if run and isinstance(run.get("hashed"), dict) else {}
    for name, wanted in record["files"].items():
        path: Path = folder / name
        stamp = [path.stat().st_size, path.stat().st_mtime_ns]
        if hashed.get(name) != stamp:
            if sha256_of(path) != wanted["sha256"]:
                return path
            hashed[name] = stamp
    if run is not None and hashed != run.get("hashed"):  # a file that cannot be read is left as it is
        durable.write_json(folder / RUN, {**run, "hashed": hashed}, sort_keys=True)
    return None


def finish(partial: Path, final: Path, plan: Plan, facts: JsonObject, run: JsonObject) -> JsonObject:
    """Turns a partial folder into the artifact: syncs and hashes files, writes the record, renames. Returns the record.

    facts: counts and numerics. run: the content of run.json, except the sizes and times of hashed files.
    """
    files = {}
    hashed = {}
    for path in list(partial.rglob(".korbert-*")):  # left by killed runs
        _discard(path)
    for path in data_files(partial):
        sync(path)
        name = path.relative_to(partial).as_posix()
        stat = path.stat()
        files[name] = {"size": stat.st_size, "sha256": sha256_of(path)}
        hashed[name] = [stat.st_size, stat.st_mtime_ns]
    record: JsonObject = {**plan.as_json(), "files": files, "versions": dict(plan.versions), **facts}
    record["digest"] = digest_of(record)
    durable.write_json(partial / RUN, {**run, "hashed": hashed}, sort_keys=True)
    # The names of the files, too, have to be on disk before the record lists them.
    for folder in sorted({path.parent for path in data_files(partial)} | {partial}):
        sync(folder)
    # Once the record is written, the partial folder is complete; only `publish` is left.
    durable.write_json(partial / RECORD, record, sort_keys=True)
    publish(partial, final)
    return record


def publish(partial: Path, final: Path) -> None:
    """Renames a partial folder with its record into place, replacing an older artifact."""
    check_place(final)  # checked again: other files may have appeared during the run
    for name in (*SCRATCH, PLAN):
        _discard(partial / name)
    # A run killed between the two renames leaves the older artifact whole next to the newer one.
    old = old_of(final)
    _remove(old)
    if final.exists():
        for path in [path for path in final.rglob("*") if is_litter(path.name) and path.is_file()]:
            kept = partial / path.relative_to(final)
            kept.parent.mkdir(parents=True, exist_ok=True)
            path.rename(kept)
        final.rename(old)
    partial.rename(final)
    for name in _MARKS:
        (final / name).unlink(missing_ok=True)
    sync(final.parent)
    _remove(old)


def tidy(partial: Path, final: Path) -> None:
    """Removes leftovers of interrupted runs next to a fresh artifact."""
    if is_marked(partial):
        remove(partial)
    if is_marked(final):  # killed while it was put in place
        for name in _MARKS:
            (final / name).unlink(missing_ok=True)
    if not foreign_paths(old_of(final)):
        _remove(old_of(final))


def _remove(folder: Path) -> None:
    """Removes an artifact: the files that its record lists. Does nothing if there is none."""
    if folder.exists():
        remove_listed(folder, _is_listed(folder, read_record(folder) or {"files": {}}))


def _discard(path: Path) -> None:
    """Removes a file, link or folder in a partial folder, which is ours with all that it holds."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        remove(path, Path.is_dir)


def empty(partial: Path, *keep: str | None) -> None:
    """Makes the partial folder, or empties it but for these names. ArtifactError if it has no mark of ours."""
    for path in claim(partial).iterdir():
        if path.name not in (MARK, *keep):
            _discard(path)


def begin(partial: Path, plan: Plan, keep: str | None = None) -> None:
    """Empties the partial folder and writes its plan. keep: name of a subfolder to keep. ArtifactError: see `empty`."""
    empty(partial, keep, REBUILD)
    durable.write_json(partial / PLAN, {**plan.as_json(), "versions": dict(plan.versions)}, sort_keys=True)


def holds_work(partial: Path) -> bool:
    """Whether a partial folder holds work to resume: a finished part, training or artifact, or a checkpoint."""
    return (partial / RECORD).is_file() or any(
        True for pattern in ("work/**/*.json", "**/checkpoints/step-????????") for _ in partial.glob(pattern)
    )


def check_place(final: Path, option: str = "root") -> None:
    """Raises ArtifactError if a file, a link or files of somebody else are in the place of an artifact.

    option: the option that chooses another path.
    """
    for path in (final, partial_of(final), old_of(final)):
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise ArtifactError(
                "{path}: is {what}, so no artifact is written there: remove it or choose another {option}",
                path=path,
                what=Message("a symbolic link") if path.is_symlink() else Message("not a folder"),
                option=argument(option),
            )
        # A marked partial folder is ours with all that it holds, whatever that is.
        if not (path == partial_of(final) and is_marked(path)) and (foreign := foreign_paths(path)):
            raise ArtifactError(
                "{path}: holds {others}, which no readable record of korbert lists: move it away or choose "
                "another {option}",
                path=path,
                others=foreign[0].relative_to(path),
                option=argument(option),
            )


def foreign_paths(folder: Path) -> list[Path]:
    """Returns the paths in the place of an artifact that are not ours, in order: those that its record does not list.

    If there is no record, or it cannot be read, these are all paths: then the folder is somebody else's.
    """
    try:
        record = read_record(folder)
    except ArtifactError:
        record = None
    if record is None:
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
    else:
        paths = unlisted_paths(folder, _is_listed(folder, record))
    return [path for path in paths if not is_litter(path.name)]


def _is_listed(folder: Path, record: JsonObject) -> Callable[[str], bool]:
    """Returns a function that tells by its name, relative to the folder, whether a file of an artifact is ours."""
    names = record["files"].keys() | _UNRECORDED
    try:
        read_json(folder / RUN)
    except ArtifactError:
        names -= {RUN}
    return lambda name: name in names or is_aside(name) or fnmatchcase(name, "tensorboard/events.out.tfevents.*")


def partial_of(final: Path) -> Path:
    """The folder of an artifact in progress."""
    return final.with_name(final.name + ".partial")


def old_of(final: Path) -> Path:
    """Where an older artifact is moved while a newer one replaces it."""
    return final.with_name(f".korbert-{final.name}.old")


@contextlib.contextmanager
def artifact_lock(final: Path) -> Iterator[None]:
    """Holds the lock of an artifact. ArtifactError, naming the process, if another run holds it."""
    final.parent.mkdir(parents=True, exist_ok=True)
    path = final.with_name(final.name + ".lock")
    foreign = ArtifactError("{path}: is not a lock of korbert, which would be there: move it away", path=path)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise foreign
    # The file is not truncated before the lock is taken, as it names the run that holds the lock.
    with path.open("a+b") as file:
        if not lock_descriptor(file.fileno(), blocking=False):
            raise ArtifactError(
                "{final}: is being written by {holder}: wait for it, or stop it, and run this again",
                final=final,
                holder=owner(final) or Message("another process"),
            )
        file.seek(0)
        if not re.fullmatch(rb"(process \d+)?", file.read(64)):
            raise foreign
        file.truncate(0)
        file.write(f"process {os.getpid()}".encode())
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def owner(final: Path) -> str | None:
    """The process that is writing an artifact, according to the lock file, or None. Does not take the lock."""
    text = "another process"
    try:
        text = durable.read_small(final.with_name(final.name + ".lock"), 64).decode().strip()
        if os.name == "nt":  # there, a readable lock is not held, and os.kill would send Ctrl-C
            return None
        os.kill(int(text.removeprefix("process ")), 0)
    except PermissionError:
        return text  # a process of another user, or on Windows any that holds the lock
    except (OSError, ValueError):
        return None
    return text
