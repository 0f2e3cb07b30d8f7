"""The output of `korbert plan`, as text tables or one JSON object."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from rich.cells import cell_len

from korbert.pipelines.language import t
from korbert.pipelines.planning.plan import Plan
from korbert.pipelines.reports.formatting import duration

_GIB = 2**30


def lines(plan: Plan) -> Iterator[str]:
    """The lines of the tables, never wrapped."""
    yield str(plan.folder)
    yield from (t(f"note: {note}") for note in plan.notes)
    yield from ("", t("parameters"))
    yield from (_line(name, f"{count:,}") for name, count in plan.parameters.items())
    yield _line("total", f"{sum(plan.parameters.values()):,}")
    yield _line("encoder and pooler", f"{plan.encoder_parameters:,}", "as Devlin et al. 2018 count them")

    total, free = plan.device_memory
    yield from ("", t(f"memory, GiB, {plan.precision}; activations are an estimate"))
    yield from (_line(name, f"{count / _GIB:,.2f}") for name, count in plan.memory.items())
    yield _line("total", f"{sum(plan.memory.values()) / _GIB:,.2f}")
    yield _line(f"this {plan.device}", f"{total / _GIB:,.2f}", f"{free / _GIB:,.2f} free")

    yield from ("", t("rows and steps; operations of a forward and a backward pass (a multiply-add counts as two)"))
    yield from _phase_table(plan)

    if plan.timing:
        yield from ("", t("the run, without its checkpoints"))
        yield _line("training", duration(plan.timing.training))
        yield _line("evaluations", duration(plan.timing.evaluating), f"{plan.timing.evaluations:,} of them")
        yield _line("total", duration(plan.timing.total))
        yield _line("ends", f"{plan.timing.ends:%Y-%m-%d %H:%M}", "if started now")
        if plan.timing.within:
            yield from ("", t("as many steps as fit"))
            yield " \\\n  ".join([plan.timing.command, *(f"--set {change}" for change in plan.timing.within)])


def _phase_table(plan: Plan) -> Iterator[str]:
    """A column for each phase."""
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
        "MFLOP per piece": [f"{sum(phase.flop.values()) / 1e6:,.3f}" for phase in plan.phases],
    }
    if plan.timing:
        rows["rows per timed step"] = [f"{phase.tried_rows:,}" for phase in plan.phases]
        rows["seconds per step"] = [f"{phase.step_seconds or 0:,.3f}" for phase in plan.phases]
        rows["pieces per second"] = [f"{phase.pieces_a_second or 0:,.0f}" for phase in plan.phases]
    yield from (_line(name, *cells) for name, cells in rows.items())


def _line(name: str, *cells: str) -> str:
    name, spaced = t(name), ((" " * (18 - cell_len(cell)) or "  ") + cell for cell in map(t, cells))
    return f"  {name}{' ' * (22 - cell_len(name))}{''.join(spaced)}"


def as_json(plan: Plan) -> dict[str, Any]:
    """The same figures, in seconds, bytes and operations; `timing` is null without a trial."""
    derived = ("step_pieces", "epochs", "pieces_a_second")
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
