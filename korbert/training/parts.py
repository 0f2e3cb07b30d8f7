"""Checkpoints of a sharded model: each process writes its part in the background while training continues.

`torch.distributed.checkpoint` copies the state to main memory, has each process write what it holds of it as one
safetensors file, and reads these files for any other number of processes, or for a whole model. Rank 0 makes the
checkpoint visible (korbert/training/checkpoints.py) when all parts are on the disk.
This module is slow to import, so only runs with such checkpoints import it.
"""

import os
import warnings
from collections.abc import Mapping
from concurrent import futures
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.distributed.checkpoint import state_dict_loader, state_dict_saver
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner

from korbert.durable import sha256_of
from korbert.training.checkpoints import Checkpoint, aside_of, make_aside, publish, remove

__all__ = ["PartsWriter", "described", "read"]


class PartsWriter:
    """Writes checkpoints in the background, one at a time. Every process has one and makes the same calls."""

    def __init__(self, folder: Path, keep: int) -> None:
        """keep: number of checkpoints to keep, as in `checkpoints.save`."""
        self._folder, self._keep = folder, keep
        self._group = torch.distributed.new_group(backend="gloo")  # threads that share one would mix up its exchanges
        self._writing: futures.Future[Metadata] | None = None

    def save(self, checkpoint: Checkpoint) -> None:
        """Starts writing once the previous one is written. The tensors may change afterwards. Raises as `wait`."""
        self.wait()
        writer = _Writer(self._folder, checkpoint, self._keep)
        future = state_dict_saver.async_save(dict(checkpoint.tensors), storage_writer=writer, process_group=self._group)
        assert isinstance(future, futures.Future)
        self._writing = future
        if torch.distributed.get_rank() == 0:
            future.add_done_callback(writer.clear_failed)

    def wait(self) -> None:
        """Returns when the last one is visible. Raises the error of any process, the same one in all."""
        writing, self._writing = self._writing, None
        try:
            if writing:
                writing.result()
        except CheckpointException as error:
            raise _first_failure(error) from None

    def check(self) -> None:
        """Raises as `wait` if writing has already failed; does not wait."""
        if self._writing and self._writing.done():
            self.wait()

    def close(self) -> None:
        """Returns when writing has ended, successfully or not."""
        if self._writing:
            futures.wait([self._writing])


class _Writer(HuggingFaceStorageWriter):
    """One checkpoint. Where `save` calls a method in one process only, that is rank 0."""

    def __init__(self, folder: Path, checkpoint: Checkpoint, keep: int) -> None:
        self._folder, self._step, self._record, self._keep = folder, checkpoint.step, checkpoint.record, keep
        super().__init__(str(aside_of(folder, checkpoint.step)), save_distributed=True)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """In all processes, before the folder is made."""
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """In one process, before any writes."""
        make_aside(self._folder, self._step)
        return super().prepare_global_plan(plans)

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Any:
        """In all processes. Returns pairs of file name and SHA-256, which `finish` receives."""
        try:
            written = super().write_data(plan, planner).value()
        except OSError as error:  # of a full disk has no name
            name = error.filename or str(self.path)
            raise OSError(error.errno, os.strerror(error.errno or 0), name) from error
        done: torch.futures.Future[list[tuple[str, str]]] = torch.futures.Future()
        names = {result.storage_data.relative_path for result in written}
        done.set_result([(name, sha256_of(Path(self.path) / name)) for name in names])
        return done

    def finish(self, metadata: Metadata, results: list[list[Any]]) -> None:
        """In one process, once all parts are on disk."""
        files = dict(sorted(pair for part in results for pair in part))
        publish(Path(self.path), {"step": self._step, "files": files, **self._record}, self._keep)

    def clear_failed(self, writing: futures.Future[Metadata]) -> None:
        """Removes what was written of it, if no process writes any more: a full disk has room again."""
        if isinstance(writing.exception(), CheckpointException):
            remove(Path(self.path))


def described(folder: Path) -> dict[str, Tensor]:
    """The tensors of a checkpoint by name, in full shape, without values (device "meta")."""
    kept = HuggingFaceStorageReader(str(folder)).read_metadata().state_dict_metadata
    entries = cast(Mapping[str, TensorStorageMetadata], kept)
    return {
        name: torch.empty(one.size, dtype=one.properties.dtype, device="meta") for name, one in sorted(entries.items())
    }


def read(folder: Path, tensors: dict[str, Tensor]) -> None:
    """Fills the tensors; a sharded one gets this process's part. Needs no other process."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is disabled, unavailable or uninitialized")
        try:
            state_dict_loader.load(tensors, storage_reader=HuggingFaceStorageReader(str(folder)), no_dist=True)
        except CheckpointException as error:
            raise _first_failure(error) from None


def _first_failure(error: CheckpointException) -> BaseException:
    """The error of the lowest failing rank: CheckpointException is no Exception, and too long to show."""
    failure, _ = error.failures[min(error.failures)]
    return failure
