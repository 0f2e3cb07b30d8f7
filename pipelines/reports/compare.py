"""Comparisons of pretraining runs and of models on one task: tables for terminal and page, and the page."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from korbert.errors import SettingsError
from korbert.pipelines.artifacts.store import Json
from korbert.pipelines.experiments.compare_pretraining import Run, difference, open_runs
from korbert.pipelines.experiments.compare_tasks import PREDICTIONS, Side, TaskComparison, compare_tasks
from korbert.pipelines.language import t
from korbert.pipelines.reports import formatting
from korbert.pipelines.reports.elements import Element, Entry, Folded, Section, Table
from korbert.pipelines.reports.examples import differing, in_words
from korbert.pipelines.reports.figures import label, text
from korbert.pipelines.reports.page import write
from korbert.pipelines.reports.task_scores import deviation, example_interval, mean
from korbert.pipelines.reports.training_log import time_axis

_EXAMPLES = 10  # for each side of a pair
_LOSS, _ACCURACY = "mlm_loss", "mlm_accuracy"

_Axis = Callable[[Run], NDArray[np.float64] | None]
_AXES: dict[str, tuple[_Axis, Callable[[float], str]]] = {  # name -> positions of the evaluations of a run, in words
    "time": (lambda run: run.seconds, formatting.duration),
    "pieces": (lambda run: run.pieces, formatting.compact),
}


@dataclass(frozen=True)
class Shown:
    """A comparison as it is shown. sentences: below the tables. sections: of the page."""

    sides: Sequence[Run | Side]
    tables: list[Table]
    sentences: list[str]
    lede: str
    remark: str
    sections: Callable[[], Sequence[Section]]

    @property
    def names(self) -> list[str]:
        return [side.name for side in self.sides]


def compared(folders: Sequence[Path], models: Sequence[str] = ()) -> tuple[Shown, Json]:
    """The comparison of artifacts of tasks, or of pretraining runs, and as JSON.

    models: of tasks, as in compare_tasks. Raises SettingsError for artifacts of both sorts, and for `models` of runs.
    """
    for folder in folders:
        if not folder.exists():
            raise SettingsError(f"{folder}: no such folder: check its name")
    tasks = [(folder / PREDICTIONS).is_file() for folder in folders]
    if any(tasks) and not all(tasks):
        task, run = folders[tasks.index(True)], folders[tasks.index(False)]
        raise SettingsError(f"{task} is an artifact of a task and {run} is none: compare tasks, or pretraining runs")
    if any(tasks):
        comparison = compare_tasks(folders, models)
        return of_tasks(comparison), comparison.as_json()
    if models:
        raise SettingsError("--model is for artifacts of tasks: leave it out")
    runs = open_runs(folders)
    facts = [
        {
            "name": run.name,
            "folder": str(run.folder),
            "parameters": run.parameters,
            "vocab_size": run.vocab_size,
            "pieces": run.pieces.tolist(),
            "seconds": None if run.seconds is None else run.seconds.tolist(),
            "heldout": run.log.heldout,
        }
        for run in runs
    ]
    return of_runs(runs), {"kind": "pretraining", "runs": facts}


def write_page(path: Path, shown: Shown) -> Path:
    """Writes the page. Returns its path."""
    folders = Table("Folders", ("name", "folder"), [(side.name, str(side.folder)) for side in shown.sides], "nk")
    sections = [*shown.sections(), Section("Figures", [*shown.tables, folders], " ".join(map(t, shown.sentences)))]
    return write(path, "compare.html", shown=shown, sections=sections)


def of_runs(runs: Sequence[Run]) -> Shown:
    """The runs, their last evaluations, and figures at equal time and equal pieces, if known for all runs."""
    tables = run_tables(runs)
    for name, (axis, show) in _AXES.items():
        ends = [at[-1] for run in runs if (at := axis(run)) is not None]
        if len(ends) == len(runs):
            tables.append(at_equal(f"At equal {name}: {show(min(ends))}", runs, min(ends), axis))
    why = difference(runs)
    return Shown(
        sides=runs,
        tables=tables,
        sentences=[why] if why else [],
        lede=why or "Pretraining runs with the same tokenizer, evaluated on the same held-out rows.",
        remark="Time is training time, without evaluations and checkpoints.",
        sections=lambda: [Section("Held-out loss", list(loss_curves(runs)))],
    )


def _known(value: float | None, show: Callable[[float], str]) -> str:
    return formatting.UNKNOWN if value is None else show(value)


def run_tables(runs: Sequence[Run]) -> list[Table]:
    """Sizes and speed of the runs, and their last evaluations."""
    sizes, last = [], []
    for run in runs:
        parameters, vocabulary = _known(run.parameters, formatting.compact), _known(run.vocab_size, formatting.count)
        state = "not finished" if run.parameters is None else "finished"
        speed = _known(run.log.pieces_per_second, formatting.count)
        sizes.append((run.name, parameters, vocabulary, speed, state))
        line = run.log.heldout[-1]
        time = formatting.UNKNOWN if run.seconds is None else formatting.duration(run.seconds[-1])
        steps, pieces = formatting.count(line["step"]), formatting.compact(run.pieces[-1])
        last.append((run.name, steps, pieces, time, text(_LOSS, line[_LOSS], 1), text(_ACCURACY, line[_ACCURACY])))
    head = ("run", "steps", "pieces", "time", label(_LOSS), "accuracy")
    return [
        Table("Runs", ("run", "parameters", "vocabulary", "pieces/s", "state"), sizes, "nrrrl"),
        Table("Last evaluation of each run", head, last, "nrrrrr"),
    ]


def at_equal(title: str, runs: Sequence[Run], position: float, axis: _Axis) -> Table:
    """Held-out figures at a position that all runs have reached, best run first."""
    scored: list[tuple[float, tuple[str, ...]]] = []
    for run in runs:
        at = axis(run)
        assert at is not None
        loss, accuracy = (run.at(key, position, at) for key in (_LOSS, _ACCURACY))
        row = (run.name, text(_LOSS, loss, 1), text(_ACCURACY, accuracy))
        scored.append((float("inf") if loss is None else loss, row))
    rows = [row for _, row in sorted(scored, key=lambda pair: pair[0])]
    note = "Interpolated linearly between evaluations; a dash before the first one."
    return Table(title, ("run", label(_LOSS), "accuracy"), rows, "nrr", note=note)


def loss_curves(runs: Sequence[Run]) -> Iterator[Element]:
    """The held-out loss of all runs against time and against pieces, as far as measured."""
    from korbert.pipelines.reports.pictures import Line, curves  # matplotlib, which tables do without

    longest = max((float(run.seconds[-1]) for run in runs if run.seconds is not None), default=0.0)
    for name, (axis, _) in _AXES.items():
        size, x = time_axis(longest) if name == "time" else (1.0, "pieces")
        lines = [
            Line.through(run.name, at / size, [line[_LOSS] for line in run.log.heldout])
            for run in runs
            if (at := axis(run)) is not None
        ]
        yield from curves(f"{label(_LOSS)} against {name}", lines, x=x, y="nats", whole=name == "pieces")


def of_tasks(comparison: TaskComparison) -> Shown:
    """All scores of the sides, and how the first differs from the others; the page also has examples."""
    pairs, task, number = comparison.scores["comparisons"], comparison.task, len(comparison.rows)
    return Shown(
        sides=comparison.sides,
        tables=[scores_table(comparison)],
        sentences=[*(pair["sentence"] for pair in pairs), *comparison.notes()],
        lede=f"Scores on the same {number:,} rows of a task of kind {task.name}.",
        remark="Intervals are 95 % bootstrap intervals.",
        sections=lambda: (Section("Where they differ", list(example_elements(comparison))),),
    )


def scores_table(comparison: TaskComparison) -> Table:
    metrics = comparison.scores["metrics"]
    rows = []
    for side, model in zip(comparison.sides, comparison.scores["models"], strict=True):
        scores = (f"{text(key, mean(key, model), 1)} {deviation(key, model)}".rstrip() for key in metrics)
        rows.append((side.name, side.model, str(model["seeds"]), *scores, example_interval(metrics[0], model)))
    head = ("side", "model", "seeds", *map(label, metrics), "95 % interval")
    note = "Mean ± standard deviation over seeds; 95 % bootstrap interval over rows, first seed."
    return Table(f"Scores on {len(comparison.rows):,} rows", head, rows, "nn" + "r" * (len(head) - 2), note=note)


def example_elements(comparison: TaskComparison) -> Iterator[Element]:
    """Rows that one side of a pair predicts better than the other, largest difference first."""
    task, rows, sides = comparison.task, comparison.rows, {side.name: side for side in comparison.sides}
    merits = {
        name: np.mean([task.merits(rows, of_seed) for of_seed in side.predictions], axis=0)
        for name, side in sides.items()
    }
    for better, worse, order in differing(merits):
        verdict = f"{better} right, {worse} wrong"
        if task.is_graded:
            verdict = f"{better} closer than {worse}"
        elif max(len(sides[name].facts) for name in (better, worse)) > 1:
            verdict = f"{better} right more often than {worse}"
        entries = [example(comparison, row, (sides[better], sides[worse])) for row in order[:_EXAMPLES]]
        yield Folded(f"{verdict} · {len(order):,} of {len(rows):,} rows", entries)


def example(comparison: TaskComparison, number: int, sides: Sequence[Side]) -> Entry:
    row, task = comparison.rows[number], comparison.task
    facts = [(t("true"), in_words(row, task.target(row)))]
    for side in sides:
        facts.append((side.name, " · ".join(in_words(row, of_seed[number]) for of_seed in side.predictions)))
    return Entry(str(row.get("id") or ""), " / ".join(task.texts(row)) or t("(empty)"), facts, is_translated=True)
