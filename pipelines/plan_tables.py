"""The output of `korbert plan`, as text tables or one JSON object."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from korbert.modeling.arithmetic import encoder_parameters
from pipelines.planning import Outlook, Plan

__all__ = ["as_json", "duration", "lines"]

_GIB = 2**30


def lines(plan: Plan) -> Iterator[str]:
    """The lines of the tables, never wrapped."""
    yield str(plan.folder)
    yield from (f"note: {note}" for note in plan.notes)
    yield from ("", "parameters")
    yield from (_line(name, f"{count:,}") for name, count in plan.parameters.items())
    yield _line("total", f"{sum(plan.parameters.values()):,}")
    yield _line("encoder and pooler", f"{encoder_parameters(plan.parameters):,}", "as Devlin et al. 2018 count them")

    # A column for each phase.
    yield from ("", "compute, million operations per piece, forward and backward (a multiply-add counts as two)")
    yield _line("", *(f"{phase.row_pieces:.0f} pieces/row" for phase in plan.phases))
    for name in plan.flop[0]:
        yield _line(name, *(f"{column[name].both / 1e6:,.3f}" for column in plan.flop))
    yield _line("total", *(f"{sum(work.both for work in column.values()) / 1e6:,.3f}" for column in plan.flop))

    total, free = plan.device_memory
    yield from ("", f"memory, GiB, {plan.precision}; activations and scores are estimates")
    yield from (_line(name, f"{count / _GIB:,.2f}") for name, count in plan.memory.items())
    yield _line("total", f"{sum(plan.memory.values()) / _GIB:,.2f}")
    yield _line(f"this {plan.device}", f"{total / _GIB:,.2f}", f"{free / _GIB:,.2f} free")
    if plan.outlook:
        yield _line("peak in the trial", f"{plan.outlook.trial.memory / _GIB:,.2f}")

    yield from ("", "rows and steps")
    yield _line("phase", *map(str, range(len(plan.phases))))
    rows = {
        "max pieces per row": [f"{phase.length:,}" for phase in plan.phases],
        "mean pieces per row": [f"{phase.row_pieces:,.1f}" for phase in plan.phases],
        "rows per step": [f"{phase.batch_size:,}" for phase in plan.phases],
        "pieces per step": [f"{phase.step_pieces:,.0f}" for phase in plan.phases],
        "steps": [f"{phase.steps:,}" for phase in plan.phases],
        "pieces": [f"{phase.steps * phase.step_pieces:,.0f}" for phase in plan.phases],
        "rows per epoch": ["-" if phase.epoch_rows is None else f"{phase.epoch_rows:,}" for phase in plan.phases],
        "epochs": ["-" if phase.epochs is None else f"{phase.epochs:,.2f}" for phase in plan.phases],
    }
    if plan.outlook:
        rows["seconds per step"] = [f"{seconds:,.3f}" for seconds in plan.outlook.step_seconds]
        rows["pieces per second"] = [f"{one.pieces_a_second:,.0f}" for one in plan.outlook.trial.phases]
    yield from (_line(name, *cells) for name, cells in rows.items())
    if plan.outlook:
        yield from _outlook(plan, plan.outlook)


def _outlook(plan: Plan, outlook: Outlook) -> Iterator[str]:
    tried, run = outlook.trial, outlook.forecast
    yield from ("", "trial")
    for number, (one, phase) in enumerate(zip(tried.phases, plan.phases, strict=True)):
        fewer = f"; whole steps of {phase.batch_size:,} may be faster" if one.rows < phase.batch_size else ""
        measured = f"{one.steps:,} steps of {one.rows:,} rows, {one.pieces:,} pieces in {one.seconds:.1f} s{fewer}"
        yield _line(f"phase {number}", measured)
        share = one.pieces_a_second * sum(work.both for work in plan.flop[number].values()) / tried.product_rate
        yield _line("", f"{share:.0%} of the {tried.product_rate / 1e9:,.0f} GFLOP/s of a large matrix product here")
    yield from ("", "the run")
    yield _line("training", duration(run.training))
    yield _line("evaluations", duration(run.evaluating), f"{run.evaluations:,} of them")
    yield _line("checkpoints", duration(run.checkpointing), f"{run.checkpoints:,} of them")
    yield _line("preparation", duration(run.preparing))
    yield _line("total", duration(run.seconds))
    yield _line("ends", f"{outlook.ends:%Y-%m-%d %H:%M}", "if started now")
    if outlook.within:
        yield from ("", f"within {outlook.within.hours:g} hours ({duration(outlook.within.forecast.seconds)})")
        yield " \\\n  ".join([outlook.within.command, *(f"--set {change}" for change in outlook.within.changes)])


def duration(seconds: float) -> str:
    """A duration in a convenient unit: 42.0 s, 12.5 min, 3.1 h, 20.0 days."""
    for unit, size, most in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 48)):
        if seconds < most * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds / 86_400:,.1f} days"


def _line(name: str, *cells: str) -> str:
    return f"  {name:<22}" + "".join(f"{cell:>18}" if len(cell) < 18 else f"  {cell}" for cell in cells)


def as_json(plan: Plan) -> dict[str, Any]:
    """The same figures, in seconds, bytes and operations; `outlook` is null without a trial."""
    plain = {field.name: getattr(plan, field.name) for field in dataclasses.fields(plan)}
    plain |= {"folder": str(plan.folder), "config": plan.config.model_dump()}
    return {name: _plain(value) for name, value in plain.items()} | {
        "encoder_parameters": encoder_parameters(plan.parameters)
    }


def _plain(value: Any) -> Any:
    """Converts a value to JSON types; an object becomes its fields and properties."""
    if dataclasses.is_dataclass(value):
        own = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        derived = {name: getattr(value, name) for name, it in vars(type(value)).items() if isinstance(it, property)}
        return {name: _plain(one) for name, one in (own | derived).items()}
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value.isoformat(timespec="seconds") if hasattr(value, "isoformat") else value
