"""`korbert plan`: parameters, operations, memory and duration of a recipe's pretraining, from twenty timed steps."""

import datetime
import math
import os
import re
import shlex
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from korbert.errors import SettingsError
from korbert.messages import Message, join_messages
from korbert.modeling import EncoderConfig, count_operations, flops_per_piece, load_model, parameters
from korbert.pipelines.artifacts import store
from korbert.pipelines.runs.pipeline import STATES, Pipeline
from korbert.pipelines.stages.pretrain import ShardRows, model_and_loss, training_plan
from korbert.pipelines.stages.stage_settings import PretrainStage
from korbert.pretraining import Phase, SpecialIds, evaluate, heldout_batches, write_random_shards
from korbert.tokenization import FIRST_PIECE, RECORD, SPECIAL, Tokenizer
from korbert.training import Batch, autocast, choose_device, choose_precision, fit

_SAMPLED = 1024  # rows to estimate the mean row length of a phase: any are a sample, as epochs are shuffled
_WARM = 5  # steps before the timed ones
_TIMED = 20  # steps
_FEW_ROWS = 8
_EVALUATED = 64  # most rows of the timed evaluation


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
    def pieces_per_second(self) -> float | None:
        return self.step_pieces / self.step_seconds if self.step_seconds else None


@dataclass(frozen=True)
class Timing:
    """Seconds of a run, without its checkpoints. evaluations: number of them. ends: when, if the run started now.

    within: with --hours, the steps of each phase that fit, as values of `--set` of the command.
    """

    training: float
    evaluations: int
    evaluating: float
    ends: datetime.datetime
    command: str
    within: tuple[str, ...] = ()

    @classmethod
    def of(cls, pipeline: Pipeline, phases: "Sequence[PhasePlan]", evaluation: float, hours: float | None) -> "Timing":
        """Extrapolates a trial to the whole run. evaluation: seconds of one."""
        interval = pipeline.recipe.section("pretrain").evaluate_every
        steps = [phase.steps for phase in phases]
        training = sum(phase.steps * (phase.step_seconds or 0.0) for phase in phases)
        evaluations = math.ceil(sum(steps) / interval)
        fitting = [] if hours is None else steps_within(3600 * hours, steps, training, evaluation, interval)
        total = datetime.timedelta(seconds=training + evaluations * evaluation)
        return cls(
            training=training,
            evaluations=evaluations,
            evaluating=evaluations * evaluation,
            ends=datetime.datetime.now().astimezone() + total,
            command=shlex.join(["korbert", "run", pipeline.recipe.given, *pipeline.runtime.given]),
            within=tuple(f"pretrain.phases.{number}.steps={count}" for number, count in enumerate(fitting)),
        )

    @property
    def total(self) -> float:
        return self.training + self.evaluating


@dataclass(frozen=True)
class CostEstimate:
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
        """Number of parameters of encoder and pooler, without heads, as Devlin et al. 2018 count them (3)."""
        return sum(self.parameters[name] for name in ("token embedding", "encoder", "pooler"))


def plan(pipeline: Pipeline, seconds: float, hours: float | None = None) -> CostEstimate:
    """Plans the pretraining of a recipe. seconds: about the length of the trial; 0: none. hours: see `Timing`.

    Raises SettingsError if the recipe does not pretrain, if `hours` is too short or given without a trial, or if a
    trial is asked for, but weights, gradients and optimizer state do not fit into memory.
    """
    recipe = pipeline.recipe
    settings: PretrainStage | None = recipe.section("pretrain")
    if settings is None:
        raise SettingsError(
            "{given}: has no section [pretrain], and only pretraining is planned: add one", given=recipe.given
        )
    if hours is not None and not (hours > 0 and seconds > 0):
        raise SettingsError(
            "--hours {hours:g} --seconds {seconds:g}: --hours needs a trial: give more than 0 for both",
            hours=hours,
            seconds=seconds,
        )
    torch.set_num_threads(settings.threads)
    device = choose_device(pipeline.runtime.device)
    ids, shards, notes = _known_so_far(pipeline, is_tried=seconds > 0)
    config = settings.encoder.config(ids.vocab_size)
    precision = choose_precision(device, settings.precision)
    phases = _untimed_phases(settings, ids, shards)
    memory = training_memory(config, phases, precision)
    total, free = memory_of(device)
    planned = CostEstimate(
        folder=pipeline.folder,
        parameters=parameters(config),
        memory=memory,
        device=device.type,
        precision=precision,
        device_memory=(total, free),
        phases=phases,
        notes=notes,
    )
    if not seconds:
        return planned
    needed = memory["weights"] + memory["gradients"] + memory["optimizer"]
    if needed > free:
        raise SettingsError(
            "{given}: weights, gradients and optimizer need {needed:.1f} GiB, and {free:.1f} GiB are free "
            "on this {type}: --seconds 0 plans without a trial",
            given=recipe.given,
            needed=needed / 2**30,
            free=free / 2**30,
            type=device.type,
        )
    with tempfile.TemporaryDirectory(prefix="korbert-plan-") as temporary:
        if not shards:
            write_random_shards(Path(temporary), ids, settings.seed)
        trial = _Trial(pipeline, ShardRows.of(settings, shards or Path(temporary), ids), device)
        timed = trial.phases(phases, seconds)
        timing = Timing.of(pipeline, timed, trial.evaluation(), hours)
    return replace(planned, phases=timed, timing=timing)


def _known_so_far(pipeline: Pipeline, *, is_tried: bool) -> tuple[SpecialIds, Path | None, tuple[str, ...]]:
    """Returns the special ids, the shards if the stage is fresh, and notes on the artifacts that are not there yet."""
    states = {status.stage: status.state for status in pipeline.statuses()}
    notes: list[Message] = []
    settings = pipeline.recipe.section("vocab")
    vocab_size = int(settings.size)
    state = STATES[states["vocab"]]
    if states["vocab"] == "fresh":
        vocab_size = int((store.read_record(pipeline.artifact("vocab")) or {})["counts"]["size"])
    elif settings.tokenizer:
        folder = pipeline.inputs(pipeline.recipe.stages["vocab"]).folder("tokenizer", RECORD)
        vocab_size = Tokenizer.load(folder, accept_kiwi=True).vocab_size + settings.add
        notes.append(
            Message(
                "vocab is {state}: using {size:,} entries: those of vocab.tokenizer, and {add:,} of vocab.add",
                state=state,
                size=vocab_size,
                add=settings.add,
            )
        )
    else:
        notes.append(
            Message("vocab is {state}: using the {size:,} entries of vocab.size", state=state, size=vocab_size)
        )
    shards = pipeline.artifact("shard") if states["shard"] == "fresh" else None
    if not shards:
        state = STATES[states["shard"]]
        note = Message("shard is {state}: rows are assumed to be full, epochs are unknown", state=state)
        if is_tried:
            note = join_messages((note, Message("the trial uses random ids")), ", ")
        notes.append(note)
    if "rtd" in pipeline.recipe.section("pretrain").objectives:
        notes.append(Message("rtd: parameters, compute and memory are those of the detector, without its generator"))
    cls, sep, mask = map(SPECIAL.index, ("[CLS]", "[SEP]", "[MASK]"))
    return SpecialIds(cls, sep, mask, FIRST_PIECE, vocab_size), shards, tuple(notes)


def _untimed_phases(settings: PretrainStage, ids: SpecialIds, shards: Path | None) -> tuple[PhasePlan, ...]:
    """Returns the phases, still without times of a trial."""
    rows = ShardRows.of(settings, shards, ids).phases() if shards else None
    config = settings.encoder.config(ids.vocab_size)
    scored = settings.head.negatives + 1 if settings.head.kind == "sampled" else ids.vocab_size
    phases = []
    for number, phase in enumerate(settings.phases):
        mean = float(phase.length)
        epoch_rows = None
        if rows:
            (sampled,) = rows[number].rows.batch(0, _SAMPLED)
            mean = sampled["pieces"] / _SAMPLED
            epoch_rows = len(rows[number].rows)
        flop = flops_per_piece(
            config, length=mean, label_share=phase.masking_rate or settings.masking.rate, scored=scored
        )
        sizes = phase.length, phase.batch_size, phase.micro_batches, phase.steps
        phases.append(PhasePlan(*sizes, mean, epoch_rows, flop))
    return tuple(phases)


def training_memory(config: EncoderConfig, phases: Sequence[PhasePlan], precision: str) -> dict[str, int]:
    """Returns bytes by part; activations are those of the largest micro-batch."""
    # Weights are fp32 in every precision: autocast makes bf16 copies as it goes.
    weights = 4 * sum(parameters(config).values())
    pieces, length = max((phase.step_pieces / phase.micro_batches, phase.row_pieces) for phase in phases)
    number_bytes = 4 if precision == "fp32" else 3  # in bf16, products take 2 bytes, norms and sums 4
    return {
        "weights": weights,
        "gradients": weights,
        "optimizer": 2 * weights,  # the two moments of AdamW
        "activations": int(pieces * count_operations(config, round(length))[1] * number_bytes),
    }


def memory_of(device: torch.device) -> tuple[int, int]:
    """Total and free memory of the device, in bytes. On a CPU, a container limit (cgroup) counts as the total."""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return total, free
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file() and (allowed := limit.read_text(encoding="ascii").strip()).isdecimal():
        total = min(total, int(allowed))
    with suppress(FileNotFoundError):  # it exists only on Linux
        meminfo = Path("/proc/meminfo").read_text(encoding="ascii")
        if available := re.search(r"MemAvailable: +(\d+) kB", meminfo):
            return total, min(total, 1024 * int(available[1]))
    return total, total


class _Trial:
    """Timed steps of a recipe's pretraining."""

    def __init__(self, pipeline: Pipeline, rows: ShardRows, device: torch.device) -> None:
        self._rows = rows
        self._settings = rows.settings
        self._device = device
        teacher = None
        if self._settings.distill.teacher:
            path = pipeline.inputs(pipeline.recipe.stages["pretrain"]).folder("teacher", "config.json")
            teacher = load_model(path, "pretraining")[0]
        self._model, self._loss = model_and_loss(self._settings, rows.ids.vocab_size, teacher)

    def phases(self, planned: Sequence[PhasePlan], seconds: float) -> tuple[PhasePlan, ...]:
        """Returns the phases with their measured speed."""
        phases = self._rows.phases()
        share = seconds / len(phases)
        timed: list[PhasePlan] = []
        for plan, phase in zip(planned, phases, strict=True):
            # The time of a step is an overhead (the optimizer), plus a time for each row.
            row_count = min(_FEW_ROWS, phase.batch_size)
            one_row_seconds = self._seconds_of(phase, 1, 1, 1)
            few_rows_seconds = self._seconds_of(phase, row_count, 1, 1)
            row_seconds = max(few_rows_seconds - one_row_seconds, 0.01 * few_rows_seconds) / max(row_count - 1, 1)
            step_overhead = max(0.0, one_row_seconds - row_seconds)
            rows = min(max(int((share / (_WARM + _TIMED) - step_overhead) / row_seconds), row_count), phase.batch_size)

            # Steps of fewer rows, or fewer steps, if whole ones would take too long.
            max_steps = share / (step_overhead + rows * row_seconds)
            step_seconds = few_rows_seconds
            if max_steps >= 3:
                warm, counted_steps = (_WARM, _TIMED) if max_steps >= _WARM + _TIMED else (1, int(max_steps) - 1)
                step_seconds = self._seconds_of(phase, rows, warm, counted_steps)
            rows_seconds = max(step_seconds - step_overhead, 0.01 * step_seconds) * phase.batch_size / rows
            timed.append(replace(plan, tried_rows=rows, step_seconds=step_overhead + rows_seconds))
        return tuple(timed)

    def _seconds_of(self, phase: Phase, rows: int, warm: int, timed: int) -> float:
        """Returns the mean seconds of a step of so many rows, over `timed` steps after `warm` untimed ones."""
        micro_batches = math.ceil(rows / math.ceil(phase.batch_size / phase.micro_batches))
        marks: list[float] = []

        def batches(step: int) -> list[Batch]:
            return phase.rows.batch(step, rows, micro_batches)

        def mark(model: nn.Module, done: int) -> dict[str, float]:
            marks.append(time.perf_counter())  # `fit` has waited for the device
            return {}

        # The evaluations are marks in time: one ends the warm steps, and one the timed ones.
        limits = replace(training_plan(self._settings), steps=warm + timed, evaluate_every=warm)
        fit(self._model, batches, self._loss, limits, device=self._device, evaluate=mark, description="trial")
        return (marks[-1] - marks[0]) / timed

    def evaluation(self) -> float:
        """Returns the seconds of an evaluation, extrapolated from one of fewer rows."""
        heldout = self._rows.heldout()
        max_rows = self._settings.heldout_rows
        few_batches, all_batches = (heldout_batches(heldout, count) for count in (min(_EVALUATED, max_rows), max_rows))
        with autocast(self._device, self._settings.precision):
            if self._settings.compile:  # without gradients, layers are compiled once more
                evaluate(self._model, few_batches[:1], self._rows.counts, self._loss)
            start = time.perf_counter()
            evaluate(self._model, few_batches, self._rows.counts, self._loss)
        elapsed = time.perf_counter() - start
        share = sum(batch["pieces"] for batch in few_batches) / sum(batch["pieces"] for batch in all_batches)
        return elapsed / float(share)


def steps_within(seconds: float, steps: Sequence[int], training: float, evaluation: float, every: int) -> list[int]:
    """Returns the steps of each phase, all scaled by one factor, that take at most `seconds`, evaluations included.

    training: seconds of all `steps`. evaluation: seconds of one; there is one after `every` steps, and one at the end.
    Raises SettingsError if not one step of each phase fits.
    """
    whole = training + sum(steps) / every * evaluation
    share = (seconds - evaluation) / whole
    least_share = max(1 / count for count in steps)
    if share < least_share:
        raise SettingsError(
            "--hours {seconds:g}: one step of each phase and an evaluation take {least:.2g} hours: give "
            "more, or lower pretrain.heldout_rows",
            seconds=seconds / 3600,
            least=(evaluation + least_share * whole) / 3600,
        )
    return [int(count * share) for count in steps]
