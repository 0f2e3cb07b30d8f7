"""Fine-tuning for any task: trains a model and keeps the epoch that is best on validation examples."""

import logging
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from korbert.errors import SettingsError
from korbert.modeling import Encoder
from korbert.system import broadcast
from korbert.tasks.finetuning.best_epoch import Best, keep_best, load_best, read_best
from korbert.tasks.finetuning.layerwise import freeze, layerwise_factors
from korbert.tasks.finetuning.learning_settings import LearningSettings, Way
from korbert.tasks.finetuning.seen import only_seen_embeddings
from korbert.training import (
    Batches,
    Checkpointing,
    Examples,
    LossFunction,
    OptimizerSettings,
    TrainingOutput,
    TrainingPlan,
    autocast,
    fit,
    newest_step,
    remove_all,
    to_device,
)

_logger = logging.getLogger(__name__)

_MEASURED_STEPS = 4
_EPOCH_OVERHEAD = 1.3  # seconds of an epoch with optimizer and validation, relative to those of its gradients

Measure = Callable[[nn.Module], tuple[float, dict[str, float]]]
"""Model -> its validation score, higher is better, and figures for the log."""


def finetune(
    model: nn.Module, examples: Examples, loss: LossFunction, measure: Measure | None, settings: LearningSettings,
    way: Way, *, seed: int, work: Path, metrics: Path, device: torch.device, description: str = "finetune",
    keeps_last: bool = False,
) -> Best:  # fmt: skip
    """Trains `model` and returns its best epoch; `model` then has the weights of that epoch and is in eval mode.

    way: the hyperparameters. measure: computes the validation score. The last epoch is kept if `measure` is None or
    `keeps_last` is true, else the one with the highest score.
    work: folder for checkpoints, `best.safetensors` and `timing.jsonl`; with the same folder, an interrupted run
    resumes and ends in the same bytes. metrics: log file of `fit`, with "heldout" at the end of each epoch.
    With several connected processes all train, and rank 0 writes.
    """
    batches = Batches(examples, way.batch_size, seed)
    broadcast(lambda: _remove_checkpoints_without_the_best(work, batches.steps_per_epoch))
    _choose_what_learns(model, settings)  # before the optimizer is built, which leaves out frozen parameters
    rate_factors = layerwise_factors(model, settings.layer_decay) if settings.layer_decay < 1 else {}
    optimizer = OptimizerSettings(
        learning_rate=way.learning_rate, weight_decay=settings.weight_decay, warmup_share=settings.warmup_share
    )
    plan = TrainingPlan(
        steps=way.epochs * batches.steps_per_epoch, optimizer=optimizer, seed=seed, precision=settings.precision,
        log_every=settings.log_every, evaluate_every=batches.steps_per_epoch, rate_factors=rate_factors,
    )  # fmt: skip

    def evaluate(model: nn.Module, step: int) -> dict[str, float]:
        epoch = step // batches.steps_per_epoch
        score, figures = (float(epoch), {}) if measure is None else measure(model)
        score = float(epoch) if keeps_last else score  # the last epoch counts as the best
        broadcast(lambda: keep_best(work, model, Best(epoch, score)))
        return {"epoch": epoch, **figures}

    output = TrainingOutput(
        Checkpointing(work / "checkpoints", settings.checkpoint_every), metrics, timing=work / "timing.jsonl"
    )
    with only_seen_embeddings(model, examples):
        fit(model, batches, loss, plan, device=device, output=output, evaluate=evaluate, description=description)
        return load_best(work, model)


def seconds_per_epoch(
    model: nn.Module,
    examples: Examples,
    loss: LossFunction,
    batch_size: int,
    device: torch.device,
    settings: LearningSettings,
) -> float:
    """Estimates the seconds of an epoch of `finetune` from its first steps. The weights stay as they are.

    What the settings freeze of the model is frozen afterwards.
    """
    batches = Batches(examples, batch_size, seed=0)
    _choose_what_learns(model, settings)
    model = model.to(device).train()
    seconds = []
    with only_seen_embeddings(model, examples):
        for step in range(1 + _MEASURED_STEPS):
            started = time.perf_counter()
            for batch in batches(step % batches.steps_per_epoch):
                with autocast(device, settings.precision):
                    total = loss(model, to_device(batch, device))["loss"]
                total.backward()  # type: ignore[no-untyped-call]
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            seconds.append(time.perf_counter() - started)
    return _EPOCH_OVERHEAD * batches.steps_per_epoch * sum(seconds[1:]) / _MEASURED_STEPS  # the first one warms up


def _choose_what_learns(model: nn.Module, settings: LearningSettings) -> None:
    """Freezes what the settings name of the encoder, and sets its dropout of pieces."""
    if settings.piece_dropout:  # word dropout (Iyyer et al. 2015, 3.1)
        encoder = model.encoder
        if not isinstance(encoder, Encoder):
            raise SettingsError(
                "piece_dropout {piece_dropout}: an encoder of transformers has dropout settings of its own, in "
                "config.json: leave piece_dropout out",
                piece_dropout=settings.piece_dropout,
            )
        encoder.embeddings.piece_dropout = settings.piece_dropout
    if settings.frozen_embeddings:
        model.encoder.token_weight.requires_grad_(False)  # type: ignore[union-attr]
    if settings.frozen_layers:
        freeze(model, settings.frozen_layers)


def _remove_checkpoints_without_the_best(work: Path, steps_per_epoch: int) -> None:
    """Makes a run that has lost the weights of its best epoch start anew."""
    if read_best(work) is None and (newest_step(work / "checkpoints") or 0) >= steps_per_epoch:
        _logger.warning("%s: the weights of the best epoch are lost: training from the start", work)
        remove_all(work / "checkpoints")
