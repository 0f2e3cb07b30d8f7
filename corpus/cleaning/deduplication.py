"""Deduplication, the second step of cleaning: finds repeated content over all parts at once, with DuckDB."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from korbert.corpus.cleaning.duplicates import find_equal, find_near, refuse_repeated_ids, signature_table
from korbert.corpus.cleaning.features import Features, Measure
from korbert.corpus.cleaning.frequent_lines import find_frequent, line_table
from korbert.corpus.cleaning.hashing import repeats
from korbert.corpus.execution.database import connect, write_query
from korbert.corpus.execution.parts import Part, key_of
from korbert.corpus.settings import CleanSettings, DuplicateSettings
from korbert.progress import track

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Templates share 5-grams of terms, with all numbers taken as equal. One n-gram in four is sampled by its hash: ten of a
# document of forty terms, enough to tell a filled-in form from prose.
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


@dataclass(frozen=True)
class Removals:
    """Files that say what to remove, ordered by part.

    key: digest of settings and parts. repeated: reason -> file of the rows to drop (part, position, ..., detail).
    lines: file of the lines to cut out (part, position, line). A check that is switched off has no file.
    """

    key: str
    repeated: dict[str, Path]
    lines: Path | None


def measures(settings: DuplicateSettings) -> dict[str, Measure]:
    """Kind -> the measure of documents that `deduplicate` needs for it."""
    kinds: dict[str, Measure] = {}
    if settings.near:
        kinds["signatures"] = partial(signature_table, min_terms=settings.near_min_terms)
    if settings.template_share < 1:
        kinds["ngrams"] = partial(ngram_table, min_terms=settings.template_min_terms)
    if settings.line_documents:
        kinds["lines"] = partial(line_table, min_chars=settings.line_min_chars)
    return kinds


def deduplicate(settings: CleanSettings, parts: Sequence[Part], output: Path, threads: int) -> Removals:
    """Checks ids, then finds equal texts, near-duplicates, templates and frequent lines, in this order.

    A document dropped by one check is not seen by the next. A finished check is kept when the stage is resumed. Raises
    CorpusError if an id is not unique.
    """
    limits = settings.duplicates
    key = key_of(settings, *(part.key for part in parts))
    gone: list[Path] = []  # files of the documents dropped so far

    def database(*kinds: str) -> AbstractContextManager["DuckDBPyConnection"]:
        """Its views are the tables of those kinds."""
        views = {kind: [part.scratch(kind) for part in parts] for kind in kinds}
        return connect(output, threads, without=gone, **views)

    def once(check: str, kinds: Sequence[str], find: Callable[..., int], *arguments: float | Path) -> Path:
        part = Part(output, "deduplicate", check, key)
        path, *others = part.scratch(), *(each for each in arguments if isinstance(each, Path))
        if part.finished() is None:
            with track(f"clean: {check}", total=None), database(*kinds) as tables:
                find(tables, *arguments, path, output)
                part.finish([path, *others], {})
        gone.append(path)
        return path

    with track("clean: ids", total=None), database("read") as tables:
        refuse_repeated_ids(tables)
    repeated: dict[str, Path] = {}
    if limits.equal:
        repeated["exact_duplicate"] = once("equal", ["read"], find_equal)
    if limits.near:
        repeated["near_duplicate"] = once("near", ["signatures"], find_near, limits.near)
    if limits.template_share < 1:
        template = limits.template_documents, limits.template_share
        repeated["template_made"] = once("templates", ["ngrams"], find_templates, *template)
    if not limits.line_documents:
        return Removals(key, repeated, None)
    texts = output / "frequent" / "part-00000.parquet"
    return Removals(key, repeated, once("lines", ["lines", "read"], find_frequent, limits.line_documents, texts))


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
