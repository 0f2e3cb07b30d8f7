"""An artifact is a folder, whole or absent: data files, and `stage.json` that says what made them (docs/formats.md).

artifacts/<recipe>/<stage>/            finished
artifacts/<recipe>/<stage>.partial/    under way; `plan.json` in it says what it will be
artifacts/<recipe>/<stage>.lock        held by the run that writes it
artifacts/<recipe>/<stage>.rebuild     --rebuild has still to make it anew
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from korbert.durable import write_whole
from korbert.errors import ArtifactError

FORMAT = 1
RECORD = "stage.json"
RUN = "run.json"
PLAN = "plan.json"
PAGE = "report.html"
SCRATCH = frozenset({"work", "checkpoints"})  # removed when a stage ends
BESIDE = frozenset({RECORD, RUN, PLAN, "timing.jsonl", "tensorboard", PAGE}) | SCRATCH  # outside the digest

Json = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What an artifact would be made from. Everything in it is part of the digest.

    settings: the stage's resolved settings.
    inputs: {"artifacts": {stage: digest}, "files": {role: [{name, size, sha256}]}}.
    """

    stage: str
    version: int
    settings: Json
    inputs: Json

    def as_json(self) -> Json:
        return {
            "format": FORMAT,
            "stage": self.stage,
            "stage_version": self.version,
            "settings": self.settings,
            "inputs": self.inputs,
        }


def read_json(path: Path) -> Json | None:
    """The object in `path`; None where there is no such file. Raises ArtifactError where it is not a JSON object."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, OSError) as error:
        raise ArtifactError(f"{path}: cannot be read ({error}): make this artifact anew with --rebuild") from error
    if not isinstance(value, dict):
        raise ArtifactError(
            f"{path}: holds a {type(value).__name__}, not an object: make this artifact anew with --rebuild"
        )
    return value


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Written aside, synced, renamed: a reader sees the old file or the new one."""
    text = json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True, allow_nan=False)
    write_whole(path, f"{text}\n".encode())


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(record: Mapping[str, Any]) -> str:
    """SHA-256 over settings, inputs and data files, as canonical JSON."""
    parts = {key: record[key] for key in ("format", "stage", "stage_version", "settings", "inputs", "files")}
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def data_files(folder: Path) -> list[Path]:
    """The files that make up the artifact, sorted by relative name."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in found if path.relative_to(folder).parts[0] not in BESIDE)


def differences(plan: Plan, record: Mapping[str, Any]) -> list[str]:
    """Where a recorded plan is not this plan: one line a field, this one's value first."""
    here, there = plan.as_json(), {key: record.get(key) for key in plan.as_json()}
    return [
        f"{name}: {_show(flat_here)} here, {_show(flat_there)} in the artifact"
        for name, flat_here, flat_there in _compare(here, there, "")
    ]


_ABSENT = object()


def _compare(here: Any, there: Any, name: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(here, dict) and isinstance(there, dict):
        for key in sorted(here.keys() | there.keys()):
            inner = f"{name}.{key}" if name else key
            yield from _compare(here.get(key, _ABSENT), there.get(key, _ABSENT), inner)
    elif here != there:
        yield name.removeprefix("settings."), here, there


def _show(value: Any) -> str:
    if value is _ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def damage(folder: Path, record: Mapping[str, Any], *, hashes: bool = False) -> str | None:
    """What is wrong with the data files of a finished artifact; None when nothing is. Sizes only, unless `hashes`."""
    for name, wanted in record["files"].items():
        path = folder / name
        if not path.is_file():
            return f"{path} is missing"
        if path.stat().st_size != wanted["size"]:
            return f"{path} has {path.stat().st_size:,} bytes, {wanted['size']:,} are recorded"
        if hashes and sha256(path) != wanted["sha256"]:
            return f"{path} has other bytes than recorded"
    extra = [path for path in data_files(folder) if path.relative_to(folder).as_posix() not in record["files"]]
    return f"{extra[0]} is not in the record" if extra else None


def finish(partial: Path, final: Path, plan: Plan, facts: Mapping[str, Any], run: Mapping[str, Any]) -> Json:
    """Turn a partial folder into the artifact: sync and hash its files, write the record, rename. Returns the record.

    facts: counts, versions, numerics. run: what goes into run.json.
    """
    files = {}
    for path in data_files(partial):
        _sync(path)
        files[path.relative_to(partial).as_posix()] = {"size": path.stat().st_size, "sha256": sha256(path)}
    record: Json = {**plan.as_json(), "files": files, **facts}
    record["digest"] = digest_of(record)
    write_json(partial / RUN, run)
    for folder in sorted({path.parent for path in data_files(partial)} | {partial}):
        _sync(folder)
    write_json(partial / RECORD, record)  # from here on the partial folder is whole: `settle` alone is left to do
    settle(partial, final)
    return record


def settle(partial: Path, final: Path) -> None:
    """Rename a partial folder that has its record into place, over an older artifact if there is one."""
    for name in SCRATCH:
        shutil.rmtree(partial / name, ignore_errors=True)
    (partial / PLAN).unlink(missing_ok=True)
    old = _old(final)
    shutil.rmtree(old, ignore_errors=True)
    if final.exists():
        final.rename(old)
    partial.rename(final)
    _sync(final.parent)
    shutil.rmtree(old, ignore_errors=True)


def tidy(partial: Path, final: Path) -> None:
    """Remove what runs that were cut off or given up have left beside a fresh artifact."""
    for leftover in (partial, _old(final)):
        shutil.rmtree(leftover, ignore_errors=True)


def _old(final: Path) -> Path:
    """Where an artifact lies for the moment in which a newer one takes its place."""
    return final.with_name(final.name + ".old")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def progress(partial: Path) -> str | None:
    """How far a cut-off or running stage has come, in words; None where nothing of it is finished."""
    try:
        if steps := list(partial.glob("work/*/parts")):
            newest = max(steps, key=lambda path: path.stat().st_mtime_ns)
            done, total = len(list(newest.parent.glob("part-*.json"))), int(newest.read_text(encoding="utf-8"))
            return f"{newest.parent.name}: {done:,} of {total:,} parts are done"
        if states := list(partial.glob("**/checkpoints/step-????????")):
            newest = max(states, key=lambda path: path.stat().st_mtime_ns)
            return f"step {int(newest.name.removeprefix('step-')):,} is saved"
    except (OSError, ValueError):  # the stage is at work, and has just removed or not yet written what was looked at
        return None
    return None


@contextlib.contextmanager
def locked(final: Path) -> Iterator[None]:
    """Hold the right to write one artifact. Raises ArtifactError, naming the process, where another run holds it."""
    final.parent.mkdir(parents=True, exist_ok=True)
    path = final.with_name(final.name + ".lock")
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            holder = owner(final) or "another process"
            raise ArtifactError(
                f"{final}: is being written by {holder}: wait for it, or stop it, and run this again"
            ) from error
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def owner(final: Path) -> str | None:
    """The process that is writing an artifact, as its lock file names it; None where none is. Takes no lock."""
    try:
        text = final.with_name(final.name + ".lock").read_text(encoding="utf-8").strip()
        os.kill(int(text.removeprefix("process ")), 0)
    except PermissionError:
        return text  # somebody else's process
    except (FileNotFoundError, ValueError, ProcessLookupError):
        return None
    return text
