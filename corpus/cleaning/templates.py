"""Documents made from a template: but for names and numbers, most of their text occurs in many others.

Compares 5-grams of terms in which all numbers are equal. One n-gram in four is sampled by its hash: ten of a
document of forty terms, enough to tell a filled-in form from prose.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from corpus.cleaning.features import Features
from corpus.cleaning.hashing import repeats
from corpus.execution.database import write_query

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TERMS = 5
_ONE_IN = 4

_TEMPLATES = """
    WITH frequent AS (SELECT hash FROM ngrams GROUP BY hash HAVING count(*) > $max_documents),
    counted AS (
        SELECT part, position, count(*) AS number, count(frequent.hash) AS shared
        FROM ngrams LEFT JOIN frequent USING (hash) GROUP BY part, position
    )
    SELECT part, position, format(
        '{:.2f} of its runs of words stand in more than {} documents', shared / number, $max_documents
    ) AS detail FROM counted WHERE shared > $share * number ORDER BY part, position
"""
_NGRAM_SCHEMA = pa.schema([("part", pa.int32()), ("position", pa.int32()), ("hash", pa.uint64())])
_TEMPLATE_SCHEMA = pa.schema([("part", pa.int32()), ("position", pa.int32()), ("detail", pa.string())])


def ngram_table(rows: pa.Table, features: Features, min_terms: int) -> pa.Table:
    """The sampled n-grams of documents of `min_terms` terms or more, each once a document.

    rows: documents (part, position).
    """
    enough = features.count(features.terms) >= max(min_terms, _TERMS)
    ((_, keys, first),) = features.term_ngrams(_TERMS, hashes=features.numberless_term_hashes)
    owners = features.terms.texts[first]
    chosen = np.flatnonzero(enough[owners] & (keys % np.uint64(_ONE_IN) == 0))
    chosen = chosen[~repeats(keys[chosen], owners[chosen])]
    columns = {name: rows[name].combine_chunks().take(pa.array(owners[chosen])) for name in ("part", "position")}
    return pa.table(columns | {"hash": keys[chosen]}).cast(_NGRAM_SCHEMA)


def find_templates(database: "DuckDBPyConnection", max_documents: int, share: float, path: Path, output: Path) -> int:
    """Writes (part, position, detail) of documents made from a template; returns how many.

    In those, more than `share` of the n-grams occur in more than `max_documents` documents. database: has the n-gram
    tables of the documents that have not been dropped, in the view `ngrams`.
    """
    limits = {"max_documents": max_documents, "share": share}
    return write_query(database, _TEMPLATES, _TEMPLATE_SCHEMA, path, output, **limits)
