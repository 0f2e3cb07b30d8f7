"""Examples of documents that `clean` dropped, each next to a kept one, and the sizes of near-duplicate clusters."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.reports import formatting
from pipelines.reports.elements import Entry, Folded, Table
from pipelines.reports.figures import label
from pipelines.reports.record import Artifact, batches, sampled

__all__ = ["Dropped", "Drops", "excerpt"]

_SAMPLES = 20  # dropped documents shown for each reason
_EXCERPT_CHARS = 320
_DUPLICATE = "_duplicate"  # suffix of the reasons whose detail is the id of the kept document
_CLUSTER_SIZES = ((2, 2), (3, 5), (6, 10), (11, 50), (51, None))

Drops = Counter[tuple[str, str]]  # (reason, source) -> documents


@dataclass(frozen=True)
class _Sample:
    """A dropped document. key: hash of its id, by which it was drawn."""

    key: bytes
    id: str
    source: str
    detail: str
    text: str


@dataclass
class Dropped:
    """All dropped documents, counted and sampled in one pass. Memory grows only with the near-duplicate clusters."""

    artifact: Artifact
    drops: Drops = field(default_factory=Counter)
    _samples: dict[str, list[_Sample]] = field(default_factory=dict)
    _near_duplicates: Counter[str] = field(default_factory=Counter)  # id of the kept document -> documents dropped

    def __post_init__(self) -> None:
        for batch in batches(self.artifact.parts("dropped/*.parquet"), ["id", "source", "reason", "detail", "text"]):
            reasons, details = (batch.column(name).to_pylist() for name in ("reason", "detail"))
            self.drops.update(zip(reasons, batch.column("source").to_pylist(), strict=True))
            self._near_duplicates.update(
                detail for reason, detail in zip(reasons, details, strict=True) if reason == "near_duplicate"
            )
            for reason, drawn in _draw(batch, "reason").items():
                samples = self._samples.get(reason, [])
                for key, row in drawn:
                    columns = (batch.column(name)[row].as_py() or "" for name in ("id", "source", "detail", "text"))
                    samples.append(_Sample(key, *columns))
                self._samples[reason] = sorted(samples, key=lambda sample: sample.key)[:_SAMPLES]

    def samples(self, reasons: Iterable[str]) -> list[Folded]:
        """At most 20 documents per reason, each next to a kept one: for duplicates the original, else a sampled one."""
        duplicates = [name for name in self._samples if name.endswith(_DUPLICATE)]
        originals = self._excerpts_of({sample.detail for name in duplicates for sample in self._samples[name]})
        kept = self._sample_kept()
        elements = []
        for reason in reasons:
            entries, used = [], Counter[str]()
            for sample in self._samples[reason]:
                beside = ("kept instead", originals.get(sample.detail, ""))
                if reason not in duplicates:
                    candidates = kept.get(sample.source, [""])
                    beside = ("a kept document", candidates[used[sample.source] % len(candidates)])
                    used[sample.source] += 1
                size = formatting.count(len(sample.text))
                facts = (("source", sample.source), ("detail", sample.detail), ("characters", size), beside)
                entries.append(Entry(sample.id, excerpt(sample.text), [fact for fact in facts if fact[1]]))
            elements.append(Folded(f"{label(reason)} · {len(entries)} shown", entries))
        return elements

    def _excerpts_of(self, ids: set[str]) -> dict[str, str]:
        """Id -> excerpt of the kept document. Reads all documents, unless there are no ids."""
        excerpts: dict[str, str] = {}
        wanted = pa.array(sorted(ids), pa.string())
        for batch in batches(self.artifact.parts("documents/*.parquet"), ["id", "text"]) if ids else ():
            matching = batch.filter(pc.is_in(batch.column("id"), wanted))
            texts = zip(matching.column("id").to_pylist(), matching.column("text").to_pylist(), strict=True)
            excerpts.update((id, excerpt(text)) for id, text in texts)
        return excerpts

    def _sample_kept(self) -> dict[str, list[str]]:
        """Source -> excerpts of 20 kept documents, drawn from the first batch of each sampled part."""
        kept: dict[str, list[tuple[bytes, str]]] = {}
        for part in sampled(self.artifact.parts("documents/*.parquet")):
            batch = next(batches([part], ["id", "source", "text"]), None)
            if batch is None:
                continue
            for source, drawn in _draw(batch, "source").items():
                more = [(key, excerpt(batch.column("text")[row].as_py())) for key, row in drawn]
                kept[source] = sorted(kept.get(source, []) + more)[:_SAMPLES]
        return {source: [text for _, text in pairs] for source, pairs in kept.items()}

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


def _draw(batch: pa.RecordBatch, column: str) -> dict[str, list[tuple[bytes, int]]]:
    """For each value of the column, (key, row) of the 20 rows with the lowest keys. A key is the hash of the id."""
    drawn: dict[str, list[tuple[bytes, int]]] = {}
    values, ids = (batch.column(name).to_pylist() for name in (column, "id"))
    for row, (value, id) in enumerate(zip(values, ids, strict=True)):
        key = hashlib.blake2b(str(id).encode(), digest_size=8).digest()
        drawn.setdefault(value, []).append((key, row))
    return {value: sorted(pairs)[:_SAMPLES] for value, pairs in drawn.items()}


def excerpt(text: str) -> str:
    """The first 320 characters, with an ellipsis if there are more."""
    return text if len(text) <= _EXCERPT_CHARS else text[:_EXCERPT_CHARS].rstrip() + " …"
