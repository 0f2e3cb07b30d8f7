"""Examples of what `clean` dropped, each beside what it kept, and how large the clusters of near-duplicates are."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.reports import formatting
from pipelines.reports.elements import Entry, Folded, Table
from pipelines.reports.labels import label
from pipelines.reports.record import Artifact, batches, sampled

__all__ = ["Dropped", "Drops", "excerpt"]

_SAMPLES = 20  # dropped documents shown for each reason
_EXCERPT_CHARS = 320
_DUPLICATE = "_duplicate"  # reasons whose detail is the id of what was kept
_SIZES = ((2, 2), (3, 5), (6, 10), (11, 50), (51, None))

Drops = Counter[tuple[str, str]]  # (reason, source) -> documents


@dataclass(frozen=True)
class _Sample:
    """A dropped row. key: by which it was drawn."""

    key: bytes
    id: str
    source: str
    detail: str
    text: str


@dataclass
class Dropped:
    """All dropped rows, counted and sampled in one pass; memory goes by the number of near-duplicates kept."""

    artifact: Artifact
    drops: Drops = field(default_factory=Counter)
    _chosen: dict[str, list[_Sample]] = field(default_factory=dict)
    _clusters: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for batch in batches(self.artifact.parts("dropped/*.parquet"), ["id", "source", "reason", "detail", "text"]):
            self._take(batch)

    def _take(self, batch: pa.RecordBatch) -> None:
        reasons, details = (batch.column(name).to_pylist() for name in ("reason", "detail"))
        self.drops.update(zip(reasons, batch.column("source").to_pylist(), strict=True))
        self._clusters.update(detail for reason, detail in zip(reasons, details, strict=True) if _is_near(reason))
        for reason, places in _places(batch, "reason").items():
            drawn = self._chosen.get(reason, []) + [_sample(batch, row, key) for key, row in places]
            self._chosen[reason] = sorted(drawn, key=lambda sample: sample.key)[:_SAMPLES]

    def samples(self, reasons: Iterable[tuple[str, int]]) -> tuple[Folded, ...]:
        """For each reason, at most 20 of its rows, each with a kept document beside it.

        Of duplicates that is what was kept instead, of others one of the same source, drawn as they were.
        """
        instead = self._texts_of(
            {s.detail for reason, found in self._chosen.items() if _is_twin(reason) for s in found}
        )
        kept = self._kept()
        elements = []
        for reason, _ in reasons:
            entries, turns = [], Counter[str]()
            for sample in self._chosen[reason]:
                others = kept.get(sample.source, [""])
                other = others[turns[sample.source] % len(others)]
                turns[sample.source] += 1
                twin = _is_twin(reason)
                beside = ("kept instead", instead.get(sample.detail, "")) if twin else ("one that was kept", other)
                entries.append(_entry(sample, beside))
            elements.append(Folded(f"{label(reason)} · {len(entries)} shown", tuple(entries)))
        return tuple(elements)

    def _texts_of(self, ids: set[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        wanted = pa.array(sorted(ids), pa.string())
        for batch in batches(self.artifact.parts("documents/*.parquet"), ["id", "text"]) if ids else ():
            some = batch.filter(pc.is_in(batch.column("id"), wanted))
            texts = zip(some.column("id").to_pylist(), some.column("text").to_pylist(), strict=True)
            found.update((id, excerpt(text)) for id, text in texts)
        return found

    def _kept(self) -> dict[str, list[str]]:
        """Source -> the beginnings of 20 kept documents, of some thousands a part."""
        drawn: dict[str, list[tuple[bytes, str]]] = {}
        for part in sampled(self.artifact.parts("documents/*.parquet")):
            batch = next(batches([part], ["id", "source", "text"]), None)
            if batch is None:
                continue
            for source, places in _places(batch, "source").items():
                more = [(key, excerpt(batch.column("text")[row].as_py())) for key, row in places]
                drawn[source] = sorted(drawn.get(source, []) + more)[:_SAMPLES]
        return {source: [text for _, text in pairs] for source, pairs in drawn.items()}

    def clusters(self) -> Table | None:
        """Clusters of near-duplicates by size; None where there are none."""
        sizes = Counter(dropped + 1 for dropped in self._clusters.values())
        if not sizes:
            return None
        rows = []
        for least, most in _SIZES:
            name = f"{least}" if least == most else f"{least} to {most}" if most else f"{least} and more"
            among = [size for size in sizes if least <= size and (most is None or size <= most)]
            count = sum(sizes[size] for size in among)
            rows.append(
                (name, formatting.count(count), formatting.count(sum((size - 1) * sizes[size] for size in among)))
            )
        return Table(
            "Clusters of near-duplicates",
            ("documents", "clusters", "dropped of them"),
            tuple(rows),
            "lrr",
            f"The largest has {formatting.count(max(sizes))} documents, of which one was kept.",
        )


def _is_twin(reason: str) -> bool:
    return reason.endswith(_DUPLICATE)


def _is_near(reason: str) -> bool:
    return reason == "near_duplicate"


def _places(batch: pa.RecordBatch, column: str) -> dict[str, list[tuple[bytes, int]]]:
    """The rows of a batch that might be drawn: for each value of the column, the 20 lowest keys and where they are."""
    places: dict[str, list[tuple[bytes, int]]] = {}
    for row, (value, name) in enumerate(zip(*(batch.column(one).to_pylist() for one in (column, "id")), strict=True)):
        key = hashlib.blake2b(str(name).encode(), digest_size=8).digest()
        places.setdefault(value, []).append((key, row))
    return {value: sorted(pairs)[:_SAMPLES] for value, pairs in places.items()}


def _sample(batch: pa.RecordBatch, row: int, key: bytes) -> _Sample:
    id, source, detail, text = (batch.column(name)[row].as_py() or "" for name in ("id", "source", "detail", "text"))
    return _Sample(key, id, source, detail, text)


def _entry(sample: _Sample, beside: tuple[str, str]) -> Entry:
    size = formatting.count(len(sample.text))
    facts = (("source", sample.source), ("detail", sample.detail), ("characters", size), beside)
    return Entry(sample.id, excerpt(sample.text), tuple(fact for fact in facts if fact[1]))


def excerpt(text: str) -> str:
    """The beginning of a text, marked where there is more."""
    return text if len(text) <= _EXCERPT_CHARS else text[:_EXCERPT_CHARS].rstrip() + " …"
