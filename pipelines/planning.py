"""`korbert plan`: parameters, compute, memory and duration of a recipe's pretraining, without running it."""

import datetime
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from korbert.errors import SettingsError
from korbert.modeling.arithmetic import Work
from korbert.modeling.config import AnyConfig
from korbert.modeling.counting import activation_numbers, flop_a_piece, parameters
from korbert.pretraining import Phase, SpecialIds
from korbert.tokenization.vocabulary import FIRST_PIECE, SPECIAL
from korbert.training import Checkpointing, choose_device
from korbert.training.devices import choose_precision
from pipelines import artifacts, machine, trial
from pipelines.forecasting import Costs, Forecast, forecast, steps_within
from pipelines.pipeline import Pipeline
from pipelines.stages.pretrain import piece_counts, training_phases
from pipelines.stages.settings import Phase as PhaseSettings
from pipelines.stages.settings import PretrainStage
from pipelines.trial import Trial

__all__ = ["Outlook", "PhasePlan", "Plan", "Within", "memory_of", "outlook", "plan"]

_LOOKED_AT = (16, 64)  # batches, and rows in each, to estimate the mean row length of a phase
_MEMORY_USED = 0.8  # share of the free memory that a trial may use
_SCORED_AT_ONCE = 256  # predicted pieces whose vocabulary scores are in memory together
_LONGEST = 1e10  # seconds, three centuries: datetime has no later dates


@dataclass(frozen=True)
class PhasePlan:
    """A phase: its settings and its rows. row_pieces: mean per row. epoch_rows: None without shards."""

    length: int
    batch_size: int
    micro_batches: int
    steps: int
    row_pieces: float
    epoch_rows: int | None

    @property
    def step_pieces(self) -> float:
        return self.row_pieces * self.batch_size

    @property
    def epochs(self) -> float | None:
        return self.steps * self.batch_size / self.epoch_rows if self.epoch_rows else None


@dataclass(frozen=True)
class Within:
    """The steps per phase that fit into a given time, their forecast, and the command that runs them.

    changes: values of its `--set` options, which are not part of `command`.
    """

    hours: float
    steps: tuple[int, ...]
    forecast: Forecast
    command: str
    changes: tuple[str, ...]


@dataclass(frozen=True)
class Outlook:
    """A forecast from a trial. step_seconds: of each phase. ends: end of the run if it started now."""

    trial: Trial
    step_seconds: tuple[float, ...]
    forecast: Forecast
    ends: datetime.datetime
    within: Within | None


@dataclass(frozen=True)
class Plan:
    """The plan of a pretraining run. flop: operations per piece by part, for each phase. memory: bytes by part.

    device_memory: total and free bytes. notes: assumptions. outlook: None without a trial.
    """

    folder: Path
    config: AnyConfig
    parameters: Mapping[str, int]
    flop: tuple[Mapping[str, Work], ...]
    memory: Mapping[str, int]
    device: str
    precision: str
    device_memory: tuple[int, int]
    phases: tuple[PhasePlan, ...]
    notes: tuple[str, ...]
    outlook: Outlook | None = None


def plan(pipeline: Pipeline, seconds: float, hours: float | None = None) -> Plan:
    """Plans the pretraining of a recipe. seconds: length of the trial; 0: none. hours: see `Within`; None: no limit.

    Raises SettingsError if the recipe does not pretrain, if `hours` is too short, or if it is given without a trial.
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
        vocab_size = int((artifacts.read_record(pipeline.artifact("vocab")) or {})["counts"]["size"])
    else:
        notes.append(f"vocab is {states['vocab']}: using the {vocab_size:,} entries of vocab.size")
    config, precision = settings.encoder.config(vocab_size), choose_precision(device, settings.precision)
    real = states["shard"] == "fresh"
    rows = _rows(settings, pipeline.artifact("shard"), _ids(config)) if real else None
    if not real:
        made_up = ", the trial uses random ids" if seconds else ""
        notes.append(f"shard is {states['shard']}: rows are assumed to be full, epochs are unknown{made_up}")
    if "rtd" in settings.objectives:
        notes.append("rtd: parameters, compute and memory are those of the detector, without its generator")
    phases = tuple(_phase(phase, rows[number] if rows else None) for number, phase in enumerate(settings.phases))

    planned = Plan(
        folder=pipeline.folder,
        config=config,
        parameters=parameters(config),
        flop=tuple(_flop(settings, config, own, phase) for own, phase in zip(settings.phases, phases, strict=True)),
        memory=memory_of(config, phases, precision),
        device=device.type,
        precision=precision,
        device_memory=machine.memory_of(device),
        phases=phases,
        notes=tuple(notes),
    )
    if not seconds:
        return planned
    measured = _tried(pipeline, planned, rows, seconds)
    return replace(planned, outlook=outlook(pipeline, phases, measured, hours))


def _rows(settings: PretrainStage, folder: Path, ids: SpecialIds) -> list[Phase]:
    return training_phases(settings, folder, ids, piece_counts(folder))


def _ids(config: AnyConfig) -> SpecialIds:
    """The special ids of any tokenizer (korbert/tokenization/vocabulary.py), without waiting for one to load Kiwi."""
    cls, sep, mask = map(SPECIAL.index, ("[CLS]", "[SEP]", "[MASK]"))
    return SpecialIds(cls, sep, mask, FIRST_PIECE, config.vocab_size)


def _phase(settings: PhaseSettings, made: Phase | None) -> PhasePlan:
    """Plans a phase. made: its rows, if there are shards; batches from all over the phase give the mean row length."""
    mean, epoch = float(settings.length), None
    if made is not None:
        number, together = _LOOKED_AT
        together = min(together, settings.steps * settings.batch_size)
        places = [trial.spread(n, settings.steps * settings.batch_size // together) for n in range(number)]
        pieces = sum(batch["pieces"] for place in places for batch in made.rows.batch(place, together))
        mean, epoch = pieces / (number * together), len(made.rows)
    return PhasePlan(settings.length, settings.batch_size, settings.micro_batches, settings.steps, mean, epoch)


def _flop(settings: PretrainStage, config: AnyConfig, own: PhaseSettings, phase: PhasePlan) -> dict[str, Work]:
    scored = settings.head.negatives + 1 if settings.head.kind == "sampled" else config.vocab_size
    return flop_a_piece(
        config,
        length=phase.row_pieces,
        label_share=own.masking_rate or settings.masking.rate,
        scored=scored,
        pieces_a_step=phase.step_pieces,
    )


def memory_of(config: AnyConfig, phases: Sequence[PhasePlan], precision: str) -> dict[str, int]:
    """Training memory in bytes, by part. Activations are an estimate for the largest micro-batch."""
    held = 4 * sum(parameters(config).values())
    pieces, length = max((phase.step_pieces / phase.micro_batches, phase.row_pieces) for phase in phases)
    return {
        "weights": held,
        "gradients": held,
        "optimizer": 2 * held,  # the two moments of AdamW
        "scores": 3 * 4 * _SCORED_AT_ONCE * config.vocab_size,  # with their logarithms and gradients
        "activations": int(pieces * _activation_bytes(config, precision, length)),
    }


def _activation_bytes(config: AnyConfig, precision: str, length: float) -> int:
    """Activation bytes of a piece in a row of `length`. In bf16, products take 2 bytes, norms and sums 4."""
    return activation_numbers(config, length) * (4 if precision == "fp32" else 3)


def _tried(pipeline: Pipeline, planned: Plan, rows: Sequence[Phase] | None, seconds: float) -> Trial:
    """Runs the trial, on the recipe's rows or on random ones, with its files beside the folder of the artifacts.

    Raises SettingsError if weights, gradients and optimizer state do not fit into memory.
    """
    settings: PretrainStage = pipeline.recipe.section("pretrain")
    fixed, free = sum(planned.memory.values()) - planned.memory["activations"], planned.device_memory[1]
    room = _MEMORY_USED * free - fixed
    if room <= 0:
        raise SettingsError(
            f"{pipeline.recipe.given}: weights, gradients and optimizer need {fixed / 2**30:.1f} GiB, and "
            f"{free / 2**30:.1f} GiB are free on this {planned.device}: --seconds 0 plans without a trial"
        )
    beside = next(folder for folder in pipeline.folder.absolute().parents if folder.is_dir())
    with tempfile.TemporaryDirectory(prefix="korbert-plan-", dir=beside) as made:
        folder = pipeline.artifact("shard")
        if rows is None:
            folder = Path(made) / "shard"
            trial.write_made_up(folder, _ids(planned.config), settings.seed)
            rows = _rows(settings, folder, _ids(planned.config))
        flop = [
            phase.step_pieces * sum(work.both for work in parts.values())
            for phase, parts in zip(planned.phases, planned.flop, strict=True)
        ]
        longest = max(phase.row_pieces for phase in planned.phases)
        most = room / _activation_bytes(planned.config, planned.precision, longest)
        teacher = None
        if settings.distill.teacher:
            teacher = pipeline.inputs(pipeline.recipe.stages["pretrain"]).folder("teacher", "config.json")
        subject = trial.Subject(settings, folder, _ids(planned.config), rows, flop, most, teacher)
        return trial.measure(subject, choose_device(planned.device), seconds, Path(made) / "checkpoints")


def outlook(pipeline: Pipeline, phases: Sequence[PhasePlan], measured: Trial, hours: float | None) -> Outlook:
    """Extrapolates a trial to the whole run: the time of a step is its pieces over the speed of the trial."""
    settings: PretrainStage = pipeline.recipe.section("pretrain")
    costs = Costs(
        step=[phase.step_pieces / one.pieces_a_second for phase, one in zip(phases, measured.phases, strict=True)],
        evaluation=measured.evaluation,
        evaluate_every=settings.evaluate_every,
        checkpoint=measured.checkpoint,
        checkpoint_every=settings.checkpoint_every,
        checkpoint_after=Checkpointing(pipeline.folder, settings.checkpoint_every).every_seconds,
        preparing=measured.preparing,
    )
    steps = [phase.steps for phase in phases]
    run = forecast(steps, costs)
    within = None
    if hours is not None:
        fitting = steps_within(3600 * hours, steps, costs)
        changes = tuple(f"pretrain.phases.{number}.steps={count}" for number, count in enumerate(fitting))
        command = shlex.join(["korbert", "run", pipeline.recipe.given, *pipeline.runtime.given])
        within = Within(hours, fitting, forecast(fitting, costs), command, changes)
    ends = datetime.datetime.now().astimezone() + datetime.timedelta(seconds=min(run.seconds, _LONGEST))
    return Outlook(measured, tuple(costs.step), run, ends, within)
