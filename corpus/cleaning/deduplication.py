"""Deduplication, the second step of cleaning: finds repeated content over all parts at once, with DuckDB."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from korbert.corpus.cleaning.duplicates import (
    EQUAL_TEXTS,
    KEPT_SCHEMA,
    find_near_duplicates,
    refuse_repeated_ids,
    signature_table,
)
from korbert.corpus.cleaning.features import DocumentMeasure, Features
from korbert.corpus.cleaning.frequent_lines import find_frequent, line_table
from korbert.corpus.cleaning.hashing import repeats
from korbert.corpus.corpus_settings import CleanSettings, DuplicateSettings
from korbert.corpus.execution.database import Database, connect, write_query
from korbert.corpus.execution.parts import OutputPart, key_of
from korbert.system import track

# Templates share 5-grams of terms, with all numbers taken as equal. One n-gram in four is sampled by its hash: ten of a
# document of forty terms, enough to tell a filled-in form from prose.
_TERMS = 5
_ONE_IN = 4

# Documents of which more than $share of the n-grams occur in more than $max_documents documents.
TEMPLATES = """
    WITH frequent AS (SELECT hash FROM ngrams GROUP BY hash HAVING count(*) > $max_documents),
    counted AS (
        SELECT part, position, count(*) AS number, count(frequent.hash) AS shared
        FROM ngrams LEFT JOIN frequent USING (hash) GROUP BY part, position
    )
    SELECT part, position, format('{:.2f}', shared / number) AS detail
    FROM counted WHERE shared > $share * number ORDER BY part, position
"""
_NGRAM_SCHEMA = pa.schema([("part", pa.int32()), ("position", pa.int32()), ("hash", pa.uint64())])
TEMPLATE_SCHEMA = pa.schema([("part", pa.int32()), ("position", pa.int32()), ("detail", pa.string())])


def measures(settings: DuplicateSettings) -> dict[str, DocumentMeasure]:
    """Kind -> the measure of documents that `deduplicate` needs for it."""
    kinds = {
        "signatures": (settings.near > 0, partial(signature_table, min_terms=settings.near_min_terms)),
        "ngrams": (settings.template_share < 1, partial(ngram_table, min_terms=settings.template_min_terms)),
        "lines": (settings.line_documents > 0, partial(line_table, min_chars=settings.line_min_chars)),
    }
    return {kind: measure for kind, (is_on, measure) in kinds.items() if is_on}


def deduplicate(settings: CleanSettings, parts: Sequence[OutputPart], output: Path, threads: int) -> dict[str, Path]:
    """Checks ids, then finds equal texts, near-duplicates, templates and frequent lines, in this order.

    A document dropped by one check is not seen by the next. A finished check is kept when the stage is resumed. Returns
    reason -> file of the rows to drop (part, position, ..., detail), and for `frequent_lines` of the lines to cut out
    (part, position, line), each ordered by part. Raises CorpusError if an id is not unique.
    """
    limits = settings.duplicates
    key = key_of(settings, *(part.key for part in parts))
    files: dict[str, Path] = {}

    def database(*kinds: str) -> AbstractContextManager[Database]:
        """Connects a database whose views are the tables of these kinds, without the documents dropped so far."""
        views = {kind: [part.scratch(kind) for part in parts] for kind in kinds}
        return connect(output, threads, without=list(files.values()), **views)

    def once(
        reason: str, check: str, kinds: Sequence[str], find: Callable[..., int], *arguments: object, **parameters: float
    ) -> None:
        """Runs a check unless an earlier run has finished it, and enters its file under the reason."""
        part = OutputPart(output, "deduplicate", check, key)
        path = part.scratch()
        if part.finished() is None:
            with track(f"clean: {check}", total=None), database(*kinds) as tables:
                find(tables, *arguments, path, output, **parameters)
                part.finish([path, *(argument for argument in arguments if isinstance(argument, Path))], {})
        files[reason] = path

    with track("clean: ids", total=None), database("read") as tables:
        refuse_repeated_ids(tables)
    if limits.equal:
        once("exact_duplicate", "equal", ["read"], write_query, EQUAL_TEXTS, KEPT_SCHEMA)
    if limits.near:
        once("near_duplicate", "near", ["signatures"], find_near_duplicates, limits.near)
    if limits.template_share < 1:
        thresholds = {"max_documents": limits.template_documents, "share": limits.template_share}
        once("template_made", "templates", ["ngrams"], write_query, TEMPLATES, TEMPLATE_SCHEMA, **thresholds)
    if limits.line_documents:
        texts = output / "frequent" / "part-00000.parquet"
        once("frequent_lines", "lines", ["lines", "read"], find_frequent, limits.line_documents, texts)
    return files


def ngram_table(rows: pa.Table, features: Features, min_terms: int) -> pa.Table:
    """The sampled n-grams of documents of `min_terms` terms or more, without repetition inside a document.

    rows: documents (part, position).
    """
    is_long = features.count(features.terms) >= max(min_terms, _TERMS)
    ((_, keys, first),) = features.term_ngrams(_TERMS, hashes=features.numberless_term_hashes)
    owners = features.terms.texts[first]
    sampled = np.flatnonzero(is_long[owners] & (keys % np.uint64(_ONE_IN) == 0))
    sampled = sampled[~repeats(keys[sampled], owners[sampled])]
    columns = {name: rows[name].combine_chunks().take(pa.array(owners[sampled])) for name in ("part", "position")}
    return pa.table(columns | {"hash": keys[sampled]}).cast(_NGRAM_SCHEMA)
