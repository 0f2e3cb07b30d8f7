"""Training states on disk: whole or absent, the last few kept, a damaged one passed over.

`<folder>/step-00000400/` holds `state.safetensors` (every tensor of model and optimizer) and `record.json` (step, what
the run was, numbers of the meters, and the SHA-256 of the tensors' file, by which damage is found).
"""

import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

__all__ = ["Checkpoint", "load_newest", "save"]

_logger = logging.getLogger(__name__)

_STATE, _RECORD = "state.safetensors", "record.json"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One training state. step: updates done. record: anything JSON can hold."""

    step: int
    tensors: Mapping[str, Tensor]
    record: Mapping[str, Any]


def save(folder: Path, checkpoint: Checkpoint, keep: int) -> None:
    """Writes it aside, syncs, renames; then removes all but the `keep` newest. Remains of killed runs go first."""
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / f"step-{checkpoint.step:08d}"
    aside = folder / f"{final.name}.partial"
    for leftover in (*folder.glob("*.partial"), final):
        shutil.rmtree(leftover, ignore_errors=True)
    aside.mkdir()
    _write_tensors(checkpoint.tensors, aside / _STATE)
    record = {"step": checkpoint.step, "sha256": _digest(aside / _STATE), **checkpoint.record}
    (aside / _RECORD).write_text(json.dumps(record, ensure_ascii=False, indent=1), encoding="utf-8")
    for path in (aside / _STATE, aside / _RECORD, aside):
        _sync(path)
    aside.rename(final)
    _sync(folder)
    for old in _newest_first(folder)[keep:]:
        shutil.rmtree(old)


def _write_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Raises OSError, as any write does on a full disk; the library's own error has the number in its text alone."""
    try:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


def load_newest(folder: Path) -> Checkpoint | None:
    """The newest checkpoint that is whole; None if there is none. A damaged one is named in the log and passed over."""
    for path in _newest_first(folder):
        try:
            return _load(path)
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            _logger.warning("%s: damaged checkpoint (%s); trying the one before", path, error)
    return None


def _load(path: Path) -> Checkpoint:
    record = json.loads((path / _RECORD).read_text(encoding="utf-8"))
    digest = _digest(path / _STATE)
    if digest != record.pop("sha256"):
        raise ValueError(f"{_STATE} has SHA-256 {digest}, not the recorded one")
    return Checkpoint(step=record.pop("step"), tensors=load_file(path / _STATE), record=record)


def _newest_first(folder: Path) -> list[Path]:
    return sorted((path for path in folder.glob("step-*") if path.suffix != ".partial"), reverse=True)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
