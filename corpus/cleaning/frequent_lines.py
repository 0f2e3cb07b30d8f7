"""Lines that stand in many documents, word for word: notices, menus, signatures, what an exporter wrote everywhere."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from corpus.cleaning.features import BATCH_CHARS, MAX_CHARS, Features, hashes_of, repeats
from corpus.documents import in_batches
from corpus.execution.database import connect, view_without, write_query

__all__ = ["find_frequent", "line_table", "without_lines"]

# A line counts once a document, and only in documents that go on.
_FREQUENT = """
    CREATE TABLE frequent AS
    SELECT hash, count(*) AS documents, min({'part': part, 'position': position, 'line': line}) AS spot FROM lines
    WHERE is_first GROUP BY hash HAVING count(*) > $most
"""
_PLACES = "SELECT part, position, line FROM lines SEMI JOIN frequent USING (hash) ORDER BY part, position, line"
_TEXTS = """
    SELECT string_split(text, chr(10))[spot.line + 1] AS text, documents
    FROM frequent JOIN rows ON part = spot.part AND position = spot.position ORDER BY documents DESC, text
"""
_PLACE_SCHEMA = pa.schema([("part", pa.int32()), ("position", pa.int32()), ("line", pa.int32())])
_LINE_SCHEMA = pa.schema([*_PLACE_SCHEMA, ("hash", pa.uint64()), ("is_first", pa.bool_())])
_TEXT_SCHEMA = pa.schema([("text", pa.string()), ("documents", pa.int64())])


def line_table(rows: pa.Table, features: Features, min_chars: int) -> pa.Table:
    """The hashes of lines. rows: documents, of columns text, part, position. Shorter lines are left out.

    Of a text that the features hold the beginning of, too, all lines are taken.
    """
    if len(features.joined) <= MAX_CHARS:
        return _lines(rows, features, min_chars)
    texts = rows["text"].to_pylist()
    return pa.concat_tables(_long_lines(rows.slice(place, 1), text, min_chars) for place, text in enumerate(texts))


def _long_lines(row: pa.Table, text: str, min_chars: int) -> pa.Table:
    """A document's lines, some at a time. A line that is longer than that stands in no other document."""
    tables, done = [_LINE_SCHEMA.empty_table()], 0
    seen = np.empty(0, np.uint64)
    for lines in in_batches(("" if len(line) > MAX_CHARS else line for line in text.split("\n")), BATCH_CHARS):
        some = _lines(row, Features(["\n".join(lines)]), min_chars)
        hashes = some["hash"].to_numpy()
        columns = {
            "line": some["line"].to_numpy() + done,
            "is_first": some["is_first"].to_numpy() & ~np.isin(hashes, seen),
        }
        for name, values in columns.items():
            place = some.schema.get_field_index(name)
            some = some.set_column(place, some.schema.field(place), pa.array(values))
        tables.append(some)
        seen = np.union1d(seen, hashes)
        done += len(lines)
    return pa.concat_tables(tables)


def _lines(rows: pa.Table, features: Features, min_chars: int) -> pa.Table:
    long = np.flatnonzero(features.line_visible >= min_chars)
    lines, owners = features.lines, features.lines.texts[long]
    hashes = hashes_of(features.codes, lines.starts[long], lines.ends[long])
    columns = {name: rows[name].combine_chunks().take(pa.array(owners)) for name in ("part", "position")}
    columns |= {"line": features.line_numbers[long], "hash": hashes, "is_first": ~repeats(hashes, owners)}
    return pa.table(columns).cast(_LINE_SCHEMA)


def find_frequent(
    lines: Sequence[Path],
    rows: Sequence[Path],
    most: int,
    output: Path,
    threads: int,
    *,
    without: Sequence[Path],
    places: Path,
    texts: Path,
) -> int:
    """Finds the lines that stand in more than `most` documents; returns how many there are.

    lines: files of line tables. rows: parts with the texts. without: files of (part, position), of documents that are
    gone. Writes `places`, (part, position, line), a line's number counted from 0, and `texts`, (text, documents), the
    commonest first.
    """
    with connect(output, threads, all_lines=lines, rows=rows, gone=without) as database:
        view_without(database, "lines")
        database.execute(_FREQUENT, {"most": most})
        write_query(database, _PLACES, _PLACE_SCHEMA, places, output)
        return write_query(database, _TEXTS, _TEXT_SCHEMA, texts, output)


def without_lines(text: str, numbers: Iterable[int]) -> str:
    """The text less some of its lines, by number from 0, with one blank line at most where they stood."""
    gone = set(numbers)
    left: list[str] = []
    for number, line in enumerate(text.split("\n")):
        if number not in gone and (line or (left and left[-1])):
            left.append(line)
    return "\n".join(left).rstrip("\n")
