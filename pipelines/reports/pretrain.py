"""The page of `pretrain`: held-out loss and accuracy against the unigram baseline, and the learning curves."""

import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pipelines.artifacts.store import Json
from pipelines.reports import formatting
from pipelines.reports.elements import Element, Gap, Gapped, Guess, Headline, Section, Story, Table
from pipelines.reports.figures import OBJECTIVES
from pipelines.reports.pictures import Line, curves
from pipelines.reports.record import Artifact
from pipelines.reports.stage_page import Use
from pipelines.reports.training_log import Course, time_axis

__all__ = ["headlines", "story", "use"]

_GAPS = (
    "The model's predictions for each gap, most likely first, at the first, a middle and the last evaluation. The "
    "original piece is marked, and listed below the top five if it is not among them. A slash separates the two "
    "segments of a row."
)
_LETTERS = {  # final consonants as letters, ᆫ as ㄴ: alone, most fonts draw them tiny
    code: unicodedata.lookup(unicodedata.name(chr(code)).replace("JONGSEONG", "LETTER"))
    for code in range(0x11A8, 0x11C3)
}
_LABELS = {
    "mlm": " pieces",
    "nsp": " pairs, chance level about 50 %",
    "sop": " pairs, chance level about 50 %",
    "spans": " rows, both ends correct",
    "rtd": " pieces, most of them original",
    "distill": " pieces, correct if the teacher's top prediction is",
}
_LAST = 20  # held-out measurements in the table
_STEPS_NAMED = 10  # steps without an update listed by number


def use(folder: Path) -> Use:
    """Usage: filling gaps with the model or its generator."""
    return Use(
        "generator" if (folder / "generator").is_dir() else "model",
        "korbert fill {} '오늘 [MASK] 정말 좋다'",
        "import korbert\nfiller = korbert.load({})\nprint(filler.fill('오늘 [MASK] 정말 좋다')[0][0].piece)",
    )


def headlines(artifact: Artifact) -> tuple[Headline, ...]:
    scores = artifact.json("scores.json")
    before = scores.get("init_mlm_loss")
    compared = f"unigram {formatting.decimal(scores['unigram_loss'])}"
    if before is not None:
        compared += f", before training {formatting.decimal(before)}"
    return (
        Headline(formatting.decimal(scores["mlm_loss"]), "nats, held-out MLM loss", compared),
        *(
            Headline(formatting.percent(scores[f"{name}_accuracy"]), f"{words} accuracy", _standard_error(scores, name))
            for name, words in OBJECTIVES.items()
            if f"{name}_count" in scores
        ),
    )


def story(artifact: Artifact) -> Story:
    scores = artifact.json("scores.json")
    metrics = artifact.lines("metrics.jsonl")
    course = _from_init(Course.of(metrics, artifact.lines("timing.jsonl")), scores)
    left_out = [line["step"] for line in metrics if line["kind"] == "left_out"]
    gain = formatting.than_unigram(scores["mlm_loss"], scores["unigram_loss"])
    keys = dict.fromkeys(key for line in course.train for key in line)
    rates = {key.partition("/")[2] or "all others": key for key in keys if key.split("/")[0] == "learning_rate"}
    return Story(
        title=f"{gain[0].upper()}{gain[1:]}",
        lede=_lede(scores, course, (artifact.record.get("settings") or {}).get("init")),
        sections=(
            Section("Filling gaps in held-out rows", tuple(_gapped(artifact.lines("samples.jsonl"))), _GAPS),
            Section("Held-out evaluation", tuple(_heldout(course, scores))),
            Section(
                "Training loss",
                (
                    *_losses(course, "mlm"),
                    *_losses(course, "mlm", time=True),
                    *(curve for name in OBJECTIVES if name != "mlm" for curve in _losses(course, name)),
                ),
                _without_update(left_out),
            ),
            Section(
                "Learning rate and gradient norm",
                (
                    *_curves("Learning rate", course, course.train, rates, y="rate", floor=0),
                    *_curves(
                        "Gradient norm",
                        course,
                        course.train,
                        {"": "grad_norm"},
                        y="before clipping",
                        floor=0,
                        note=_spikes(course),
                    ),
                ),
            ),
            Section("Speed", tuple(_speed(course))),
            Section("Held-out measurements", tuple(_table(course))),
        ),
    )


def _losses(course: Course, name: str, *, time: bool = False) -> Iterator[Element]:
    title = f"{OBJECTIVES[name]} training loss{' over time' if time else ''}"
    return _curves(title, course, course.train, {"": f"{name}_loss"}, y="nats", time=time)


def _from_init(course: Course, scores: Json) -> Course:
    """Adds the figures of the initial model, if training began with one, as an evaluation at step 0."""
    known = {key.removeprefix("init_"): value for key, value in scores.items() if key.startswith("init_")}
    if not known:
        return course
    first = {"step": 0, "pieces": 0, "unigram_loss": scores["unigram_loss"], **known}  # from the same held-out rows
    return replace(course, heldout=[first, *course.heldout])


def _lede(scores: Json, course: Course, init: str | None) -> str:
    size = f" with {formatting.compact(scores['parameters'])} parameters" if "parameters" in scores else ""
    done = [f"{formatting.compact(scores[key])} {key}" for key in ("steps", "rows") if key in scores]
    if "epochs" in scores:
        done.append(f"{formatting.decimal(scores['epochs'])} epochs")
    after = f" after {', '.join(done)}" if done else ""
    began = f" Training started from the weights of {init}." if init else ""
    waiting = course.waiting
    waited = "" if waiting is None else f" The device waited {formatting.percent(waiting)} of the time for rows."
    return (
        f"Masked-piece prediction on held-out text by a model{size}{after}. "
        f"The unigram baseline predicts from piece frequencies only.{began}{waited}"
    )


def _without_update(steps: Sequence[int]) -> str:
    """A note on steps that were left out (`pretrain.on_divergence`), if any."""
    named = ", ".join(map(formatting.count, steps[:_STEPS_NAMED]))
    more = f" and {formatting.count(len(steps) - _STEPS_NAMED)} more" if len(steps) > _STEPS_NAMED else ""
    return f"Steps left out because their loss or gradient was not finite: {named}{more}." if steps else ""


def _spikes(course: Course) -> str:
    """A note on spikes of the gradient norm, if any."""
    at = [line["step"] for line in course.train if line.get("spikes")]
    number = formatting.count(sum(line.get("spikes", 0) for line in course.train))
    where = f"the last at or shortly before step {formatting.count(at[-1])}" if at else ""
    return f"Norms above ten times the mean of the interval before: {number}, {where}." if at else ""


def _standard_error(scores: Json, objective: str) -> str:
    """The binomial standard error of an objective's accuracy and the number of predictions: ± 0.6 %, n = 3,945."""
    accuracy, number = scores[f"{objective}_accuracy"], scores[f"{objective}_count"]
    if not number:
        return "none in the held-out text"
    error = math.sqrt(max(0.0, accuracy * (1 - accuracy)) / number)
    return f"± {formatting.percent(error)}, n = {formatting.count(number)}"


def _gapped(lines: list[Json]) -> Iterator[Gapped]:
    """The samples with predictions for their gaps at the first, a middle and the last evaluation."""
    steps = sorted({line["step"] for line in lines})
    shown = list(dict.fromkeys(steps[place] for place in (0, len(steps) // 2, -1))) if steps else []
    by_row: dict[int, dict[int, Json]] = {}
    for line in lines:
        by_row.setdefault(line["row"], {})[line["step"]] = line
    for row, at in by_row.items():
        seen = [step for step in shown if step in at]
        if seen:
            by_step, last = [at[step]["gaps"] for step in seen], at[seen[-1]]
            yield Gapped(
                f"{last['source']}, row {formatting.count(row)}",
                tuple(text.translate(_LETTERS) for text in last["text"]),
                tuple(
                    Gap(gaps[0]["piece"].translate(_LETTERS), tuple(map(_guesses, gaps)))
                    for gaps in zip(*by_step, strict=True)
                ),
                tuple(f"step {formatting.count(step)}" for step in seen),
            )


def _guesses(gap: Json) -> tuple[Guess, ...]:
    """The most likely pieces, followed by the original one if it is not among them."""
    guesses = [*gap["guesses"]]
    if gap["piece"] not in [guess["piece"] for guess in guesses]:
        guesses.append(gap)
    return tuple(
        Guess(
            guess["piece"].translate(_LETTERS), formatting.percent(guess["probability"]), guess["piece"] == gap["piece"]
        )
        for guess in guesses
    )


def _heldout(course: Course, scores: Json) -> Iterator[Element]:
    lines = course.heldout
    if len(lines) < 2:  # shown in the table
        return
    note = "Fixed masks; every selected piece becomes [MASK]. Unigram: piece frequencies of the training shards."
    unigram = scores["unigram_loss"]
    last = lines[-1]
    title, key = "Held-out MLM loss", {"model": "mlm_loss"}
    yield from _curves(title, course, lines, key, y="nats", level=unigram, note=note)
    yield from _curves(f"{title} over time", course, lines, key, y="nats", level=unigram, time=True)
    present = {name: words for name, words in OBJECTIVES.items() if last.get(f"{name}_count")}
    objectives = {words: f"{name}_accuracy" for name, words in present.items()}
    counts = [f"{words}: {formatting.count(last[f'{name}_count'])}{_LABELS[name]}." for name, words in present.items()]
    yield from _curves(
        "Held-out accuracy", course, lines, objectives, y="accuracy", percent=True, floor=0, note=" ".join(counts)
    )


def _speed(course: Course) -> Iterator[Element]:
    waited = [
        {**line, "waiting": line["waited_seconds"] / line["seconds"]}
        for line in course.timing
        if line.get("waited_seconds") is not None and line["seconds"]
    ]
    yield from _curves("Throughput", course, course.timing, {"": "pieces_per_second"}, y="pieces/s", floor=0)
    yield from _curves(
        "Waiting for rows", course, waited, {"": "waiting"}, y="share of the time", percent=True, floor=0
    )
    yield from _curves(
        "Padding",
        course,
        course.train,
        {"": "padding"},
        y="share of positions",
        percent=True,
        floor=0,
        note="Positions computed by attention that hold no piece.",
    )


def _curves(
    title: str,
    course: Course,
    lines: list[Json],
    keys: Mapping[str, str],
    *,
    y: str,
    time: bool = False,
    level: float | None = None,
    percent: bool = False,
    floor: float | None = None,
    note: str = "",
) -> Iterator[Element]:
    """A chart with a curve per name and key, against pieces, or steps if pieces are unknown; empty without the keys.

    time: against time instead. level: of the unigram baseline.
    """
    if time:
        places, x = course.seconds(lines), ""
        if places is None:
            return
        unit, x = time_axis(float(places.max(initial=0)))
        places = places / unit
    else:
        places, x = course.pieces(lines), "pieces"
        if places is None:
            places, x = np.array([line["step"] for line in lines]), "step"
    drawn = []
    for name, key in keys.items():
        points = [
            (place, line[key]) for place, line in zip(places.tolist(), lines, strict=True) if line.get(key) is not None
        ]
        if points:
            xs, ys = zip(*points, strict=True)
            drawn.append(Line(name, xs, ys))
    if not drawn:
        return
    if level is not None:
        ends = [min(drawn[0].x), max(drawn[0].x)]
        drawn.append(Line("unigram", ends, [level] * 2, reference=True))
    yield curves(title, drawn, x=x, y=y, percent=percent, whole=not time, floor=floor, note=note)


def _table(course: Course) -> Iterator[Element]:
    lines = course.heldout
    if not lines:
        return
    shown = lines[-_LAST:]
    columns: list[tuple[str, list[str]]] = [("step", [formatting.count(line["step"]) for line in shown])]
    if (pieces := course.pieces(shown)) is not None:
        columns.append(("pieces", [formatting.compact(number) for number in pieces.tolist()]))
    if (seconds := course.seconds(shown)) is not None:
        columns.append(("time", [formatting.duration(number) for number in seconds.tolist()]))
    for name, words in OBJECTIVES.items():
        if any(f"{name}_loss" in line for line in shown):
            columns.append((f"{words} loss", [formatting.decimal(line.get(f"{name}_loss"), 3) for line in shown]))
            if name == "mlm":
                columns.append(("unigram", [formatting.decimal(line["unigram_loss"], 3) for line in shown]))
            columns.append((f"{words} accuracy", [formatting.percent(line.get(f"{name}_accuracy")) for line in shown]))
    head, cells = zip(*columns, strict=True)
    title = "All measurements" if len(shown) == len(lines) else f"Last {len(shown)} of {len(lines)} measurements"
    yield Table(title, head, tuple(zip(*cells, strict=True)), "r" * len(head))
