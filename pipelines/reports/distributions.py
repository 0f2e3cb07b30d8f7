"""Document lengths by source: collected batch by batch, shown as a histogram and as quantiles."""

import numpy as np
import pyarrow as pa

from pipelines.reports import formatting
from pipelines.reports.elements import Element, Table
from pipelines.reports.pictures import COLOURS, lengths

__all__ = ["Lengths"]


class Lengths:
    """Collects lengths. Memory: 4 bytes per length, so callers must limit what they add (`record.sampled`)."""

    def __init__(self) -> None:
        self._arrays: dict[str, list[np.ndarray]] = {}

    def add(self, sources: pa.Array, values: pa.Array) -> None:
        """Adds lengths. sources: (N,) strings. values: (N,) integers."""
        numbers = values.to_numpy(zero_copy_only=False).astype(np.int32)
        encoded = sources.dictionary_encode()
        indices = encoded.indices.to_numpy()
        for index, source in enumerate(encoded.dictionary.to_pylist()):
            self._arrays.setdefault(source, []).append(numbers[indices == index])

    def elements(self, title: str, *, unit: str, note: str = "") -> tuple[Element, ...]:
        """A histogram and a table of quantiles; empty if no length was added. unit: of the lengths, plural."""
        series = {source: np.concatenate(self._arrays[source]) for source in sorted(self._arrays)}
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
        table = Table(f"Length quantiles, in {unit}", head, tuple(rows), "lrrrrr")
        return lengths(title, series, x=unit, note=note), table
