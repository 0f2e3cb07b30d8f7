"""Lengths of many things, told apart by source: gathered batch by batch, shown as a picture and as quantiles."""

import numpy as np
import pyarrow as pa

from pipelines.reports import formatting
from pipelines.reports.elements import Element, Table
from pipelines.reports.pictures import COLOURS, lengths

__all__ = ["Lengths"]


class Lengths:
    """Takes lengths as they come. Memory is 4 bytes a length, so what is added has to be bounded (`record.sampled`)."""

    def __init__(self) -> None:
        self._found: dict[str, list[np.ndarray]] = {}

    def add(self, names: pa.Array, values: pa.Array) -> None:
        """names: (N,) strings, what to tell apart by. values: (N,) lengths, whole numbers."""
        numbers = values.to_numpy(zero_copy_only=False).astype(np.int32)
        encoded = names.dictionary_encode()
        places = encoded.indices.to_numpy()
        for place, name in enumerate(encoded.dictionary.to_pylist()):
            self._found.setdefault(name, []).append(numbers[places == place])

    def elements(self, title: str, *, unit: str, note: str = "") -> tuple[Element, ...]:
        """A picture and a table of quantiles; nothing where nothing was added. unit: what is counted, in plural."""
        series = {name: np.concatenate(self._found[name]) for name in sorted(self._found)}
        if not series:
            return ()
        more = f" The picture has the first {COLOURS} sources." if len(series) > COLOURS else ""
        table = Table(
            f"Quantiles of the length, in {unit}",
            ("source", "measured", "10 %", "median", "90 %", "longest"),
            tuple((name, *_quantiles(array)) for name, array in series.items()),
            "lrrrrr",
        )
        return lengths(title, series, x=unit, note=note + _AREA + more), table


_AREA = "Outlines of equal area, one for each source."


def _quantiles(array: np.ndarray) -> tuple[str, ...]:
    inner = np.quantile(array, (0.1, 0.5, 0.9), method="inverted_cdf")
    return tuple(formatting.count(number) for number in (array.size, *inner, array.max()))
