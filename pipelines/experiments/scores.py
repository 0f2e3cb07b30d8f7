"""Scores of a task with their uncertainty: over seeds, over examples, and between models."""

from collections.abc import Iterator, Sequence
from itertools import compress, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from korbert.tasks.files import Row
from korbert.tasks.kinds.base import Kind
from korbert.tasks.metrics.statistics import bootstrap_interval, compare, over_seeds
from pipelines.experiments.search import ModelResult

_RESAMPLES = 1_000
_SEED = 0
_FEW = 50  # the interval of an accuracy is then 10 points to each side, or more


def few_rows(count: int) -> Iterator[str]:
    """A line about a score from few rows; none if there are enough."""
    if count < _FEW:
        rows = "1 row is" if count == 1 else f"{count} rows are"
        yield f"only {rows} scored, each worth {100 / count:.0f} points: too few for a reliable score, give more"


def score_table(
    task: Kind, rows: Sequence[Row], results: Sequence[ModelResult], unseen: NDArray[np.bool_] | None = None
) -> dict[str, Any]:
    """`rows`, one per training or baseline; `models`, one per name, over seeds; `comparisons` of the first with each.

    examples: 95 % bootstrap interval of the first metric over examples (first seed). unseen: (rows,) which rows are
    also scored apart, as `unseen` of an entry.
    """
    table, models = [], []
    runs = {id(result): task.run(rows, result.predictions) for result in results}
    metric_of = task.score(task.metrics[0])
    for result in results:
        entry = {**result.facts, "scores": task.scores(rows, result.predictions)}
        if unseen is not None and unseen.any():
            entry["unseen"] = task.scores(list(compress(rows, unseen)), list(compress(result.predictions, unseen)))
        table.append(entry)
    grouped = [
        list(group) for _, group in groupby(zip(results, table, strict=True), lambda pair: pair[0].facts["name"])
    ]
    for group in grouped:
        summary: dict[str, Any] = {"name": group[0][0].facts["name"], "seeds": len(group)}
        for metric in task.metrics:
            scores = [row["scores"][metric] for _, row in group]
            known = [score for score in scores if score is not None]
            spread = over_seeds(known) if len(known) == len(scores) else None
            summary[metric] = (
                None if spread is None else dict(zip(("mean", "deviation", "low", "high"), spread, strict=False))
            )
        interval = bootstrap_interval(
            runs[id(group[0][0])], metric_of, rng=np.random.default_rng(_SEED), resamples=_RESAMPLES
        ) if len(rows) > 1 else None  # fmt: skip
        summary["examples"] = None if interval is None else [interval.low, interval.high]
        models.append(summary)
    comparisons = []
    first = [runs[id(result)] for result, _ in grouped[0]]
    for group in grouped[1:]:
        names = models[0]["name"], group[0][0].facts["name"]
        if comparison := compared(task, first, [runs[id(result)] for result, _ in group], names):
            comparisons.append(comparison)
    return {"metrics": list(task.metrics), "rows": table, "models": models, "comparisons": comparisons}


def compared(task: Kind, a: Sequence[Any], b: Sequence[Any], names: tuple[str, str]) -> dict[str, Any] | None:
    """Compares the runs of a with those of b in the first metric, as JSON; None if undefined."""
    if len(a[0]) < 2:
        return None
    rng, metric = np.random.default_rng(_SEED), task.metrics[0]
    comparison = compare(a, b, task.score(metric), rng=rng, resamples=_RESAMPLES, names=names)
    if comparison is None:
        return None
    return {
        "names": list(names),
        "metric": metric,
        "difference": comparison.difference,
        "interval": [comparison.low, comparison.high],
        "p_value": comparison.p_value,
        "more_than_chance": comparison.more_than_chance,
        "sentence": comparison.sentence,
    }
