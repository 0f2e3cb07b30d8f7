"""Distributions over documents, types and labels: lengths by source, ranked counts."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from korbert.messages import Message
from korbert.pipelines.artifacts import batches, formatting, sample_parts, stream
from korbert.pipelines.reports.drawing.elements import Bar, Bars, TableElement


def length_table(
    files: list[Path], column: str, length: Callable[[pa.Array], pa.Array], unit: Message
) -> Iterator[TableElement]:
    """Yields a table of the quantiles of lengths by source, sorted by name; nothing without documents.

    files: Parquet files or Arrow streams, of which a sample is read, as all lengths are held in memory. length: the
    function of pyarrow.compute that measures the column. unit: what the lengths count, in the plural.
    """
    parts, note = sample_parts(files)
    rows = stream(parts) if parts and parts[0].suffix == ".arrow" else batches(parts, ["source", column])
    tables = [pa.table({"source": part.column("source"), "length": length(part.column(column))}) for part in rows]
    shown = []
    for source, lengths in pa.concat_tables(tables).to_pandas().groupby("source")["length"] if tables else ():
        quantiles = np.quantile(lengths, (0.1, 0.5, 0.9), method="inverted_cdf")
        shown.append((source, *map(formatting.count, (lengths.size, *quantiles, lengths.max()))))
    if shown:
        yield TableElement(
            Message("Length of documents in {unit}", unit=unit),
            (Message("source"), Message("documents"), "10 %", Message("median"), "90 %", Message("longest")),
            shown,
            "nrrrrr",
            note=note,
        )


def ranked_bars(
    title: str, counts: Iterable[tuple[str, int]], show: Callable[[int], str], *, note: str = "", korean: bool = False
) -> Iterator[Bars]:
    """Yields bars whose widths are relative to the first count, which is the largest; nothing without counts.

    show: turns a count into the text of its bar.
    """
    if counts := list(counts):
        bars = [Bar(name, formatting.ratio(number, counts[0][1]), show(number)) for name, number in counts]
        yield Bars(title, bars, korean=korean, note=note)


def number_and_share(total: int) -> Callable[[int], str]:
    """Returns a function that shows a count with its share of the total: 11, 50.0 %."""
    return lambda number: f"{formatting.count(number)}, {formatting.percent(number / total)}"
