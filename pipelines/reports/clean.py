"""The page of `clean`: documents kept, drop reasons, and examples of dropped documents."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow.compute as pc

from corpus.cleaning.features import Features
from pipelines.reports import formatting
from pipelines.reports.distributions import Lengths, most_frequent, ranked_bars
from pipelines.reports.dropped import Dropped, excerpt
from pipelines.reports.elements import Bar, Bars, Element, Section, Story, Table
from pipelines.reports.figures import Figure, label
from pipelines.reports.pictures import COLOURS, shares
from pipelines.reports.record import Artifact, batches, num_rows, sampled

_HANGUL_ROWS = 512  # documents of each batch whose Hangul share is measured
_FREQUENT_LINES = 20  # frequent lines listed


def figures(artifact: Artifact) -> Sequence[Figure]:
    kept, dropped = (num_rows(artifact.parts(f"{folder}/*.parquet")) for folder in ("documents", "dropped"))
    return (
        Figure(formatting.count(kept), "documents kept"),
        Figure(_kept_share(kept, dropped), "of documents read"),
        Figure(formatting.count(dropped), "documents dropped"),
    )


def _kept_share(kept: int, dropped: int) -> str:
    return formatting.percent(formatting.ratio(kept, kept + dropped))


def story(artifact: Artifact) -> Story:
    kept: Counter[str] = Counter()  # source -> documents
    for batch in batches(artifact.parts("documents/*.parquet"), ["source"]):
        kept.update(batch.column("source").to_pylist())
    dropped = Dropped(artifact)
    by_reason: Counter[str] = Counter()
    for (reason, _), number in dropped.counts.items():
        by_reason[reason] += number
    reasons = most_frequent(by_reason)
    counts = artifact.record.get("counts", {})
    most_common = f"Most common drop reason: {label(next(iter(reasons)))}." if reasons else "Nothing was dropped."
    return Story(
        title=f"{_kept_share(kept.total(), by_reason.total())} of documents kept",
        lede=f"{formatting.count(kept.total() + by_reason.total())} documents read. {most_common}",
        sections=(
            Section("Dropped documents", list(drop_elements(kept, dropped.counts, reasons))),
            Section("Duplicates and frequent lines", [*dropped.clusters(), *frequent_lines(artifact)]),
            Section(
                "Contamination",
                list(contamination(counts)),
                "Documents with text of an evaluation set were dropped, or the matching lines removed.",
            ),
            Section("Personal data", list(personal_data(counts))),
            Section(
                "Examples of dropped documents",
                dropped.samples(reasons),
                "Up to 20 per reason, sampled by hash of the id, each next to a kept document.",
            ),
            Section("Kept documents", kept_documents(artifact)),
        ),
    )


def drop_elements(kept: Counter[str], drops: Counter[tuple[str, str]], reasons: Mapping[str, int]) -> Iterator[Element]:
    """Charts and a table of drop reasons. With several sources, bars show shares and the table counts."""
    sources = sorted(kept | Counter(source for _, source in drops))
    if len(sources) < 2:
        if reasons:
            named = ((label(reason), number) for reason, number in reasons.items())
            yield ranked_bars("Drop reasons", named, formatting.count)
        return

    # A bar per reason, coloured by source. Sources beyond the last colour are combined.
    bars, legend, read = [], sources, kept.total() + drops.total()
    if len(sources) > COLOURS:
        legend = [*sources[: COLOURS - 1], "other sources"]
    for reason, number in reasons.items():
        parts = [formatting.ratio(drops[reason, source], max(reasons.values())) for source in sources]
        parts = [*parts[: len(legend) - 1], sum(parts[len(legend) - 1 :])]
        bars.append(Bar(label(reason), parts, formatting.percent(number / read, 2)))
    if bars:
        yield Bars("Drop reasons", bars, legend, note="Share of all documents read.")

    # A bar per source, scaled to the largest one.
    lost = Counter({source: sum(drops[reason, source] for reason in reasons) for source in sources})
    largest = max((kept + lost).values())
    bars = [
        Bar(source, [number[source] / largest for number in (kept, lost)], _kept_share(kept[source], lost[source]))
        for source in sources
    ]
    note = "Bar length: documents read from the source."
    yield Bars("Share kept by source", bars, ("kept", "dropped"), note=note)
    rows = [(label(reason), *(formatting.count(drops[reason, source]) for source in sources)) for reason in reasons]
    rows.append(("kept", *(formatting.count(kept[source]) for source in sources)))
    yield Table("Documents by reason and source", ("reason", *sources), rows, "l" + "r" * len(sources))


def frequent_lines(artifact: Artifact) -> Iterator[Table]:
    lines: list[tuple[str, int]] = []
    for batch in batches(artifact.parts("frequent/*.parquet"), ["text", "documents"]):
        lines += zip(batch.column("text").to_pylist(), batch.column("documents").to_pylist(), strict=True)
    if lines:
        rows = [(excerpt(text), formatting.count(documents)) for text, documents in lines[:_FREQUENT_LINES]]
        more = len(lines) - len(rows)
        note = f"{formatting.count(more)} more in the folder `frequent`." if more else ""
        yield Table("Frequent lines removed", ("line", "documents"), rows, "kr", note=note)


def contamination(counts: Mapping[str, int]) -> Iterator[Table]:
    names = [name.split(".")[1] for name in counts if name.startswith("evaluation.") and name.endswith(".texts")]
    rows = []
    for name in names:
        texts, searched, matched = (counts[f"evaluation.{name}.{kind}"] for kind in ("texts", "looked_for", "found"))
        share = formatting.percent(formatting.ratio(matched, searched))
        documents = formatting.count(counts.get(f"contaminated.{name}", 0))
        rows.append((name, *map(formatting.count, (texts, searched, matched)), share, documents))
    if rows:
        head = ("evaluation set", "texts", "searched for", "found", "share found", "documents")
        note = "Texts that are too short or too repetitive are not searched for. Documents: number with a match."
        yield Table("Evaluation texts found in the corpus", head, rows, "lrrrrr", note=note)


def personal_data(counts: Mapping[str, int]) -> Iterator[Bars]:
    masked = {name.removeprefix("masked."): number for name, number in counts.items() if name.startswith("masked.")}
    if masked:
        named = ((label(name), number) for name, number in most_frequent(masked).items())
        note = "Over all rows read, including dropped ones."
        yield ranked_bars("Occurrences masked, by kind", named, formatting.count, note=note)


def kept_documents(artifact: Artifact) -> Sequence[Element]:
    """Lengths and Hangul shares of the kept documents, by source."""
    parts, note = sampled(artifact.parts("documents/*.parquet"))
    lengths = Lengths()
    hangul: dict[str, list[np.ndarray]] = {}
    for batch in batches(parts, ["source", "text"]):
        lengths.add(batch.column("source"), pc.utf8_length(batch.column("text")))
        first = batch.slice(0, _HANGUL_ROWS)
        hangul_share = Features(first.column("text").to_pylist()).hangul_share
        sources = np.array(first.column("source").to_pylist(), object)
        for source in sorted(set(sources)):
            hangul.setdefault(source, []).append(hangul_share[sources == source])
    elements = lengths.elements("Document length", unit="characters", note=note)
    if not hangul:
        return elements
    series = {source: np.concatenate(hangul[source]) for source in sorted(hangul)}
    return *elements, shares("Hangul share", series, x="share of letters and digits", note=note)
