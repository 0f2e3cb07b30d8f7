"""Checkpoints on disk: whole or absent, the last few kept, damaged ones skipped.

`<folder>/step-00000400/` holds `state.safetensors` (the tensors of model and optimizer) and `record.json` (step, plan,
sums of the metrics, held-out figures, and two SHA-256 that reveal damage: of the tensors' file and of the record).
"""

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from korbert.messages import Message, reason
from korbert.names import is_litter
from korbert.system import JsonObject, add_checksum, broadcast, current_world, scratch, sha256_of, sync, verify_checksum

_logger = logging.getLogger(__name__)

_STATE = "state.safetensors"
_RECORD = "record.json"
_NAME = re.compile(r"step-(?P<step>\d{8,})(?P<partial>\.partial)?")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One training state. step: updates done. record: JSON values."""

    step: int
    tensors: Mapping[str, Tensor]
    record: JsonObject


def save(folder: Path, checkpoint: Checkpoint, keep: int) -> None:
    """Writes a whole checkpoint aside, syncs and renames it; then removes all but the `keep` newest.

    Leftovers of killed runs are removed first: ArtifactError if one of them is not ours. Checkpoints of later steps
    are removed, too: this step is being repeated, so they were damaged and skipped.
    """
    step = checkpoint.step
    path = _path(folder, step)
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = [entry for entry in folder.iterdir() if (name := _NAME.fullmatch(entry.name)) and name["partial"]]
    for leftover in (*unfinished, path):
        scratch.remove(leftover, _is_checkpoint)
    aside = path.with_name(f"{path.name}.partial")
    aside.mkdir()
    try:
        _write_tensors(checkpoint.tensors, aside / _STATE)
        sync(aside / _STATE)
        record = {"step": step, "sha256": sha256_of(aside / _STATE), **checkpoint.record}
        (aside / _RECORD).write_bytes(add_checksum(record))
        sync(aside / _RECORD)
        sync(aside)
        aside.rename(path)
    except OSError:  # free space on a full disk for other files
        scratch.remove(aside, _is_checkpoint)
        raise
    sync(folder)
    present = _newest_first(folder)
    kept_steps = [saved_step for saved_step in present if saved_step <= step][:keep]
    for saved_step in present.keys() - set(kept_steps):
        scratch.remove(present[saved_step], _is_checkpoint)


def _path(folder: Path, step: int) -> Path:
    return folder / f"step-{step:08d}"


def remove_all(folder: Path) -> None:
    """Removes all checkpoints of a folder, and the folder if nothing else is in it."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if _NAME.fullmatch(path.name):
            scratch.remove(path, _is_checkpoint)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _is_checkpoint(folder: Path) -> bool:
    """Whether a folder is a checkpoint, whole, damaged or unfinished."""
    files = (path for path in folder.iterdir() if not is_litter(path.name))
    return all(path.name in (_STATE, _RECORD) and path.is_file() for path in files)


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
    """The newest whole checkpoint; None if there is none. Damaged ones are logged and skipped.

    Of several connected processes, all read the one that rank 0 finds.
    """
    world = current_world()
    newest = None
    for step, path in _newest_first(folder).items() if world.is_main_process else ():
        try:
            newest = load(folder, step)
            break
        except (OSError, ValueError, SafetensorError) as error:
            _logger.warning(
                Message("{path}: damaged checkpoint ({reason}); trying the one before", path=path, reason=reason(error))
            )
    newest_whole = broadcast(lambda: newest.step if newest else None)
    return newest if world.is_main_process or newest_whole is None else load(folder, newest_whole)


def load(folder: Path, step: int) -> Checkpoint:
    """Loads the checkpoint of a step. Raises OSError, ValueError or SafetensorError if it is missing or damaged."""
    path = _path(folder, step)
    try:
        record = verify_checksum((path / _RECORD).read_bytes())
    except ValueError as error:
        raise ValueError(Message("{record} {reason}", record=_RECORD, reason=reason(error))) from None
    if record.pop("step", None) != step:
        raise ValueError(Message("{record} is of another step", record=_RECORD))
    digest = sha256_of(path / _STATE)
    if record.pop("sha256", None) != digest:
        raise ValueError(Message("{state} has SHA-256 {digest}, not the recorded one", state=_STATE, digest=digest))
    return Checkpoint(step=step, tensors=load_file(path / _STATE), record=record)


def newest_step(folder: Path) -> int | None:
    """The last step with a checkpoint, whole or damaged; None if there is none."""
    return next(iter(_newest_first(folder)), None)


def _newest_first(folder: Path) -> dict[int, Path]:
    """Step -> folder of its checkpoint. Other names are ignored."""
    names = {path: _NAME.fullmatch(path.name) for path in folder.glob("step-*")}
    finished = {int(name["step"]): path for path, name in names.items() if name and not name["partial"]}
    return dict(sorted(finished.items(), reverse=True))
