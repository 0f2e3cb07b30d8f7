"""The page of a section [tasks.NAME] or of `korbert finetune`: scores with baselines, training, error analysis."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from korbert.tasks.finetuning.settings import training_name
from korbert.tasks.kinds import KINDS, kind_of_task
from pipelines.artifacts.store import Json
from pipelines.reports import formatting
from pipelines.reports.elements import Element, Headline, Section, Story, Table
from pipelines.reports.evaluation import (
    Scored,
    Series,
    colour_of,
    is_share,
    known,
    model_name,
    on_one_scale,
    score_text,
    training_curves,
    without_folders,
)
from pipelines.reports.kinds import Predicted, sections_of
from pipelines.reports.labels import label
from pipelines.reports.record import Artifact
from pipelines.reports.usage import Use

__all__ = ["best_baseline", "headlines", "mean_of", "story", "use"]

_OPTIMISTIC = (
    "There are no test rows: the scores are those of the validation rows, which also chose the epoch, so they are "
    "optimistic for the trained models."
)


def use(folder: Path) -> Use:
    """How to use the artifact's model, with an example for its kind. Raises ArtifactError if scores cannot be read."""
    task = Artifact.open(folder).json("scores.json")["task"]
    given, example = "texts.txt", "'정말 재미있는 영화였다'"
    if task.get("pair"):
        given, example = "pairs.jsonl", "('비가 많이 왔다', '날씨가 궂었다')"
    elif task["kind"] == "choice":
        given, example = "rows.jsonl", "{{'text': '비가 왔다.', 'choices': ['우산을 폈다.', '모자를 벗었다.']}}"
    elif task["kind"] == "reading":
        given, example = "questions.jsonl", "'한글은 언제 만들었나?', '세종은 1443년에 한글을 만들었다.'"
    verb = {"tagging": "tag", "reading": "answer", "embedding": "embed"}.get(task["kind"], "predict")
    python = f"import korbert\nmodel = korbert.load({{}})\nprint(model.{verb}({example}))"
    command = f"korbert predict {{}} {given}"
    if (folder / "submission").is_dir():
        command = "korbert submit {} KorQuAD_v1.0_dev.json predictions.json"
    return Use("model", command, python)


def headlines(artifact: Artifact) -> tuple[Headline, ...]:
    """The first metric of every model, the main one first, with its other metrics."""
    scores = artifact.json("scores.json")
    metric = scores["metrics"][0]
    main, *others = scores["models"]
    on = "" if scores["scored_on"] == "test" else " (validation)"
    number = scores["counts"].get(scores["scored_on"], 0)
    rows = "1 row" if number == 1 else f"{formatting.count(number)} rows"
    more = [f"{label(other)} {_mean_text(other, main)}" for other in scores["metrics"][1:] if main[other]]
    note = "; ".join(filter(None, (interval_words(metric, main), *more, rows)))
    first = Headline(_mean_text(metric, main), f"{label(metric)}{on}, {model_name(main['name'])}", note)
    return first, *(
        Headline(_mean_text(metric, model), model_name(model["name"]), _deviation(metric, model)) for model in others
    )


def story(artifact: Artifact) -> Story:
    scores = artifact.json("scores.json")
    kind = kind_of_task(scores["task"], f"{artifact.folder}") if scores["task"]["kind"] in KINDS else None
    main = scores["models"][0]["name"]
    details = scores.get("details") or {}
    by_kind = () if kind is None else tuple(sections_of(kind, _predicted(artifact, main), details))
    seeds = f" of the first seed ({scores['rows'][0].get('seed')})" if scores["models"][0]["seeds"] > 1 else ""
    source = f"Predictions{seeds} of the {model_name(main)} model." if main in ("pretrained", "scratch") else ""
    return Story(
        title=_title(artifact, scores),
        lede=_lede(scores),
        sections=(
            Section("Scores", tuple(_scores(scores))),
            Section("Trainings and baselines", tuple(_rows(scores))),
            Section("Training", tuple(_curves(artifact, scores))),
            *(
                Section(
                    section.title, section.elements, " ".join(filter(None, (section.text, source if first else "")))
                )
                for section, first in zip(by_kind, [True, *[False] * len(by_kind)], strict=False)
            ),
            Section("Data", tuple(_data(scores))),
        ),
    )


def best_baseline(scores: Json) -> Json | None:
    """The model without an encoder that scores highest in the first metric, from `models`; None without any."""
    without = {row["name"] for row in scores["rows"] if row.get("seed") is None}
    baselines = [model for model in scores["models"] if model["name"] in without and known(mean_of(scores, model))]
    return max(baselines, key=lambda model: mean_of(scores, model), default=None)


def mean_of(scores: Json, model: Json) -> Any:
    """The mean of a model over seeds in the first metric; None if undefined."""
    summary = model[scores["metrics"][0]]
    return None if summary is None else summary["mean"]


def interval_words(metric: str, model: Json) -> str:
    """± 1.8 over 2 seeds; 95 % interval over examples: 46.2 to 55.1 %."""
    words = [_deviation(metric, model)]
    interval = model.get("examples")
    if interval and all(map(known, interval)):
        low, high = (score_text(metric, end) for end in interval)
        low = low.removesuffix("\u00a0%")
        words.append(f"95 % interval over examples: {low} to {high}")
    return "; ".join(filter(None, words))


def _deviation(metric: str, model: Json) -> str:
    summary = model[metric]
    if summary is None or not known(summary["deviation"]):
        return ""
    deviation = summary["deviation"]
    shown = formatting.decimal(100 * deviation, 1) if is_share(metric) else formatting.decimal(deviation, 3)
    return f"± {shown} over {model['seeds']} seeds"


def _mean_text(metric: str, model: Json) -> str:
    return score_text(metric, None if model[metric] is None else model[metric]["mean"])


def _title(artifact: Artifact, scores: Json) -> str:
    """The difference from the best baseline, in words."""
    metric, baseline = scores["metrics"][0], best_baseline(scores)
    task = artifact.stage.removeprefix("tasks.")
    compared = [one for one in scores["comparisons"] if baseline and one["names"][1] == baseline["name"]]
    if not compared or not known(compared[0]["difference"]):
        return f"Fine-tuned on {task}"
    difference, name = compared[0]["difference"], model_name(baseline["name"])  # type: ignore[index]
    if not compared[0]["more_than_chance"]:
        return f"{task}: no clear difference from the {name}"
    points = f"{formatting.decimal(abs(100 * difference), 1)} points"
    amount = points if is_share(metric) else formatting.decimal(abs(difference), 3)
    return f"{task}: {label(metric)} {amount} {'above' if difference > 0 else 'below'} the {name}"


def _lede(scores: Json) -> str:
    counts = [
        f"{formatting.count(scores['counts'][part])} {label(part)}"
        for part in ("train", "valid", "test")
        if part in scores["counts"]
    ]
    lines = [f"{', '.join(counts)}."]
    if scores["said"]:
        lines.insert(0, f"{_sentence(scores['said'][0])}.")
    if scores["scored_on"] != "test":
        lines.append(_OPTIMISTIC)
    if overlap := scores["counts"].get("test_in_train"):
        rows = "scored row has" if overlap == 1 else "scored rows have"
        lines.append(f"{formatting.count(overlap)} {rows} the same texts as a training row.")
    return " ".join([*lines, scores.get("note") or ""]).rstrip()


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".")


def _scores(scores: Json) -> Iterator[Element]:
    metric = scores["metrics"][0]
    lowest = 0.0 if is_share(metric) else -1.0
    number = formatting.count(scores["counts"].get(scores["scored_on"], 0))
    over_seeds = [
        (model, summary["mean"], summary["low"], summary["high"])
        for model in scores["models"]
        if (summary := model[metric]) is not None and all(known(summary[key]) for key in ("mean", "low", "high"))
    ]
    over_examples = [
        (model, first, *model["examples"])
        for model in scores["models"]
        if known(first := _first(scores, model)) and model.get("examples") and all(map(known, model["examples"]))
    ]
    for rows, title, note in (
        (
            over_examples,
            "over examples",
            f"First seed, {number} rows. Whiskers: 95 % bootstrap interval over examples.",
        ),
        (over_seeds, "over seeds", "Means. Whiskers: 95 % interval of the mean over seeds."),
    ):
        shown = [
            Scored(
                model_name(model["name"]), at, low, high, _range_text(metric, at, low, high), colour_of(model["name"])
            )
            for model, at, low, high in rows
        ]
        if shown:
            name = f"{_sentence(label(metric))} {title}"
            yield on_one_scale(
                name,
                shown,
                lowest=lowest,
                end=lambda end: score_text(metric, end, 0 if is_share(metric) else -1),
                note=note,
            )
    if scores["comparisons"]:
        sentences = tuple((_in_words(one["sentence"], one["names"]),) for one in scores["comparisons"])
        yield Table("On the same rows", ("",), sentences, "l")


def _in_words(sentence: str, names: Sequence[str]) -> str:
    """The sentence of a comparison, with the display names of both models."""
    for name in names:
        sentence = sentence.replace(f"{name} (", f"{model_name(name)} (", 1)
    return _sentence(sentence) + "."


def _range_text(metric: str, at: float, low: float, high: float) -> str:
    ends = " to ".join(score_text(metric, end).removesuffix("\u00a0%") for end in (low, high))
    return f"{score_text(metric, at)} ({ends})"


def _first(scores: Json, model: Json) -> Any:
    """The first metric of the model's first seed."""
    return next(row["scores"][scores["metrics"][0]] for row in scores["rows"] if row["name"] == model["name"])


def _rows(scores: Json) -> Iterator[Element]:
    metrics = scores["metrics"]
    validation = f"validation_{metrics[0]}"
    chosen = [
        key
        for key in ("learning_rate", "batch_size", "epochs", "c", "alpha", "epoch")
        if any(row.get(key) is not None for row in scores["rows"])
    ]
    rows = []
    for row in scores["rows"]:
        facts = ("" if row.get(key) is None else f"{row[key]:g}" for key in chosen)
        seed = "" if row.get("seed") is None else str(row["seed"])
        values = (score_text(metric, row["scores"].get(metric), 2) for metric in metrics)
        chooser = score_text(metrics[0], row[validation], 2) if validation in row else ""
        rows.append((model_name(row["name"]), seed, *values, chooser, *facts))
    head = ("model", "seed", *map(label, metrics), "validation", *("C" if key == "c" else label(key) for key in chosen))
    if any("unseen" in row for row in scores["rows"]):
        shown = (
            (model_name(row["name"]), *(score_text(metric, row.get("unseen", {}).get(metric), 2) for metric in metrics))
            for row in scores["rows"]
        )
        note = (
            f"The {formatting.count(scores['counts']['unseen'])} scored rows whose texts are neither in the training "
            "rows nor a document, or a line of one, of the pretraining corpus, white space aside."
        )
        yield Table("Unseen rows", ("model", *map(label, metrics)), tuple(shown), "l" + "r" * len(metrics), note)
    on = "test rows, scored once per seed" if scores["scored_on"] == "test" else "validation rows"
    note = f"Scores on the {on}. Validation: {label(metrics[0])} on the validation rows, used for selection."
    yield Table("All scores", head, tuple(rows), "l" + "r" * (len(head) - 1), note)
    for model in scores["models"]:
        first = next(row for row in scores["rows"] if row["name"] == model["name"])
        trials = first.get("trials") or []
        if len(trials) > 1:
            keys = [key for key in trials[0] if key != validation]
            tried = tuple(
                (*(f"{trial[key]:g}" for key in keys), score_text(metrics[0], trial[validation], 2)) for trial in trials
            )
            title = f"Hyperparameters tried, {model_name(model['name'])} · {len(trials)}"
            yield Table(title, (*map(label, keys), "validation"), tried, "r" * (len(keys) + 1), folded=True)


def _curves(artifact: Artifact, scores: Json) -> Iterator[Element]:
    """Curves of the trainings in the table, without other hyperparameters that were tried."""
    stems = [training_name(row) for row in scores["rows"] if row.get("seed") is not None and "learning_rate" in row]
    metric = scores["metrics"][0]
    series = (
        Series(f"Validation {label(metric)}", "heldout", metric, label(metric), is_share(metric)),
        Series("Training loss", "train", "loss", "nats" if scores["task"]["kind"] != "regression" else "variances"),
    )
    yield from training_curves(artifact, series, stems)


def _data(scores: Json) -> Iterator[Element]:
    lines = tuple((without_folders(line),) for line in scores["said"][1:])
    if lines:
        yield Table("Files and rows read", ("",), lines, "k")
    counts = tuple((label(key), formatting.count(number)) for key, number in scores["counts"].items())
    yield Table("Rows", ("", ""), counts, "lr")


def _predicted(artifact: Artifact, name: str) -> Predicted:
    """Each scored row, with the prediction of the first seed of that model."""
    for line in artifact.each_line("predictions.jsonl"):
        row = dict(line)
        predictions: dict[str, Sequence[Any]] = row.pop("predictions")
        yield row, predictions[name][0]
