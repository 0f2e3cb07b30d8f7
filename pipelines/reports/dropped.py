"""Examples of documents that `clean` dropped, each next to a kept one, and the sizes of near-duplicate clusters."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.reports import formatting
from pipelines.reports.elements import Entry, Folded, Table
from pipelines.reports.figures import label
from pipelines.reports.record import Artifact, batches, sampled

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
        originals = self._excerpts_of({row["detail"] for name in duplicates for _, row in self._samples[name]})
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

    def _excerpts_of(self, ids: set[str]) -> dict[str, str]:
        """Id -> excerpt of the kept document. Reads all documents, unless there are no ids."""
        excerpts: dict[str, str] = {}
        wanted = pa.array(sorted(ids), pa.string())
        for batch in batches(self._artifact.parts("documents/*.parquet"), ["id", "text"]) if ids else ():
            matching = batch.filter(pc.is_in(batch.column("id"), wanted)).to_pylist()
            excerpts.update((row["id"], excerpt(row["text"])) for row in matching)
        return excerpts

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
