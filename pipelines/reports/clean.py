"""The page of `clean`: how much of the sources was kept, what was dropped and why, and what dropped texts look like."""

import hashlib
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.reports import amounts
from pipelines.reports.blocks import Bar, Bars, Block, Entry, Folded, Headline, Section, Story, Table
from pipelines.reports.lengths import Lengths
from pipelines.reports.pictures import COLOURS
from pipelines.reports.record import Artifact, batches, num_rows, parts_note, sampled

__all__ = ["headlines", "story"]

_SAMPLES = 20  # dropped documents shown for each reason
_EXCERPT_CHARS = 320

Drops = Counter[tuple[str, str]]  # (reason, source) -> documents


def headlines(artifact: Artifact) -> tuple[Headline, ...]:
    kept = num_rows(artifact.parts("documents/*.parquet"))
    dropped = num_rows(artifact.parts("dropped/*.parquet"))
    return (
        Headline(amounts.count(kept), "documents kept"),
        Headline(_share(kept, dropped), "of what was read"),
        Headline(amounts.count(dropped), "dropped"),
    )


def story(artifact: Artifact) -> Story:
    kept = _by_source(artifact)
    drops, samples = _dropped(artifact)
    return Story(
        title=f"{_share(kept.total(), drops.total())} of the documents were kept",
        lede=_lede(kept.total(), drops),
        sections=(
            Section("What was dropped, and why", tuple(_drop_blocks(kept, drops))),
            Section("What dropped texts look like", samples, "Drawn by a hash of the id, at most 20 of each reason."),
            Section("What was kept", _lengths(artifact)),
        ),
    )


def _lede(kept: int, drops: Drops) -> str:
    read = f"{amounts.count(kept + drops.total())} documents were read and {amounts.count(kept)} go on."
    if not drops:
        return f"{read} Nothing was dropped."
    reason, number = _reasons(drops)[0]
    return f"{read} The commonest reason to drop one was {reason}: {amounts.count(number)}."


def _by_source(artifact: Artifact) -> Counter[str]:
    kept: Counter[str] = Counter()
    for batch in batches(artifact.parts("documents/*.parquet"), ["source"]):
        for entry in pc.value_counts(batch.column("source")).to_pylist():
            kept[entry["values"]] += entry["counts"]
    return kept


def _dropped(artifact: Artifact) -> tuple[Drops, tuple[Folded, ...]]:
    """Counts of all dropped documents, and the samples, in one pass."""
    drops: Drops = Counter()
    chosen: dict[str, list[tuple[bytes, Entry]]] = {}
    parts = artifact.parts("dropped/*.parquet")
    for batch in batches(parts, ["id", "source", "reason", "detail", "text"]):
        drops.update(zip(batch.column("reason").to_pylist(), batch.column("source").to_pylist(), strict=True))
        for reason, places in _places(batch).items():
            drawn = chosen.get(reason, []) + [(key, _entry(batch, row)) for key, row in places]
            chosen[reason] = sorted(drawn, key=lambda pair: pair[0])[:_SAMPLES]
    return drops, tuple(
        Folded(
            f"{reason} · {min(number, _SAMPLES)} of {amounts.count(number)}",
            tuple(entry for _, entry in chosen[reason]),
        )
        for reason, number in _reasons(drops)
    )


def _places(batch: pa.RecordBatch) -> dict[str, list[tuple[bytes, int]]]:
    """The rows of a batch that might be drawn: for each reason, the 20 lowest keys and where they are."""
    places: dict[str, list[tuple[bytes, int]]] = {}
    for row, (reason, name) in enumerate(
        zip(*(batch.column(name).to_pylist() for name in ("reason", "id")), strict=True)
    ):
        key = hashlib.blake2b(str(name).encode(), digest_size=8).digest()
        places.setdefault(reason, []).append((key, row))
    return {reason: sorted(pairs)[:_SAMPLES] for reason, pairs in places.items()}


def _entry(batch: pa.RecordBatch, row: int) -> Entry:
    values = {name: batch.column(name)[row].as_py() for name in ("id", "source", "detail", "text")}
    text = values["text"] or ""
    facts = (
        ("source", values["source"] or ""),
        ("detail", values["detail"] or ""),
        ("characters", amounts.count(len(text))),
    )
    return Entry(values["id"] or "", _excerpt(text), tuple(fact for fact in facts if fact[1]))


def _excerpt(text: str) -> str:
    return text if len(text) <= _EXCERPT_CHARS else text[:_EXCERPT_CHARS].rstrip() + " …"


def _reasons(drops: Drops) -> list[tuple[str, int]]:
    """(reason, documents), the commonest first."""
    totals: Counter[str] = Counter()
    for (reason, _), number in drops.items():
        totals[reason] += number
    return sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))


def _drop_blocks(kept: Counter[str], drops: Drops) -> Iterator[Block]:
    yield _waterfall(kept.total(), drops)
    yield _sources(kept, drops)
    if drops:
        yield _reason_bars(drops)
        yield _reason_table(kept, drops)


def _waterfall(kept: int, drops: Drops) -> Bars:
    total = kept + drops.total()
    bars = [Bar("read", (amounts.ratio(total, total),), amounts.count(total))]
    left = total
    for reason, number in _reasons(drops):
        left -= number
        share = amounts.ratio(number, total)
        bars.append(Bar(reason, (0.0, share), f"−{amounts.count(number)}", start=amounts.ratio(left, total)))
    bars.append(Bar("kept", (amounts.ratio(kept, total),), amounts.count(kept)))
    return Bars(
        "From what was read to what was kept", tuple(bars), note="Documents. Each reason takes away from the right."
    )


def _share(kept: int, lost: int) -> str:
    return amounts.percent(amounts.ratio(kept, kept + lost))


def _sources(kept: Counter[str], drops: Drops) -> Bars:
    lost: Counter[str] = Counter()
    for (_, source), number in drops.items():
        lost[source] += number
    most = max((kept[source] + lost[source] for source in kept | lost), default=0)
    bars = tuple(
        Bar(
            source,
            (amounts.ratio(kept[source], most), amounts.ratio(lost[source], most)),
            f"{amounts.count(kept[source])} kept, {_share(kept[source], lost[source])}",
        )
        for source in sorted(kept | lost)
    )
    return Bars("By source", bars, legend=("kept", "dropped"))


def _reason_bars(drops: Drops) -> Bars:
    sources = sorted({source for _, source in drops})
    colours = sources if len(sources) <= COLOURS else [*sources[: COLOURS - 1], "other sources"]
    most = _reasons(drops)[0][1]
    bars = []
    for reason, number in _reasons(drops):
        shares = [amounts.ratio(drops[reason, source], most) for source in sources]
        if len(sources) > COLOURS:
            shares = [*shares[: COLOURS - 1], sum(shares[COLOURS - 1 :])]
        bars.append(Bar(reason, tuple(shares), amounts.count(number)))
    return Bars("Reasons, by source", tuple(bars), legend=tuple(colours))


def _reason_table(kept: Counter[str], drops: Drops) -> Table:
    sources = sorted(kept | Counter(source for _, source in drops))
    rows = [
        (reason, *(amounts.count(drops[reason, source]) for source in sources), amounts.count(number))
        for reason, number in _reasons(drops)
    ]
    lost = [sum(number for (_, where), number in drops.items() if where == source) for source in sources]
    rows.append(("all dropped", *map(amounts.count, lost), amounts.count(drops.total())))
    rows.append(("kept", *(amounts.count(kept[source]) for source in sources), amounts.count(kept.total())))
    return Table("Dropped documents", ("reason", *sources, "all"), tuple(rows), "l" + "r" * (len(sources) + 1))


def _lengths(artifact: Artifact) -> tuple[Block, ...]:
    parts = artifact.parts("documents/*.parquet")
    read = sampled(parts)
    measured = Lengths()
    for batch in batches(read, ["source", "text"]):
        measured.add(batch.column("source"), pc.utf8_length(batch.column("text")))
    return measured.blocks("Length of the documents kept", unit="characters", note=parts_note(len(read), len(parts)))
