"""The page of `clean`: documents kept, drop reasons, and examples of dropped documents."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc

from corpus.cleaning.features import Features
from pipelines.reports import formatting
from pipelines.reports.distributions import Lengths
from pipelines.reports.dropped import Dropped, Drops, excerpt
from pipelines.reports.elements import Bar, Bars, Element, Headline, Section, Story, Table
from pipelines.reports.figures import label
from pipelines.reports.pictures import COLOURS, shares
from pipelines.reports.record import Artifact, batches, num_rows, parts_note, sampled

__all__ = ["headlines", "story"]

_HANGUL_ROWS = 512  # documents of each batch whose Hangul share is measured
_FREQUENT_LINES = 20  # frequent lines listed


def headlines(artifact: Artifact) -> tuple[Headline, ...]:
    kept = num_rows(artifact.parts("documents/*.parquet"))
    dropped = num_rows(artifact.parts("dropped/*.parquet"))
    return (
        Headline(formatting.count(kept), "documents kept"),
        Headline(_kept_share(kept, dropped), "of documents read"),
        Headline(formatting.count(dropped), "documents dropped"),
    )


def story(artifact: Artifact) -> Story:
    kept: Counter[str] = Counter()  # source -> documents
    for batch in batches(artifact.parts("documents/*.parquet"), ["source"]):
        for entry in pc.value_counts(batch.column("source")).to_pylist():
            kept[entry["values"]] += entry["counts"]
    dropped = Dropped(artifact)
    totals: Counter[str] = Counter()
    for (reason, _), number in dropped.drops.items():
        totals[reason] += number
    reasons = sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))  # most frequent first
    counts = artifact.record.get("counts", {})
    most_common = f"Most common drop reason: {label(reasons[0][0])}." if reasons else "Nothing was dropped."
    return Story(
        title=f"{_kept_share(kept.total(), dropped.drops.total())} of documents kept",
        lede=f"{formatting.count(kept.total() + dropped.drops.total())} documents read. {most_common}",
        sections=(
            Section("Dropped documents", tuple(_drop_elements(kept, dropped.drops, reasons))),
            Section("Duplicates and frequent lines", tuple(_duplicates(artifact, dropped))),
            Section(
                "Contamination",
                tuple(_contamination(counts)),
                "Documents with text of an evaluation set were dropped, or the matching lines removed.",
            ),
            Section("Personal data", tuple(_personal_data(counts))),
            Section(
                "Examples of dropped documents",
                dropped.samples(reason for reason, _ in reasons),
                "Up to 20 per reason, sampled by hash of the id, each next to a kept document.",
            ),
            Section("Kept documents", _kept_documents(artifact)),
        ),
    )


def _kept_share(kept: int, lost: int) -> str:
    return formatting.percent(formatting.ratio(kept, kept + lost))


def _drop_elements(kept: Counter[str], drops: Drops, reasons: list[tuple[str, int]]) -> Iterator[Element]:
    """Charts and a table of drop reasons. With several sources, bars show shares and the table counts."""
    sources = sorted(kept | Counter(source for _, source in drops))
    several = len(sources) > 1

    # A bar per reason, coloured by source. Sources beyond the last colour are combined.
    bars = []
    for reason, number in reasons:
        parts = [formatting.ratio(drops[reason, source], reasons[0][1]) for source in sources]
        if len(sources) > COLOURS:
            parts = [*parts[: COLOURS - 1], sum(parts[COLOURS - 1 :])]
        share = formatting.percent(number / (kept.total() + drops.total()), 2)
        bars.append(Bar(label(reason), tuple(parts), share if several else formatting.count(number)))
    legend = sources if len(sources) <= COLOURS else [*sources[: COLOURS - 1], "other sources"]
    if bars and several:
        yield Bars("Drop reasons", tuple(bars), tuple(legend), "Share of all documents read.")
    elif bars:
        yield Bars("Drop reasons", tuple(bars))
    if not several:
        return

    # A bar per source, scaled to the largest one.
    lost: Counter[str] = Counter()
    for (_, source), number in drops.items():
        lost[source] += number
    largest = max(kept[source] + lost[source] for source in sources)
    bars = [
        Bar(
            source,
            (formatting.ratio(kept[source], largest), formatting.ratio(lost[source], largest)),
            _kept_share(kept[source], lost[source]),
        )
        for source in sources
    ]
    note = "Bar length: documents read from the source."
    yield Bars("Share kept by source", tuple(bars), legend=("kept", "dropped"), note=note)

    rows = [(label(reason), *(formatting.count(drops[reason, source]) for source in sources)) for reason, _ in reasons]
    rows.append(("kept", *(formatting.count(kept[source]) for source in sources)))
    yield Table("Documents by reason and source", ("reason", *sources), tuple(rows), "l" + "r" * len(sources))


def _duplicates(artifact: Artifact, dropped: Dropped) -> Iterator[Element]:
    clusters = dropped.clusters()
    if clusters is not None:
        yield clusters
    lines: list[tuple[str, int]] = []
    for batch in batches(artifact.parts("frequent/*.parquet"), ["text", "documents"]):
        lines += zip(batch.column("text").to_pylist(), batch.column("documents").to_pylist(), strict=True)
    if lines:
        rows = tuple((excerpt(text), formatting.count(documents)) for text, documents in lines[:_FREQUENT_LINES])
        more = len(lines) - len(rows)
        note = f"{formatting.count(more)} more in the folder `frequent`." if more else ""
        yield Table("Frequent lines removed", ("line", "documents"), rows, "kr", note)


def _contamination(counts: dict[str, int]) -> Iterator[Element]:
    names = [name.split(".")[1] for name in counts if name.startswith("evaluation.") and name.endswith(".texts")]
    rows = []
    for name in names:
        texts, searched, found = (counts[f"evaluation.{name}.{kind}"] for kind in ("texts", "looked_for", "found"))
        share = formatting.percent(formatting.ratio(found, searched))
        documents = counts.get(f"contaminated.{name}", 0)
        rows.append((name, *map(formatting.count, (texts, searched, found)), share, formatting.count(documents)))
    if rows:
        head = ("evaluation set", "texts", "searched for", "found", "share found", "documents")
        note = "Texts that are too short or too repetitive are not searched for. Documents: number with a match."
        yield Table("Evaluation texts found in the corpus", head, tuple(rows), "lrrrrr", note)


def _personal_data(counts: dict[str, int]) -> Iterator[Element]:
    masked = {name.removeprefix("masked."): number for name, number in counts.items() if name.startswith("masked.")}
    if masked:
        largest = max(masked.values())
        bars = tuple(
            Bar(label(name), (formatting.ratio(number, largest),), formatting.count(number))
            for name, number in sorted(masked.items(), key=lambda pair: (-pair[1], pair[0]))
        )
        yield Bars("Occurrences masked, by kind", bars, note="Over all rows read, including dropped ones.")


def _kept_documents(artifact: Artifact) -> tuple[Element, ...]:
    """Lengths and Hangul shares of the kept documents, by source."""
    parts = artifact.parts("documents/*.parquet")
    read = sampled(parts)
    lengths = Lengths()
    hangul: dict[str, list[np.ndarray]] = {}
    for batch in batches(read, ["source", "text"]):
        lengths.add(batch.column("source"), pc.utf8_length(batch.column("text")))
        first = batch.slice(0, _HANGUL_ROWS)
        hangul_share = Features(first.column("text").to_pylist()).hangul_share
        sources = np.array(first.column("source").to_pylist(), object)
        for source in sorted(set(sources)):
            hangul.setdefault(source, []).append(hangul_share[sources == source])
    note = parts_note(len(read), len(parts))
    elements = lengths.elements("Document length", unit="characters", note=note)
    if not hangul:
        return elements
    series = {source: np.concatenate(hangul[source]) for source in sorted(hangul)}
    return *elements, shares("Hangul share", series, x="share of letters and digits", note=note)
