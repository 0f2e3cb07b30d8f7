"""Comparison of pretraining runs: tables for terminal and page, and a page with learning curves."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.artifacts import Json
from pipelines.comparing import Run, difference, in_bits
from pipelines.reports import formatting
from pipelines.reports.course import time_axis
from pipelines.reports.elements import Element, Section, Table
from pipelines.reports.page import write
from pipelines.reports.pictures import Line, curves

__all__ = ["tables", "write_page"]

_Axis = Callable[[Run], NDArray[np.float64] | None]


def tables(runs: Sequence[Run]) -> list[Table]:
    """The runs, their last evaluations, and figures at equal time and equal pieces, if known for all runs."""
    tables = [_sizes(runs), _last(runs)]
    for what, shown, axis in (("time", formatting.duration, _seconds), ("pieces", formatting.compact, _pieces)):
        ends = [places[-1] for run in runs if (places := axis(run)) is not None]
        if len(ends) == len(runs):
            tables.append(_figures(f"At equal {what}: {shown(min(ends))}", runs, min(ends), axis))
    return tables


def _seconds(run: Run) -> NDArray[np.float64] | None:
    return run.seconds


def _pieces(run: Run) -> NDArray[np.float64] | None:
    return run.pieces


def _sizes(runs: Sequence[Run]) -> Table:
    rows = tuple(
        (
            run.name,
            "–" if run.parameters is None else formatting.compact(run.parameters),
            "–" if run.vocab_size is None else formatting.count(run.vocab_size),
            "–" if (speed := run.course.pieces_per_second) is None else formatting.count(speed),
            "not finished" if run.parameters is None else "finished",
        )
        for run in runs
    )
    return Table("Runs", ("run", "parameters", "vocabulary", "pieces/s", "state"), rows, "lrrrl")


def _last(runs: Sequence[Run]) -> Table:
    rows = tuple(
        (
            run.name,
            formatting.count(run.heldout[-1]["step"]),
            "–" if run.pieces is None else formatting.compact(run.pieces[-1]),
            "–" if run.seconds is None else formatting.duration(run.seconds[-1]),
            formatting.decimal(run.heldout[-1]["mlm_loss"], 3),
            formatting.percent(run.heldout[-1]["mlm_accuracy"]),
        )
        for run in runs
    )
    head = ("run", "steps", "pieces", "time", "MLM loss", "accuracy")
    return Table("Last evaluation of each run", head, rows, "lrrrrr")


def _figures(title: str, runs: Sequence[Run], place: float, axis: _Axis) -> Table:
    """Held-out figures at a position that all runs have reached, best run first."""
    bits = in_bits(runs)
    figures = []
    for run in runs:
        at = axis(run)
        assert at is not None
        loss, accuracy = (run.at(f"mlm_{figure}", place, at) for figure in ("loss", "accuracy"))
        figures.append((run.bits_per_char(loss) if bits else loss, run.name, loss, accuracy))
    figures.sort(key=lambda one: float("inf") if one[0] is None else one[0])
    rows = tuple(
        (
            name,
            formatting.decimal(loss, 3),
            *((formatting.decimal(figure, 3),) if bits else ()),
            formatting.percent(accuracy),
        )
        for figure, name, loss, accuracy in figures
    )
    head = ("run", "MLM loss", *(("bits/character",) if bits else ()), "accuracy")
    note = "Interpolated linearly between evaluations; a dash before the first one."
    return Table(title, head, rows, "l" + "r" * (len(head) - 1), note)


def write_page(path: Path, runs: Sequence[Run]) -> Path:
    """Writes the page. Returns its path."""
    drawn = [*_curves(runs, "MLM loss", lambda run, line: line["mlm_loss"], y="nats")]
    if in_bits(runs):
        drawn += _curves(
            runs,
            "MLM loss per character",
            lambda run, line: run.bits_per_char(line["mlm_loss"]),
            y="bits",
        )
    accuracy = _curves(runs, "MLM accuracy", lambda run, line: line["mlm_accuracy"], y="accuracy", percent=True)
    folders = tuple((run.name, str(run.folder)) for run in runs)
    sections = (
        Section("Held-out loss", tuple(drawn)),
        Section("Held-out accuracy", tuple(accuracy)),
        Section("Figures", (*tables(runs), Table("Folders", ("run", "folder"), folders, "lk"))),
    )
    names = [run.name for run in runs]
    lede = difference(runs) or "Pretraining runs with the same tokenizer, evaluated on the same held-out rows."
    remark = "Time is training time, without evaluations and checkpoints."
    return write(path, "compare.html", names=names, what="runs", lede=lede, remark=remark, sections=sections)


def _curves(
    runs: Sequence[Run],
    title: str,
    figure: Callable[[Run, Json], float | None],
    *,
    y: str,
    percent: bool = False,
) -> Iterator[Element]:
    """A held-out figure of all runs against time and against pieces, as far as measured."""
    longest = max((float(run.seconds[-1]) for run in runs if run.seconds is not None), default=0.0)
    unit, name = time_axis(longest)
    for words, x, axis, size in (("time", name, _seconds, unit), ("pieces", "pieces", _pieces, 1.0)):
        lines = []
        for run in runs:
            places = axis(run)
            if places is not None:
                values = [figure(run, line) for line in run.heldout]
                points = [(x, v) for x, v in zip((places / size).tolist(), values, strict=True) if v is not None]
                lines.append(Line(run.name, [x for x, _ in points], [v for _, v in points]))
        if any(line.x for line in lines):
            whole, floor = words == "pieces", 0 if percent else None
            yield curves(f"{title} against {words}", lines, x=x, y=y, percent=percent, whole=whole, floor=floor)
