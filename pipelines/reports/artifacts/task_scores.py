"""The scores of tasks (scores.json): in words for their pages, as a table for the index page and model cards."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from korbert.messages import Message, join_messages
from korbert.pipelines.artifacts import (
    Artifact,
    baseline_name,
    figures,
    formatting,
    in_percent,
    is_defined,
    label,
    model_name,
)
from korbert.pipelines.reports.drawing import TableElement
from korbert.pipelines.stages.table import TASK, TASK_PAGE, stage_named
from korbert.system import JsonObject
from korbert.tasks.metrics.statistics import PairedComparison


class TaskResult(NamedTuple):
    """The result of a finished task. dataset: the name of the known data set, else that of the task.

    scores: the defined metrics of the main model's first seed, the main metric first. on_valid: whether the scores are
    those of the validation rows. cells: the task's row in the table of results.
    """

    dataset: str
    scores: dict[str, float]
    on_valid: bool
    cells: tuple[str, ...]


def mean(metric: str, model: JsonObject) -> float | None:
    """The mean over seeds of a metric. model: an entry of `models` in scores.json. None if undefined."""
    value: float | None = (model[metric] or {}).get("mean")
    return value if is_defined(value) else None


def deviation(metric: str, model: JsonObject) -> str:
    """The standard deviation over seeds, in points for shares: ± 1.8; empty for one seed."""
    value: Any = (model[metric] or {}).get("deviation")
    if not is_defined(value):
        return ""
    return f"± {formatting.decimal(100 * value, 1) if in_percent(metric) else formatting.decimal(value, 3)}"


def example_interval(metric: str, model: JsonObject) -> str:
    """The 95 % interval over examples, of the first seed; empty if undefined."""
    ends = model.get("examples")
    return figures.interval(metric, ends) if ends and all(map(is_defined, ends)) else ""


def sentences(scores: JsonObject) -> list[Message]:
    """Says the result of each comparison in scores.json, with the display names of the models."""
    models = {model["name"]: model for model in scores["models"]}
    compared = []
    for pair in scores["comparisons"]:
        model, other = (models[name] for name in pair["names"])
        metric = pair["metric"]
        comparison = PairedComparison(
            names=(model_name(model["name"]), model_name(other["name"])),
            scores=(model[metric]["mean"], other[metric]["mean"]),
            runs=(model["seeds"], other["seeds"]),
            examples=scores["counts"].get(scores["scored_on"], 0),
            low=pair["interval"][0],
            high=pair["interval"][1],
            p_value=pair["p_value"],
        )
        compared.append(comparison.sentence)
    return compared


def best_baseline(scores: JsonObject) -> JsonObject | None:
    """The entry of `models` without an encoder that scores highest in the first metric; None if there is none."""
    metric = scores["metrics"][0]
    names = {row["name"] for row in scores["rows"] if row.get("seed") is None} - {*figures.WITH_ENCODER}
    baselines = [model for model in scores["models"] if model["name"] in names and mean(metric, model) is not None]
    return max(baselines, key=lambda model: mean(metric, model) or 0.0, default=None)


def has_result(stage: str) -> bool:
    entry = stage_named(stage)
    return entry is not None and entry.page == TASK_PAGE


def result_of(artifact: Artifact) -> TaskResult:
    """The result of a finished task. Raises ArtifactError if its scores are incomplete."""
    scores = artifact.json("scores.json")
    task = artifact.stage.removeprefix(TASK)
    metric = scores["metrics"][0]
    main = scores["models"][0]
    baseline = best_baseline(scores)
    score = figures.text(metric, mean(metric, main))
    if spread := deviation(metric, main):
        score = join_messages([score, spread, Message("({seeds} seeds)", seeds=main["seeds"])], " ")
    best = ""
    if baseline is not None:
        best = join_messages(
            [figures.text(metric, mean(metric, baseline)), " (", baseline_name(baseline["name"]), ")"], ""
        )
    split = scores["scored_on"]
    rows = formatting.count(scores["counts"].get(split, 0))
    if split == "valid":
        rows = Message("{rows} (validation)", rows=rows)
    return TaskResult(
        dataset=artifact.record["settings"].get("set") or task,
        scores={key: value for key, value in scores["rows"][0]["scores"].items() if is_defined(value)},
        on_valid=split == "valid",
        cells=(task, label(metric), score, example_interval(metric, main), best, rows),
    )


def table(results: Sequence[TaskResult]) -> TableElement:
    """The table of all results."""
    note = Message("Score: mean and standard deviation over seeds. Interval: over examples, first seed.")
    if any(result.on_valid for result in results):
        note = join_messages([note, Message("Validation scores are optimistic: the same rows chose the epoch.")], " ")
    return TableElement(
        Message("Tasks"),
        (
            Message("task"), Message("metric"), Message("score"), Message("95 % interval"), Message("best baseline"),
            Message("rows"),
        ),
        [result.cells for result in results],
        "nlrrrr",
        note=note,
    )  # fmt: skip
