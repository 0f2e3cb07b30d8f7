"""The table and the picture of benchmarks/quality/trials.py."""

import json
import math
import statistics
from collections.abc import Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib.figure import Figure

from korbert.pipelines.experiments.compare_tasks import PREDICTIONS, read_predictions
from korbert.pipelines.experiments.scores import compare_runs
from korbert.system.durable import read_json
from korbert.tasks.kinds import kind_of_task

if TYPE_CHECKING:
    from benchmarks.quality.trials import Bench

MODEL = "pretrained"  # what tasks call the encoder of their `init`


def results(artifact: Path) -> dict[str, list[float]]:
    """The scores of each model and baseline of a task, times 100, one per seed; empty if the task was not run."""
    scores_of_model: dict[str, list[float]] = {}
    scores = read_json(artifact / "scores.json") if (artifact / "stage.json").exists() else {"rows": []}
    for row in scores["rows"]:
        score = row["scores"][scores["metrics"][0]]
        scores_of_model.setdefault(row["name"], []).append(math.nan if score is None else 100 * score)
    return scores_of_model


def facts(bench: "Bench", places: Sequence[Path]) -> dict[str, list[float]]:
    """Figures of each run of a way, and its scores in each task, one per fine-tuning seed."""
    figures_of_runs: dict[str, list[float]] = {}
    for place in places:
        folder = bench.artifact(place, "pretrain")
        metrics, timing = (
            list(map(json.loads, (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()))
            for name in ("metrics", "timing")
        )
        figures = {
            "steps": metrics[-1]["step"],
            "pieces": max(line["pieces"] for line in metrics),
            "seconds": sum(line.get("seconds", 0) for line in timing),
            **(read_json(place / "heldout.json") if (place / "heldout.json").exists() else {}),
        }
        for name, value in figures.items():
            if value is not None:
                figures_of_runs.setdefault(name, []).append(value)
        for task in bench.trials.task_names():
            figures_of_runs.setdefault(task, []).extend(results(bench.artifact(place, f"tasks.{task}")).get(MODEL, []))
    return figures_of_runs


@cache
def tested(artifact: Path) -> tuple[Any, list[Any]]:
    """The task, and the encoder's predictions with the targets, one per seed; (None, []) if the task was not run."""
    if not (artifact / "stage.json").exists():
        return None, []
    task = kind_of_task(read_json(artifact / "scores.json")["task"], str(artifact))
    rows, predictions = read_predictions(artifact / PREDICTIONS)
    return task, [task.run(rows, of_seed) for of_seed in predictions[MODEL]]


def against(bench: "Bench", own: Sequence[Path], base: Sequence[Path]) -> str:
    """The tasks with a significant difference between two ways, and the difference in points."""
    differences = []
    for task in bench.trials.task_names():
        sides = [[tested(bench.artifact(place, f"tasks.{task}")) for place in places] for places in (own, base)]
        runs = [[run for _, found in side for run in found] for side in sides]
        if all(runs):
            comparison = compare_runs(sides[0][0][0], *runs, ("way", "base"))
            differences += (
                [f"{task} {100 * comparison['difference']:+.2f}"]
                if comparison and comparison["more_than_chance"]
                else []
            )
    return ", ".join(differences)


def shown(values: Sequence[float], digits: int = 2) -> str:
    """Mean and standard deviation as text."""
    spread = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{spread}" if values else ""


def table(bench: "Bench") -> str:
    """All finished trials as a Markdown table."""
    trials, made = bench.trials, bench.made()
    tasks = [name for name in trials.task_names() if any(bench.root.glob(f"*/*/*/tasks.{name}/stage.json"))]
    head = ["way", "minutes", "steps", "pieces", "seconds planned / actual", "bits a character", *tasks]
    lines = [[*head, f"against {trials.base}"], ["---"] * (len(head) + 1)]
    first, untrained = trials.first_like(trials.base), {}
    for way in trials.ways:
        found = {task: results(bench.artifact(bench.root / "untrained" / way, f"tasks.{task}")) for task in tasks}
        for name in dict.fromkeys(name for scores in found.values() for name in scores):
            label = name if name != MODEL else "untrained" if way == first else f"untrained, as {way}"
            lines.append([label, *[""] * 5, *(shown(found[task].get(name, [])) for task in tasks), ""])
        untrained[way] = {task: scores.get(MODEL) for task, scores in found.items()}
    for way, minutes, places in made:
        found, floor = facts(bench, places), untrained[trials.first_like(way)]
        gains = {t: statistics.mean(found[t]) - statistics.mean(floor[t]) for t in tasks if found[t] and floor[t]}
        cells = [shown(found[task]) + (f" ({gains[task]:+.2f})" if task in gains else "") for task in tasks]
        sizes = [f"{minutes:g}", *(f"{statistics.mean(found[name]):,.0f}" for name in ("steps", "pieces"))]
        seconds = f"{60 * minutes:,.0f} / {statistics.mean(found['seconds']):,.0f}"
        base = next((own for name, time, own in made if (name, time) == (trials.base, minutes)), [])
        last = "" if way == trials.base else against(bench, places, base)
        lines.append([way, *sizes, seconds, shown(found.get("bits", []), 3), *cells, last])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def picture(bench: "Bench", path: Path) -> None:
    """Plots each score over minutes of training, from 0 (untrained) on; the dotted line is the best baseline."""
    trials, names = bench.trials, ("bits", *bench.trials.task_names())
    points: dict[str, list[dict[str, list[float]]]] = {}
    for way, _, places in bench.made():
        points.setdefault(way, []).append(facts(bench, places))
    panels = [
        name for name in names if any(found.get(name) for facts_of_way in points.values() for found in facts_of_way)
    ]
    rows = max(1, math.ceil(len(panels) / 2))
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "trials", "font.size": 9}):
        figure = Figure(figsize=(10, 3 * rows + 1.2), layout="constrained")
        grid = figure.subplots(rows, 2, squeeze=False).flat
        for axes, name in zip_longest(grid, panels):
            if name is None:
                axes.set_axis_off()
                continue
            for number, (way, facts_of_way) in enumerate(points.items()):
                start = results(bench.artifact(bench.root / "untrained" / trials.first_like(way), f"tasks.{name}"))
                found = [{"seconds": [0], name: start.get(MODEL)}, *facts_of_way]
                found = [one for one in found if one.get(name)]
                minutes = [statistics.mean(one["seconds"]) / 60 for one in found]
                means = [statistics.mean(one[name]) for one in found]
                spread = [statistics.stdev(one[name]) if len(one[name]) > 1 else 0 for one in found]
                style = {"color": f"C{number % 10}", "marker": "os^"[number // 10 % 3], "capsize": 2, "linewidth": 1}
                axes.errorbar(minutes, means, spread, label=way, **style)
            first = bench.root / "untrained" / trials.first_like(trials.base)
            baselines = results(bench.artifact(first, f"tasks.{name}"))
            if best := [statistics.mean(scores) for model, scores in baselines.items() if model != MODEL]:
                axes.axhline(max(best), color="grey", linestyle=":")
            axes.set_xlim(left=0)
            axes.set(title="bits a character" if name == "bits" else name, xlabel="minutes")
        if panels:
            figure.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
        figure.savefig(path, metadata={"Date": None})
