"""The page of `pretrain`: whether the model learned more than how common each piece is, and how the training went."""

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
        Headline(formatting.percent(scores["mlm_accuracy"]), "MLM accuracy", _of(scores, "mlm")),
        Headline(formatting.percent(scores["nsp_accuracy"]), "NSP accuracy", _of(scores, "nsp")),
    )


def story(artifact: Artifact) -> Story:
    scores = artifact.json("scores.json")
    lines = artifact.lines("metrics.jsonl")
    trained = [line for line in lines if line["kind"] == "train"]
    heldout = [line for line in lines if line["kind"] == "heldout"]
    gain = formatting.than_unigram(scores["unigram_loss"] - scores["mlm_loss"])
    return Story(
        title=f"{gain[0].upper()}{gain[1:]}",
        lede=_lede(scores),
        sections=(
            Section("On held-out text", tuple(_heldout(heldout, scores))),
            Section("While learning", tuple(_training(trained))),
            Section("Rate, gradient and speed", tuple(_course(trained, artifact.lines("timing.jsonl")))),
            Section("All held-out measurements", tuple(_table(heldout))),
        ),
    )


def _lede(scores: Json) -> str:
    done = [f"{formatting.compact(scores[key])} {key}" for key in ("steps", "rows") if key in scores]
    if scores.get("rows_of_first_epoch"):
        done.append(f"{formatting.decimal(scores['rows'] / scores['rows_of_first_epoch'])} passes over the text")
    after = f" after {', '.join(done)}" if done else ""
    size = f" of {formatting.compact(scores['parameters'])} parameters" if "parameters" in scores else ""
    return (
        f"How well a model{size} predicts masked pieces of held-out text{after}. "
        "The unigram baseline knows only how common each piece is."
    )


def _of(scores: Json, objective: str) -> str:
    """How many a figure was counted on, and its standard error."""
    share, number = scores[f"{objective}_accuracy"], scores[f"{objective}_count"]
    if not number:
        return "no such pairs in the held-out text"
    error = math.sqrt(max(0.0, share * (1 - share)) / number)
    return f"± {formatting.percent(error)} on {formatting.count(number)}"


def _heldout(lines: list[Json], scores: Json) -> Iterator[Element]:
    if len(lines) < 2:  # the table has it
        return
    steps = [line["step"] for line in lines]
    level = [float(scores["unigram_loss"])] * 2
    yield curves(
        "Held-out MLM loss",
        [
            Line("model", steps, [line["mlm_loss"] for line in lines]),
            Line("unigram", [min(steps), max(steps)], level, reference=True),
        ],
        x="step",
        y="nats",
        note="Fixed masks, every chosen piece masked. The unigram is that of the pieces to learn from.",
    )
    yield _accuracies(lines, steps)


def _accuracies(lines: list[Json], steps: list[int]) -> Element:
    return curves(
        "Held-out accuracy",
        [
            Line(name, steps, [line[f"{key}_accuracy"] for line in lines])
            for name, key in (("MLM", "mlm"), ("NSP", "nsp"))
            if lines[-1][f"{key}_count"]
        ],
        x="step",
        y="share right",
        percent=True,
        floor=0,
        note=f"NSP by chance: about one in two. MLM on {formatting.count(lines[-1]['mlm_count'])} pieces, "
        f"NSP on {formatting.count(lines[-1]['nsp_count'])} pairs.",
    )


def _training(lines: list[Json]) -> Iterator[Element]:
    yield from _curve("Training loss, MLM", lines, "mlm_loss", y="nats")
    yield from _curve("Training loss, NSP", lines, "nsp_loss", y="nats")


def _course(lines: list[Json], timing: list[Json]) -> Iterator[Element]:
    yield from _curve("Learning rate", lines, "learning_rate", y="rate", floor=0)
    yield from _curve("Norm of the gradient", lines, "grad_norm", y="before clipping", floor=0)
    yield from _curve("Speed", timing, "pieces_per_second", y="pieces a second", floor=0)


def _curve(title: str, lines: list[Json], key: str, *, y: str, floor: float | None = None) -> Iterator[Element]:
    """Nothing where no line has the key."""
    points = [(line["step"], line[key]) for line in lines if line.get(key) is not None]
    if points:
        steps, values = ([point[place] for point in points] for place in (0, 1))
        yield curves(title, [Line("", steps, values)], x="step", y=y, floor=floor)


def _table(lines: list[Json]) -> Iterator[Element]:
    if lines:
        shown = lines[-_LAST:]
        yield Table(
            "Measurements" if len(shown) == len(lines) else f"The last {len(shown)} of {len(lines)} measurements",
            ("step", "MLM loss", "unigram", "MLM accuracy", "NSP loss", "NSP accuracy"),
            tuple(_row(line) for line in shown),
            "rrrrrr",
        )


def _row(line: Json) -> tuple[str, ...]:
    return (
        formatting.count(line["step"]),
        *(formatting.decimal(line[key], 3) for key in ("mlm_loss", "unigram_loss")),
        formatting.percent(line["mlm_accuracy"]),
        formatting.decimal(line["nsp_loss"], 3),
        formatting.percent(line["nsp_accuracy"]),
    )
