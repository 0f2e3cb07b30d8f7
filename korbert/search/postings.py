"""BM25 over postings in the index's database.

A posting says how often a term is in a text, and how many terms that text has. Those of a term are 8 bytes each, in a
blob for every 65,536 numbers of texts: a query reads a few blobs, and numpy adds up the scores. (FTS5 of SQLite visits
every text with any term of the query one by one: see "Engines of an index" in benchmarks/RESULTS.md.)
"""

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from korbert.search.database import add_to_meta, read_meta

_K1, _B = 1.2, 0.75  # Robertson and Zaragoza 2009, 3.2
_BUCKET = 65_536
_POSTING = np.dtype([("offset", "<u2"), ("count", "<u2"), ("length", "<u4")])


def add_postings(database: sqlite3.Connection, texts: Iterable[tuple[int, Sequence[str]]]) -> None:
    """Adds the terms of texts, by the texts' numbers."""
    places = defaultdict[tuple[str, int], list[int]](list)  # of the postings of a term in a bucket
    postings = list[tuple[int, int, int]]()
    added = length = 0
    for number, terms in texts:
        bucket, offset = divmod(number, _BUCKET)
        for term, count in Counter(terms).items():
            places[term, bucket].append(len(postings))
            postings.append((offset, min(count, 65_535), len(terms)))
        added, length = added + 1, length + len(terms)
    entries = np.array(postings, _POSTING)
    # Sorted, so that SQLite's pages are visited in order.
    rows = ((term, bucket, entries[own].tobytes()) for (term, bucket), own in sorted(places.items()))
    database.executemany(
        "INSERT INTO postings VALUES (?, ?, ?)"
        " ON CONFLICT (term, bucket) DO UPDATE SET entries = CAST(entries || excluded.entries AS BLOB)",
        rows,
    )
    add_to_meta(database, texts=added, length=length)


def remove_postings(database: sqlite3.Connection, numbers: Iterable[int]) -> None:
    """Removes the terms of texts, which are still in the database."""
    gone = defaultdict[int, NDArray[np.bool_]](lambda: np.zeros(_BUCKET, bool))  # offsets, by bucket
    keys = set[tuple[str, int]]()
    removed = length = 0
    for number in numbers:
        (terms,) = database.execute("SELECT terms FROM texts WHERE number = ?", (number,)).fetchone()
        bucket, offset = divmod(number, _BUCKET)
        gone[bucket][offset] = True
        own = json.loads(terms)
        keys |= {(term, bucket) for term in own}
        removed, length = removed + 1, length + len(own)
    for term, bucket in sorted(keys):
        row, blob = database.execute(
            "SELECT rowid, entries FROM postings WHERE term = ? AND bucket = ?", (term, bucket)
        ).fetchone()
        entries = np.frombuffer(blob, _POSTING)
        left = entries[~gone[bucket][entries["offset"]]]
        if len(left):
            database.execute("UPDATE postings SET entries = ? WHERE rowid = ?", (left.tobytes(), row))
        else:
            database.execute("DELETE FROM postings WHERE rowid = ?", (row,))
    add_to_meta(database, texts=-removed, length=-length)


def word_scores(database: sqlite3.Connection, terms: Sequence[str]) -> NDArray[np.float32]:
    """The BM25 score of each text for these terms, with Lucene's idf: (1 + largest number,), 0 without any of them."""
    (highest,) = database.execute("SELECT coalesce(max(number), -1) FROM texts").fetchone()
    scores = np.zeros(highest + 1, np.float32)
    texts = read_meta(database, "texts")
    mean = read_meta(database, "length") / max(texts, 1)
    for term, times in Counter(terms).items():
        buckets = database.execute("SELECT bucket, entries FROM postings WHERE term = ?", (term,)).fetchall()
        entries = [np.frombuffer(blob, _POSTING) for _, blob in buckets]
        having = sum(map(len, entries))
        idf = np.log1p((texts - having + 0.5) / (having + 0.5))
        for (bucket, _), own in zip(buckets, entries, strict=True):
            counts = own["count"].astype(np.float32)
            weights = times * idf * counts / (counts + _K1 * (1 - _B + _B * own["length"] / mean))
            scores[bucket * _BUCKET + own["offset"].astype(np.int64)] += weights  # a number is there once
    return scores
