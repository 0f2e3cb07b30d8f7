"""pretrain: shards -> a model pretrained with the objectives of the recipe: MLM, NSP and others."""

import math
import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from torch import nn

from korbert import pretraining
from korbert.errors import ModelError, SettingsError
from korbert.modeling import (
    PretrainingModel,
    check_encoder,
    check_tokenizer,
    copy_vectors,
    copy_weights,
    load_model,
    pretrained_encoder,
    save_model,
)
from korbert.pipelines.artifacts import Chain, Runtime, StageCounts, StageInputs
from korbert.pipelines.stages.stage_settings import PretrainStage
from korbert.pretraining import (
    Distillation,
    Loss,
    MaskingSettings,
    Negatives,
    Phase,
    PretrainingLoss,
    PretrainingRows,
    RecurringSpans,
    ReplacementLoss,
    ReplacementModel,
    SpecialIds,
    take_layers,
)
from korbert.system import current_world, require_rows, write_json
from korbert.tokenization import RECORD, AnyTokenizer, Tokenizer, piece_vectors
from korbert.training import FitResult, TrainingOutput, TrainingPlan, autocast, choose_device, fit, load_newest


def run(settings: PretrainStage, inputs: StageInputs, output: Path, runtime: Runtime) -> StageCounts:
    """Writes model/, generator/ (with "rtd"), metrics.jsonl, samples.jsonl and scores.json."""
    for number, phase in enumerate(settings.phases):
        require_rows(f"pretrain.phases.{number}.batch_size", phase.batch_size)
    torch.set_num_threads(settings.threads)
    device = choose_device(runtime.device)

    # Training rows, evaluation rows, and the samples whose predictions are shown on the report page.
    tokenizer = Tokenizer.load(inputs.artifacts["vocab"] / "tokenizer")
    rows = ShardRows.of(settings, inputs.artifacts["shard"], SpecialIds.of(tokenizer))
    phases = rows.phases()
    heldout = rows.heldout()
    # Made once: every evaluation sees the same rows and the same masks.
    held_out = pretraining.heldout_batches(heldout, settings.heldout_rows)
    samples = pretraining.choose_samples(heldout)

    def look(model: nn.Module, step: int) -> dict[str, float | int]:
        filler = model.generator if isinstance(model, ReplacementModel) else model
        pretraining.write_samples(output / "samples.jsonl", samples, tokenizer, filler, step)
        return pretraining.evaluate(model, held_out, rows.counts, loss)

    model, loss = _initial_model(settings, inputs, output, tokenizer)
    before: dict[str, float | int] = {}  # figures of the model of `init`
    if settings.init:
        model.to(device).eval()
        with autocast(device, settings.precision):  # samples of step 0 would truncate those of a resumed run
            resumed = (output / "samples.jsonl").exists()
            before = pretraining.evaluate(model, held_out, rows.counts, loss) if resumed else look(model, 0)
    result = fit(
        model,
        pretraining.in_phases(phases),
        loss,
        training_plan(settings),
        device=device,
        output=TrainingOutput.below(output, settings.checkpoint_every),
        evaluate=look,
        description="pretrain",
        row_workers=runtime.rows_by(device.type),
    )
    return _write_results(output, model, tokenizer, phases, result, before) if current_world().is_main_process else {}


def _initial_model(
    settings: PretrainStage, inputs: StageInputs, output: Path, tokenizer: Tokenizer
) -> tuple[PretrainingModel | ReplacementModel, Loss]:
    """Returns the model, with random weights, Kiwi's vectors, or the weights of the recipe's `init`; and its loss."""
    teacher = None
    if settings.distill.teacher:
        folder = inputs.folder("teacher", "config.json")
        teacher, teacher_tokenizer = load_model(folder, "pretraining")
        _check_teacher(tokenizer, teacher_tokenizer, folder)
    model, loss = model_and_loss(settings, tokenizer.vocab_size, teacher)
    if settings.embeddings == "kiwi" and load_newest(output / "checkpoints") is None:
        # Skipped if there is a checkpoint, as that replaces all weights.
        table = pq.read_table(inputs.artifacts["vocab"] / "counts.parquet", columns=["form", "tag", "count"])
        counted = zip(*(column.to_pylist() for column in table.columns), strict=True)
        copy_vectors(model.encoder.token_weight, *piece_vectors(tokenizer, counted), settings.seed)
    if isinstance(model, PretrainingModel) and settings.init:
        copy_weights(model, tokenizer, inputs.folder("init", "config.json"))
    # Frozen last, once the weights to keep are in place.
    if settings.frozen_embeddings:
        model.encoder.token_weight.requires_grad_(False)
    return model, loss


def _write_results(
    output: Path,
    model: PretrainingModel | ReplacementModel,
    tokenizer: Tokenizer,
    phases: Sequence[Phase],
    result: FitResult,
    before: Mapping[str, float],
) -> StageCounts:
    """Writes the models and scores.json. before: figures of the model of `init`."""
    if isinstance(model, ReplacementModel):
        save_model(output / "model", model.detection_model(), tokenizer, overwrite=True)
        save_model(output / "generator", model.generator_model(), tokenizer, overwrite=True)
    else:
        save_model(output / "model", model, tokenizer, overwrite=True)
    counts: StageCounts = {
        "steps": result.steps,
        "rows": sum(phase.steps * phase.batch_size for phase in phases),
        "epochs": round(sum(phase.steps * phase.batch_size / len(phase.rows) for phase in phases), 3),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }
    kept_names = [name for name in before if name.endswith(("_loss", "_accuracy")) and name != "unigram_loss"]
    figures = {**result.heldout, **{f"init_{name}": before[name] for name in kept_names}}
    finite = {name: value if math.isfinite(value) else None for name, value in figures.items()}
    write_json(output / "scores.json", {**finite, **counts}, sort_keys=True)
    return counts


def model_and_loss(
    settings: PretrainStage, vocab_size: int, teacher: PretrainingModel | None = None
) -> tuple[PretrainingModel | ReplacementModel, Loss]:
    """Returns the model before training, and its loss.

    Weights are drawn from the seed of the settings, or taken from the teacher, if `distill.begin` is set. teacher: what
    "distill" needs. Heads that no objective trains are frozen: DistributedDataParallel would wait for their gradients.
    """
    config = settings.encoder.config(vocab_size)
    generator = torch.Generator().manual_seed(settings.seed)
    if "rtd" in settings.objectives:
        pairing = next((name for name in settings.objectives if name in ("nsp", "sop")), None)
        detector = ReplacementModel(config, settings.rtd, generator)
        detector.generator.nsp.requires_grad_(False)
        detector.nsp.requires_grad_(pairing is not None)
        if settings.compile:
            detector.encoder.compile_layers()
            detector.generator.encoder.compile_layers()
        return detector, ReplacementLoss(settings.rtd, pairing)
    model = PretrainingModel(config, generator, settings.objectives)
    model.nsp.requires_grad_(not {"nsp", "sop"}.isdisjoint(settings.objectives))
    if teacher and settings.distill.begin:
        take_layers(model, teacher)
    distillation = Distillation(teacher, settings.distill) if teacher else None
    if settings.compile:
        model.encoder.compile_layers()
    return model, PretrainingLoss(settings.objectives, distillation, compiled=settings.compile)


def _check_teacher(tokenizer: AnyTokenizer, teacher_tokenizer: AnyTokenizer, folder: Path) -> None:
    if teacher_tokenizer.digest != tokenizer.digest:
        raise ModelError(
            "{folder}: was trained with another tokenizer than that of vocab: set vocab.tokenizer to it", folder=folder
        )


def training_plan(settings: PretrainStage) -> TrainingPlan:
    """Returns the training plan of the stage."""
    return TrainingPlan(
        steps=sum(phase.steps for phase in settings.phases),
        optimizer=settings.optimizer,
        seed=settings.seed,
        precision=settings.precision,
        log_every=settings.log_every,
        evaluate_every=settings.evaluate_every,
    )


def inspect(chain: Chain) -> None:
    """Checks the models that pretraining starts from, before any stage runs.

    Raises SettingsError for `compile` without a compiler; ModelError if the model of `init` has another encoder than
    the recipe, if the teacher's vectors cannot be compared, or if one of them has another tokenizer than vocab, as far
    as that is known yet.
    """
    vocab, pretrain = (chain.recipe.stages[name] for name in ("vocab", "pretrain"))
    settings = chain.recipe.section("pretrain")
    compiler = os.environ.get("CXX", "g++")
    if settings.compile and not shutil.which(compiler):
        raise SettingsError(
            "pretrain.compile: no C++ compiler {compiler}: install one, name it in CXX, or set compile = false",
            compiler=compiler,
        )
    encoder = settings.encoder.config(vocab_size=1)  # vocabulary sizes are not compared
    fresh = chain.status(vocab).state == "fresh"
    for role in chain.recipe.folders("pretrain"):
        folder = chain.inputs(pretrain).folder(role, "config.json")
        if role == "init":
            check_encoder(encoder, folder)
        elif settings.distill.cosine and (width := pretrained_encoder(folder).hidden_size) != encoder.hidden_size:
            raise ModelError(
                "{folder}: its vectors have {width} dimensions, those of pretrain.encoder {hidden_size}: set "
                "pretrain.distill.cosine = 0, or the same hidden_size",
                folder=folder,
                width=width,
                hidden_size=encoder.hidden_size,
            )
        if fresh:
            vocab_tokenizer = Tokenizer.load(chain.artifact("vocab"))
        elif chain.recipe.folders("vocab"):
            vocab_tokenizer = Tokenizer.load(chain.inputs(vocab).folder("tokenizer", RECORD))
        else:
            continue
        if role == "init":
            check_tokenizer(vocab_tokenizer, Tokenizer.load(folder), folder)
        else:
            _check_teacher(vocab_tokenizer, Tokenizer.load(folder), folder)
            if not fresh and chain.recipe.section("vocab").add:
                raise ModelError(
                    "{folder}: does not know the words that vocab.add adds: leave vocab.add out", folder=folder
                )


@dataclass(frozen=True)
class ShardRows:
    """The rows of a pretraining. folder: shard artifact, or the same layout.

    counts: (V,) number of occurrences of each piece in the training shards.
    """

    settings: PretrainStage
    folder: Path
    ids: SpecialIds
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, settings: PretrainStage, folder: Path, ids: SpecialIds) -> "ShardRows":
        """The rows of the shards in a folder."""
        counts = pq.read_table(folder / "pieces.parquet", columns=["count"])["count"]
        return cls(settings, folder, ids, counts.to_numpy())

    def phases(self) -> list[Phase]:
        """The training rows of each phase.

        Raises SettingsError if the sample of a sampled head is as large as the vocabulary.
        """
        settings = self.settings
        negatives = None
        if settings.head.kind == "sampled":
            if settings.head.negatives >= len(self.counts):
                raise SettingsError(
                    "pretrain.head.negatives {negatives}: the vocabulary has {num_counts} entries: use fewer, or "
                    'kind = "full"',
                    negatives=settings.head.negatives,
                    num_counts=len(self.counts),
                )
            negatives = Negatives(self.counts, settings.head.negatives)
        files = pretraining.Shards(sorted((self.folder / "train").glob("[!.]*.arrow")))
        # Number of rows of earlier phases, by series: phases of the same length and fill share one.
        rows_before: Counter[tuple[int, bool]] = Counter()
        phases = []
        for phase in settings.phases:
            masking = settings.masking.model_copy(update={"rate": phase.masking_rate or settings.masking.rate})
            rows = self._rows(
                files, phase.length, masking, fill=phase.fill, negatives=negatives, shares=settings.shares
            )
            series = (phase.length, phase.fill)
            phases.append(Phase(rows, phase.steps, phase.batch_size, phase.micro_batches, before=rows_before[series]))
            rows_before[series] += phase.steps * phase.batch_size
        return phases

    def heldout(self) -> PretrainingRows:
        """Returns held-out rows, always of the first phase's length, so that points of a curve are comparable."""
        files = sorted((self.folder / "heldout").glob("[!.]*.arrow"))
        return self._rows(files, self.settings.phases[0].length, self.settings.masking.all_masked())

    def _rows(self, files: Any, length: int, masking: MaskingSettings, **more: Any) -> PretrainingRows:
        settings = self.settings
        spans = RecurringSpans(settings.spans, self.ids.mask, self.counts) if "spans" in settings.objectives else None
        return PretrainingRows(
            files,
            self.ids,
            length,
            masking,
            settings.pairs,
            settings.seed,
            objectives=settings.objectives,
            spans=spans,
            **more,
        )
