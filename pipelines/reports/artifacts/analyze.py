"""The page of `analyze`: speed and failures of Kiwi, document lengths."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.compute as pc

from korbert.messages import Message, join_messages
from korbert.pipelines.artifacts import Artifact, ShownFigure, batches, formatting, label
from korbert.pipelines.reports.drawing import Example, Folded, Section, Story, Use, length_table

_SAMPLES = 20  # failed documents shown for each reason


def use(_folder: Path) -> Use:
    """Usage: the morphemes of documents as a table; no command reads them."""
    return Use("morphemes", "", "import pandas as pd\nprint(pd.read_parquet({})[['id', 'form', 'tag']])")


def figures(artifact: Artifact) -> Sequence[ShownFigure]:
    counts = artifact.record["counts"]
    shown = [
        ShownFigure(formatting.compact(counts["documents"]), Message("documents analysed")),
        ShownFigure(formatting.compact(counts["morphemes"]), Message("morphemes")),
    ]
    if seconds := _seconds(artifact):
        shown.append(ShownFigure(formatting.compact(counts["documents"] / seconds), Message("documents/s")))
    failed = formatting.count(counts["failed"]) if counts["failed"] else Message("none")
    return [*shown, ShownFigure(failed, Message("failed"))]


def _seconds(artifact: Artifact) -> float | None:
    """Duration of the whole stage; None if unknown, as after a resumed run."""
    return None if artifact.run.get("resumed") else artifact.seconds


def story(artifact: Artifact) -> Story:
    counts = artifact.record["counts"]
    title = Message(
        "{count:,} document analysed, none failed",
        "{count:,} documents analysed, none failed",
        count=counts["documents"],
    )
    if counts["failed"]:
        title = Message(
            "{count:,} document analysed, {failed:,} failed",
            "{count:,} documents analysed, {failed:,} failed",
            count=counts["documents"],
            failed=counts["failed"],
        )
    lengths = length_table(artifact.parts("morphemes/*.parquet"), "tag", pc.list_value_length, Message("morphemes"))
    return Story(
        title,
        speed(artifact),
        (
            Section(Message("Lengths"), list(lengths)),
            Section(Message("Failures"), list(failure_elements(artifact))),
        ),
    )


def speed(artifact: Artifact) -> Message:
    """How long Kiwi took, and the morphemes per second."""
    seconds = _seconds(artifact)
    if not seconds:
        return Message("Total duration unknown: run.json is missing, or the run was resumed.")
    duration = formatting.duration(seconds)
    per_second = formatting.compact(artifact.record["counts"]["morphemes"] / seconds)
    workers = artifact.run.get("workers")
    if not workers:
        return Message(
            "Kiwi took {duration}: {per_second} morphemes/s, startup included.",
            duration=duration,
            per_second=per_second,
        )
    return Message(
        "Kiwi took {duration} with {count} worker: {per_second} morphemes/s, startup included.",
        "Kiwi took {duration} with {count} workers: {per_second} morphemes/s, startup included.",
        duration=duration, count=workers, per_second=per_second,
    )  # fmt: skip


def failure_elements(artifact: Artifact) -> Iterator[Folded]:
    totals: Counter[str] = Counter()
    samples: dict[str, list[Example]] = {}
    for batch in batches(artifact.parts("failed/*.parquet"), ["id", "source", "reason", "detail"]):
        for row in batch.to_pylist():
            totals[row["reason"]] += 1
            if totals[row["reason"]] <= _SAMPLES:
                example = Example(
                    row["id"],
                    facts=[(Message("source"), row["source"]), (Message("detail"), row["detail"] or "")],
                )
                samples.setdefault(row["reason"], []).append(example)
    for reason, number in totals.most_common():
        yield Folded(
            join_messages(
                [label(reason), Message("{number:,}, {shown} shown", number=number, shown=len(samples[reason]))], " · "
            ),
            samples[reason],
        )
