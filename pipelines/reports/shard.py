"""The page of `shard`: how many pieces there are to learn from, from which sources, in how long documents."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.reports import formatting
from pipelines.reports.elements import Bar, Bars, Element, Headline, Section, Story, Table
from pipelines.reports.lengths import Lengths
from pipelines.reports.pictures import Line, curves
from pipelines.reports.record import Artifact, batches, num_rows, parts_note, sampled, stream

__all__ = ["headlines", "story"]

_TOP = 30  # pieces shown in the bar chart
_RANKS = 160
_SEEN_SELDOM = 20  # a piece met less often than this has hardly been learned

_SPLITS = (("train", "to learn from"), ("heldout", "held out"))


@dataclass
class _Split:
    """What is in the shards of one split, by source."""

    documents: Counter[str] = field(default_factory=Counter)
    pieces: Counter[str] = field(default_factory=Counter)


def headlines(artifact: Artifact) -> tuple[Headline, ...]:
    train, heldout = (_split(artifact, name) for name, _ in _SPLITS)
    return (
        Headline(formatting.compact(train.pieces.total()), "pieces to learn from"),
        Headline(formatting.compact(train.documents.total()), "documents"),
        Headline(formatting.compact(heldout.pieces.total()), "pieces held out"),
    )


def story(artifact: Artifact) -> Story:
    splits = {name: _split(artifact, name) for name, _ in _SPLITS}
    train, heldout = splits["train"], splits["heldout"]
    every = train.pieces.total() + heldout.pieces.total()
    mean = formatting.ratio(train.pieces.total(), train.documents.total())
    return Story(
        title=f"{formatting.compact(train.pieces.total())} pieces to learn from",
        lede=f"{formatting.decimal(mean, 1)} a document on average. Of all pieces, "
        f"{formatting.percent(formatting.ratio(heldout.pieces.total(), every))} are held out.",
        sections=(
            Section("Sources", tuple(_sources(splits))),
            Section("Lengths", _lengths(artifact)),
            Section("Pieces", tuple(_pieces(artifact))),
        ),
    )


def _split(artifact: Artifact, name: str) -> _Split:
    """Sums over all shards: the ids themselves are not read, only where each document's begin."""
    split = _Split()
    for batch in stream(artifact.parts(f"{name}/*.arrow")):
        table = pa.table({"source": batch.column("source"), "pieces": pc.list_value_length(batch.column("input_ids"))})
        for row in table.group_by("source").aggregate([("pieces", "sum"), ("pieces", "count")]).to_pylist():
            split.documents[row["source"]] += row["pieces_count"]
            split.pieces[row["source"]] += row["pieces_sum"]
    return split


def _sources(splits: dict[str, _Split]) -> Iterator[Element]:
    names = sorted(splits["train"].pieces | splits["heldout"].pieces)
    most = max((sum(split.pieces[name] for split in splits.values()) for name in names), default=0)
    bars = tuple(
        Bar(
            name,
            tuple(formatting.ratio(split.pieces[name], most) for split in splits.values()),
            formatting.compact(sum(split.pieces[name] for split in splits.values())),
        )
        for name in names
    )
    yield Bars("Pieces by source", bars, legend=tuple(label for _, label in _SPLITS))
    rows = [
        (label, name, *_row(split.documents[name], split.pieces[name]))
        for split, label in zip(splits.values(), (label for _, label in _SPLITS), strict=True)
        for name in names
        if split.documents[name]
    ]
    yield Table(
        "Documents and pieces", ("split", "source", "documents", "pieces", "pieces / document"), tuple(rows), "llrrr"
    )


def _row(documents: int, pieces: int) -> tuple[str, str, str]:
    return (
        formatting.count(documents),
        formatting.count(pieces),
        formatting.decimal(formatting.ratio(pieces, documents), 1),
    )


def _lengths(artifact: Artifact) -> tuple[Element, ...]:
    parts: list[Path] = artifact.parts("train/*.arrow")
    read = sampled(parts)
    measured = Lengths()
    for batch in stream(read):
        measured.add(batch.column("source"), pc.list_value_length(batch.column("input_ids")))
    return measured.elements("Pieces in a document", unit="pieces", note=parts_note(len(read), len(parts)))


def _pieces(artifact: Artifact) -> Iterator[Element]:
    parts = artifact.parts("pieces.parquet")
    if not num_rows(parts):
        return
    table = pa.Table.from_batches(batches(parts, ["piece", "count"]))  # as long as the vocabulary, whatever the corpus
    order = table.sort_by([("count", "descending"), ("piece", "ascending")])
    counts = order.column("count").to_numpy()
    seen = counts[counts > 0]
    if seen.size:
        ranks = np.unique(np.geomspace(1, seen.size, _RANKS).round().astype(np.int64))
        yield curves(
            "How often each piece is met",
            [Line("pieces", ranks.tolist(), seen[ranks - 1].tolist())],
            x="rank",
            y="count",
            log_x=True,
            log_y=True,
            note="Over the shards to learn from, the commonest piece first.",
        )
    yield _use(counts)
    yield _commonest(order.slice(0, _TOP), int(counts.sum()))


def _use(counts: np.ndarray) -> Table:
    measures = (
        ("in the table", len(counts)),
        ("met at least once", int((counts > 0).sum())),
        (f"met fewer than {_SEEN_SELDOM} times", int((counts < _SEEN_SELDOM).sum())),
    )
    rows = tuple(
        (label, formatting.count(number), formatting.percent(number / len(counts))) for label, number in measures
    )
    note = "Special, reserved and byte entries are among them."
    return Table("Use of the vocabulary", ("entries", "number", "share"), rows, "lrr", note)


def _commonest(first: pa.Table, total: int) -> Bars:
    rows = [row for row in first.to_pylist() if row["count"]]
    bars = tuple(
        Bar(row["piece"], (row["count"] / rows[0]["count"],), formatting.percent(row["count"] / total, 2), korean=True)
        for row in rows
    )
    return Bars("The commonest pieces", bars, note="Share of all pieces to learn from.")
