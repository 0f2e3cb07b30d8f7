"""What only all parts together show: ids given twice, documents of equal text, and documents of nearly equal text.

All take parts of rows (id, part, position, place, reason, hash_high, hash_low), which `clean` makes first.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from corpus.cleaning.features import Features
from corpus.cleaning.minhash import BANDS, SIGNATURE_BYTES, signatures, similarity
from corpus.execution.database import connect, view_without, write_query
from corpus.execution.parts import named_in_errors
from korbert.errors import CorpusError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = [
    "find_equal",
    "find_near",
    "refuse_repeated_ids",
    "rows_of_part",
    "signature_table",
    "text_hash",
]

# Hashes are grouped before any text is touched, so that memory goes by the number of repeats, not of documents.
_REPEATED_IDS = """
    WITH suspects AS (
        SELECT hash(id) AS h FROM parts WHERE id IS NOT NULL GROUP BY h HAVING count(*) > 1
    )
    SELECT id, list(place ORDER BY part, position)[:2]
    FROM parts WHERE hash(id) IN (SELECT h FROM suspects)
    GROUP BY id HAVING count(*) > 1 ORDER BY id LIMIT 1
"""
_EQUAL_TEXTS = """
    WITH repeated AS (
        SELECT hash_high, hash_low FROM parts WHERE reason IS NULL GROUP BY ALL HAVING count(*) > 1
    ), members AS (
        SELECT id, part, position, hash_high, hash_low
        FROM parts SEMI JOIN repeated USING (hash_high, hash_low) WHERE reason IS NULL
    ), kept AS (SELECT hash_high, hash_low, min(id) AS kept FROM members GROUP BY ALL)
    SELECT part, position, kept FROM members JOIN kept USING (hash_high, hash_low)
    WHERE id <> kept ORDER BY part, position
"""
_SCHEMA = pa.schema([("part", pa.int32()), ("position", pa.int32()), ("kept", pa.string())])

# A band that many texts share would make pairs by the square: each is compared with the longest and with its neighbour.
_PAIRS = """
    INSERT INTO pairs
    WITH repeated AS (SELECT {band} AS band FROM signatures GROUP BY band HAVING count(*) > 1),
    ordered AS (
        SELECT node, first_value(node) OVER longest AS first, lag(node) OVER longest AS previous
        FROM signatures SEMI JOIN repeated ON {band} = band
        WINDOW longest AS (PARTITION BY {band} ORDER BY chars DESC, id)
    )
    SELECT node, first FROM ordered WHERE node <> first
    UNION SELECT node, previous FROM ordered WHERE previous <> first
"""
_COMPARED = """
    WITH wanted AS (SELECT DISTINCT node, other FROM pairs)
    SELECT node, other, a.signature AS one, b.signature AS two FROM wanted
    JOIN signatures a USING (node) JOIN signatures b ON b.node = other
"""
_KEPT = """
    WITH members AS (
        SELECT part, position, id, first_value(id) OVER (PARTITION BY cluster ORDER BY chars DESC, id) AS kept
        FROM clusters JOIN signatures USING (node)
    )
    SELECT part, position, kept FROM members WHERE id <> kept ORDER BY part, position
"""
_BAND_NAMES = [f"band_{number:02}" for number in range(BANDS)]


def text_hash(text: str) -> tuple[int, int]:
    """128 bits of a text as two whole numbers below 2^64. Equal hashes are taken for equal texts."""
    digest = blake2b(text.encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")


def refuse_repeated_ids(parts: Sequence[Path], output: Path, threads: int) -> None:
    """Raises CorpusError where two rows have one id. An id may be null."""
    with connect(output, threads, parts=parts) as database:
        found = database.execute(_REPEATED_IDS).fetchone()
    if found is not None:
        identifier, (first, second) = found
        raise CorpusError(
            f"{first} and {second}: both have the id {identifier!r}: make ids unique, "
            'or set id = "" for the source so that lines are numbered'
        )


def find_equal(parts: Sequence[Path], output: Path, threads: int, path: Path) -> int:
    """Writes (part, position, kept) of each document whose text one with a smaller id has; returns how many.

    Rows with a reason are no documents any more.
    """
    with connect(output, threads, parts=parts) as database:
        return write_query(database, _EQUAL_TEXTS, _SCHEMA, path, output)


def signature_table(rows: pa.Table, features: Features, min_terms: int) -> pa.Table:
    """The signatures of documents, as `find_near` reads them. rows: of columns id, text, part, position."""
    found = signatures(features, min_terms)
    signed = rows.take(pa.array(found.texts)).select(["id", "part", "position"])
    signed = signed.append_column("chars", pc.utf8_length(rows["text"]).take(pa.array(found.texts)))
    packed = pa.Array.from_buffers(
        pa.binary(SIGNATURE_BYTES), len(found.texts), [None, pa.py_buffer(np.ascontiguousarray(found.bytes))]
    )
    signed = signed.append_column("signature", packed)
    for name, band in zip(_BAND_NAMES, found.bands.T, strict=True):
        signed = signed.append_column(name, pa.array(np.ascontiguousarray(band)))
    return signed


def find_near(
    signed: Sequence[Path], least: float, output: Path, threads: int, path: Path, *, without: Sequence[Path]
) -> int:
    """Writes (part, position, kept) of documents that are nearly another, which is longer; returns how many.

    Those of a Jaccard similarity of `least` or more hang together, with what hangs together with either; of all that
    do the longest is kept, of equally long ones that with the smallest id. signed: files of signature tables.
    without: files as this function writes them, of documents to leave out.
    """
    with connect(output, threads, all_signatures=signed, gone=without) as database:
        view_without(database, "signatures", "part::BIGINT * 4294967296 + position AS node, *")
        database.execute("CREATE TABLE pairs (node BIGINT, other BIGINT)")
        for band in _BAND_NAMES:
            database.execute(_PAIRS.format(band=band))
        nodes, clusters = _components(_alike(database, least))
        database.register("clusters", pa.table({"node": nodes, "cluster": clusters}))
        return write_query(database, _KEPT, _SCHEMA, path, output)


def _alike(database: "DuckDBPyConnection", least: float) -> NDArray[np.int64]:
    """(2, N) nodes of pairs that share a band, and whose whole signatures are as similar as asked."""
    found = [np.empty((2, 0), np.int64)]
    for batch in database.sql(_COMPARED).to_arrow_reader():
        one, two = (_matrix(batch.column(name)) for name in ("one", "two"))
        alike = similarity(one, two) >= least
        found.append(np.stack([batch.column(name).to_numpy()[alike] for name in ("node", "other")]))
    return np.concatenate(found, axis=1)


def _matrix(signatures: pa.Array) -> NDArray[np.uint8]:
    packed = pa.concat_arrays([signatures.cast(pa.binary(SIGNATURE_BYTES))])  # at offset 0
    return np.frombuffer(packed.buffers()[1], np.uint8, len(packed) * SIGNATURE_BYTES).reshape(-1, SIGNATURE_BYTES)


def _components(pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Each node of a pair, and the number of what it hangs together with."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    nodes, places = np.unique(pairs, return_inverse=True)
    first, second = places.reshape(2, -1)
    graph = coo_array((np.ones(len(first), bool), (first, second)), shape=(len(nodes), len(nodes)))
    return nodes, connected_components(graph, directed=False)[1]


def rows_of_part(path: Path, part: int) -> pa.Table:
    """The rows of one part in a file that is ordered by part."""
    with named_in_errors(path), pq.ParquetFile(path) as file:
        tables = [file.schema_arrow.empty_table(), *_row_groups(file, part)]
    return pa.concat_tables(tables)


def _row_groups(file: pq.ParquetFile, part: int) -> Iterator[pa.Table]:
    for index in range(file.num_row_groups):
        limits = file.metadata.row_group(index).column(0).statistics
        if limits.min <= part <= limits.max:
            table = file.read_row_group(index)
            yield table.filter(pc.equal(table["part"], part))
