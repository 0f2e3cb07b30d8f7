"""The output of `korbert plan`, as text tables or one JSON object."""

import dataclasses
from collections.abc import Iterator

from rich.cells import cell_len

from korbert.messages import Message, in_language
from korbert.pipelines.artifacts.figures import label
from korbert.pipelines.artifacts.formatting import duration
from korbert.pipelines.planning.plan import CostEstimate
from korbert.system import JsonObject

_GIB = 2**30


def lines(plan: CostEstimate) -> Iterator[str]:
    """The lines of the tables, never wrapped."""
    yield str(plan.folder)
    yield from (in_language(Message("note: {note}", note=note)) for note in plan.notes)
    yield from ("", in_language(Message("parameters")))
    yield from (_line(label(name), f"{count:,}") for name, count in plan.parameters.items())
    yield _line(Message("total"), f"{sum(plan.parameters.values()):,}")
    yield _line(
        Message("encoder and pooler"), f"{plan.encoder_parameters:,}", Message("as Devlin et al. 2018 count them")
    )

    total, free = plan.device_memory
    yield ""
    yield in_language(Message("memory, GiB, {precision}; activations are an estimate", precision=plan.precision))
    yield from (_line(label(name), f"{count / _GIB:,.2f}") for name, count in plan.memory.items())
    yield _line(Message("total"), f"{sum(plan.memory.values()) / _GIB:,.2f}")
    yield _line(
        Message("this {device}", device=plan.device),
        f"{total / _GIB:,.2f}",
        Message("{free:,.2f} free", free=free / _GIB),
    )

    yield ""
    yield in_language(
        Message("rows and steps; operations of a forward and a backward pass (a multiply-add counts as two)")
    )
    yield from _phase_table(plan)

    if plan.timing:
        yield from ("", in_language(Message("the run, without its checkpoints")))
        yield _line(Message("training"), duration(plan.timing.training))
        yield _line(
            Message("evaluations"),
            duration(plan.timing.evaluating),
            Message("{count:,} of them", count=plan.timing.evaluations),
        )
        yield _line(Message("total"), duration(plan.timing.total))
        yield _line(Message("ends"), f"{plan.timing.ends:%Y-%m-%d %H:%M}", Message("if started now"))
        if plan.timing.within:
            yield from ("", in_language(Message("as many steps as fit")))
            yield " \\\n  ".join([plan.timing.command, *(f"--set {change}" for change in plan.timing.within)])


def _phase_table(plan: CostEstimate) -> Iterator[str]:
    """A column for each phase."""
    yield _line(Message("phase"), *map(str, range(len(plan.phases))))
    rows = {
        Message("max pieces per row"): [f"{phase.length:,}" for phase in plan.phases],
        Message("mean pieces per row"): [f"{phase.row_pieces:,.1f}" for phase in plan.phases],
        Message("rows per step"): [f"{phase.batch_size:,}" for phase in plan.phases],
        Message("pieces per step"): [f"{phase.step_pieces:,.0f}" for phase in plan.phases],
        Message("steps"): [f"{phase.steps:,}" for phase in plan.phases],
        Message("pieces"): [f"{phase.steps * phase.step_pieces:,.0f}" for phase in plan.phases],
        Message("rows per epoch"): [
            "-" if phase.epoch_rows is None else f"{phase.epoch_rows:,}" for phase in plan.phases
        ],
        Message("epochs"): ["-" if phase.epochs is None else f"{phase.epochs:,.2f}" for phase in plan.phases],
        Message("MFLOP per piece"): [f"{sum(phase.flop.values()) / 1e6:,.3f}" for phase in plan.phases],
    }
    if plan.timing:
        rows[Message("rows per timed step")] = [f"{phase.tried_rows:,}" for phase in plan.phases]
        rows[Message("seconds per step")] = [f"{phase.step_seconds or 0:,.3f}" for phase in plan.phases]
        rows[Message("pieces per second")] = [f"{phase.pieces_per_second or 0:,.0f}" for phase in plan.phases]
    yield from (_line(name, *cells) for name, cells in rows.items())


def _line(name: str, *cells: str) -> str:
    name = in_language(name)
    spaced = ((" " * (18 - cell_len(cell)) or "  ") + cell for cell in map(in_language, cells))
    return f"  {name}{' ' * (22 - cell_len(name))}{''.join(spaced)}"


def as_json(plan: CostEstimate) -> JsonObject:
    """Returns the figures of the tables in seconds, bytes and operations; `timing` is null without a trial."""
    derived = ("step_pieces", "epochs", "pieces_per_second")
    phases = [dataclasses.asdict(phase) | {name: getattr(phase, name) for name in derived} for phase in plan.phases]
    timing = plan.timing
    ends = {"ends": timing.ends.isoformat(timespec="seconds"), "total": timing.total} if timing else {}
    return {
        **dataclasses.asdict(plan),
        "folder": str(plan.folder),
        "encoder_parameters": plan.encoder_parameters,
        "phases": phases,
        "timing": {**dataclasses.asdict(timing), **ends} if timing else None,
    }
