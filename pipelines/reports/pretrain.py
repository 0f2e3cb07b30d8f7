"""The page of `pretrain`: whether the model learned more than how common each piece is, and how the training went."""

import math
from collections.abc import Iterator

from pipelines.artifacts import Json
from pipelines.reports import amounts
from pipelines.reports.blocks import Bar, Bars, Block, Headline, Picture, Section, Story, Table
from pipelines.reports.pictures import Line, curves
from pipelines.reports.record import Artifact

__all__ = ["headlines", "story"]

_LAST = 20  # held-out measurements in the table


def headlines(artifact: Artifact) -> tuple[Headline, ...]:
    scores = artifact.json("scores.json")
    return (
        Headline(
            amounts.decimal(scores["mlm_loss"]),
            "nat, held-out MLM loss",
            f"unigram {amounts.decimal(scores['unigram_loss'])}",
        ),
        Headline(amounts.percent(scores["mlm_accuracy"]), "MLM accuracy", _of(scores, "mlm")),
        Headline(amounts.percent(scores["nsp_accuracy"]), "NSP accuracy", _of(scores, "nsp")),
    )


def story(artifact: Artifact) -> Story:
    scores = artifact.json("scores.json")
    lines = artifact.lines("metrics.jsonl")
    trained = [line for line in lines if line["kind"] == "train"]
    heldout = [line for line in lines if line["kind"] == "heldout"]
    return Story(
        title=_title(scores["unigram_loss"] - scores["mlm_loss"]),
        lede=_lede(scores),
        sections=(
            Section("On held-out text", tuple(_heldout(heldout, scores))),
            Section("While learning", tuple(_training(trained))),
            Section("Rate, gradient and speed", tuple(_course(trained, artifact.lines("timing.jsonl")))),
            Section("All held-out measurements", tuple(_table(heldout))),
        ),
    )


def _title(gain: float) -> str:
    if gain <= 0:
        return f"No better than unigram frequencies, by {amounts.decimal(-gain)} nat"
    return f"{amounts.decimal(gain)} nat better than unigram frequencies"


def _lede(scores: Json) -> str:
    done = [f"{amounts.compact(scores[key])} {key}" for key in ("steps", "rows") if key in scores]
    if scores.get("rows_of_first_epoch"):
        done.append(f"{amounts.decimal(scores['rows'] / scores['rows_of_first_epoch'])} passes over the text")
    after = f" after {', '.join(done)}" if done else ""
    size = f" of {amounts.compact(scores['parameters'])} parameters" if "parameters" in scores else ""
    return (
        f"The model{size} guesses masked pieces of held-out text with {amounts.decimal(scores['mlm_loss'], 3)} "
        f"nat of loss{after}. Guessing by how common each piece is gives {amounts.decimal(scores['unigram_loss'], 3)}."
    )


def _of(scores: Json, objective: str) -> str:
    """How many a figure was counted on, and its standard error."""
    share, number = scores[f"{objective}_accuracy"], scores[f"{objective}_count"]
    if not number:
        return "no such pairs in the held-out text"
    error = math.sqrt(max(0.0, share * (1 - share)) / number)
    return f"± {amounts.percent(error)} on {amounts.count(number)}"


def _heldout(lines: list[Json], scores: Json) -> Iterator[Block]:
    if len(lines) < 2:
        yield _comparison(scores)
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
        y="nat",
        note="Fixed masks, every chosen piece masked. The unigram is that of the pieces to learn from.",
    )
    yield _accuracies(lines, steps)


def _comparison(scores: Json) -> Bars:
    most = max(scores["mlm_loss"], scores["unigram_loss"])
    bars = tuple(
        Bar(label, (amounts.ratio(scores[key], most),), f"{amounts.decimal(scores[key], 3)} nat")
        for label, key in (("this model", "mlm_loss"), ("unigram", "unigram_loss"))
    )
    return Bars("Loss on the same masked pieces, shorter is better", bars, note="At the last step.")


def _accuracies(lines: list[Json], steps: list[int]) -> Picture:
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
        note=f"NSP by chance: about one in two. MLM on {amounts.count(lines[-1]['mlm_count'])} pieces, "
        f"NSP on {amounts.count(lines[-1]['nsp_count'])} pairs.",
    )


def _training(lines: list[Json]) -> Iterator[Block]:
    if lines:
        yield _curve("Training loss, MLM", lines, "mlm_loss", y="nat")
        yield _curve("Training loss, NSP", lines, "nsp_loss", y="nat")


def _course(lines: list[Json], timing: list[Json]) -> Iterator[Block]:
    if lines:
        yield _curve("Learning rate", lines, "learning_rate", y="rate", floor=0)
        yield _curve("Norm of the gradient", lines, "grad_norm", y="before clipping", floor=0)
    if timing:
        yield _curve("Speed", timing, "pieces_per_second", y="pieces a second", floor=0)


def _curve(title: str, lines: list[Json], key: str, *, y: str, floor: float | None = None) -> Picture:
    points = [(line["step"], line[key]) for line in lines if line.get(key) is not None]
    steps, values = ([point[place] for point in points] for place in (0, 1))
    return curves(title, [Line(key, steps, values)], x="step", y=y, floor=floor)


def _table(lines: list[Json]) -> Iterator[Block]:
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
        amounts.count(line["step"]),
        *(amounts.decimal(line[key], 3) for key in ("mlm_loss", "unigram_loss")),
        amounts.percent(line["mlm_accuracy"]),
        amounts.decimal(line["nsp_loss"], 3),
        amounts.percent(line["nsp_accuracy"]),
    )
