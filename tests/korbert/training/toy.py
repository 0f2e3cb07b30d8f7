"""A tiny training run as a program, for tests that end it: `python toy.py FOLDER [JSON]`, the arguments of `train`."""

import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

from korbert.system.ranks import current_world
from korbert.training import Batch, FitResult, OptimizerSettings, TrainingOutput, TrainingPlan, checkpoints, fit

STEPS = 40


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(50, 16), nn.Dropout(0.2), nn.Linear(16, 32), nn.LayerNorm(32), nn.Linear(32, 50))


def batches(step: int, rows: int = 8, parts: int = 1) -> list[Batch]:
    ids = torch.randint(0, 50, (rows, 6), generator=torch.Generator().manual_seed(step))
    mask = torch.ones_like(ids)
    return [{"ids": part, "attention_mask": mask[: len(part)], "pieces": part.numel()} for part in ids.chunk(parts)]


def loss(model: nn.Module, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Each id is to say the next number."""
    scores = model(batch["ids"])
    right = (scores.argmax(-1) == (batch["ids"] + 1) % 50).float().mean()
    entropy = F.cross_entropy(scores.flatten(0, 1), (batch["ids"].flatten() + 1) % 50)
    return {"loss": entropy * batch["factor"] if "factor" in batch else entropy, "accuracy": right}


def evaluate(model: nn.Module, step: int) -> dict[str, float]:
    return {"heldout_loss": float(loss(model, batches(10_000)[0])["loss"])}


def train(
    folder: Path,
    *,
    kill_at: int | None = None,
    number: int = signal.SIGKILL,
    tensorboard: bool = True,
    parts: int = 1,
    dropout: bool = True,
    factors: Mapping[Any, float] | None = None,
    hasty: bool = False,
) -> tuple[nn.Module, FitResult]:
    """kill_at: the signal `number` goes to itself when that step's batch is asked for. factors: update (0-based) ->
    factor of its loss. hasty: rank 0 saves after each step.
    """
    factors = {int(step): factor for step, factor in (factors or {}).items()}

    def batches_until_death(step: int) -> list[dict[str, torch.Tensor]]:
        if step == kill_at:
            os.kill(os.getpid(), number)
        made = batches(step, parts=parts)
        if step in factors:
            made[-1]["factor"] = torch.tensor(factors[step])
        return made[current_world().share]

    model = network()
    model[1].p *= dropout
    output = TrainingOutput.below(folder, checkpoint_every=7)
    if hasty:
        output = replace(output, checkpoints=replace(output.checkpoints, every_seconds=0.0))
    result = fit(
        model,
        batches_until_death,
        loss,
        TrainingPlan(STEPS, OptimizerSettings(learning_rate=0.02), 5, "fp32", 5, 9),
        device=torch.device("cpu"),
        output=output if tensorboard else replace(output, tensorboard=None),
        evaluate=evaluate,
    )
    return model, result


def train_and_save(folder: Path, **options: Any) -> None:
    """As `train`, and the weights go into model.safetensors."""
    trained, _ = train(folder, **options)
    if os.environ.get("RANK", "0") == "0":
        save_file(trained.state_dict(), folder / "model.safetensors")


def die_in_checkpoint(number: int) -> None:
    """When the tensors of that checkpoint are written, and its record is not."""
    write, left = checkpoints._write_tensors, iter(range(number - 1, -1, -1))

    def write_and_die(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
        write(tensors, path)
        if next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoints._write_tensors = write_and_die


def command(folder: Path, **options: Any) -> list[str]:
    """The command of a run. options: of `train`, and kill_in_checkpoint (die_in_checkpoint)."""
    return [sys.executable, __file__, str(folder), json.dumps(options)]


def main() -> None:
    folder, options = Path(sys.argv[1]), json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    torch.set_num_threads(1)
    if number := options.pop("kill_in_checkpoint", None):
        die_in_checkpoint(number)
    try:
        train_and_save(folder, **options)
    except KeyboardInterrupt as ended:
        sys.exit(f"ended: {ended}")
    threads = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    assert not any("gloo" in name for name in threads), f"threads that outlive the training: {threads}"


if __name__ == "__main__":
    main()
