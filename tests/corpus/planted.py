"""Documents in parts as the first step of `clean` leaves them, and texts of a known similarity."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from korbert.corpus.cleaning.features import DocumentMeasure, measure_rows
from korbert.corpus.execution.parts import write_parquet

WORDS = [
    f"{noun}{ending}" for noun in ("강", "산", "들", "바다", "하늘", "길", "집") for ending in "은이을에도와로만의"
]


def parts(
    folder: Path, columns: Mapping[str, Sequence[Any]], per_part: int, measure: DocumentMeasure | None = None
) -> list[Path]:
    """Files of the rows with their part and position, or of what `measure` makes of them."""
    paths = []
    for part, first in enumerate(range(0, len(next(iter(columns.values()))), per_part)):
        some = {name: values[first : first + per_part] for name, values in columns.items()}
        size = len(next(iter(some.values())))
        numbers = {"part": pa.array([part] * size, pa.int32()), "position": pa.array(range(size), pa.int32())}
        table = pa.table(some | numbers)
        if measure is not None:
            table = measure_rows(table, {"": measure})[""]
        paths.append(write_parquet(folder / f"part-{part:05d}.parquet", table, folder))
    return paths


def gone(folder: Path, documents: Iterable[tuple[int, int]]) -> list[Path]:
    """A file of dropped documents, by part and position; none without any."""
    rows = [{"part": part, "position": position} for part, position in documents]
    schema = pa.schema([("part", pa.int32()), ("position", pa.int32())])
    return [write_parquet(folder / "gone.parquet", pa.Table.from_pylist(rows, schema), folder)] if rows else []


def pairs(seed: int, count: int) -> Iterator[tuple[str, str]]:
    """Texts, and copies with some words changed, of any similarity."""
    generator = random.Random(seed)
    for number in range(count):
        text = [generator.choice(WORDS) + generator.choice(WORDS) for _ in range(generator.randint(40, 150))]
        changed = list(text)
        for i in generator.sample(range(len(text)), number % 13 * len(text) // 75):
            changed[i] = "다른" + generator.choice(WORDS)
        yield " ".join(text), " ".join(changed[: len(text) - number % 2])


def jaccard(one: str, other: str) -> float:
    """The similarity of the sets of 3-grams of words, exactly."""
    first, second = ({tuple(text.split()[n : n + 3]) for n in range(len(text.split()) - 2)} for text in (one, other))
    return len(first & second) / len(first | second)
