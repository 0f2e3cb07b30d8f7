"""The results of the tasks of a recipe: one line per task, on the index page and in model cards."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.reports import formatting
from pipelines.reports.elements import Table
from pipelines.reports.figures import label
from pipelines.reports.kinds.common import is_share, known, model_name, score_text
from pipelines.reports.record import Artifact
from pipelines.reports.task import best_baseline, mean_of
from pipelines.stages.table import TASK_PAGE, stage_named

__all__ = ["HEAD", "Result", "cells", "has_result", "result_of", "table"]

HEAD = ("task", "metric", "score", "95 % interval", "best baseline", "rows")


@dataclass(frozen=True)
class Result:
    """The score of a model in the first metric of a task, a share or a correlation; None if undefined.

    dataset: the known set, else as task. model: as in scores.json.
    deviation: over seeds, None for one. interval: 95 %, over examples, first seed; None if unknown. baseline: name and
    score of the best one. scores: every metric of the first seed, the main one first. on: the rows scored, "test" or
    "validation". rows: their number.
    """

    task: str
    dataset: str
    metric: str
    model: str
    score: float | None
    seeds: int
    deviation: float | None
    interval: tuple[float, float] | None
    baseline: tuple[str, float] | None
    scores: dict[str, float]
    on: str
    rows: int


def has_result(stage: str) -> bool:
    entry = stage_named(stage)
    return entry is not None and entry.page == TASK_PAGE


def result_of(artifact: Artifact) -> Result:
    """The result of a finished task. Raises ArtifactError if its scores are incomplete."""
    scores = artifact.json("scores.json")
    task = artifact.stage.removeprefix("tasks.")
    settings = artifact.record.get("settings") or {}
    metric, main = scores["metrics"][0], scores["models"][0]
    summary, interval, baseline = main[metric], main.get("examples"), best_baseline(scores)
    defined = {key: value for key, value in scores["rows"][0]["scores"].items() if known(value)}
    score = summary["mean"] if summary and known(summary["mean"]) else None
    return Result(
        task=task,
        dataset=settings.get("set") or task,
        metric=metric,
        model=main["name"],
        score=score,
        seeds=main["seeds"],
        deviation=summary["deviation"] if summary and known(summary["deviation"]) else None,
        interval=(interval[0], interval[1]) if interval and all(map(known, interval)) else None,
        baseline=None if baseline is None else (baseline["name"], mean_of(scores, baseline)),
        scores=defined,
        on="test" if scores["scored_on"] == "test" else "validation",
        rows=scores["counts"].get(scores["scored_on"], 0),
    )


def cells(result: Result) -> tuple[str, ...]:
    """A row of the table."""
    metric, score = result.metric, score_text(result.metric, result.score)
    if result.deviation is not None:
        share = is_share(metric)
        spread = formatting.decimal(100 * result.deviation if share else result.deviation, 1 if share else 3)
        score += f" ± {spread} ({result.seeds} seeds)"
    interval = ""
    if result.interval is not None:
        low, high = (score_text(metric, end) for end in result.interval)
        interval = f"{low.removesuffix(chr(0xA0) + '%')} to {high}"
    baseline = ""
    if result.baseline is not None:
        name, value = result.baseline
        baseline = f"{score_text(metric, value)} ({model_name(name).removesuffix(' baseline')})"
    rows = formatting.count(result.rows) + ("" if result.on == "test" else f" ({result.on})")
    return result.task, label(metric), score, interval, baseline, rows


def table(results: Sequence[Result]) -> Table:
    """The table of all results."""
    note = "Score: mean and standard deviation over seeds. Interval: over examples, first seed."
    if any(result.on != "test" for result in results):
        note += " Validation scores are optimistic: the same rows chose the epoch."
    return Table("Tasks", HEAD, tuple(map(cells, results)), "llrrrr", note)
