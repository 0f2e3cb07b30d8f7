"""Distributions over documents, types and labels: lengths by source, ranked counts."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from korbert.messages import Message
from korbert.pipelines.artifacts import formatting
from korbert.pipelines.reports.drawing.elements import Bar, Bars, Table


def length_table(batches: Iterable[tuple[pa.Array, pa.Array]], unit: str, note: str) -> Iterator[Table]:
    """Quantiles of lengths by source, sorted by name; nothing without lengths.

    batches: (N,) names of sources, (N,) lengths. unit: a message, in plural. Memory: that of the lengths, so callers
    must limit what they read (`record.sampled`).
    """
    tables = [pa.table({"source": sources, "length": lengths}) for sources, lengths in batches]
    rows = []
    for source, lengths in pa.concat_tables(tables).to_pandas().groupby("source")["length"] if tables else ():
        quantiles = np.quantile(lengths, (0.1, 0.5, 0.9), method="inverted_cdf")
        rows.append((source, *map(formatting.count, (lengths.size, *quantiles, lengths.max()))))
    if rows:
        head = (Message("source"), Message("documents"), "10 %", Message("median"), "90 %", Message("longest"))
        yield Table(Message("Length of documents in {unit}", unit=unit), head, rows, "nrrrrr", note=note)


def ranked_bars(
    title: str, counts: Iterable[tuple[str, int]], show: Callable[[int], str], *, note: str = "", korean: bool = False
) -> Bars:
    """Bars whose widths are relative to the first count, the largest. show: turns a count into the text of its bar."""
    counts = list(counts)
    bars = [Bar(name, formatting.ratio(number, counts[0][1]), show(number)) for name, number in counts]
    return Bars(title, bars, korean=korean, note=note)


def number_and_share(total: int) -> Callable[[int], str]:
    """Shows a count with its share of the total: 11, 50.0 %."""
    return lambda number: f"{formatting.count(number)}, {formatting.percent(number / total)}"
