"""What only all parts together show: ids given twice, and documents with equal text."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.database import connect, same_size_batches
from corpus.parts import write_tables
from korbert.errors import CorpusError

__all__ = ["duplicates_of_part", "find_duplicates", "refuse_repeated_ids", "text_hash"]

# Hashes are grouped before any text is touched, so that memory goes by the number of repeats, not of documents.
_REPEATED_IDS = """
    WITH suspects AS (
        SELECT hash(id) AS h FROM read_parquet($parts) WHERE id IS NOT NULL GROUP BY h HAVING count(*) > 1
    )
    SELECT id, list(place ORDER BY part, position)[:2]
    FROM read_parquet($parts) WHERE hash(id) IN (SELECT h FROM suspects)
    GROUP BY id HAVING count(*) > 1 ORDER BY id LIMIT 1
"""
_EQUAL_TEXTS = """
    WITH repeated AS (
        SELECT hash_high, hash_low FROM read_parquet($parts) WHERE reason IS NULL GROUP BY ALL HAVING count(*) > 1
    ), members AS (
        SELECT id, part, hash_high, hash_low FROM read_parquet($parts) SEMI JOIN repeated USING (hash_high, hash_low)
        WHERE reason IS NULL
    ), kept AS (SELECT hash_high, hash_low, min(id) AS kept FROM members GROUP BY ALL)
    SELECT part, id, kept FROM members JOIN kept USING (hash_high, hash_low) WHERE id <> kept ORDER BY part, id
"""
_SCHEMA = pa.schema([("part", pa.int32()), ("id", pa.string()), ("kept", pa.string())])


def text_hash(text: str) -> tuple[int, int]:
    """128 bits of a text as two whole numbers below 2^64. Equal hashes are taken for equal texts."""
    digest = blake2b(text.encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")


def refuse_repeated_ids(parts: Sequence[Path], output: Path, threads: int) -> None:
    """Raises CorpusError where two rows have one id. parts have the columns id (null: none), place, part, position."""
    with connect(output, threads) as database:
        found = database.execute(_REPEATED_IDS, {"parts": [str(path) for path in parts]}).fetchone()
    if found is not None:
        identifier, (first, second) = found
        raise CorpusError(
            f"{first} and {second}: both have the id {identifier!r}: make ids unique, "
            'or set id = "" for the source so that lines are numbered'
        )


def find_duplicates(parts: Sequence[Path], output: Path, threads: int, path: Path) -> int:
    """Writes (part, id, kept) of each document whose text a document with a smaller id has; returns how many.

    parts have the columns id, part, reason (null: not dropped so far), hash_high, hash_low.
    """
    with connect(output, threads) as database:
        reader = database.sql(_EQUAL_TEXTS, params={"parts": [str(part) for part in parts]}).to_arrow_reader()
        return write_tables(path, _SCHEMA, same_size_batches(reader), output)


def duplicates_of_part(path: Path, part: int) -> dict[str, str]:
    """id -> id of the kept document, for one part of what `find_duplicates` wrote."""
    return dict(_pairs(path, part))


def _pairs(path: Path, part: int) -> Iterator[tuple[str, str]]:
    with pq.ParquetFile(path) as file:
        for index in range(file.num_row_groups):
            limits = file.metadata.row_group(index).column(0).statistics
            if limits.min <= part <= limits.max:
                table = file.read_row_group(index)
                table = table.filter(pc.equal(table["part"], part))
                yield from zip(table["id"].to_pylist(), table["kept"].to_pylist(), strict=True)
