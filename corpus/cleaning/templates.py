"""Documents that a machine filled in: most of what they say stands in many others, but for names and numbers.

What is compared are 5-grams of terms with all numbers taken for one. One n-gram in four is looked at, by its hash: of a
document of forty terms ten, which is enough to tell a form that was filled in from prose.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from corpus.cleaning.features import Features, repeats
from corpus.execution.database import connect, view_without, write_query

__all__ = ["find_templates", "ngram_table"]

_TERMS = 5
_ONE_IN = 4

_FOUND = """
    WITH frequent AS (SELECT hash FROM ngrams GROUP BY hash HAVING count(*) > $most),
    shares AS (
        SELECT part, position, count(*) AS number, count(frequent.hash) AS shared
        FROM ngrams LEFT JOIN frequent USING (hash) GROUP BY part, position
    )
    SELECT part, position, format('{:.2f} of its runs of words stand in more than {} documents', shared / number, $most)
    AS detail FROM shares WHERE shared > $share * number ORDER BY part, position
"""
_NGRAM_SCHEMA = pa.schema([("part", pa.int32()), ("position", pa.int32()), ("hash", pa.uint64())])
_FOUND_SCHEMA = pa.schema([("part", pa.int32()), ("position", pa.int32()), ("detail", pa.string())])


def ngram_table(rows: pa.Table, features: Features, min_terms: int) -> pa.Table:
    """The n-grams of documents, each once. rows: of columns part, position. Shorter texts have none."""
    enough = features.count(features.terms) >= max(min_terms, _TERMS)
    ((_, keys, first),) = features.term_ngrams(_TERMS, hashes=features.numberless_term_hashes)
    owners = features.terms.texts[first]
    chosen = np.flatnonzero(enough[owners] & (keys % np.uint64(_ONE_IN) == 0))
    chosen = chosen[~repeats(keys[chosen], owners[chosen])]
    columns = {name: rows[name].combine_chunks().take(pa.array(owners[chosen])) for name in ("part", "position")}
    return pa.table(columns | {"hash": keys[chosen]}).cast(_NGRAM_SCHEMA)


def find_templates(
    ngrams: Sequence[Path], most: int, share: float, output: Path, threads: int, path: Path, *, without: Sequence[Path]
) -> int:
    """Writes (part, position, detail) of documents more than `share` of whose n-grams stand in over `most` documents.

    Returns how many there are. ngrams: files of n-gram tables. without: files of (part, position), of documents that
    are gone and do not count.
    """
    with connect(output, threads, all_ngrams=ngrams, gone=without) as database:
        view_without(database, "ngrams")
        return write_query(database, _FOUND, _FOUND_SCHEMA, path, output, {"most": most, "share": share})
