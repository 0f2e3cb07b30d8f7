"""The page of `pretrain`: held-out loss and accuracy against the unigram baseline, and the course of training."""

import math
from collections.abc import Iterator

from pipelines.artifacts import Json
from pipelines.reports import formatting
from pipelines.reports.elements import Element, Headline, Section, Story, Table
from pipelines.reports.pictures import Line, curves
from pipelines.reports.record import Artifact
from pipelines.reports.usage import Use

__all__ = ["headlines", "story"]

USE = Use(
    "model",
    "korbert fill {} '오늘 [MASK] 정말 좋다'",
    "import korbert\nfiller = korbert.load({})\nprint(filler.fill('오늘 [MASK] 정말 좋다')[0][0].piece)",
)

_LAST = 20  # held-out measurements in the table


def headlines(artifact: Artifact) -> tuple[Headline, ...]:
    scores = artifact.json("scores.json")
    return (
        Headline(
            formatting.decimal(scores["mlm_loss"]),
            "nats, held-out MLM loss",
            f"unigram {formatting.decimal(scores['unigram_loss'])}",
        ),
        Headline(formatting.percent(scores["mlm_accuracy"]), "MLM accuracy", _standard_error(scores, "mlm")),
        Headline(formatting.percent(scores["nsp_accuracy"]), "NSP accuracy", _standard_error(scores, "nsp")),
    )


def story(artifact: Artifact) -> Story:
    scores = artifact.json("scores.json")
    lines = artifact.lines("metrics.jsonl")
    train = [line for line in lines if line["kind"] == "train"]
    heldout = [line for line in lines if line["kind"] == "heldout"]
    timing = artifact.lines("timing.jsonl")
    gain = formatting.than_unigram(scores["unigram_loss"] - scores["mlm_loss"])
    return Story(
        title=f"{gain[0].upper()}{gain[1:]}",
        lede=_lede(scores),
        sections=(
            Section("Held-out evaluation", tuple(_heldout(heldout, scores))),
            Section(
                "Training loss",
                (
                    *_curve("MLM training loss", train, "mlm_loss", y="nats"),
                    *_curve("NSP training loss", train, "nsp_loss", y="nats"),
                ),
            ),
            Section(
                "Learning rate, gradient norm and throughput",
                (
                    *_curve("Learning rate", train, "learning_rate", y="rate", floor=0),
                    *_curve("Gradient norm", train, "grad_norm", y="before clipping", floor=0),
                    *_curve("Throughput", timing, "pieces_per_second", y="pieces/s", floor=0),
                ),
            ),
            Section("Held-out measurements", tuple(_table(heldout))),
        ),
    )


def _lede(scores: Json) -> str:
    size = f" with {formatting.compact(scores['parameters'])} parameters" if "parameters" in scores else ""
    done = [f"{formatting.compact(scores[key])} {key}" for key in ("steps", "rows") if key in scores]
    if scores.get("rows_of_first_epoch"):
        done.append(f"{formatting.decimal(scores['rows'] / scores['rows_of_first_epoch'])} epochs")
    after = f" after {', '.join(done)}" if done else ""
    return (
        f"Masked-piece prediction on held-out text by a model{size}{after}. "
        "The unigram baseline predicts from piece frequencies alone."
    )


def _standard_error(scores: Json, objective: str) -> str:
    """The binomial standard error of an objective's accuracy and the number of predictions: ± 0.6 %, n = 3,945."""
    accuracy, number = scores[f"{objective}_accuracy"], scores[f"{objective}_count"]
    if not number:
        return "none in the held-out text"
    error = math.sqrt(max(0.0, accuracy * (1 - accuracy)) / number)
    return f"± {formatting.percent(error)}, n = {formatting.count(number)}"


def _heldout(lines: list[Json], scores: Json) -> Iterator[Element]:
    if len(lines) < 2:  # the table has it
        return
    steps = [line["step"] for line in lines]
    unigram = [float(scores["unigram_loss"])] * 2
    yield curves(
        "Held-out MLM loss",
        [
            Line("model", steps, [line["mlm_loss"] for line in lines]),
            Line("unigram", [min(steps), max(steps)], unigram, reference=True),
        ],
        x="step",
        y="nats",
        note="Fixed masks; every selected piece becomes [MASK]. Unigram: piece frequencies of the training shards.",
    )
    last = lines[-1]
    yield curves(
        "Held-out accuracy",
        [
            Line(name, steps, [line[f"{key}_accuracy"] for line in lines])
            for name, key in (("MLM", "mlm"), ("NSP", "nsp"))
            if last[f"{key}_count"]
        ],
        x="step",
        y="accuracy",
        percent=True,
        floor=0,
        note=f"MLM: {formatting.count(last['mlm_count'])} pieces. NSP: {formatting.count(last['nsp_count'])} pairs, "
        "chance level about 50 %.",
    )


def _curve(title: str, lines: list[Json], key: str, *, y: str, floor: float | None = None) -> Iterator[Element]:
    """Nothing where no line has the key."""
    points = [(line["step"], line[key]) for line in lines if line.get(key) is not None]
    if points:
        steps, values = ([point[place] for point in points] for place in (0, 1))
        yield curves(title, [Line("", steps, values)], x="step", y=y, floor=floor)


def _table(lines: list[Json]) -> Iterator[Element]:
    if lines:
        shown = lines[-_LAST:]
        rows = tuple(
            (
                formatting.count(line["step"]),
                formatting.decimal(line["mlm_loss"], 3),
                formatting.decimal(line["unigram_loss"], 3),
                formatting.percent(line["mlm_accuracy"]),
                formatting.decimal(line["nsp_loss"], 3),
                formatting.percent(line["nsp_accuracy"]),
            )
            for line in shown
        )
        yield Table(
            "All measurements" if len(shown) == len(lines) else f"Last {len(shown)} of {len(lines)} measurements",
            ("step", "MLM loss", "unigram", "MLM accuracy", "NSP loss", "NSP accuracy"),
            rows,
            "rrrrrr",
        )
