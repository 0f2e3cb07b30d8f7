"""Distributions over documents, types and labels: lengths by source, ranked counts, groups of equal size."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from korbert.pipelines.reports import formatting
from korbert.pipelines.reports.elements import Bar, Bars, Element, Table
from korbert.pipelines.reports.pictures import COLOURS, lengths

_GROUPS = 5


def by_source(batches: Iterable[tuple[pa.Array, Any]]) -> dict[str, np.ndarray]:
    """The numbers of each source, sorted by name: (N,). batches: (N,) names of sources, (N,) numbers.

    Memory: that of the numbers, so callers must limit what they read (`record.sampled`).
    """
    tables = [pa.table({"source": sources, "number": numbers}) for sources, numbers in batches]
    numbers = pa.concat_tables(tables).to_pandas().groupby("source")["number"] if tables else ()
    return {source: of_source.to_numpy() for source, of_source in numbers}


def length_elements(
    title: str, batches: Iterable[tuple[pa.Array, pa.Array]], *, unit: str, note: str = ""
) -> tuple[Element, ...]:
    """A histogram and a table of quantiles; empty without lengths. batches: as for by_source. unit: plural."""
    series = by_source(batches)
    if not series:
        return ()
    note += "All outlines have the same area."
    if len(series) > COLOURS:
        note += f" Only the first {COLOURS} sources are drawn."
    rows = []
    for source, array in series.items():
        quantiles = np.quantile(array, (0.1, 0.5, 0.9), method="inverted_cdf")
        rows.append((source, *map(formatting.count, (array.size, *quantiles, array.max()))))
    head = ("source", "documents", "10 %", "median", "90 %", "longest")
    table = Table(f"Length quantiles, in {unit}", head, rows, "lrrrrr")
    return lengths(title, series, x=unit, note=note), table


def most_frequent(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts, largest first, equal ones in the order of their names."""
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def ranked_bars(
    title: str, counts: Iterable[tuple[str, int]], show: Callable[[int], str], *, note: str = "", korean: bool = False
) -> Bars:
    """Bars whose widths are relative to the first count, the largest. show: turns a count into the text of its bar."""
    counts = list(counts)
    bars = [Bar(name, (formatting.ratio(number, counts[0][1]),), show(number)) for name, number in counts]
    return Bars(title, bars, korean=korean, note=note)


def number_and_share(total: int) -> Callable[[int], str]:
    """Shows a count with its share of the total: 11, 50.0 %."""
    return lambda number: f"{formatting.count(number)}, {formatting.percent(number / total)}"


def equal_groups(values: np.ndarray, show: Callable[[float], str]) -> Iterator[tuple[str, np.ndarray]]:
    """About five groups with the same number of rows, by value: the range of each as text, and its mask, (N,) bool."""
    ends = np.unique(np.quantile(values, np.linspace(0, 1, _GROUPS + 1)[1:], method="higher"))
    group = np.searchsorted(ends, values)
    for number in range(len(ends)):
        inside = group == number
        first, last = show(values[inside].min()), show(values[inside].max())
        yield first if first == last else f"{first}–{last}", inside
