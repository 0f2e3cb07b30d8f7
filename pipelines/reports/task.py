"""The page of a section [tasks.NAME] or of `korbert finetune`: scores with baselines, training, error analysis."""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from korbert.pipelines.artifacts.store import Json
from korbert.pipelines.reports import formatting
from korbert.pipelines.reports.elements import Element, Interval, Intervals, Section, Story, Table, Use
from korbert.pipelines.reports.figures import Figure, in_percent, interval, known, label, model_name, text
from korbert.pipelines.reports.formatting import without_folders
from korbert.pipelines.reports.kinds import sections_of
from korbert.pipelines.reports.kinds.common import Scored
from korbert.pipelines.reports.pictures import Line, curves
from korbert.pipelines.reports.record import Artifact
from korbert.pipelines.reports.task_scores import best_baseline, deviation, example_interval, mean, sentence
from korbert.pipelines.stages.table import TASK
from korbert.tasks.finetuning.settings import training_name
from korbert.tasks.kinds import KINDS, kind_of_task

_OPTIMISTIC = (
    "There are no test rows: the scores are those of the validation rows, which also chose the epoch, so they are "
    "optimistic for the trained models."
)
_COLOURS = {"pretrained": 1, "scratch": 2, "tfidf": 3, "words": 1, "vectors": 2, "both": 3}  # 4: all others
_LEARNED = ("learning_rate", "batch_size", "epochs", "c", "alpha", "epoch")


def use(folder: Path) -> Use:
    """How to use the artifact's model, with an example for its kind. Raises ArtifactError if scores cannot be read."""
    task = Artifact.open(folder).json("scores.json")["task"]
    kind = kind_of_task(task, str(folder / "scores.json"))
    file, example = kind.example
    command = f"korbert {kind.command} {{}} {file}"
    if (folder / "submission").is_dir():
        command = "korbert submit {} KorQuAD_v1.0_dev.json predictions.json"
    python = f"import korbert\nmodel = korbert.load({{}})\nprint(model.{kind.operation}({example}))"
    return Use("model", command, python)


def figures(artifact: Artifact) -> Sequence[Figure]:
    """The first metric of every model, the main one first, with its other metrics."""
    scores = artifact.json("scores.json")
    metric, *more = scores["metrics"]
    shown = []
    for model in scores["models"]:
        spread = deviation(metric, model)
        note = f"{spread} over {model['seeds']} seeds" if spread else ""
        shown.append(Figure(text(metric, mean(metric, model)), model_name(model["name"]), note))
    main = scores["models"][0]
    on = "" if scores["scored_on"] == "test" else " (validation)"
    number = scores["counts"].get(scores["scored_on"], 0)
    over_examples = example_interval(metric, main)
    notes = [
        shown[0].note,
        f"95 % interval over examples: {over_examples}" if over_examples else "",
        *(f"{label(other)} {text(other, mean(other, main))}" for other in more if main[other]),
        "1 row" if number == 1 else f"{formatting.count(number)} rows",
    ]
    name, note = f"{label(metric)}{on}, {shown[0].label}", "; ".join(filter(None, notes))
    return Figure(shown[0].value, name, note), *shown[1:]


def story(artifact: Artifact) -> Story:
    scores = artifact.json("scores.json")
    by_kind: list[Section] = []
    if scores["task"]["kind"] in KINDS:
        main = scores["models"][0]
        lines = list(artifact.lines("predictions.jsonl"))
        predictions = [line.pop("predictions")[main["name"]][0] for line in lines]  # of its first seed
        kind = kind_of_task(scores["task"], str(artifact.folder))
        by_kind += sections_of(Scored(kind, lines, predictions), scores["details"])
        if by_kind and main["name"] in ("pretrained", "scratch"):
            seed = f" of the first seed ({scores['rows'][0].get('seed')})" if main["seeds"] > 1 else ""
            source = f"Predictions{seed} of the {model_name(main['name'])} model."
            by_kind[0] = by_kind[0]._replace(text=f"{by_kind[0].text} {source}".lstrip())
    files = [(without_folders(line),) for line in scores["said"][1:]]
    data = [Table("Files and rows read", ("",), files, "l")] if files else []
    sections = (
        Section("Scores", list(score_elements(scores))),
        Section("Trainings and baselines", [score_table(scores), *trial_tables(scores)]),
        Section("Training", list(training_curves(artifact, scores))),
        *by_kind,
        Section("Data", data),
    )
    return Story(title_of(artifact.stage.removeprefix(TASK), scores), lede_of(scores), sections)


def title_of(task: str, scores: Json) -> str:
    """The difference from the best baseline, in words."""
    metric, baseline = scores["metrics"][0], best_baseline(scores)
    compared = [pair for pair in scores["comparisons"] if baseline and pair["names"][1] == baseline["name"]]
    if baseline is None or not compared or not known(compared[0]["difference"]):
        return f"Fine-tuned on {task}"
    difference, name = compared[0]["difference"], model_name(baseline["name"])
    if not compared[0]["more_than_chance"]:
        return f"{task}: no clear difference from the {name}"
    points = in_percent(metric)
    amount = f"{abs(100 * difference):,.1f} points" if points else formatting.decimal(abs(difference), 3)
    return f"{task}: {label(metric)} {amount} {'above' if difference > 0 else 'below'} the {name}"


def lede_of(scores: Json) -> str:
    counts = scores["counts"]
    sizes = [f"{formatting.count(counts[part])} {label(part)}" for part in ("train", "valid", "test") if part in counts]
    lines = [*(_sentence(what) for what in scores["said"][:1]), f"{', '.join(sizes)}."]
    if scores["scored_on"] != "test":
        lines.append(_OPTIMISTIC)
    if overlap := counts.get("test_in_train"):
        rows = "scored row has" if overlap == 1 else "scored rows have"
        lines.append(f"{formatting.count(overlap)} {rows} the same texts as a training row.")
    return " ".join([*lines, scores["note"]]).rstrip()


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."


def score_elements(scores: Json) -> Iterator[Element]:
    metric = scores["metrics"][0]
    name = f"{label(metric)[:1].upper()}{label(metric)[1:]}"
    over_examples, over_seeds = [], []
    for model in scores["models"]:
        first = next(row["scores"][metric] for row in scores["rows"] if row["name"] == model["name"])
        over_examples.append((model["name"], first, *(model["examples"] or (None, None))))
        over_seeds.append((model["name"], *((model[metric] or {}).get(key) for key in ("mean", "low", "high"))))
    rows = formatting.count(scores["counts"].get(scores["scored_on"], 0))
    note = f"First seed, {rows} rows. Whiskers: 95 % bootstrap interval over examples."
    yield from on_one_scale(f"{name} over examples", metric, over_examples, note)
    note = "Means. Whiskers: 95 % interval of the mean over seeds."
    yield from on_one_scale(f"{name} over seeds", metric, over_seeds, note)
    if sentences := [(_sentence(sentence(pair)),) for pair in scores["comparisons"]]:
        yield Table("On the same rows", ("",), sentences, "l")


def on_one_scale(
    title: str, metric: str, scores: Iterable[tuple[str, Any, Any, Any]], note: str
) -> Iterator[Intervals]:
    """Scores up to 1, on a scale that begins and ends at multiples of 0.05; nothing without any that is defined.

    scores: name, score and the ends of its interval.
    """
    defined = [row for row in scores if all(map(known, row[1:]))]
    if not defined:
        return
    lowest = 0.0 if in_percent(metric) else -1.0
    left = max(lowest, min(math.floor(20 * min(low for _, _, low, _ in defined)) / 20, 0.95))
    right = min(1.0, max(math.ceil(20 * max(high for *_, high in defined)) / 20, left + 0.05))
    rows = []
    for name, *numbers in defined:
        at, low, high = (min(1.0, max(0.0, (number - left) / (right - left))) for number in numbers)
        ends = interval(metric, numbers[1:]).removesuffix(formatting.PERCENT)
        words = f"{text(metric, numbers[0])} ({ends})"
        rows.append(Interval(model_name(name), at, low, high, words, _COLOURS.get(name, 4)))
    yield Intervals(title, rows, text(metric, left, -1), text(metric, right, -1), note=note)


def score_table(scores: Json) -> Table:
    metrics = scores["metrics"]
    validation = f"validation_{metrics[0]}"
    keys = [key for key in _LEARNED if any(row.get(key) is not None for row in scores["rows"])]
    unseen = metrics if any("unseen" in row for row in scores["rows"]) else ()
    rows = []
    for row in scores["rows"]:
        seed = "" if row.get("seed") is None else str(row["seed"])
        values = [text(metric, row["scores"].get(metric), 1) for metric in metrics]
        values += (text(metric, row.get("unseen", {}).get(metric), 1) for metric in unseen)
        chosen_by = text(metrics[0], row[validation], 1) if validation in row else ""
        learned = ("" if row.get(key) is None else f"{row[key]:g}" for key in keys)
        rows.append((model_name(row["name"]), seed, *values, chosen_by, *learned))
    of_unseen = (f"{label(metric)}, unseen" for metric in unseen)
    head = ("model", "seed", *map(label, metrics), *of_unseen, "validation", *map(label, keys))
    on = "test rows, scored once per seed" if scores["scored_on"] == "test" else "validation rows"
    note = f"Scores on the {on}. Validation: {label(metrics[0])} on the validation rows, used for selection."
    if unseen:
        note += (
            f" Unseen: the {formatting.count(scores['counts']['unseen'])} rows whose texts are neither in the training "
            "rows nor a document, or a line of one, of the pretraining corpus, white space aside."
        )
    return Table("All scores", head, rows, "l" + "r" * (len(head) - 1), note=note)


def trial_tables(scores: Json) -> Iterator[Table]:
    validation = f"validation_{scores['metrics'][0]}"
    for model in scores["models"]:
        trials = next(row for row in scores["rows"] if row["name"] == model["name"]).get("trials") or []
        if len(trials) > 1:
            keys = [key for key in trials[0] if key != validation]
            rows = [
                (*(f"{trial[key]:g}" for key in keys), text(scores["metrics"][0], trial[validation], 1))
                for trial in trials
            ]
            title = f"Hyperparameters tried, {model_name(model['name'])} · {len(trials)}"
            yield Table(title, (*map(label, keys), "validation"), rows, "r" * (len(keys) + 1), folded=True)


def training_curves(artifact: Artifact, scores: Json) -> Iterator[Element]:
    """Curves of the trainings in the table, without other hyperparameters that were tried."""
    logs = {}
    for row in scores["rows"]:
        if row.get("seed") is not None and "learning_rate" in row:
            name = f"{model_name(row['name'])}, rate {row['learning_rate']:g}, seed {row['seed']}"
            logs[name] = list(artifact.lines(f"metrics/{training_name(row)}.jsonl"))
    metric = scores["metrics"][0]
    unit = KINDS[scores["task"]["kind"]].kind_class.loss_unit
    for title, kind, key, y, percent in (
        (f"Validation {label(metric)}", "heldout", metric, label(metric), in_percent(metric)),
        ("Training loss", "train", "loss", unit, False),
    ):
        lines = []
        for name, log in logs.items():
            own = [line for line in log if line["kind"] == kind]
            lines.append(Line.through(name, [line["step"] for line in own], [line.get(key) for line in own]))
        yield from curves(title, lines, x="step", y=y, percent=percent)
