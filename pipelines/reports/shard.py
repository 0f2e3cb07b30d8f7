"""The page of `shard`: training and held-out pieces by source, document lengths, piece frequencies."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.reports import formatting
from pipelines.reports.distributions import Lengths
from pipelines.reports.elements import Bar, Bars, Element, Headline, Section, Story, Table
from pipelines.reports.pictures import Line, curves
from pipelines.reports.record import Artifact, batches, num_rows, parts_note, sampled, stream

__all__ = ["headlines", "story"]

_TOP = 30  # pieces in the bar chart
_RANKS = 160  # points of a curve over ranks, evenly spaced on its logarithmic axis
_RARE = 20  # pieces seen less often are hardly learned

_SPLITS = (("train", "training"), ("heldout", "held out"))


@dataclass
class _Split:
    """Documents and pieces of one split, by source."""

    documents: Counter[str] = field(default_factory=Counter)
    pieces: Counter[str] = field(default_factory=Counter)


def headlines(artifact: Artifact) -> tuple[Headline, ...]:
    train, heldout = (_split(artifact, name) for name, _ in _SPLITS)
    return (
        Headline(formatting.compact(train.pieces.total()), "training pieces"),
        Headline(formatting.compact(train.documents.total()), "training documents"),
        Headline(formatting.compact(heldout.pieces.total()), "held-out pieces"),
    )


def story(artifact: Artifact) -> Story:
    train, heldout = (_split(artifact, name) for name, _ in _SPLITS)
    mean = formatting.ratio(train.pieces.total(), train.documents.total())
    heldout_share = formatting.ratio(heldout.pieces.total(), train.pieces.total() + heldout.pieces.total())
    return Story(
        title=f"{formatting.compact(train.pieces.total())} training pieces",
        lede=f"{formatting.decimal(mean, 1)} pieces per document on average; "
        f"{formatting.percent(heldout_share)} of all pieces are held out.",
        sections=(
            Section("Sources", tuple(_sources(train, heldout))),
            Section("Lengths", _lengths(artifact)),
            Section("Pieces", tuple(_pieces(artifact))),
        ),
    )


def _split(artifact: Artifact, name: str) -> _Split:
    """Totals over all shards. Reads only the offsets of the documents, not their ids."""
    split = _Split()
    for batch in stream(artifact.parts(f"{name}/*.arrow")):
        table = pa.table({"source": batch.column("source"), "pieces": pc.list_value_length(batch.column("input_ids"))})
        for row in table.group_by("source").aggregate([("pieces", "sum"), ("pieces", "count")]).to_pylist():
            split.documents[row["source"]] += row["pieces_count"]
            split.pieces[row["source"]] += row["pieces_sum"]
    return split


def _sources(train: _Split, heldout: _Split) -> Iterator[Element]:
    pieces = train.pieces + heldout.pieces
    names = sorted(train.pieces | heldout.pieces)
    largest = max(pieces.values(), default=0)
    labels = tuple(label for _, label in _SPLITS)
    bars = tuple(
        Bar(
            name,
            tuple(formatting.ratio(split.pieces[name], largest) for split in (train, heldout)),
            formatting.compact(pieces[name]),
        )
        for name in names
    )
    yield Bars("Pieces by source", bars, legend=labels)
    rows = tuple(
        (
            label,
            name,
            formatting.count(split.documents[name]),
            formatting.count(split.pieces[name]),
            formatting.decimal(formatting.ratio(split.pieces[name], split.documents[name]), 1),
        )
        for split, label in zip((train, heldout), labels, strict=True)
        for name in names
        if split.documents[name]
    )
    yield Table("Documents and pieces", ("split", "source", "documents", "pieces", "pieces / document"), rows, "llrrr")


def _lengths(artifact: Artifact) -> tuple[Element, ...]:
    parts = artifact.parts("train/*.arrow")
    read = sampled(parts)
    lengths = Lengths()
    for batch in stream(read):
        lengths.add(batch.column("source"), pc.list_value_length(batch.column("input_ids")))
    return lengths.elements("Pieces per document", unit="pieces", note=parts_note(len(read), len(parts)))


def _pieces(artifact: Artifact) -> Iterator[Element]:
    parts = artifact.parts("pieces.parquet")
    if not num_rows(parts):
        return
    table = pa.Table.from_batches(batches(parts, ["piece", "count"]))  # one row per vocabulary entry
    table = table.sort_by([("count", "descending"), ("piece", "ascending")])
    counts = table.column("count").to_numpy()
    seen = counts[counts > 0]
    if seen.size:
        ranks = np.unique(np.geomspace(1, seen.size, _RANKS).round().astype(np.int64))
        yield curves(
            "Rank and frequency",
            [Line("pieces", ranks.tolist(), seen[ranks - 1].tolist())],
            x="rank",
            y="count",
            log_x=True,
            log_y=True,
            note="Training shards, most frequent piece first.",
        )

    usage = (
        ("in the vocabulary", len(counts)),
        ("seen at least once", int((counts > 0).sum())),
        (f"seen fewer than {_RARE} times", int((counts < _RARE).sum())),
    )
    rows = tuple((name, formatting.count(number), formatting.percent(number / len(counts))) for name, number in usage)
    note = "Special, reserved and byte entries included."
    yield Table("Vocabulary usage", ("entries", "number", "share"), rows, "lrr", note)

    top = [row for row in table.slice(0, _TOP).to_pylist() if row["count"]]
    total = int(counts.sum())
    bars = tuple(
        Bar(row["piece"], (row["count"] / top[0]["count"],), formatting.percent(row["count"] / total, 2), korean=True)
        for row in top
    )
    yield Bars("Most frequent pieces", bars, note="Share of all training pieces.")
