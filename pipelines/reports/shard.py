"""The page of `shard`: training and held-out pieces by source, document lengths, piece frequencies."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.reports import formatting
from pipelines.reports.distributions import Lengths, rank_curve, ranked_bars, ranks
from pipelines.reports.elements import Bar, Bars, Element, Section, Story, Table, Use
from pipelines.reports.figures import Figure
from pipelines.reports.record import Artifact, batches, num_rows, sampled, stream

_TOP = 30  # pieces in the bar chart
_RARE = 20  # pieces seen less often are hardly learned
_SPLITS = {"train": "training", "heldout": "held out"}


@dataclass
class _Split:
    """Documents and pieces of one split, by source."""

    documents: Counter[str] = field(default_factory=Counter)
    pieces: Counter[str] = field(default_factory=Counter)


def splits_of(artifact: Artifact) -> list[_Split]:
    """Totals over all shards. Reads only the offsets of the documents, not their ids."""
    splits = []
    for name in _SPLITS:
        split = _Split()
        for batch in stream(artifact.parts(f"{name}/*.arrow")):
            sizes = pc.list_value_length(batch.column("input_ids"))
            table = pa.table({"source": batch.column("source"), "pieces": sizes})
            for row in table.group_by("source").aggregate([("pieces", "sum"), ("pieces", "count")]).to_pylist():
                split.documents[row["source"]] += row["pieces_count"]
                split.pieces[row["source"]] += row["pieces_sum"]
        splits.append(split)
    return splits


def use(folder: Path) -> Use:
    """Usage: how far they reach in pretraining, and the counts of their pieces."""
    recipe = shlex.quote(folder.absolute().parent.name)
    counts = "import pandas as pd\nprint(pd.read_parquet({}).nlargest(20, 'count'))"
    return Use("pieces.parquet", f"korbert plan {recipe} --hours 8".replace("{", "{{").replace("}", "}}"), counts)


def figures(artifact: Artifact) -> Sequence[Figure]:
    train, heldout = splits_of(artifact)
    return (
        Figure(formatting.compact(train.pieces.total()), "training pieces"),
        Figure(formatting.compact(train.documents.total()), "training documents"),
        Figure(formatting.compact(heldout.pieces.total()), "held-out pieces"),
    )


def story(artifact: Artifact) -> Story:
    train, heldout = splits_of(artifact)
    pieces, heldout_pieces = train.pieces.total(), heldout.pieces.total()
    mean = formatting.decimal(formatting.ratio(pieces, train.documents.total()), 1)
    heldout_share = formatting.percent(formatting.ratio(heldout_pieces, pieces + heldout_pieces))
    return Story(
        title=f"{formatting.compact(pieces)} training pieces",
        lede=f"{mean} pieces per document on average; {heldout_share} of all pieces are held out.",
        sections=(
            Section("Sources", source_elements(train, heldout)),
            Section("Lengths", length_elements(artifact)),
            Section("Pieces", list(piece_elements(artifact))),
        ),
    )


def source_elements(train: _Split, heldout: _Split) -> Sequence[Element]:
    pieces = train.pieces + heldout.pieces
    largest = max(pieces.values(), default=0)
    bars, rows = [], []
    for source in sorted(pieces):
        parts = [formatting.ratio(split.pieces[source], largest) for split in (train, heldout)]
        bars.append(Bar(source, parts, formatting.compact(pieces[source])))
    for split, name in zip((train, heldout), _SPLITS.values(), strict=True):
        for source in sorted(split.documents):
            counts = (split.documents[source], split.pieces[source])
            mean = formatting.decimal(counts[1] / counts[0], 1)
            rows.append((name, source, *map(formatting.count, counts), mean))
    head = ("split", "source", "documents", "pieces", "pieces / document")
    return (
        Bars("Pieces by source", bars, legend=tuple(_SPLITS.values())),
        Table("Documents and pieces", head, rows, "llrrr"),
    )


def length_elements(artifact: Artifact) -> Sequence[Element]:
    parts, note = sampled(artifact.parts("train/*.arrow"))
    lengths = Lengths()
    for batch in stream(parts):
        lengths.add(batch.column("source"), pc.list_value_length(batch.column("input_ids")))
    return lengths.elements("Pieces per document", unit="pieces", note=note)


def piece_elements(artifact: Artifact) -> Iterator[Element]:
    parts = artifact.parts("pieces.parquet")
    if not num_rows(parts):
        return
    table = pa.Table.from_batches(batches(parts, ["piece", "count"]))  # one row per vocabulary entry
    table = table.sort_by([("count", "descending"), ("piece", "ascending")])
    counts = table.column("count").to_numpy()
    seen = int((counts > 0).sum())
    if seen:
        at = ranks(seen)
        yield rank_curve("pieces", at, counts[at - 1], note="Training shards, most frequent piece first.")
    rows = [
        (name, formatting.count(number), formatting.percent(number / len(counts)))
        for name, number in (
            ("in the vocabulary", len(counts)),
            ("seen at least once", seen),
            (f"seen fewer than {_RARE} times", int((counts < _RARE).sum())),
        )
    ]
    note = "Special, reserved and byte entries included."
    yield Table("Vocabulary usage", ("entries", "number", "share"), rows, "lrr", note=note)
    total = int(counts.sum())
    yield ranked_bars(
        "Most frequent pieces",
        ((row["piece"], row["count"]) for row in table.slice(0, min(_TOP, seen)).to_pylist()),
        lambda count: formatting.percent(count / total, 2),
        note="Share of all training pieces.",
        korean=True,
    )
