"""One process of a tiny training that is sharded unless --whole, for tests of its checkpoints: `sharded_toy.py FOLDER`.

--stop-at N: SIGTERM to itself when update N (0-based) begins. --fault, in this process's second checkpoint:
  part     it is killed while it writes its part;
  record   it is killed when all parts are written, and the record is not yet on the disk;
  full     its disk is full.
--late: the first checkpoint is not written before update 9 begins.
"""

import argparse
import errno
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from korbert.training import Batch, Checkpointing, OptimizerSettings, TrainingOutput, TrainingPlan, checkpoints, fit
from korbert.training.updates import Updates
from korbert.world import connected

STEPS, EVERY = 30, 7


class Group(nn.Module):
    """Layers below another layer, as ALBERT of `transformers` has them."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleList([nn.Sequential(nn.Linear(15, 15), nn.GELU())])

    def forward(self, hidden: Tensor) -> Tensor:
        found: Tensor = self.inner[0](hidden)
        return found


class Network(nn.Module):
    """Of tensors that 2 and 3 processes share unevenly, some with nothing for the last one, and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.types = nn.Embedding(50, 15), nn.Embedding(2, 15)
        self.layers = nn.ModuleList([nn.ModuleList([nn.Sequential(nn.Linear(15, 15), nn.GELU())]), Group()])
        self.out, self.scale = nn.Linear(15, 50), nn.Parameter(torch.ones(1))
        self.register_buffer("shift", torch.full((3,), 0.5))

    def forward(self, ids: Tensor) -> Tensor:
        hidden = self.words(ids) + self.types.weight[1]
        for layer in (self.layers[0][0], self.layers[1]):
            hidden = hidden + layer(hidden)
        scores: Tensor = self.out(hidden) * self.scale + self.shift.sum()
        return scores


def batches(step: int) -> list[Batch]:
    """This process's rows of six."""
    generator = torch.Generator().manual_seed(step)
    ids = torch.randint(0, 50, (6, 5), generator=generator)[connected().share]
    return [{"ids": ids, "weight": torch.tensor(len(ids) / 6)}]


def loss(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    return {"loss": F.cross_entropy(model(batch["ids"]).flatten(0, 1), (batch["ids"].flatten() + 1) % 50)}


def at_updates(stop_at: int | None, begun: threading.Event) -> None:
    update = Updates.update

    def watched(self: Updates, step: int, micro_batches: Any) -> None:
        if step == stop_at:
            os.kill(os.getpid(), signal.SIGTERM)
        if step == 9:
            begun.set()
        update(self, step, micro_batches)

    Updates.update = watched  # type: ignore[method-assign]


def while_writing(fault: str | None, late: bool, begun: threading.Event) -> None:
    """A part is made by safetensors' `save`; rank 0 puts three things on the disk for each checkpoint."""
    save, sync, saved, synced = safetensors.torch.save, checkpoints.sync, [0], [0]

    def saves(*arguments: Any, **named: Any) -> bytes:
        saved[0] += 1
        if saved[0] == 1 and late:
            assert begun.wait(60), "training does not go on"
        if saved[0] == 2 and fault == "part":
            os.kill(os.getpid(), signal.SIGKILL)
        if saved[0] == 2 and fault == "full":
            raise OSError(errno.ENOSPC, "No space left on device")
        return save(*arguments, **named)

    def syncs(path: Path) -> None:
        synced[0] += 1
        if synced[0] == 4 and fault == "record":
            os.kill(os.getpid(), signal.SIGKILL)
        sync(path)

    safetensors.torch.save, checkpoints.sync = saves, syncs


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--stop-at", type=int)
    parser.add_argument("--fault", choices=["part", "record", "full"])
    parser.add_argument("--late", action="store_true")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    begun = threading.Event()
    at_updates(chosen.stop_at, begun)
    while_writing(chosen.fault, chosen.late, begun)
    model = Network()
    plan = TrainingPlan(STEPS, OptimizerSettings(learning_rate=0.02), 5, "fp32", 5)
    output = TrainingOutput(Checkpointing(chosen.folder / "checkpoints", EVERY))
    device = torch.device("cpu")
    try:
        result = fit(model, batches, loss, plan, device=device, output=output, sharded=not chosen.whole)
    except KeyboardInterrupt as ended:
        sys.exit(f"ended: {ended}")
    except Exception as error:  # as the command does: in words
        sys.exit(f"{type(error).__name__}: {error}")
    if os.environ.get("RANK", "0") == "0":
        safetensors.torch.save_file(model.state_dict(), chosen.folder / "model.safetensors")
        print("resumed at", result.first_step)


if __name__ == "__main__":
    main()
