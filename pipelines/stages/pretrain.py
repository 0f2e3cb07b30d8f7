"""pretrain: shards -> a model that has learned to fill gaps (MLM) and to tell neighbours from strangers (NSP)."""

import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray

from korbert.modeling import PretrainingModel, save_model
from korbert.pretraining import (
    Phase,
    PretrainingRows,
    Shards,
    SpecialIds,
    evaluate,
    heldout_batches,
    in_phases,
    pretraining_loss,
)
from korbert.tokenization import Tokenizer
from korbert.tokenization.vocabulary import FIRST_PIECE
from korbert.training import Batch, TrainingOutput, TrainingPlan, choose_device, fit
from korbert.world import connected, require_rows
from pipelines import artifacts
from pipelines.runtime import Runtime
from pipelines.stages import Counts, Inputs
from pipelines.stages.settings import PretrainStage


def run(settings: PretrainStage, inputs: Inputs, output: Path, runtime: Runtime) -> Counts:
    """Writes model/, metrics.jsonl and scores.json."""
    for number, phase in enumerate(settings.phases):
        require_rows(f"pretrain.phases.{number}.batch_size", phase.batch_size)
    torch.set_num_threads(settings.threads)
    shards = inputs.artifacts["shard"]
    tokenizer = Tokenizer.load(inputs.artifacts["vocab"] / "tokenizer")
    model = PretrainingModel(
        settings.encoder.config(tokenizer.vocab_size), torch.Generator().manual_seed(settings.seed)
    )
    unigram = _piece_counts(shards)
    phases = _phases(settings, shards, _special_ids(tokenizer))
    held_out = _held_out(settings, shards, _special_ids(tokenizer))
    result = fit(
        model,
        in_phases(phases),
        pretraining_loss,
        TrainingPlan(
            steps=sum(phase.steps for phase in phases),
            optimizer=settings.optimizer,
            seed=settings.seed,
            precision=settings.precision,
            log_every=settings.log_every,
            evaluate_every=settings.evaluate_every,
        ),
        device=choose_device(runtime.device),
        output=TrainingOutput.below(output, settings.checkpoint_every),
        evaluate=lambda model, step: evaluate(model, held_out, unigram),
        description="pretrain",
        sharded=runtime.sharding == "fsdp",
    )
    if not connected().writes:
        return {}
    save_model(output / "model", model, tokenizer)
    seen: Counts = {
        "steps": result.steps,
        "rows": sum(phase.steps * phase.batch_size for phase in phases),
        "rows_of_first_epoch": len(phases[0].rows),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }
    measured = {name: value if math.isfinite(value) else None for name, value in result.heldout.items()}
    artifacts.write_json(output / "scores.json", {**measured, **seen})
    return seen


def _special_ids(tokenizer: Tokenizer) -> SpecialIds:
    return SpecialIds(
        pad=tokenizer.pad_id,
        cls=tokenizer.cls_id,
        sep=tokenizer.sep_id,
        mask=tokenizer.mask_id,
        first_piece=FIRST_PIECE,
        vocab_size=tokenizer.vocab_size,
    )


def _phases(settings: PretrainStage, folder: Path, ids: SpecialIds) -> list[Phase]:
    files = Shards(sorted((folder / "train").glob("*.arrow")))
    return [
        Phase(
            PretrainingRows(files, ids, phase.length, settings.masking, settings.pairs, settings.seed),
            phase.steps,
            phase.batch_size,
            phase.micro_batches,
        )
        for phase in settings.phases
    ]


def _held_out(settings: PretrainStage, folder: Path, ids: SpecialIds) -> list[Batch]:
    """Rows of the first phase's length throughout, so that all points of a curve measure one thing."""
    files = Shards(sorted((folder / "heldout").glob("*.arrow")))
    length = settings.phases[0].length
    return heldout_batches(
        files, ids, length, settings.masking, settings.pairs, settings.seed, limit_rows=settings.heldout_rows
    )


def _piece_counts(folder: Path) -> NDArray[np.int64]:
    """(V,) how often each piece occurs in the training shards."""
    counts: NDArray[np.int64] = pq.read_table(folder / "pieces.parquet", columns=["count"])["count"].to_numpy()
    return counts
