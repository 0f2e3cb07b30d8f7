"""Cleaning, second step: what DuckDB finds in all read parts at once, because it is there twice or too often."""

from collections.abc import Callable, Iterator, Sequence
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

__all__ = ["Removals", "deduplicate", "measures", "scratch_path"]


@dataclass(frozen=True)
class Removals:
    """Files of the rows that go (part, position, ..., detail), by reason, and of the lines that are taken out.

    An absent reason, or None, was not looked for.
    """

    repeated: dict[str, Path]
    lines: Path | None


def scratch_path(part: Part, kind: str) -> Path:
    """Where the first step leaves what `deduplicate` reads: the rows ("read"), and each kind that `measures` names."""
    return part.work.with_name(kind) / f"{part.name}.parquet"


def measures(settings: DuplicateSettings) -> Iterator[tuple[str, Measure]]:
    """Kind -> what of it `deduplicate` needs to know of each document."""
    if settings.near:
        yield "signatures", partial(signature_table, min_terms=settings.near_min_terms)
    if settings.template_share < 1:
        yield "ngrams", partial(ngram_table, min_terms=settings.template_min_terms)
    if settings.line_documents:
        yield "lines", partial(line_table, min_chars=settings.line_min_chars)


def deduplicate(settings: CleanSettings, parts: Sequence[Part], output: Path, threads: int, key: str) -> Removals:
    """Looks for each kind once, whatever run comes back to it; what went for one reason is not looked at for the next.

    Raises CorpusError where an id is given twice.
    """
    limits = settings.duplicates
    gone: list[Path] = []
    texts = output / "frequent" / "part-00000.parquet"

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

    def lines(path: Path) -> None:
        most = limits.line_documents
        find_frequent(files("lines"), files("read"), most, output, threads, without=gone, places=path, texts=texts)

    with track("clean: ids", total=None):
        refuse_repeated_ids(files("read"), output, threads)
    repeated: dict[str, Path] = {}
    if limits.equal:
        repeated["exact_duplicate"] = once("equal", partial(find_equal, files("read"), output, threads))
    if limits.near:
        find = partial(find_near, files("signatures"), limits.near, output, threads, without=gone)
        repeated["near_duplicate"] = once("near", find)
    if limits.template_share < 1:
        shares = limits.template_documents, limits.template_share
        find = partial(find_templates, files("ngrams"), *shares, output, threads, without=gone)
        repeated["template_made"] = once("templates", find)
    return Removals(repeated, once("lines", lines, texts) if limits.line_documents else None)
