"""Comparison of models on one task: tables for terminal and page, and a page with examples."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from korbert.tasks.files import Row
from korbert.tasks.learning_settings import training_name
from pipelines.artifacts import Json
from pipelines.reports import formatting
from pipelines.reports.elements import Element, Entry, Folded, Interval, Intervals, Section, Table
from pipelines.reports.page import write
from pipelines.reports.pictures import COLOURS, Line, curves
from pipelines.task_comparing import Side, TaskComparison, merits
from pipelines.task_predictions import read_lines

__all__ = ["tables", "write_page"]

_EXAMPLES = 10  # for each side of a pair


def tables(found: TaskComparison) -> list[Table]:
    """All scores of the sides, and the differences from the first one."""
    return [_scores(found), *([_differences(found)] if found.scores["comparisons"] else [])]


def _scores(found: TaskComparison) -> Table:
    rows = tuple(
        (
            side.name,
            side.model,
            str(model["seeds"]),
            *(_spread(model[metric]) for metric in found.scores["metrics"]),
            _ends(model["examples"]),
        )
        for side, model in zip(found.sides, found.scores["models"], strict=True)
    )
    metrics = found.scores["metrics"]
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
    counted = all("mcnemar" in one for one in found.scores["comparisons"])
    rows = []
    for one in found.scores["comparisons"]:
        cells = [one["names"][1], f"{one['difference']:+.4f}", _ends(one["interval"], "+"), _p_value(one["p_value"])]
        if counted:
            test = one["mcnemar"]
            cells += [f"{test['only_a']:,}", f"{test['only_b']:,}", _p_value(test["p_value"])]
        rows.append(tuple(cells))
    name = found.sides[0].name
    head: tuple[str, ...] = ("compared with", "difference", "95 % interval", "p")
    note = "Interval and p account for the sampling of examples and, with several seeds, of seeds."
    if counted:
        seeds = max(len(side.facts) for side in found.sides)
        head += ("only first right", "only other right", "McNemar's p" + (" of first seeds" if seeds > 1 else ""))
        note += " McNemar: exact test, first seeds."
    title = f"{found.scores['metrics'][0]} of {name}, minus that of others"
    return Table(title, head, tuple(rows), "l" + "r" * (len(head) - 1), note)


def _p_value(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def write_page(path: Path, found: TaskComparison) -> Path:
    """Writes the page and returns its path. Raises ArtifactError if the file of a curve is damaged."""
    sentences = " ".join([one["sentence"] for one in found.scores["comparisons"]] + found.notes())
    folders = tuple((side.name, str(side.folder)) for side in found.sides)
    sections = (
        Section("Scores", (*_intervals(found), *tables(found)), sentences),
        Section("Where they differ", tuple(_examples(found))),
        Section("Learning curves", tuple(_curves(found))),
        Section("Folders", (Table("Folders", ("side", "folder"), folders, "lk"),)),
    )
    names = [side.name for side in found.sides]
    lede = f"Scores on the same {len(found.rows):,} rows of a {found.task.name} task, {found.task.about()}."
    remark = "Intervals are 95 % bootstrap intervals."
    return write(path, "compare.html", names=names, what="models", lede=lede, remark=remark, sections=sections)


def _intervals(found: TaskComparison) -> Iterator[Element]:
    metric = found.scores["metrics"][0]
    scores = [
        (model["name"], model[metric]["mean"], *model["examples"])
        for model in found.scores["models"]
        if model[metric] is not None and model["examples"] is not None
    ]
    if scores:
        low, high = min(min(one[1:]) for one in scores), max(max(one[1:]) for one in scores)
        yield _on_a_scale(metric, scores, low, high, "")
    differences = [(one["names"][1], one["difference"], *one["interval"]) for one in found.scores["comparisons"]]
    if differences:
        reach = max(abs(value) for one in differences for value in one[1:])
        title = f"{found.sides[0].name} minus each other side"
        note = "The middle of the scale means no difference."
        yield _on_a_scale(title, differences, -reach, reach, "+", note)


def _on_a_scale(
    title: str, rows: Sequence[tuple[str, float, float, float]], left: float, right: float, sign: str, note: str = ""
) -> Intervals:
    """Draws intervals on one scale. rows: (name, figure, low, high)."""
    width = right - left or 1.0
    shown = []
    for number, (name, *figures) in enumerate(rows):
        at, low, high = ((value - left) / width for value in figures)
        shown.append(Interval(name, at, low, high, f"{figures[0]:{sign}.4f}", 1 + number % COLOURS))
    return Intervals(title, tuple(shown), f"{left:{sign}.4f}", f"{right:{sign}.4f}", note)


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


def _curves(found: TaskComparison) -> Iterator[Element]:
    """Validation scores by epoch and losses by step, for the first seed of each trained side."""
    metric = found.scores["metrics"][0]
    lines: dict[str, list[Json]] = {}
    for side in found.sides:
        path = side.folder / "metrics" / f"{training_name(side.facts[0])}.jsonl"
        if path.is_file():
            lines[side.name] = read_lines(path)
    for title, kind, x, y, name in (
        (f"Validation {metric}", "heldout", "epoch", metric, metric),
        ("Training loss", "train", "step", "loss", "loss"),
    ):
        drawn = []
        for side_name, own in lines.items():
            points = [(one[x], one[y]) for one in own if one.get("kind") == kind and one.get(y) is not None]
            drawn.append(Line(side_name, [at for at, _ in points], [value for _, value in points]))
        if any(line.x for line in drawn):
            yield curves(title, drawn, x=x, y=name, note="First seed of each side.")
