"""`korbert plan`: parameters, operations, memory and duration of a recipe's pretraining, from twenty timed steps."""

import datetime
import math
import os
import re
import shlex
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import nn

from korbert.errors import SettingsError
from korbert.modeling import load_model
from korbert.modeling.counting import counted, flop_a_piece, parameters
from korbert.pretraining import Phase, SpecialIds, evaluate
from korbert.pretraining.objectives.losses import Loss
from korbert.tokenization.vocabulary import FIRST_PIECE, SPECIAL
from korbert.training import Batch, choose_device, fit
from korbert.training.devices import autocast, choose_precision
from pipelines.artifacts import store
from pipelines.artifacts.pipeline import Pipeline
from pipelines.stages.pretrain import evaluation_batches, model_and_loss, piece_counts, training_phases, training_plan
from pipelines.stages.settings import PretrainStage

__all__ = ["PhasePlan", "Plan", "Timing", "plan", "steps_within", "write_made_up"]

_LOOKED_AT = (16, 64)  # batches, and rows in each, to estimate the mean row length of a phase
_WARM, _TIMED = 5, 20  # steps
_FEW_ROWS = 8
_EVALUATED = 64  # most rows of the timed evaluation
_GOLDEN = (math.sqrt(5) - 1) / 2
_MADE_UP_PIECES = 500_000
_LONGEST = 1e10  # seconds, three centuries: datetime has no later dates


@dataclass(frozen=True)
class PhasePlan:
    """A phase. row_pieces: mean per row. epoch_rows: None without shards. flop: operations per piece, by part.

    tried_rows: rows of a timed step, fewer than batch_size if steps take long. step_seconds: None without a trial.
    """

    length: int
    batch_size: int
    micro_batches: int
    steps: int
    row_pieces: float
    epoch_rows: int | None
    flop: Mapping[str, float]
    tried_rows: int = 0
    step_seconds: float | None = None

    @property
    def step_pieces(self) -> float:
        return self.row_pieces * self.batch_size

    @property
    def epochs(self) -> float | None:
        return self.steps * self.batch_size / self.epoch_rows if self.epoch_rows else None

    @property
    def pieces_a_second(self) -> float | None:
        return self.step_pieces / self.step_seconds if self.step_seconds else None


@dataclass(frozen=True)
class Timing:
    """Seconds of a run, without its checkpoints. evaluations: their number. ends: if the run started now.

    within: with --hours, the steps of each phase that fit, as values of `--set` of the command.
    """

    training: float
    evaluations: int
    evaluating: float
    ends: datetime.datetime
    command: str
    within: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        return self.training + self.evaluating


@dataclass(frozen=True)
class Plan:
    """The plan of a pretraining run. memory: bytes by part. device_memory: total and free bytes. timing: of a trial."""

    folder: Path
    parameters: Mapping[str, int]
    memory: Mapping[str, int]
    device: str
    precision: str
    device_memory: tuple[int, int]
    phases: tuple[PhasePlan, ...]
    notes: tuple[str, ...]
    timing: Timing | None = None

    @property
    def encoder_parameters(self) -> int:
        """Of the encoder and its pooler, without heads, as Devlin et al. 2018 count them (3)."""
        return sum(self.parameters[name] for name in ("token embedding", "encoder", "pooler"))


def plan(pipeline: Pipeline, seconds: float, hours: float | None = None) -> Plan:
    """Plans the pretraining of a recipe. seconds: about the length of the trial; 0: none. hours: see `Timing`.

    Raises SettingsError if the recipe does not pretrain, if `hours` is too short or without a trial, or if weights,
    gradients and optimizer state do not fit into memory and are to be tried.
    """
    settings: PretrainStage | None = pipeline.recipe.section("pretrain")
    if settings is None:
        raise SettingsError(
            f"{pipeline.recipe.given}: has no section [pretrain], and only pretraining is planned: add one"
        )
    if hours is not None and not (hours > 0 and seconds > 0):
        raise SettingsError(
            f"--hours {hours:g} --seconds {seconds:g}: --hours needs a trial: give more than 0 for both"
        )
    torch.set_num_threads(settings.threads)
    device = choose_device(pipeline.runtime.device)

    # Use the real vocabulary and rows if they exist.
    states = {status.stage: status.state for status in pipeline.statuses()}
    notes, vocab_size = [], int(pipeline.recipe.section("vocab").size)
    if states["vocab"] == "fresh":
        vocab_size = int((store.read_record(pipeline.artifact("vocab")) or {})["counts"]["size"])
    else:
        notes.append(f"vocab is {states['vocab']}: using the {vocab_size:,} entries of vocab.size")
    config, precision = settings.encoder.config(vocab_size), choose_precision(device, settings.precision)
    cls, sep, mask = map(SPECIAL.index, ("[CLS]", "[SEP]", "[MASK]"))
    ids = SpecialIds(cls, sep, mask, FIRST_PIECE, vocab_size)
    real = pipeline.artifact("shard") if states["shard"] == "fresh" else None
    if not real:
        made_up = ", the trial uses random ids" if seconds else ""
        notes.append(f"shard is {states['shard']}: rows are assumed to be full, epochs are unknown{made_up}")
    if "rtd" in settings.objectives:
        notes.append("rtd: parameters, compute and memory are those of the detector, without its generator")

    rows = training_phases(settings, real, ids, piece_counts(real)) if real else None
    scored = settings.head.negatives + 1 if settings.head.kind == "sampled" else vocab_size
    phases = []
    for number, phase in enumerate(settings.phases):
        mean, epoch_rows = _looked_at(rows[number]) if rows else (float(phase.length), None)
        rate = phase.masking_rate or settings.masking.rate
        flop = flop_a_piece(config, length=mean, label_share=rate, scored=scored)
        sizes = phase.length, phase.batch_size, phase.micro_batches, phase.steps
        phases.append(PhasePlan(*sizes, mean, epoch_rows, flop))

    held = 4 * sum(parameters(config).values())
    pieces, length = max((phase.step_pieces / phase.micro_batches, phase.row_pieces) for phase in phases)
    number_bytes = 4 if precision == "fp32" else 3  # in bf16, products take 2 bytes, norms and sums 4
    memory = {
        "weights": held,
        "gradients": held,
        "optimizer": 2 * held,  # the two moments of AdamW
        "activations": int(pieces * counted(config, round(length))[1] * number_bytes),  # of the largest micro-batch
    }
    planned = Plan(
        folder=pipeline.folder,
        parameters=parameters(config),
        memory=memory,
        device=device.type,
        precision=precision,
        device_memory=memory_of(device),
        phases=tuple(phases),
        notes=tuple(notes),
    )
    if not seconds:
        return planned
    if 4 * held > planned.device_memory[1]:
        raise SettingsError(
            f"{pipeline.recipe.given}: weights, gradients and optimizer need {4 * held / 2**30:.1f} GiB, and "
            f"{planned.device_memory[1] / 2**30:.1f} GiB are free on this {device.type}: --seconds 0 plans without "
            "a trial"
        )
    with tempfile.TemporaryDirectory(prefix="korbert-plan-") as made:
        if not real:
            write_made_up(Path(made), ids, settings.seed)
        tried, evaluation = _tried(pipeline, planned.phases, real or Path(made), ids, device, seconds)
    return replace(planned, phases=tried, timing=_timing(pipeline, tried, evaluation, hours))


def memory_of(device: torch.device) -> tuple[int, int]:
    """Total and free memory of the device, in bytes. On a CPU, a container limit (cgroup) counts as the total."""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return total, free
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit, about = Path("/sys/fs/cgroup/memory.max"), Path("/proc/meminfo")
    if limit.is_file() and (allowed := limit.read_text(encoding="ascii").strip()).isdecimal():
        total = min(total, int(allowed))
    available = re.search(r"MemAvailable: +(\d+) kB", about.read_text(encoding="ascii") if about.is_file() else "")
    return total, min(total, 1024 * int(available[1])) if available else total


def _looked_at(phase: Phase) -> tuple[float, int]:
    """Mean pieces per row, of batches from all over the phase, and rows per epoch."""
    number, together = _LOOKED_AT
    together = min(together, phase.steps * phase.batch_size)
    batches = phase.steps * phase.batch_size // together
    places = [int(n * _GOLDEN % 1 * batches) for n in range(number)]
    pieces = sum(batch["pieces"] for place in places for batch in phase.rows.batch(place, together))
    return pieces / (number * together), len(phase.rows)


def _tried(
    pipeline: Pipeline, phases: Sequence[PhasePlan], folder: Path, ids: SpecialIds, device: torch.device, seconds: float
) -> tuple[tuple[PhasePlan, ...], float]:
    """The phases with their measured speed, and the seconds of an evaluation. folder: shards."""
    settings: PretrainStage = pipeline.recipe.section("pretrain")
    teacher = None
    if settings.distill.teacher:
        place = pipeline.inputs(pipeline.recipe.stages["pretrain"]).folder("teacher", "config.json")
        teacher = load_model(place, "pretraining")[0]
    model, loss = model_and_loss(settings, ids.vocab_size, teacher)
    counts, tried = piece_counts(folder), []
    for planned, phase in zip(phases, training_phases(settings, folder, ids, counts), strict=True):
        # A step costs something of its own (the optimizer), and something for each row.
        def seconds_of(rows: int, warm: int, timed: int, phase: Phase = phase) -> float:
            micro_batches = math.ceil(rows / math.ceil(phase.batch_size / phase.micro_batches))
            steps = phase.steps * phase.batch_size // rows
            part = replace(phase, batch_size=rows, micro_batches=micro_batches, steps=steps)
            return _timed(model, loss, settings, part, device, warm, timed)

        share, few = seconds / len(phases), min(_FEW_ROWS, phase.batch_size)
        one, several = seconds_of(1, 1, 1), seconds_of(few, 1, 1)
        a_row = max(several - one, 0.01 * several) / max(few - 1, 1)
        own = max(0.0, one - a_row)
        rows = min(max(int((share / (_WARM + _TIMED) - own) / a_row), few), phase.batch_size)

        # Steps of fewer rows, or fewer steps, if whole ones would take too long.
        fitting, took = share / (own + rows * a_row), several
        if fitting >= 3:
            took = seconds_of(rows, *((_WARM, _TIMED) if fitting >= _WARM + _TIMED else (1, int(fitting) - 1)))
        of_rows = max(took - own, 0.01 * took) * phase.batch_size / rows
        tried.append(replace(planned, tried_rows=rows, step_seconds=own + of_rows))

    some, full = (
        evaluation_batches(settings.model_copy(update={"heldout_rows": rows}), folder, ids, counts)
        for rows in (min(_EVALUATED, settings.heldout_rows), settings.heldout_rows)
    )
    began = time.perf_counter()
    with autocast(device, settings.precision):
        evaluate(model, some, counts, loss)
    took = time.perf_counter() - began
    return tuple(tried), took * sum(batch["pieces"] for batch in full) / sum(batch["pieces"] for batch in some)


def _timed(
    model: nn.Module, loss: Loss, settings: PretrainStage, phase: Phase, device: torch.device, warm: int, timed: int
) -> float:
    """Mean seconds of `timed` steps from all over the phase, after `warm` others."""
    marks = []

    def batches(step: int) -> list[Batch]:
        return phase.rows.batch(int(step * _GOLDEN % 1 * phase.steps), phase.batch_size, phase.micro_batches)

    def mark(model: nn.Module, done: int) -> dict[str, float]:
        marks.append(time.perf_counter())  # `fit` has waited for the device
        return {}

    limits = replace(training_plan(settings), steps=warm + timed, evaluate_every=warm, on_divergence="stop")
    fit(model, batches, loss, limits, device=device, evaluate=mark, description="trial")
    return (marks[-1] - marks[0]) / timed


def _timing(pipeline: Pipeline, phases: Sequence[PhasePlan], evaluation: float, hours: float | None) -> Timing:
    """Extrapolates a trial to the whole run. evaluation: seconds of one."""
    every = pipeline.recipe.section("pretrain").evaluate_every
    steps = [phase.steps for phase in phases]
    training = sum(phase.steps * (phase.step_seconds or 0.0) for phase in phases)
    evaluations = math.ceil(sum(steps) / every)
    within: tuple[str, ...] = ()
    if hours is not None:
        fitting = steps_within(3600 * hours, steps, training, evaluation, every)
        within = tuple(f"pretrain.phases.{number}.steps={count}" for number, count in enumerate(fitting))
    total = min(training + evaluations * evaluation, _LONGEST)
    return Timing(
        training=training,
        evaluations=evaluations,
        evaluating=evaluations * evaluation,
        ends=datetime.datetime.now().astimezone() + datetime.timedelta(seconds=total),
        command=shlex.join(["korbert", "run", pipeline.recipe.given, *pipeline.runtime.given]),
        within=within,
    )


def steps_within(seconds: float, steps: Sequence[int], training: float, evaluation: float, every: int) -> list[int]:
    """Steps of each phase, scaled alike, that take at most `seconds` with an evaluation every so many and at the end.

    training: seconds of all `steps`. Raises SettingsError if not one step of each phase fits.
    """
    share = (seconds - evaluation) / (training + sum(steps) / every * evaluation)
    if share < max(1 / count for count in steps):
        least = evaluation + max(1 / count for count in steps) * (training + sum(steps) / every * evaluation)
        raise SettingsError(
            f"--hours {seconds / 3600:g}: one step of each phase and an evaluation take {least / 3600:.2g} hours: give "
            "more, or lower pretrain.heldout_rows"
        )
    return [int(count * share) for count in steps]


def write_made_up(folder: Path, ids: SpecialIds, seed: int) -> None:
    """Writes shards of random ids with full rows: each piece is a sentence, so that examples may end anywhere."""
    rng = np.random.default_rng(seed)
    pieces = rng.integers(ids.first_piece, ids.vocab_size, size=(2, _MADE_UP_PIECES // 2), dtype=np.int32)
    table = pa.table(
        {
            "id": ["made-up:0", "made-up:1"],
            "source": ["made-up"] * 2,
            "input_ids": pa.array(list(pieces), pa.list_(pa.int32())),
            "boundaries": pa.array([np.full(row.size, 3, np.uint8) for row in pieces], pa.list_(pa.uint8())),
        }
    )
    for part in ("train", "heldout"):
        (folder / part).mkdir(parents=True)
        with pa.ipc.new_stream(str(folder / part / "part-00000.arrow"), table.schema) as stream:
            stream.write_table(table)
    counts = np.bincount(pieces.reshape(-1), minlength=ids.vocab_size)
    pq.write_table(pa.table({"count": counts}), folder / "pieces.parquet")
