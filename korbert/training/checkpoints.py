"""Checkpoints on disk: whole or absent, the last few kept, damaged ones skipped.

`<folder>/step-00000400/` holds `state.safetensors` (the tensors of model and optimizer) and `record.json` (step, plan,
sums of the metrics, held-out figures, and two SHA-256 that reveal damage: of the tensors' file and of the record).
"""

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

from korbert.durable import checksummed, sha256_of, sync, verified

__all__ = ["Checkpoint", "load", "load_newest", "newest_step", "save"]

_logger = logging.getLogger(__name__)

_STATE, _RECORD = "state.safetensors", "record.json"
_NAME = re.compile(r"step-(\d{8,})")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One training state. step: updates done. record: JSON values."""

    step: int
    tensors: Mapping[str, Tensor]
    record: Mapping[str, Any]


def save(folder: Path, checkpoint: Checkpoint, keep: int) -> None:
    """Writes a checkpoint aside, syncs and renames it; then removes all but the `keep` newest.

    What killed runs left behind is removed first. Checkpoints of later steps are removed, too: this step is made again,
    so they were damaged and skipped.
    """
    folder.mkdir(parents=True, exist_ok=True)
    final = _place(folder, checkpoint.step)
    aside = folder / f"{final.name}.partial"
    for leftover in (*folder.glob("*.partial"), final):
        _remove(leftover)
    aside.mkdir()
    try:
        _write_tensors(checkpoint.tensors, aside / _STATE)
        record = {"step": checkpoint.step, "sha256": sha256_of(aside / _STATE), **checkpoint.record}
        (aside / _RECORD).write_bytes(checksummed(record))
        for path in (aside / _STATE, aside / _RECORD, aside):
            sync(path)
    except OSError:  # a full disk has room again for what else is to be written
        _remove(aside)
        raise
    aside.rename(final)
    sync(folder)
    present = _newest_first(folder)
    skipped = [step for step in present if step > checkpoint.step]
    for step in skipped + [step for step in present if step <= checkpoint.step][keep:]:
        _remove(present[step])


def _place(folder: Path, step: int) -> Path:
    return folder / f"step-{step:08d}"


def _remove(path: Path) -> None:
    """Removes a folder, or a file or link in its place."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _write_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Raises OSError on a full disk, as other writes do; safetensors gives the error number only in its text."""
    try:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


def load_newest(folder: Path) -> Checkpoint | None:
    """The newest whole checkpoint; None if there is none. Damaged ones are logged and skipped."""
    for step, path in _newest_first(folder).items():
        try:
            return load(folder, step)
        except (OSError, ValueError, SafetensorError) as error:
            _logger.warning("%s: damaged checkpoint (%s); trying the one before", path, error)
    return None


def load(folder: Path, step: int) -> Checkpoint:
    """The checkpoint of that step. Raises OSError, ValueError or SafetensorError where it is absent or damaged."""
    path = _place(folder, step)
    try:
        record = verified((path / _RECORD).read_bytes())
    except ValueError as error:
        raise ValueError(f"{_RECORD} {error}") from None
    if record.pop("step", None) != step:
        raise ValueError(f"{_RECORD} is of another step")
    digest = sha256_of(path / _STATE)
    if digest != record.pop("sha256", None):
        raise ValueError(f"{_STATE} has SHA-256 {digest}, not the recorded one")
    return Checkpoint(step=step, tensors=load_file(path / _STATE), record=record)


def newest_step(folder: Path) -> int | None:
    """The last step with a checkpoint, whole or damaged; None if there is none."""
    return next(iter(_newest_first(folder)), None)


def _newest_first(folder: Path) -> dict[int, Path]:
    """Step -> folder of its checkpoint. Other names are ignored."""
    named = [(_NAME.fullmatch(path.name), path) for path in folder.glob("step-*")]
    return dict(sorted(((int(name[1]), path) for name, path in named if name), reverse=True))
