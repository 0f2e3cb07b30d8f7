"""Deduplication, the second step of cleaning: finds repeated content over all parts at once, with DuckDB."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from corpus.cleaning.duplicates import find_equal, find_near, refuse_repeated_ids, signature_table
from corpus.cleaning.features import Measure
from corpus.cleaning.frequent_lines import find_frequent, line_table
from corpus.cleaning.templates import find_templates, ngram_table
from corpus.execution.parts import Part
from corpus.settings import CleanSettings, DuplicateSettings
from korbert.progress import track


@dataclass(frozen=True)
class Removals:
    """Files that say what to remove, ordered by part.

    repeated: reason -> file of the rows to drop (part, position, ..., detail). lines: file of the lines to cut out
    (part, position, line). A check that is switched off has no file.
    """

    repeated: dict[str, Path]
    lines: Path | None


def scratch_path(part: Part, kind: str) -> Path:
    """Where the first step leaves the rows of a part (kind "read") and each table that `measures` names."""
    return part.work.with_name(kind) / f"{part.name}.parquet"


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


def deduplicate(settings: CleanSettings, parts: Sequence[Part], output: Path, threads: int, key: str) -> Removals:
    """Checks ids, then finds equal texts, near-duplicates, templates and frequent lines, in this order.

    A document dropped by one check is not seen by the next. A finished check is kept when the stage is resumed. Raises
    CorpusError if an id is not unique.
    """
    limits = settings.duplicates
    gone: list[Path] = []  # files of the documents dropped so far

    def files(kind: str) -> list[Path]:
        return [scratch_path(part, kind) for part in parts]

    def once(name: str, find: Callable[[Path], object], *more: Path) -> Path:
        path, part = output / "work" / "deduplicate" / f"{name}.parquet", Part(output, "deduplicate", name, key)
        if part.finished() is None:
            with track(f"clean: {name}", total=None):
                find(path)
                part.finish([path, *more], {})
        gone.append(path)
        return path

    with track("clean: ids", total=None):
        refuse_repeated_ids(files("read"), output, threads)
    repeated: dict[str, Path] = {}
    if limits.equal:
        repeated["exact_duplicate"] = once("equal", partial(find_equal, files("read"), output, threads))
    if limits.near:
        find = partial(find_near, files("signatures"), limits.near, output, threads, without=gone)
        repeated["near_duplicate"] = once("near", find)
    if limits.template_share < 1:
        template = limits.template_documents, limits.template_share
        find = partial(find_templates, files("ngrams"), *template, output, threads, without=gone)
        repeated["template_made"] = once("templates", find)
    if not limits.line_documents:
        return Removals(repeated, None)
    texts = output / "frequent" / "part-00000.parquet"
    find = partial(
        find_frequent, files("lines"), files("read"), limits.line_documents, output, threads, texts, without=gone
    )
    return Removals(repeated, once("lines", find, texts))
