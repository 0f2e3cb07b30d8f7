"""The page of `korbert evaluate --html`: scores under each kind of noise, and rows whose prediction it changes."""

from collections.abc import Iterator
from pathlib import Path

from korbert.messages import Message, join_messages
from korbert.pipelines.artifacts import figures, is_defined, label
from korbert.pipelines.experiments.evaluating import Evaluation
from korbert.pipelines.reports.artifacts.task import on_one_scale
from korbert.pipelines.reports.drawing import (
    Element,
    Example,
    Folded,
    Section,
    TableElement,
    beginning,
    differing,
    in_words,
    write,
)
from korbert.tasks.kinds.kind import Kind
from korbert.tasks.noise import NOISE

_EXAMPLES = 5  # of each kind of noise, made wrong and made right


def write_page(path: Path, name: str, kind: Kind, found: Evaluation) -> Path:
    """Writes the page and returns its path. name: the model's. found: also evaluates the disturbed rows."""
    note = Message("Whiskers: 95 % bootstrap interval over rows.")
    if len(kind.noise) < len(NOISE):
        note = join_messages(
            [note, Message("Other noise changes letters, and with them what is labelled: it is for classifiers.")], " "
        )
    return write(
        path,
        "noise.html",
        about=Message(
            "{name}: {count:,} row as it is, and with its text disturbed.",
            "{name}: {count:,} rows as they are, and with their texts disturbed.",
            name=name,
            count=len(found.rows),
        ),
        sections=(
            Section(Message("Scores"), list(scores(found)), note),
            Section(Message("Where predictions change"), list(changes(kind, found))),
        ),
    )


def scores(found: Evaluation) -> Iterator[Element]:
    """Yields a chart of the first metric, and a table of all scores with their intervals."""
    first_metric = next(iter(found.scores))
    first_scores = []
    rows = []
    with_noise = {label(noise): evaluation for noise, evaluation in found.with_noise.items()}
    for name, evaluation in {Message("as they are"): found, **with_noise}.items():
        cells = []
        for metric, score in evaluation.scores.items():
            ends = evaluation.intervals[metric] or (score, score)
            cell = figures.text(metric, score)
            if is_defined(score):
                cell = Message("{score} ({interval})", score=cell, interval=figures.interval(metric, ends))
            cells.append(cell)
            if metric == first_metric:
                first_scores.append((name, score, *ends))
        rows.append((name, *cells))
    yield from on_one_scale(label(first_metric), first_metric, first_scores, "")
    yield TableElement(
        Message("All scores"),
        (Message("texts"), *map(label, found.scores)),
        rows,
        "l" + "r" * len(found.scores),
        folded=True,
    )


def changes(kind: Kind, found: Evaluation) -> Iterator[Folded]:
    """Yields rows that each kind of noise makes wrong, and right; for graded predictions, worse and better."""
    verdicts = {"before": Message("wrong here alone"), "after": Message("right here alone")}
    if kind.is_graded:
        verdicts = {"before": Message("nearer as they are"), "after": Message("nearer here")}
    before = kind.row_scores(found.rows, [row["prediction"] for row in found.rows])
    for noise, with_noise in found.with_noise.items():
        after = kind.row_scores(with_noise.rows, [row["prediction"] for row in with_noise.rows])
        for better, _, order in differing({"before": before, "after": after}):
            entries = []
            for number in order[:_EXAMPLES]:
                original, disturbed = (
                    {**side.rows[number], "text": kind.texts(side.rows[number])[0]} for side in (found, with_noise)
                )
                example = Example(
                    "",
                    beginning(*kind.texts(disturbed)),
                    [
                        (Message("text as given"), beginning(*kind.texts(original))),
                        (Message("true"), in_words(original, kind.target(original))),
                        (Message("predicted from it"), in_words(original, original["prediction"])),
                        (Message("predicted here"), in_words(disturbed, disturbed["prediction"])),
                    ],
                )
                entries.append(example)
            share = Message("{differing:,} of {rows:,} rows", differing=len(order), rows=len(found.rows))
            yield Folded(join_messages([label(noise), verdicts[better], share], " · "), entries)
