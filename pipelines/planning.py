"""`korbert plan`: what a recipe's pretraining holds, computes and takes, before anyone waits for it."""

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

_LOOKED_AT = (16, 64)  # batches, and rows in each, that tell the mean length of a phase's rows
_MEMORY_USED = 0.8  # of what is free: a trial takes no more
_SCORED_AT_ONCE = 256  # predicted pieces whose scores over the vocabulary are in memory together
_LONGEST = 1e10  # seconds, three centuries: later dates are none


@dataclass(frozen=True)
class PhasePlan:
    """A phase: its settings, and what its rows are. row_pieces: on average. epoch_rows: None without shards."""

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
    """The steps of each phase that fit into a time, what they take, and the command that runs them.

    changes: what its `--set` options say, which are not in `command`.
    """

    hours: float
    steps: tuple[int, ...]
    forecast: Forecast
    command: str
    changes: tuple[str, ...]


@dataclass(frozen=True)
class Outlook:
    """What a trial says of the run. step_seconds: of each phase. ends: when, if it began now."""

    trial: Trial
    step_seconds: tuple[float, ...]
    forecast: Forecast
    ends: datetime.datetime
    within: Within | None


@dataclass(frozen=True)
class Plan:
    """All that is said. flop: operations a piece by part, for each phase. memory: bytes by part.

    device_memory: bytes that there are, and free ones. notes: what was assumed. outlook: None without a trial.
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
    """The plan of the recipe's pretraining. seconds: of the trial; 0: none. hours: see `Within`; None: not asked.

    SettingsError if the recipe does not pretrain, if the hours are too few, or if they are asked for without a trial.
    """
    settings: PretrainStage | None = pipeline.recipe.section("pretrain")
    if settings is None:
        raise SettingsError(f"{pipeline.recipe.given}: has no section [pretrain], and that is what is planned: add one")
    if hours is not None and not (hours > 0 and seconds > 0):
        raise SettingsError(
            f"--hours {hours:g} --seconds {seconds:g}: a trial says what fits: give more than 0 of both"
        )
    torch.set_num_threads(settings.threads)
    device = choose_device(pipeline.runtime.device)

    # The vocabulary and the rows, as far as they are made.
    states = {status.stage: status.state for status in pipeline.statuses()}
    notes, vocab_size = [], int(pipeline.recipe.section("vocab").size)
    if states["vocab"] == "fresh":
        vocab_size = int((artifacts.read_record(pipeline.artifact("vocab")) or {})["counts"]["size"])
    else:
        notes.append(f"vocab is {states['vocab']}: {vocab_size:,} entries are what vocab.size says")
    config, precision = settings.encoder.config(vocab_size), choose_precision(device, settings.precision)
    real = states["shard"] == "fresh"
    rows = _rows(settings, pipeline.artifact("shard"), _ids(config)) if real else None
    if not real:
        made_up = ", a trial is on made-up ids" if seconds else ""
        notes.append(f"shard is {states['shard']}: rows are taken to be full, epochs are not known{made_up}")
    phases = tuple(_phase(phase, rows[number] if rows else None) for number, phase in enumerate(settings.phases))

    planned = Plan(
        folder=pipeline.folder,
        config=config,
        parameters=parameters(config),
        flop=tuple(_flop(settings, config, phase) for phase in phases),
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
    """As those of any tokenizer (korbert/tokenization/vocabulary.py); to load one takes Kiwi's seconds."""
    pad, cls, sep, mask = map(SPECIAL.index, ("[PAD]", "[CLS]", "[SEP]", "[MASK]"))
    return SpecialIds(pad, cls, sep, mask, FIRST_PIECE, config.vocab_size)


def _phase(settings: PhaseSettings, made: Phase | None) -> PhasePlan:
    """made: its rows, where there are shards; batches from all over the phase tell their mean length."""
    mean, epoch = float(settings.length), None
    if made is not None:
        number, together = _LOOKED_AT
        together = min(together, settings.steps * settings.batch_size)
        places = [trial.spread(n, settings.steps * settings.batch_size // together) for n in range(number)]
        pieces = sum(batch["pieces"] for place in places for batch in made.rows.batch(place, together))
        mean, epoch = pieces / (number * together), len(made.rows)
    return PhasePlan(settings.length, settings.batch_size, settings.micro_batches, settings.steps, mean, epoch)


def _flop(settings: PretrainStage, config: AnyConfig, phase: PhasePlan) -> dict[str, Work]:
    scored = settings.head.negatives + 1 if settings.head.kind == "sampled" else config.vocab_size
    return flop_a_piece(
        config,
        length=phase.row_pieces,
        label_share=1.0 if "clm" in settings.objectives else settings.masking.rate,
        scored=scored,
        pieces_a_step=phase.step_pieces,
    )


def memory_of(config: AnyConfig, phases: Sequence[PhasePlan], precision: str) -> dict[str, int]:
    """Bytes of training by part. Activations, an estimate, are those of the largest micro-batch."""
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
    """Of a piece in a row of `length`. In bf16 products are kept in 2 bytes, norms and sums in 4."""
    return activation_numbers(config, length) * (4 if precision == "fp32" else 3)


def _tried(pipeline: Pipeline, planned: Plan, rows: Sequence[Phase] | None, seconds: float) -> Trial:
    """The trial, on the recipe's rows or on made-up ones. Its files lie beside the folder of the artifacts.

    SettingsError where not even the weights, their gradients and the optimizer's state fit into memory.
    """
    settings: PretrainStage = pipeline.recipe.section("pretrain")
    fixed, free = sum(planned.memory.values()) - planned.memory["activations"], planned.device_memory[1]
    room = _MEMORY_USED * free - fixed
    if room <= 0:
        raise SettingsError(
            f"{pipeline.recipe.given}: weights, gradients and optimizer take {fixed / 2**30:.1f} GiB, and "
            f"{free / 2**30:.1f} GiB are free on this {planned.device}: no trial: --seconds 0 plans without one"
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
    """What was measured, for the whole run: a step takes what its pieces take at the speed of the trial."""
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
