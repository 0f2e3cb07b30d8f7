"""Comparisons of pretraining runs and of models on one task: tables for terminal and page, and the page."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from korbert.errors import SettingsError
from korbert.messages import Message, argument, join_messages
from korbert.pipelines.artifacts import formatting, label, text
from korbert.pipelines.experiments.compare_pretraining import PretrainingRun, difference, open_runs, time_axis
from korbert.pipelines.experiments.compare_tasks import PREDICTIONS, ComparedModel, TaskComparison, compare_tasks
from korbert.pipelines.reports.artifacts.task_scores import deviation, example_interval, mean
from korbert.pipelines.reports.drawing import (
    Element,
    Example,
    Folded,
    Section,
    TableElement,
    differing,
    in_words,
    write,
)
from korbert.system import JsonObject

_EXAMPLES = 10  # for each side of a pair
_LOSS = "mlm_loss"
_ACCURACY = "mlm_accuracy"


@dataclass(frozen=True)
class ShownComparison:
    """A comparison as it is shown. sentences: stand below the tables. sections: makes the sections of the page."""

    sides: Sequence[PretrainingRun | ComparedModel]
    tables: list[TableElement]
    sentences: Sequence[str]
    lede: str
    remark: str
    sections: Callable[[], Sequence[Section]]


def compare_artifacts(folders: Sequence[Path], models: Sequence[str] = ()) -> tuple[ShownComparison, JsonObject]:
    """Compares artifacts of tasks, or of pretraining runs. Returns the comparison as it is shown, and as JSON.

    models: names of the models to compare, as in compare_tasks; for tasks alone. Raises SettingsError for a folder that
    does not exist, for artifacts of both sorts, and for `models` with pretraining runs.
    """
    for folder in folders:
        if not folder.exists():
            raise SettingsError("{folder}: no such folder: check its name", folder=folder)
    is_task = [(folder / PREDICTIONS).is_file() for folder in folders]
    if any(is_task) and not all(is_task):
        raise SettingsError(
            "{task} is an artifact of a task and {run} is none: compare tasks, or pretraining runs",
            task=folders[is_task.index(True)],
            run=folders[is_task.index(False)],
        )
    if any(is_task):
        comparison = compare_tasks(folders, models)
        return show_tasks(comparison), comparison.as_json()
    if models:
        raise SettingsError("{option} is for artifacts of tasks: leave it out", option=argument("model"))
    runs = open_runs(folders)
    return show_runs(runs), {
        "kind": "pretraining",
        "runs": [
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
        ],
    }


def write_page(path: Path, shown: ShownComparison) -> Path:
    """Writes the page. Returns its path."""
    paths = [(side.name, str(side.folder)) for side in shown.sides]
    folders = TableElement(Message("Folders"), (Message("name"), Message("folder")), paths, "nk")
    sections = [
        *shown.sections(),
        Section(Message("Figures"), [*shown.tables, folders], join_messages(shown.sentences, "\n")),
    ]
    return write(path, "compare.html", shown=shown, sections=sections)


def show_runs(runs: Sequence[PretrainingRun]) -> ShownComparison:
    """Shows the runs, their last evaluations, figures at equal pieces and, if known for all runs, at equal time."""
    tables = run_tables(runs)
    seconds = [run.seconds for run in runs if run.seconds is not None]
    if len(seconds) == len(runs):
        shortest = min(of_run[-1] for of_run in seconds)
        title = Message("At equal time: {duration}", duration=formatting.duration(shortest))
        tables.append(at_equal(title, runs, shortest, seconds))
    pieces = min(run.pieces[-1] for run in runs)
    title = Message("At equal pieces: {pieces}", pieces=formatting.compact(pieces))
    tables.append(at_equal(title, runs, pieces, [run.pieces for run in runs]))
    objection = difference(runs)
    return ShownComparison(
        sides=runs,
        tables=tables,
        sentences=list(filter(None, [objection])),
        lede=objection or Message("Pretraining runs with the same tokenizer, evaluated on the same held-out rows."),
        remark=Message("Time is training time, without evaluations and checkpoints."),
        sections=lambda: [Section(Message("Held-out loss"), list(loss_curves(runs)))],
    )


def _known_value(value: float | None, show: Callable[[float], str]) -> str:
    return formatting.UNKNOWN if value is None else show(value)


def run_tables(runs: Sequence[PretrainingRun]) -> list[TableElement]:
    """Sizes and speed of the runs, and their last evaluations."""
    sizes = []
    last = []
    for run in runs:
        size = (
            run.name,
            _known_value(run.parameters, formatting.compact),
            _known_value(run.vocab_size, formatting.count),
            _known_value(run.log.pieces_per_second, formatting.count),
        )
        sizes.append((*size, Message("not finished") if run.parameters is None else Message("finished")))
        line = run.log.heldout[-1]
        scores = (text(_LOSS, line[_LOSS], 1), text(_ACCURACY, line[_ACCURACY]))
        time = formatting.UNKNOWN if run.seconds is None else formatting.duration(run.seconds[-1])
        last.append((run.name, formatting.count(line["step"]), formatting.compact(run.pieces[-1]), time, *scores))
    return [
        TableElement(
            Message("Runs"),
            (Message("run"), Message("parameters"), Message("vocabulary"), Message("pieces/s"), Message("state")),
            sizes,
            "nrrrl",
        ),
        TableElement(
            Message("Last evaluation of each run"),
            (Message("run"), Message("steps"), Message("pieces"), Message("time"), label(_LOSS), Message("accuracy")),
            last,
            "nrrrrr",
        ),
    ]


def at_equal(
    title: str, runs: Sequence[PretrainingRun], position: float, axes: Sequence[NDArray[np.float64]]
) -> TableElement:
    """Held-out figures at a position that all runs have reached, best run first.

    axes: the positions of each run's evaluations.
    """
    scored: list[tuple[float, tuple[str, ...]]] = []
    for run, axis in zip(runs, axes, strict=True):
        loss, accuracy = (run.at(key, position, axis) for key in (_LOSS, _ACCURACY))
        row = (run.name, text(_LOSS, loss, 1), text(_ACCURACY, accuracy))
        scored.append((float("inf") if loss is None else loss, row))
    rows = [row for _, row in sorted(scored, key=lambda pair: pair[0])]
    return TableElement(
        title,
        (Message("run"), label(_LOSS), Message("accuracy")),
        rows,
        "nrr",
        note=Message("Interpolated linearly between evaluations; a dash before the first one."),
    )


def loss_curves(runs: Sequence[PretrainingRun]) -> Iterator[Element]:
    """Yields charts of the held-out loss of all runs, against time (where it is known) and against pieces."""
    from korbert.pipelines.reports.drawing import Series, curves  # matplotlib, which tables do without

    losses = {run.name: [line[_LOSS] for line in run.log.heldout] for run in runs}
    y = Message("nats")
    # One unit for all curves, that of the longest run.
    longest = max((float(run.seconds[-1]) for run in runs if run.seconds is not None), default=0.0)
    size, unit = time_axis(longest)
    yield from curves(
        Message("{loss} against time", loss=label(_LOSS)),
        [Series.through(run.name, run.seconds / size, losses[run.name]) for run in runs if run.seconds is not None],
        x=unit,
        y=y,
        whole=False,
    )
    yield from curves(
        Message("{loss} against pieces", loss=label(_LOSS)),
        [Series.through(run.name, run.pieces, losses[run.name]) for run in runs],
        x=Message("pieces"),
        y=y,
    )


def show_tasks(comparison: TaskComparison) -> ShownComparison:
    """Shows all scores of the sides, and how the first differs from the others; the page also has examples."""
    return ShownComparison(
        sides=comparison.sides,
        tables=[scores_table(comparison)],
        sentences=[*(pair["sentence"] for pair in comparison.scores["comparisons"]), *comparison.notes()],
        lede=Message(
            "Scores on the same {rows:,} rows of a task of kind {kind}.",
            rows=len(comparison.rows),
            kind=comparison.task.name,
        ),
        remark=Message("Intervals are 95 % bootstrap intervals."),
        sections=lambda: (Section(Message("Where they differ"), list(example_elements(comparison))),),
    )


def scores_table(comparison: TaskComparison) -> TableElement:
    metrics = comparison.scores["metrics"]
    rows = []
    for side, model in zip(comparison.sides, comparison.scores["models"], strict=True):
        scores = (f"{text(key, mean(key, model), 1)} {deviation(key, model)}".rstrip() for key in metrics)
        rows.append((side.name, side.model, str(model["seeds"]), *scores, example_interval(metrics[0], model)))
    return TableElement(
        Message("Scores on {count:,} row", "Scores on {count:,} rows", count=len(comparison.rows)),
        (Message("side"), Message("model"), Message("seeds"), *map(label, metrics), Message("95 % interval")),
        rows,
        "nnr" + "r" * len(metrics) + "r",
        note=Message("Mean ± standard deviation over seeds; 95 % bootstrap interval over rows, first seed."),
    )


def example_elements(comparison: TaskComparison) -> Iterator[Element]:
    """Yields rows that one side of a pair predicts better than the other, largest difference first."""
    task = comparison.task
    rows = comparison.rows
    sides = {side.name: side for side in comparison.sides}
    row_scores = {
        name: np.mean([task.row_scores(rows, of_seed) for of_seed in side.predictions], axis=0)
        for name, side in sides.items()
    }
    for better, worse, order in differing(row_scores):
        verdict = Message("{better} right, {worse} wrong", better=better, worse=worse)
        if task.is_graded:
            verdict = Message("{better} closer than {worse}", better=better, worse=worse)
        elif max(len(sides[name].facts) for name in (better, worse)) > 1:
            verdict = Message("{better} right more often than {worse}", better=better, worse=worse)
        share = Message("{differing:,} of {rows:,} rows", differing=len(order), rows=len(rows))
        yield Folded(
            join_messages([verdict, share], " · "),
            [example(comparison, row, (sides[better], sides[worse])) for row in order[:_EXAMPLES]],
        )


def example(comparison: TaskComparison, number: int, sides: Sequence[ComparedModel]) -> Example:
    row = comparison.rows[number]
    task = comparison.task
    facts: list[tuple[str, str]] = [(Message("true"), in_words(row, task.target(row)))]
    for side in sides:
        predicted = [in_words(row, of_seed[number]) or Message("(nothing)") for of_seed in side.predictions]
        facts.append((side.name, join_messages(predicted, " · ")))
    return Example(str(row.get("id") or ""), " / ".join(task.texts(row)) or Message("(empty)"), facts)
