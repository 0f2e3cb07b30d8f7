"""The page of a section [tasks.NAME] or of `korbert finetune`: scores with baselines, training, error analysis."""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from korbert.messages import Message, join_messages
from korbert.pipelines.artifacts import (
    Artifact,
    ShownFigure,
    formatting,
    in_percent,
    interval,
    is_defined,
    label,
    model_name,
    text,
    without_folders,
)
from korbert.pipelines.reports.artifacts.task_scores import best_baseline, deviation, example_interval, mean, sentences
from korbert.pipelines.reports.drawing import (
    Element,
    Intervals,
    ScoreInterval,
    Section,
    Series,
    Story,
    TableElement,
    Use,
    curves,
)
from korbert.pipelines.reports.kinds import sections_of
from korbert.pipelines.reports.kinds.common import ScoredRows
from korbert.pipelines.stages.table import TASK
from korbert.system import JsonObject
from korbert.tasks.finetuning import training_name
from korbert.tasks.kinds import KINDS, kind_of_task

_OPTIMISTIC = Message(
    "There are no test rows: the scores are those of the validation rows, which also chose the epoch, so they are "
    "optimistic for the trained models."
)
_IN_FOLDS = Message(
    "There are no test rows: rows of the training file are scored, each by a model that has not learned it."
)
_KIND_NAMES = {  # as a sentence begins
    "classification": Message("Classification"),
    "regression": Message("Regression"),
    "multiple-choice": Message("Multiple choice"),
    "token-classification": Message("Token classification"),
    "question-answering": Message("Question answering"),
    "slots": Message("Slots"),
    "embedding": Message("Embedding"),
    "rerank": Message("Reranking"),
}
_COLOURS = {
    "pretrained": 1,
    "linear": 1,
    "tuned": 1,
    "scratch": 2,
    "tfidf": 3,
    "words": 1,
    "vectors": 2,
    "both": 3,
}  # any other model: 4
_HYPERPARAMETERS = ("learning_rate", "batch_size", "epochs", "c", "alpha", "epoch", "tuned", "words", "temperature")


def use(folder: Path) -> Use:
    """How to use the artifact's model, with an example for its kind. Raises ArtifactError if scores cannot be read."""
    task = Artifact.open(folder).json("scores.json")["task"]
    kind = kind_of_task(task, str(folder / "scores.json"))
    file, example = kind.example
    command = f"korbert {kind.command} {{}} {file}"
    if (folder / "submission").is_dir():
        command = "korbert submit {} KorQuAD_v1.0_dev.json predictions.json"
    return Use(
        "model", command, f"import korbert\nmodel = korbert.load({{}})\nprint(model.{kind.operation}({example}))"
    )


def figures(artifact: Artifact) -> Sequence[ShownFigure]:
    """The first metric of every model. The main model comes first, with its other metrics in the note."""
    scores = artifact.json("scores.json")
    metric, *secondary = scores["metrics"]
    shown = []
    for model in scores["models"]:
        spread = deviation(metric, model)
        note = Message("{deviation} over {seeds} seeds", deviation=spread, seeds=model["seeds"]) if spread else ""
        shown.append(ShownFigure(text(metric, mean(metric, model)), model_name(model["name"]), note))
    main = scores["models"][0]
    name = label(metric)
    if scores["scored_on"] == "valid":
        name = Message("{metric} (validation)", metric=name)
    notes: list[str] = [shown[0].note]
    if over_examples := example_interval(metric, main):
        notes.append(Message("95 % interval over examples: {interval}", interval=over_examples))
    notes += (join_messages([label(other), text(other, mean(other, main))], " ") for other in secondary if main[other])
    notes.append(Message("{count:,} row", "{count:,} rows", count=scores["counts"].get(scores["scored_on"], 0)))
    return ShownFigure(shown[0].value, join_messages([name, shown[0].label], ", "), join_messages(notes)), *shown[1:]


def story(artifact: Artifact) -> Story:
    scores = artifact.json("scores.json")
    kind_sections: list[Section] = []
    about = ""
    if scores["task"]["kind"] in KINDS:
        main = scores["models"][0]
        lines = list(artifact.lines("predictions.jsonl"))
        predictions = [line.pop("predictions")[main["name"]][0] for line in lines]  # of the first seed
        kind = kind_of_task(scores["task"], str(artifact.folder))
        about = Message("{kind}: {about}.", kind=_KIND_NAMES.get(kind.name, kind.name), about=kind.description())
        details = scores["details"]
        temperature = scores["rows"][0].get("temperature", 1.0)
        scored = ScoredRows(kind, lines, predictions, temperature, details.get("nearest", {}))
        kind_sections += sections_of(scored, details)
        if kind_sections and main["name"] in ("pretrained", "scratch"):
            source = Message("Predictions of the {model} model.", model=model_name(main["name"]))
            if main["seeds"] > 1:
                source = Message(
                    "Predictions of the first seed ({seed}) of the {model} model.",
                    seed=scores["rows"][0].get("seed"),
                    model=model_name(main["name"]),
                )
            kind_sections[0] = kind_sections[0]._replace(text=join_messages([kind_sections[0].text, source], " "))
    files = [(Message.from_json(line).map_texts(without_folders),) for line in scores["said"][1:]]
    data = [TableElement(Message("Files and rows read"), ("",), files, "l")] if files else []
    return Story(
        title_of(artifact.stage.removeprefix(TASK), scores),
        lede_of(scores, about),
        (
            Section(Message("Scores"), list(score_elements(scores))),
            Section(Message("Trainings and baselines"), [score_table(scores), *trial_tables(scores)]),
            Section(Message("Training"), list(training_curves(artifact, scores))),
            *kind_sections,
            Section(Message("Data"), data),
        ),
    )


def title_of(task: str, scores: JsonObject) -> Message:
    """The title of the page: how far the main model is from the best baseline."""
    metric = scores["metrics"][0]
    baseline = best_baseline(scores)
    compared = [pair for pair in scores["comparisons"] if baseline and pair["names"][1] == baseline["name"]]
    if baseline is None or not compared or not is_defined(compared[0]["difference"]):
        return Message("Fine-tuned on {task}", task=task)
    difference = compared[0]["difference"]
    name = model_name(baseline["name"])
    if not compared[0]["more_than_chance"]:
        return Message("{task}: no clear difference from the {model}", task=task, model=name)
    amount = formatting.decimal(abs(difference), 3)
    if in_percent(metric):
        amount = Message("{points:,.1f} points", points=abs(100 * difference))
    values = {"task": task, "metric": label(metric), "amount": amount, "model": name}
    if difference > 0:
        return Message("{task}: {metric} {amount} above the {model}", **values)
    return Message("{task}: {metric} {amount} below the {model}", **values)


def lede_of(scores: JsonObject, about: str) -> Message:
    """The sentences below the title. about: what the task predicts; "" if its kind is unknown."""
    counts = scores["counts"]
    sizes = [
        Message("{count:,} training row", "{count:,} training rows", count=counts["train"]),
        Message("{count:,} validation row", "{count:,} validation rows", count=counts["valid"]),
    ]
    if "test" in counts:
        sizes.append(Message("{count:,} test row", "{count:,} test rows", count=counts["test"]))
    sentences = [about, join_messages([join_messages(sizes, ", "), "."], "")]
    if scores["scored_on"] != "test":
        sentences.append(_IN_FOLDS if scores["scored_on"] == "folds" else _OPTIMISTIC)
    if overlap := counts.get("test_in_train"):
        sentences.append(
            Message(
                "{count:,} scored row has the same texts as a training row.",
                "{count:,} scored rows have the same texts as a training row.",
                count=overlap,
            )
        )
    sentences.append(Message(scores["note"]))  # the notes of bundled recipes are translated
    return join_messages(sentences, " ")


def score_elements(scores: JsonObject) -> Iterator[Element]:
    metric = scores["metrics"][0]
    name = label(metric)
    over_examples = []
    over_seeds = []
    for model in scores["models"]:
        first_score = next(row["scores"][metric] for row in scores["rows"] if row["name"] == model["name"])
        over_examples.append((model["name"], first_score, *(model["examples"] or (None, None))))
        over_seeds.append((model["name"], *((model[metric] or {}).get(key) for key in ("mean", "low", "high"))))
    yield from on_one_scale(
        Message("Scores over examples: {metric}", metric=name),
        metric,
        over_examples,
        Message(
            "First seed, {count:,} row. Whiskers: 95 % bootstrap interval over examples.",
            "First seed, {count:,} rows. Whiskers: 95 % bootstrap interval over examples.",
            count=scores["counts"].get(scores["scored_on"], 0),
        ),
    )
    yield from on_one_scale(
        Message("Scores over seeds: {metric}", metric=name),
        metric,
        over_seeds,
        Message("Means. Whiskers: 95 % interval of the mean over seeds."),
    )
    if compared := [(sentence,) for sentence in sentences(scores)]:
        yield TableElement(Message("On the same rows"), ("",), compared, "l")


def on_one_scale(
    title: str, metric: str, scores: Iterable[tuple[str, Any, Any, Any]], note: str
) -> Iterator[Intervals]:
    """Draws scores up to 1 on a scale that begins and ends at multiples of 0.05; yields nothing if none is defined.

    scores: for each row, its name, the score, and the lower and upper ends of the interval.
    """
    defined = [row for row in scores if all(map(is_defined, row[1:]))]
    if not defined:
        return
    # Correlations may be negative. A scale has at least the width of one step.
    lowest = 0.0 if in_percent(metric) else -1.0
    start = max(lowest, min(math.floor(20 * min(low for _, _, low, _ in defined)) / 20, 0.95))
    end = min(1.0, max(math.ceil(20 * max(high for *_, high in defined)) / 20, start + 0.05))
    rows = []
    for name, *numbers in defined:
        position, low, high = (min(1.0, max(0.0, (number - start) / (end - start))) for number in numbers)
        caption = join_messages([text(metric, numbers[0]), " (", interval(metric, numbers[1:], unit=False), ")"], "")
        rows.append(ScoreInterval(model_name(name), position, low, high, caption, _COLOURS.get(name, 4)))
    yield Intervals(title, rows, text(metric, start, -1), text(metric, end, -1), note=note)


def score_table(scores: JsonObject) -> TableElement:
    metrics = scores["metrics"]
    validation = f"validation_{metrics[0]}"
    # Only columns that some row has a value for.
    keys = [key for key in _HYPERPARAMETERS if any(row.get(key) is not None for row in scores["rows"])]
    unseen_metrics = metrics if any("unseen" in row for row in scores["rows"]) else ()
    rows = []
    for row in scores["rows"]:
        seed = "" if row.get("seed") is None else str(row["seed"])
        values = [text(metric, row["scores"].get(metric), 1) for metric in metrics]
        values += (text(metric, row.get("unseen", {}).get(metric), 1) for metric in unseen_metrics)
        chosen_by = text(metrics[0], row[validation], 1) if validation in row else ""
        hyperparameters = ("" if row.get(key) is None else f"{row[key]:g}" for key in keys)
        rows.append((model_name(row["name"]), seed, *values, chosen_by, *hyperparameters))
    head = (
        Message("model"),
        Message("seed"),
        *map(label, metrics),
        *(Message("{metric}, unseen", metric=label(metric)) for metric in unseen_metrics),
        Message("validation"),
        *map(label, keys),
    )
    notes = [
        Message("Scores on the validation rows."),
        Message("Validation: {metric} on the validation rows, used for selection.", metric=label(metrics[0])),
    ]
    main = scores["models"][0]["name"]
    if main == "linear":
        notes[1] = Message("Validation: {metric} on held-out folds of the training rows.", metric=label(metrics[0]))
    elif main == "tuned" and scores["task"]["kind"] == "classification":
        notes[1] = Message(
            "Validation: {metric} of the tuned encoder on the validation rows, of the others on held-out folds of the "
            "training rows.",
            metric=label(metrics[0]),
        )
    if scores["scored_on"] == "folds":
        notes[0] = Message("Scores on rows of the training file, each by a model that has not learned it.")
    elif scores["scored_on"] == "test":
        notes[0] = Message("Scores on the test rows, scored once per seed.")
    if unseen_metrics:
        notes.append(
            Message(
                "Unseen: the {rows:,} rows whose texts are neither in the training rows nor a document, or a line of "
                "one, of the pretraining corpus, white space aside.",
                rows=scores["counts"]["unseen"],
            )
        )
    return TableElement(Message("All scores"), head, rows, "l" + "r" * (len(head) - 1), note=join_messages(notes, " "))


def trial_tables(scores: JsonObject) -> Iterator[TableElement]:
    for model in scores["models"]:
        trials = next(row for row in scores["rows"] if row["name"] == model["name"]).get("trials") or []
        if len(trials) > 1:
            (chosen_by,) = [key for key in trials[0] if key.startswith("validation_")]
            keys = [key for key in trials[0] if key != chosen_by]
            tried = Message("Hyperparameters tried, {model}", model=model_name(model["name"]))
            yield TableElement(
                join_messages([tried, str(len(trials))], " · "),
                (*map(label, keys), Message("validation")),
                [
                    (
                        *(f"{trial[key]:g}" for key in keys),
                        text(chosen_by.removeprefix("validation_"), trial[chosen_by], 1),
                    )
                    for trial in trials
                ],
                "r" * (len(keys) + 1),
                folded=True,
            )


def training_curves(artifact: Artifact, scores: JsonObject) -> Iterator[Element]:
    """Yields curves of the trainings in the table of scores, not of the other hyperparameters that were tried."""
    logs = {}
    for row in scores["rows"]:
        if row.get("seed") is not None and "learning_rate" in row:
            name = Message(
                "{model}, rate {rate:g}, seed {seed}",
                model=model_name(row["name"]), rate=row["learning_rate"], seed=row["seed"],
            )  # fmt: skip
            logs[name] = list(artifact.lines(f"metrics/{training_name(row)}.jsonl"))
    metric = scores["metrics"][0]
    unit = KINDS[scores["task"]["kind"]].kind_class.loss_unit
    for title, kind, key, y, percent in (
        (Message("Validation {metric}", metric=label(metric)), "heldout", metric, label(metric), in_percent(metric)),
        (Message("Training loss"), "train", "loss", unit, False),
    ):
        lines = []
        for name, log in logs.items():
            points = [line for line in log if line["kind"] == kind]
            lines.append(Series.through(name, [line["step"] for line in points], [line.get(key) for line in points]))
        yield from curves(title, lines, x=Message("step"), y=y, percent=percent)
