"""The page of `clean`: documents kept, drop reasons, and examples of dropped documents."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpus.cleaning.features import Features
from pipelines.reports import formatting
from pipelines.reports.distributions import Lengths, most_frequent, ranked_bars
from pipelines.reports.elements import Bar, Bars, Element, Entry, Folded, Section, Story, Table, Use
from pipelines.reports.figures import Figure, label
from pipelines.reports.pictures import COLOURS, shares
from pipelines.reports.record import Artifact, batches, num_rows, sampled

_HANGUL_ROWS = 512  # documents of each batch whose Hangul share is measured
_FREQUENT_LINES = 20  # frequent lines listed


def use(_folder: Path) -> Use:
    """Usage: questions from the documents, and the documents as a table."""
    python = "import pandas as pd\nprint(pd.read_parquet({})[['id', 'source', 'text']])"
    return Use("documents", "korbert questions {} --output questions.json", python)


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


_SAMPLES = 20  # dropped documents shown for each reason
_EXCERPT_CHARS = 320
_DUPLICATE = "_duplicate"  # suffix of the reasons whose detail is the id of the kept document
_CLUSTER_SIZES = ((2, 2), (3, 5), (6, 10), (11, 50), (51, None))

_Samples = dict[str, list[tuple[bytes, dict[str, Any]]]]
"""Value of a column -> rows, each with the hash of its id, by which it was drawn."""


class Dropped:
    """All dropped documents, counted and sampled in one pass. Memory grows only with the near-duplicate clusters.

    counts: (reason, source) -> documents.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self._artifact = artifact
        self._samples: _Samples = {}
        self._near_duplicates: Counter[str] = Counter()  # id of the kept document -> documents dropped
        for batch in batches(artifact.parts("dropped/*.parquet"), ["id", "source", "reason", "detail", "text"]):
            reasons, sources = batch.column("reason"), batch.column("source").to_pylist()
            self.counts.update(zip(reasons.to_pylist(), sources, strict=True))
            near = batch.filter(pc.equal(reasons, "near_duplicate"))
            self._near_duplicates.update(near.column("detail").to_pylist())
            _draw(batch, "reason", self._samples)

    def samples(self, reasons: Iterable[str]) -> list[Folded]:
        """At most 20 documents per reason, each next to a kept one: for duplicates the original, else a sampled one."""
        duplicates = [name for name in self._samples if name.endswith(_DUPLICATE)]
        ids = {row["detail"] for name in duplicates for _, row in self._samples[name]}
        originals: dict[str, str] = {}  # id -> excerpt; only then are all documents read
        for batch in batches(self._artifact.parts("documents/*.parquet"), ["id", "text"]) if ids else ():
            matching = batch.filter(pc.is_in(batch.column("id"), pa.array(sorted(ids), pa.string()))).to_pylist()
            originals.update((row["id"], excerpt(row["text"])) for row in matching)
        kept: _Samples = {}  # from the first batch of each sampled part
        for part in sampled(self._artifact.parts("documents/*.parquet"))[0]:
            if batch := next(batches([part], ["id", "source", "text"]), None):
                _draw(batch, "source", kept)
        elements = []
        for reason in reasons:
            entries, used = [], Counter[str]()
            for _, row in self._samples[reason]:
                beside = ("kept instead", originals.get(row["detail"], ""))
                if reason not in duplicates:
                    candidates = [excerpt(other["text"]) for _, other in kept.get(row["source"], ())] or [""]
                    beside = ("a kept document", candidates[used[row["source"]] % len(candidates)])
                    used[row["source"]] += 1
                size = formatting.count(len(row["text"]))
                facts = (("source", row["source"]), ("detail", row["detail"]), ("characters", size), beside)
                entries.append(Entry(row["id"], excerpt(row["text"]), [fact for fact in facts if fact[1]]))
            elements.append(Folded(f"{label(reason)} · {len(entries)} shown", entries))
        return elements

    def clusters(self) -> Iterator[Table]:
        """Near-duplicate clusters by size; nothing without near-duplicates."""
        sizes = [dropped + 1 for dropped in self._near_duplicates.values()]
        if not sizes:
            return
        rows = []
        for low, high in _CLUSTER_SIZES:
            name = f"{low}" if low == high else f"{low} to {high}" if high else f"{low} or more"
            inside = [size for size in sizes if low <= size <= (high or size)]
            rows.append((name, formatting.count(len(inside)), formatting.count(sum(inside) - len(inside))))
        head = ("documents in the cluster", "clusters", "documents dropped")
        note = f"One document of each is kept. The largest has {formatting.count(max(sizes))}."
        yield Table("Near-duplicate clusters", head, rows, "lrr", note=note)


def _draw(batch: pa.RecordBatch, column: str, samples: _Samples) -> None:
    """Keeps the 20 rows with the lowest hashes of their ids for each value of the column."""
    values = batch.column(column).to_pylist()
    hashes = [hashlib.blake2b(str(id).encode(), digest_size=8).digest() for id in batch.column("id").to_pylist()]
    drawn: dict[str, list[int]] = {}
    for index in sorted(range(batch.num_rows), key=hashes.__getitem__):
        drawn.setdefault(values[index], []).append(index)
    for value, indices in drawn.items():
        rows = batch.take(pa.array(indices[:_SAMPLES])).to_pylist()
        rows = [{name: value or "" for name, value in row.items()} for row in rows]  # a bad record has no id
        both = [*samples.get(value, ()), *((hashes[index], row) for index, row in zip(indices, rows, strict=False))]
        samples[value] = sorted(both, key=lambda sample: sample[0])[:_SAMPLES]


def excerpt(text: str) -> str:
    """The first 320 characters, with an ellipsis if there are more."""
    return text if len(text) <= _EXCERPT_CHARS else text[:_EXCERPT_CHARS].rstrip() + " …"
