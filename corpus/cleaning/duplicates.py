"""Repeated ids, documents of equal text, and near-duplicates, found over all parts at once.

`database` has the rows of the first step of `clean` in the view `read`, or their signatures in `signatures`.
"""

from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from korbert.corpus.cleaning.features import Features
from korbert.corpus.cleaning.minhash import BANDS, SIGNATURE_BYTES, signatures, similarity
from korbert.corpus.execution.database import Database, write_query
from korbert.errors import CorpusError

# Hashes are grouped before any text is read, so that memory depends on the number of repeats, not of documents.
_REPEATED_IDS = """
    WITH suspects AS (SELECT hash(id) AS h FROM read WHERE id IS NOT NULL GROUP BY h HAVING count(*) > 1)
    SELECT id, list(place ORDER BY part, position)[:2]
    FROM read WHERE hash(id) IN (SELECT h FROM suspects)
    GROUP BY id HAVING count(*) > 1 ORDER BY id LIMIT 1
"""
# Documents whose text also occurs under a smaller id, `kept`. Rows with a reason have been dropped before.
EQUAL_TEXTS = """
    WITH repeated AS (
        SELECT hash_high, hash_low FROM read WHERE reason IS NULL GROUP BY ALL HAVING count(*) > 1
    ), members AS (
        SELECT id, part, position, hash_high, hash_low
        FROM read SEMI JOIN repeated USING (hash_high, hash_low) WHERE reason IS NULL
    ), kept AS (SELECT hash_high, hash_low, min(id) AS kept FROM members GROUP BY ALL)
    SELECT part, position, kept FROM members JOIN kept USING (hash_high, hash_low)
    WHERE id <> kept ORDER BY part, position
"""
KEPT_SCHEMA = pa.schema([("part", pa.int32()), ("position", pa.int32()), ("kept", pa.string())])

# Candidate pairs. All pairs of a band that many texts share would be quadratic: each text is paired with the longest
# one and with its neighbour in length.
_PAIRS = """
    INSERT INTO pairs
    WITH repeated AS (SELECT {band} AS band FROM nodes GROUP BY band HAVING count(*) > 1),
    ordered AS (
        SELECT node, first_value(node) OVER longest AS first, lag(node) OVER longest AS previous
        FROM nodes SEMI JOIN repeated ON {band} = band
        WINDOW longest AS (PARTITION BY {band} ORDER BY chars DESC, id)
    )
    SELECT node, first FROM ordered WHERE node <> first
    UNION SELECT node, previous FROM ordered WHERE previous <> first
"""
_COMPARED = """
    WITH wanted AS (SELECT DISTINCT node, other FROM pairs)
    SELECT node, other, a.signature AS one, b.signature AS two FROM wanted
    JOIN nodes a USING (node) JOIN nodes b ON b.node = other
"""
_KEPT = """
    WITH members AS (
        SELECT part, position, id, first_value(id) OVER (PARTITION BY cluster ORDER BY chars DESC, id) AS kept
        FROM clusters JOIN nodes USING (node)
    )
    SELECT part, position, kept FROM members WHERE id <> kept ORDER BY part, position
"""
_BAND_NAMES = [f"band_{number:02}" for number in range(BANDS)]


def text_hash(text: str) -> tuple[int, int]:
    """128 bits of BLAKE2b as two integers below 2^64. Texts of equal hash are taken to be equal."""
    digest = blake2b(text.encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")


def refuse_repeated_ids(database: Database) -> None:
    """Raises CorpusError if two rows have the same id. Null ids are allowed."""
    repeated = database.execute(_REPEATED_IDS).fetchone()
    if repeated is not None:
        identifier, (first, second) = repeated
        raise CorpusError(
            '{first} and {second}: both have the id {identifier!r}: make ids unique, or set id = "" for '
            "the source so that lines are numbered",
            first=first,
            second=second,
            identifier=identifier,
        )


def signature_table(rows: pa.Table, features: Features, min_terms: int) -> pa.Table:
    """The MinHash signatures of documents, as `find_near_duplicates` reads them.

    rows: documents (id, text, part, position).
    """
    signature_arrays = signatures(features, min_terms)
    signed_rows = rows.take(pa.array(signature_arrays.texts))
    columns = {name: signed_rows[name] for name in ("id", "part", "position")}
    columns["chars"] = pc.utf8_length(signed_rows["text"])
    packed = [None, pa.py_buffer(np.ascontiguousarray(signature_arrays.bytes))]
    columns["signature"] = pa.Array.from_buffers(pa.binary(SIGNATURE_BYTES), len(signature_arrays.texts), packed)
    bands = (pa.array(np.ascontiguousarray(band)) for band in signature_arrays.bands.T)
    return pa.table(columns | dict(zip(_BAND_NAMES, bands, strict=True)))


def find_near_duplicates(database: Database, min_similarity: float, path: Path, output: Path) -> int:
    """Writes (part, position, kept) of near-duplicates of another document, `kept`; returns how many.

    Documents are linked if the Jaccard similarity that their signatures estimate is `min_similarity` or more. Of the
    documents that share a band, each is compared with the longest one and with the next in length. Of each connected
    component the longest document is kept, of equally long ones that with the smallest id. database: has the signature
    tables of the documents that have not been dropped, in the view `signatures`.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    def matrix(column: pa.Array) -> NDArray[np.uint8]:
        """(N, SIGNATURE_BYTES) view of a column of signatures."""
        # Copied, so that its bytes begin at offset 0.
        packed = pa.concat_arrays([column.cast(pa.binary(SIGNATURE_BYTES))])
        return np.frombuffer(packed.buffers()[1], np.uint8, len(packed) * SIGNATURE_BYTES).reshape(-1, SIGNATURE_BYTES)

    # Candidates: pairs of documents that share a band.
    database.execute("CREATE VIEW nodes AS SELECT part::BIGINT * 4294967296 + position AS node, * FROM signatures")
    database.execute("CREATE TABLE pairs (node BIGINT, other BIGINT)")
    for band in _BAND_NAMES:
        database.execute(_PAIRS.format(band=band))

    # Links: those whose whole signatures are similar enough, (2, N).
    links = [np.empty((2, 0), np.int64)]
    for batch in database.sql(_COMPARED).to_arrow_reader():
        similar = similarity(matrix(batch.column("one")), matrix(batch.column("two"))) >= min_similarity
        links.append(np.stack([batch.column(name).to_numpy()[similar] for name in ("node", "other")]))

    # Clusters: the connected components of the graph of links.
    nodes, node_indices = np.unique(np.concatenate(links, axis=1), return_inverse=True)
    first, second = node_indices.reshape(2, -1)
    graph = coo_array((np.ones(len(first), bool), (first, second)), shape=(len(nodes), len(nodes)))
    _, clusters = connected_components(graph, directed=False)
    database.register("clusters", pa.table({"node": nodes, "cluster": clusters}))
    return write_query(database, _KEPT, KEPT_SCHEMA, path, output)
