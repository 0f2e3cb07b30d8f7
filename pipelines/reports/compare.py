"""Comparisons of pretraining runs and of models on one task: tables for terminal and page, and the page."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from korbert.tasks.files import Row
from pipelines.artifacts.store import Json
from pipelines.experiments.compare_pretraining import Run, difference, in_bits
from pipelines.experiments.compare_tasks import Side, TaskComparison, merits
from pipelines.reports import formatting
from pipelines.reports.elements import Element, Entry, Folded, Section, Table
from pipelines.reports.page import write
from pipelines.reports.training_log import time_axis

__all__ = ["Shown", "of_runs", "of_tasks", "write_page"]

_EXAMPLES = 10  # for each side of a pair

_Axis = Callable[[Run], NDArray[np.float64] | None]


@dataclass(frozen=True)
class Shown:
    """A comparison as it is shown. what: "runs" or "models". sentences: below the tables. sections: of the page."""

    what: str
    names: list[str]
    folders: list[Path]
    tables: list[Table]
    sentences: list[str]
    lede: str
    remark: str
    sections: Callable[[], Sequence[Section]]


def write_page(path: Path, shown: Shown) -> Path:
    """Writes the page. Returns its path."""
    folders = Table("Folders", ("name", "folder"), tuple(zip(shown.names, map(str, shown.folders), strict=True)), "lk")
    figures = Section("Figures", (*shown.tables, folders), " ".join(shown.sentences))
    return write(
        path,
        "compare.html",
        names=shown.names,
        what=shown.what,
        lede=shown.lede,
        remark=shown.remark,
        sections=(*shown.sections(), figures),
    )


def of_runs(runs: Sequence[Run]) -> Shown:
    """The runs, their last evaluations, and figures at equal time and equal pieces, if known for all runs."""
    tables = [_sizes(runs), _last(runs)]
    for what, words, axis in (("time", formatting.duration, _seconds), ("pieces", formatting.compact, _pieces)):
        ends = [places[-1] for run in runs if (places := axis(run)) is not None]
        if len(ends) == len(runs):
            tables.append(_at(f"At equal {what}: {words(min(ends))}", runs, min(ends), axis))
    why = difference(runs)
    return Shown(
        what="runs",
        names=[run.name for run in runs],
        folders=[run.folder for run in runs],
        tables=tables,
        sentences=[why] if why else [],
        lede=why or "Pretraining runs with the same tokenizer, evaluated on the same held-out rows.",
        remark="Time is training time, without evaluations and checkpoints.",
        sections=lambda: _sections_of_runs(runs),
    )


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


def _at(title: str, runs: Sequence[Run], place: float, axis: _Axis) -> Table:
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


def _sections_of_runs(runs: Sequence[Run]) -> tuple[Section, ...]:
    losses = [*_curves(runs, "MLM loss", lambda run, line: line["mlm_loss"], y="nats")]
    if in_bits(runs):
        per_char = "MLM loss per character"
        losses += _curves(runs, per_char, lambda run, line: run.bits_per_char(line["mlm_loss"]), y="bits")
    accuracy = _curves(runs, "MLM accuracy", lambda run, line: line["mlm_accuracy"], y="accuracy", percent=True)
    return Section("Held-out loss", tuple(losses)), Section("Held-out accuracy", tuple(accuracy))


def _curves(
    runs: Sequence[Run],
    title: str,
    figure: Callable[[Run, Json], float | None],
    *,
    y: str,
    percent: bool = False,
) -> Iterator[Element]:
    """A held-out figure of all runs against time and against pieces, as far as measured."""
    from pipelines.reports.pictures import Line, curves  # matplotlib, which tables do without

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


def of_tasks(found: TaskComparison) -> Shown:
    """All scores of the sides, and the differences from the first one; the page also has examples."""
    comparisons = found.scores["comparisons"]
    return Shown(
        what="models",
        names=[side.name for side in found.sides],
        folders=[side.folder for side in found.sides],
        tables=[_scores(found), *([_differences(found)] if comparisons else [])],
        sentences=[*(one["sentence"] for one in comparisons), *found.notes()],
        lede=f"Scores on the same {len(found.rows):,} rows of a {found.task.name} task, {found.task.about()}.",
        remark="Intervals are 95 % bootstrap intervals.",
        sections=lambda: (Section("Where they differ", tuple(_examples(found))),),
    )


def _scores(found: TaskComparison) -> Table:
    metrics = found.scores["metrics"]
    rows = tuple(
        (
            side.name,
            side.model,
            str(model["seeds"]),
            *(_spread(model[metric]) for metric in metrics),
            _ends(model["examples"]),
        )
        for side, model in zip(found.sides, found.scores["models"], strict=True)
    )
    head = ("side", "model", "seeds", *metrics, f"95 % of {metrics[0]}")
    note = "Mean ± standard deviation over seeds; 95 % bootstrap interval over rows, first seed."
    return Table(f"Scores on {len(found.rows):,} rows", head, rows, "ll" + "r" * (len(head) - 2), note)


def _spread(found: Json | None) -> str:
    if found is None:
        return "–"
    deviation = "" if found["deviation"] is None else f" ± {found['deviation']:.4f}"
    return f"{found['mean']:.4f}{deviation}"


def _ends(ends: Sequence[float] | None, sign: str = "") -> str:
    return "–" if ends is None else "{:{}.4f} to {:{}.4f}".format(ends[0], sign, ends[1], sign)


def _differences(found: TaskComparison) -> Table:
    rows = tuple(
        (
            one["names"][1],
            f"{one['difference']:+.4f}",
            _ends(one["interval"], "+"),
            "< 0.001" if one["p_value"] < 0.001 else f"{one['p_value']:.3f}",
        )
        for one in found.scores["comparisons"]
    )
    title = f"{found.scores['metrics'][0]} of {found.sides[0].name}, minus that of others"
    note = "Interval and p account for the sampling of examples and, with several seeds, of seeds."
    return Table(title, ("compared with", "difference", "95 % interval", "p"), rows, "lrrr", note)


def _examples(found: TaskComparison) -> Iterator[Element]:
    """Rows that one side of a pair predicts better than the other, largest difference first."""
    means = [np.mean([merits(found.task, found.rows, one) for one in side.predictions], axis=0) for side in found.sides]
    first = found.sides[0]
    for other, mean in zip(found.sides[1:], means[1:], strict=True):
        for better, worse, gain in ((first, other, means[0] - mean), (other, first, mean - means[0])):
            clearest = [int(row) for row in np.argsort(-gain, kind="stable") if gain[row] > 0]
            if clearest:
                entries = tuple(_entry(found, row, (better, worse)) for row in clearest[:_EXAMPLES])
                title = f"{_better(found, better, worse)} · {len(clearest):,} of {len(found.rows):,} rows"
                yield Folded(title, entries)


def _better(found: TaskComparison, better: Side, worse: Side) -> str:
    if found.task.name == "regression":
        return f"{better.name} closer than {worse.name}"
    if max(len(side.facts) for side in (better, worse)) > 1:
        return f"{better.name} right more often than {worse.name}"
    return f"{better.name} right, {worse.name} wrong"


def _entry(found: TaskComparison, number: int, sides: Sequence[Side]) -> Entry:
    row = found.rows[number]
    target = found.task.target(row)
    facts = [("right", _shown(row, {"choice": target} if found.task.name == "choice" else target))]
    facts += [(side.name, " · ".join(_shown(row, one[number]) for one in side.predictions)) for side in sides]
    return Entry(str(row.get("id") or ""), " / ".join(found.task.texts(row)) or "(empty)", tuple(facts))


def _shown(row: Row, prediction: Any) -> str:
    """A target or a prediction as short text."""
    if isinstance(prediction, dict):
        if "choice" in prediction:
            return str(row["choices"][prediction["choice"]])
        share = prediction.get("probabilities", {}).get(prediction.get("label"))
        label = prediction["label"] if "label" in prediction else ", ".join(prediction["labels"]) or "none"
        return label if share is None else f"{label} {formatting.percent(share)}"
    if isinstance(prediction, float):
        return f"{prediction:.3f}"
    if isinstance(prediction, list):
        spans = [
            one if isinstance(one, str) else f"{row.get('text', '')[one[0] : one[1]]} {one[2]}" for one in prediction
        ]
        return ", ".join(spans) or "none"
    return str(prediction)
