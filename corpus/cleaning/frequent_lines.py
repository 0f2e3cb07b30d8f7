"""Lines that occur word for word in many documents: notices, menus, signatures, marks of an export."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from korbert.corpus.cleaning.features import Features
from korbert.corpus.cleaning.hashing import hashes_of, repeats
from korbert.corpus.execution.database import Database, write_query

# A line counts once per document, and only in documents that have not been dropped.
_FREQUENT = """
    CREATE TABLE frequent AS
    SELECT hash, count(*) AS documents, min({'part': part, 'position': position, 'line': line}) AS spot FROM lines
    WHERE is_first GROUP BY hash HAVING count(*) > $max_documents
"""
_POSITIONS = "SELECT part, position, line FROM lines SEMI JOIN frequent USING (hash) ORDER BY part, position, line"
_TEXTS = """
    SELECT string_split(text, chr(10))[spot.line + 1] AS text, documents
    FROM frequent JOIN read ON part = spot.part AND position = spot.position ORDER BY documents DESC, text
"""
_POSITION_SCHEMA = pa.schema([("part", pa.int32()), ("position", pa.int32()), ("line", pa.int32())])
_LINE_SCHEMA = pa.schema([*_POSITION_SCHEMA, ("hash", pa.uint64()), ("is_first", pa.bool_())])
_TEXT_SCHEMA = pa.schema([("text", pa.string()), ("documents", pa.int64())])


def line_table(rows: pa.Table, features: Features, min_chars: int) -> pa.Table:
    """Hashes of the lines of at least `min_chars` visible characters. rows: documents (part, position)."""
    long_lines = np.flatnonzero(features.line_visible >= min_chars)
    lines = features.lines
    owners = lines.texts[long_lines]
    hashes = hashes_of(features.codes, lines.starts[long_lines], lines.ends[long_lines])
    columns = {name: rows[name].combine_chunks().take(pa.array(owners)) for name in ("part", "position")}
    columns |= {"line": features.line_numbers[long_lines], "hash": hashes, "is_first": ~repeats(hashes, owners)}
    return pa.table(columns).cast(_LINE_SCHEMA)


def find_frequent(database: Database, max_documents: int, texts: Path, positions: Path, output: Path) -> int:
    """Finds the lines that occur in more than `max_documents` documents; returns how many there are.

    database: has `lines`, the line tables, and `read`, the texts, of the documents that have not been dropped. Writes
    `positions`, (part, position, line) with lines numbered from 0, and `texts`, (text, documents), the most frequent
    first.
    """
    database.execute(_FREQUENT, {"max_documents": max_documents})
    write_query(database, _POSITIONS, _POSITION_SCHEMA, positions, output)
    return write_query(database, _TEXTS, _TEXT_SCHEMA, texts, output)


def without_lines(text: str, numbers: Iterable[int]) -> str:
    """The text without the lines of those numbers, counted from 0. At most one blank line stays instead."""
    removed = set(numbers)
    kept: list[str] = []
    for number, line in enumerate(text.split("\n")):
        if number not in removed and (line or (kept and kept[-1])):
            kept.append(line)
    return "\n".join(kept).rstrip("\n")
