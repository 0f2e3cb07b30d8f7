"""Fine-tuning for any task: trains a model and keeps the epoch that is best on validation examples.

1. A Way is one combination of learning rate, batch size and epochs; `LearningSettings.ways` lists those to try.
2. `finetune` trains a model with one Way and one seed.
3. `outputs` runs a model over examples, shortest first.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Required, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from korbert.errors import SettingsError
from korbert.modeling.encoder import Encoder
from korbert.tasks.finetuning.best_epoch import Best, BestKeeper, load_best, read_best
from korbert.tasks.finetuning.examples import Batches, Learnable
from korbert.tasks.finetuning.layerwise import decayed, freeze
from korbert.tasks.finetuning.lora import add_adapters, merge, merged
from korbert.tasks.finetuning.seen import learning_seen
from korbert.tasks.finetuning.settings import LearningSettings, Way
from korbert.training.checkpoints import newest_step, remove_all
from korbert.training.devices import Batch, autocast, memory_kept, moved
from korbert.training.distributed import add_over_world
from korbert.training.loop import Loss, fit
from korbert.training.plan import Checkpointing, TrainingOutput, TrainingPlan
from korbert.training.settings import OptimizerSettings, PrecisionName
from korbert.world import connected, from_first, greatest

__all__ = ["ROWS_AT_ONCE", "Measure", "Scoring", "finetune", "model_inputs", "outputs", "scored"]

_logger = logging.getLogger(__name__)

ROWS_AT_ONCE = 8_192  # whose pieces a predictor holds in memory; more rows give batches of more similar lengths
_RELEASE_EVERY = 16  # batches; see memory_kept

Measure = Callable[[nn.Module], tuple[float, dict[str, float]]]
"""Model -> its validation score, higher is better, and figures for the log."""


def finetune(
    model: nn.Module, examples: Learnable, loss: Loss, measure: Measure | None, settings: LearningSettings, way: Way, *,
    seed: int, work: Path, metrics: Path, device: torch.device, description: str = "finetune", anomaly: bool = False,
) -> Best:  # fmt: skip
    """Trains `model` and returns its best epoch, whose weights it then has, in eval mode.

    measure: None: the last epoch is taken for the best.
    work: folder for checkpoints, `best.safetensors` and `timing.jsonl`; with the same folder, an interrupted run
    resumes and ends in the same bytes. metrics: log file of `fit`, with "heldout" at the end of each epoch.
    anomaly: as in `fit`. With several connected processes all train, and rank 0 writes.
    """
    batches = Batches(examples, way.batch_size, seed)
    from_first(lambda: _remove_checkpoints_without_the_best(work, batches.steps_per_epoch))
    plan = TrainingPlan(
        steps=way.epochs * batches.steps_per_epoch, optimizer=_prepared(model, settings, way, seed), seed=seed,
        precision=settings.precision, log_every=settings.log_every, evaluate_every=batches.steps_per_epoch,
    )  # fmt: skip
    keeper = BestKeeper(work, batches.steps_per_epoch, measure)
    keeper.best = from_first(lambda: read_best(work))  # a resumed run asks `enough` before it evaluates

    def keep(model: nn.Module, step: int) -> dict[str, float]:
        return keeper(merged(model) if settings.lora else model, step)

    def enough(heldout: Mapping[str, float]) -> bool:
        best = keeper.best
        return settings.patience is not None and best is not None and heldout["epoch"] - best.epoch >= settings.patience

    output = TrainingOutput(
        Checkpointing(work / "checkpoints", settings.checkpoint_every), metrics, timing=work / "timing.jsonl"
    )
    with learning_seen(model, examples):
        fit(model, batches, loss, plan, device=device, output=output, evaluate=keep, enough=enough,
            description=description, anomaly=anomaly)  # fmt: skip
        if settings.lora:
            merge(model)  # so that the weights of the best epoch, which are kept merged, fit
        return load_best(work, model)


def _remove_checkpoints_without_the_best(work: Path, steps_per_epoch: int) -> None:
    """Makes a run that has lost the weights of its best epoch start anew."""
    if read_best(work) is None and (newest_step(work / "checkpoints") or 0) >= steps_per_epoch:
        _logger.warning("%s: the weights of the best epoch are lost: training from the start", work)
        remove_all(work / "checkpoints")


def _prepared(model: nn.Module, settings: LearningSettings, way: Way, seed: int) -> OptimizerSettings:
    """Sets piece dropout, adds adapters and freezes layers as configured; returns the optimizer settings."""
    if settings.piece_dropout:  # word dropout (Iyyer et al. 2015, 3.1)
        encoder = model.encoder
        if not isinstance(encoder, Encoder):
            raise SettingsError(
                f"piece_dropout {settings.piece_dropout}: an encoder of transformers has dropout settings of its own, "
                "in config.json: leave piece_dropout out"
            )
        encoder.embeddings.piece_dropout = settings.piece_dropout
    if settings.lora:
        add_adapters(model, settings.lora, seed)
    if settings.frozen_embeddings:
        model.encoder.token_weight.requires_grad_(False)  # type: ignore[union-attr]
    if settings.frozen_layers:
        freeze(model, settings.frozen_layers)
    optimizer = settings.optimizer(way.learning_rate)
    if settings.layer_decay < 1:
        optimizer = optimizer.model_copy(update={"groups": decayed(model, settings.layer_decay)})
    return optimizer


def model_inputs(batch: Batch) -> dict[str, Any]:
    """The model's keyword arguments in a batch of examples."""
    names = ("input_ids", "attention_mask", "token_type_ids", "boundaries", "lengths")
    return {name: batch[name] for name in names if name in batch}


class Scoring(TypedDict, total=False):
    """Device and precision of inference. advance: called with the number of rows after each batch."""

    device: Required[torch.device]
    precision: PrecisionName
    advance: Callable[[int], None]


def scored(
    model: nn.Module,
    examples: Learnable,
    of: Callable[[nn.Module, Batch], Tensor],
    batch_size: int,
    *,
    device: torch.device,
    precision: PrecisionName = "fp32",
    advance: Callable[[int], None] = lambda count: None,
) -> list[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """Applies `of` to all examples in batches, shortest rows first; returns row numbers and results of each batch.

    of: (model, batch) -> a tensor. The model's train or eval mode is restored. With several connected processes, each
    scores every size-th batch.
    """
    results = []
    here = connected()
    batches = list(examples.by_length(batch_size))[here.share]
    if was_training := model.training:  # setting it in every module takes a tenth of the time of a short text
        model.eval()
    # For a single batch, releasing memory costs more than keeping it saves.
    memory = memory_kept(device) if len(batches) > 1 else nullcontext(lambda: None)
    with torch.inference_mode(), autocast(device, precision), memory as release:
        for number, numbers in enumerate(batches, 1):
            results.append((numbers, of(model, moved(examples.batch(numbers), device)).float().cpu().numpy()))
            if number % _RELEASE_EVERY == 0:
                release()
            advance(here.size * len(numbers))
    if was_training:
        model.train()
    return results


def outputs(
    model: nn.Module,
    examples: Learnable,
    of: Callable[[nn.Module, Batch], Tensor],
    batch_size: int = 256,
    **how: Unpack[Scoring],
) -> NDArray[np.float32]:
    """Applies `of` to all examples: (N, C), in their order; C is the maximum over batches, smaller ones end in zeros.

    of: (model, batch) -> (B, C). With several connected processes, all get all rows.
    """
    batches = scored(model, examples, of, batch_size, **how)
    width = greatest(max((found.shape[1] for _, found in batches), default=0))
    result = np.zeros((len(examples), width), dtype=np.float32)
    for numbers, found in batches:
        result[numbers, : found.shape[1]] = found
    add_over_world(torch.from_numpy(result), connected())  # one number plus zeros: bit-exact
    return result
