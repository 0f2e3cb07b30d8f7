"""The page of `analyze`: speed and failures of Kiwi, document lengths."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow.compute as pc

from korbert.pipelines.language import t
from korbert.pipelines.reports import formatting
from korbert.pipelines.reports.distributions import length_table
from korbert.pipelines.reports.elements import Entry, Folded, Section, Story, Use
from korbert.pipelines.reports.figures import Figure, label
from korbert.pipelines.reports.record import Artifact, batches, sampled

_SAMPLES = 20  # failed documents shown for each reason


def use(_folder: Path) -> Use:
    """Usage: the morphemes of documents as a table; no command reads them."""
    return Use("morphemes", "", "import pandas as pd\nprint(pd.read_parquet({})[['id', 'form', 'tag']])")


def figures(artifact: Artifact) -> Sequence[Figure]:
    counts = artifact.record["counts"]
    shown = [
        Figure(formatting.compact(counts["documents"]), "documents analysed"),
        Figure(formatting.compact(counts["morphemes"]), "morphemes"),
    ]
    if seconds := _seconds(artifact):
        shown.append(Figure(formatting.compact(counts["documents"] / seconds), "documents/s"))
    return *shown, Figure(_failed(counts), "failed")


def _failed(counts: Mapping[str, int]) -> str:
    return formatting.count(counts["failed"]) if counts["failed"] else "none"


def _seconds(artifact: Artifact) -> float | None:
    """Duration of the whole stage; None if unknown, as after a resumed run."""
    return None if artifact.run.get("resumed") else artifact.seconds


def story(artifact: Artifact) -> Story:
    parts, note = sampled(artifact.parts("morphemes/*.parquet"))
    morphemes = batches(parts, ["source", "tag"])
    lengths = ((batch.column("source"), pc.list_value_length(batch.column("tag"))) for batch in morphemes)
    counts, seconds, workers = artifact.record["counts"], _seconds(artifact), artifact.run.get("workers")
    speed = "Total duration unknown: run.json is missing, or the run was resumed."
    if seconds:
        with_workers = f" with {workers} worker{'' if workers == 1 else 's'}" if workers else ""
        per_second = formatting.compact(counts["morphemes"] / seconds)
        speed = f"Kiwi took {formatting.duration(seconds)}{with_workers}: {per_second} morphemes/s, startup included."
    return Story(
        f"{formatting.count(counts['documents'])} documents analysed, {_failed(counts)} failed",
        speed,
        (
            Section("Lengths", list(length_table(lengths, "morphemes", note))),
            Section("Failures", list(failure_elements(artifact))),
        ),
    )


def failure_elements(artifact: Artifact) -> Iterator[Folded]:
    totals: Counter[str] = Counter()
    samples: dict[str, list[Entry]] = {}
    for batch in batches(artifact.parts("failed/*.parquet"), ["id", "source", "reason", "detail"]):
        for row in batch.to_pylist():
            totals[row["reason"]] += 1
            if totals[row["reason"]] <= _SAMPLES:
                facts = [("source", row["source"]), ("detail", t(row["detail"] or ""))]
                samples.setdefault(row["reason"], []).append(Entry(row["id"], facts=facts))
    for reason, number in totals.most_common():
        yield Folded(f"{label(reason)} · {formatting.count(number)}, {len(samples[reason])} shown", samples[reason])
