"""Scores of a task with their uncertainty: over seeds, over examples, and between models."""

from collections.abc import Sequence
from itertools import compress, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from korbert.pipelines.experiments.search import ModelResult
from korbert.system import JsonObject
from korbert.tasks.files import TaskRow
from korbert.tasks.kinds.kind import Kind
from korbert.tasks.metrics.statistics import RunArray, bootstrap_interval, compare, over_seeds

_RESAMPLES = 1_000
_SEED = 0
_CORRELATIONS = ("pearson", "spearman")  # of runs of (N, 2), targets and predictions


def score_table(
    task: Kind, rows: Sequence[TaskRow], results: Sequence[ModelResult], unseen: NDArray[np.bool_] | None = None
) -> JsonObject:
    """Returns `rows`, an entry per training or baseline; `models`, an entry per name, summarized over seeds; and
    `comparisons` of the first model with each other one.

    `examples` of a model is the 95 % bootstrap interval of the first metric over examples (first seed). unseen: (rows,)
    bool, rows that are also scored apart, as `unseen` of each entry.
    """
    runs = [task.run(rows, result.predictions) for result in results]
    table = []
    for result in results:
        entry = {**result.facts, "scores": task.scores(rows, result.predictions)}
        if unseen is not None and unseen.any():
            entry["unseen"] = task.scores(list(compress(rows, unseen)), list(compress(result.predictions, unseen)))
        table.append(entry)
    models = []
    comparisons = []
    first_runs: list[RunArray] = []
    # Results come model by model, so that neighbours are the seeds of one model.
    for name, group in groupby(zip(table, runs, strict=True), lambda pair: pair[0]["name"]):
        entries, model_runs = map(list, zip(*group, strict=True))
        summary: dict[str, Any] = {"name": name, "seeds": len(entries)}
        for metric in task.metrics:
            scores = [entry["scores"][metric] for entry in entries]
            spread = None if None in scores else over_seeds(scores)
            summary[metric] = spread and spread._asdict()
        interval = interval_over_rows(task, model_runs[0], task.metrics[0])
        summary["examples"] = interval and list(interval)
        models.append(summary)
        if not first_runs:
            first_runs = model_runs
        elif comparison := compare_runs(task, first_runs, model_runs, (models[0]["name"], name)):
            comparisons.append(comparison)
    return {"metrics": list(task.metrics), "rows": table, "models": models, "comparisons": comparisons}


def interval_over_rows(task: Kind, run: RunArray, metric: str) -> tuple[float, float] | None:
    """The 95 % bootstrap interval of a metric over the rows of a run; None if undefined."""
    if len(run) < 2:
        return None
    interval = bootstrap_interval(run, task.score(metric), rng=np.random.default_rng(_SEED), resamples=_RESAMPLES)
    return None if interval is None else (interval.low, interval.high)


def compare_runs(task: Kind, a: Sequence[RunArray], b: Sequence[RunArray], names: tuple[str, str]) -> JsonObject | None:
    """Compares the runs of model a with those of model b in the first metric, as JSON; None if undefined."""
    if len(a[0]) < 2:
        return None
    metric = task.metrics[0]
    if metric in _CORRELATIONS:  # scale does not change them, but the test swaps predictions of the two models
        a, b = ([(run - run.mean(0)) / np.where(run.std(0) > 0, run.std(0), 1) for run in side] for side in (a, b))
    comparison = compare(a, b, task.score(metric), rng=np.random.default_rng(_SEED), resamples=_RESAMPLES, names=names)
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
