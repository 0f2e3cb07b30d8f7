"""The page of `clean`: how much of the sources was kept, what was dropped and why, and what dropped texts look like."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc

from corpus.cleaning.features import Features
from pipelines.reports import formatting
from pipelines.reports.dropped import Dropped, Drops, excerpt
from pipelines.reports.elements import Bar, Bars, Element, Headline, Section, Story, Table
from pipelines.reports.labels import label
from pipelines.reports.lengths import Lengths
from pipelines.reports.pictures import COLOURS, shares
from pipelines.reports.record import Artifact, batches, num_rows, parts_note, sampled

__all__ = ["headlines", "story"]

_HANGUL_ROWS = 512  # of each batch, whose share of Hangul is measured
_FREQUENT_LINES = 20  # shown of those that stand in many documents


def headlines(artifact: Artifact) -> tuple[Headline, ...]:
    kept = num_rows(artifact.parts("documents/*.parquet"))
    dropped = num_rows(artifact.parts("dropped/*.parquet"))
    return (
        Headline(formatting.count(kept), "documents kept"),
        Headline(_share(kept, dropped), "of what was read"),
        Headline(formatting.count(dropped), "dropped"),
    )


def story(artifact: Artifact) -> Story:
    kept = _by_source(artifact)
    dropped = Dropped(artifact)
    drops = dropped.drops
    return Story(
        title=f"{_share(kept.total(), drops.total())} of the documents were kept",
        lede=_lede(kept.total(), drops),
        sections=tuple(
            section
            for section in (
                Section("What was dropped, and why", tuple(_drop_elements(kept, drops))),
                Section("What stands twice", tuple(_repeats(artifact, dropped))),
                Section("Evaluation sets", tuple(_evaluation(artifact.record.get("counts", {}))), _EVALUATION),
                Section("Personal data", tuple(_personal(artifact.record.get("counts", {})))),
                Section("What dropped texts look like", dropped.samples(_reasons(drops)), _SAMPLED),
                Section("What was kept", _measured(artifact)),
            )
            if section.elements
        ),
    )


_SAMPLED = "Drawn by a hash of the id, at most 20 for each reason, each beside a document that was kept."
_EVALUATION = "What models will be scored on. Documents that hold text of it were dropped, or their lines taken out."


def _lede(kept: int, drops: Drops) -> str:
    read = f"{formatting.count(kept + drops.total())} documents were read"
    if not drops:
        return f"{read}. Nothing was dropped."
    return f"{read}. The most common reason to drop one: {label(_reasons(drops)[0][0])}."


def _by_source(artifact: Artifact) -> Counter[str]:
    kept: Counter[str] = Counter()
    for batch in batches(artifact.parts("documents/*.parquet"), ["source"]):
        for entry in pc.value_counts(batch.column("source")).to_pylist():
            kept[entry["values"]] += entry["counts"]
    return kept


def _reasons(drops: Drops) -> list[tuple[str, int]]:
    """(reason, documents), the commonest first."""
    totals: Counter[str] = Counter()
    for (reason, _), number in drops.items():
        totals[reason] += number
    return sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))


def _share(kept: int, lost: int) -> str:
    return formatting.percent(formatting.ratio(kept, kept + lost))


def _drop_elements(kept: Counter[str], drops: Drops) -> Iterator[Element]:
    """Of several sources the table has the counts and the bars have shares, so that no number stands twice."""
    sources = sorted(kept | Counter(source for _, source in drops))
    if drops:
        yield _reason_bars(drops, sources, kept.total() + drops.total())
    if len(sources) > 1:
        yield _source_bars(kept, drops, sources)
        yield _table(kept, drops, sources)


def _reason_bars(drops: Drops, sources: list[str], read: int) -> Bars:
    colours = sources if len(sources) <= COLOURS else [*sources[: COLOURS - 1], "other sources"]
    most = _reasons(drops)[0][1]
    bars = []
    for reason, number in _reasons(drops):
        shares = [formatting.ratio(drops[reason, source], most) for source in sources]
        if len(sources) > COLOURS:
            shares = [*shares[: COLOURS - 1], sum(shares[COLOURS - 1 :])]
        text = formatting.percent(number / read, 2) if len(sources) > 1 else formatting.count(number)
        bars.append(Bar(label(reason), tuple(shares), text))
    if len(sources) < 2:
        return Bars("Reasons to drop a document", tuple(bars))
    return Bars("Reasons to drop a document", tuple(bars), tuple(colours), "Share of all documents read.")


def _source_bars(kept: Counter[str], drops: Drops, sources: list[str]) -> Bars:
    lost: Counter[str] = Counter()
    for (_, source), number in drops.items():
        lost[source] += number
    most = max(kept[source] + lost[source] for source in sources)
    bars = tuple(
        Bar(
            source,
            (formatting.ratio(kept[source], most), formatting.ratio(lost[source], most)),
            _share(kept[source], lost[source]),
        )
        for source in sources
    )
    return Bars("Share kept of each source", bars, legend=("kept", "dropped"), note="A bar is as long as its source.")


def _table(kept: Counter[str], drops: Drops, sources: list[str]) -> Table:
    rows = [
        (label(reason), *(formatting.count(drops[reason, source]) for source in sources))
        for reason, _ in _reasons(drops)
    ]
    rows.append(("kept", *(formatting.count(kept[source]) for source in sources)))
    return Table("By source and reason", ("reason", *sources), tuple(rows), "l" + "r" * len(sources))


def _repeats(artifact: Artifact, dropped: Dropped) -> Iterator[Element]:
    clusters = dropped.clusters()
    if clusters is not None:
        yield clusters
    lines: list[tuple[str, int]] = []
    for batch in batches(artifact.parts("frequent/*.parquet"), ["text", "documents"]):
        lines += zip(batch.column("text").to_pylist(), batch.column("documents").to_pylist(), strict=True)
    if lines:
        rows = tuple((excerpt(text), formatting.count(documents)) for text, documents in lines[:_FREQUENT_LINES])
        more = len(lines) - len(rows)
        note = f"And {formatting.count(more)} more, in the folder `frequent`." if more else ""
        yield Table("Lines taken out of many documents", ("line", "documents"), rows, "kr", note)


def _evaluation(counts: dict[str, int]) -> Iterator[Element]:
    names = [name.split(".")[1] for name in counts if name.startswith("evaluation.") and name.endswith(".texts")]
    if names:
        rows = []
        for name in names:
            texts, looked_for, found = (
                counts[f"evaluation.{name}.{kind}"] for kind in ("texts", "looked_for", "found")
            )
            share = formatting.percent(formatting.ratio(found, looked_for))
            documents = counts.get(f"contaminated.{name}", 0)
            rows.append((name, *map(formatting.count, (texts, looked_for, found)), share, formatting.count(documents)))
        head = ("set", "texts", "long enough", "found", "share", "documents")
        yield Table("Texts that the corpus held", head, tuple(rows), "lrrrrr")


def _personal(counts: dict[str, int]) -> Iterator[Element]:
    found = {name.removeprefix("masked."): number for name, number in counts.items() if name.startswith("masked.")}
    if found:
        most = max(found.values())
        bars = tuple(
            Bar(label(name), (formatting.ratio(number, most),), formatting.count(number))
            for name, number in sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
        )
        yield Bars("Replaced by the name of its kind", bars, note="In all that was read, dropped rows included.")


def _measured(artifact: Artifact) -> tuple[Element, ...]:
    """Lengths and Hangul shares of what was kept."""
    parts = artifact.parts("documents/*.parquet")
    read = sampled(parts)
    lengths = Lengths()
    hangul: dict[str, list[np.ndarray]] = {}
    for batch in batches(read, ["source", "text"]):
        lengths.add(batch.column("source"), pc.utf8_length(batch.column("text")))
        some = batch.slice(0, _HANGUL_ROWS)
        found = Features(some.column("text").to_pylist()).hangul_share
        names = np.array(some.column("source").to_pylist(), object)
        for name in sorted(set(names)):
            hangul.setdefault(name, []).append(found[names == name])
    note = parts_note(len(read), len(parts))
    elements = lengths.elements("Length of the documents kept", unit="characters", note=note)
    series = {name: np.concatenate(hangul[name]) for name in sorted(hangul)}
    return (
        (*elements, shares("Hangul in them", series, x="share of letters and digits", note=note))
        if series
        else elements
    )
