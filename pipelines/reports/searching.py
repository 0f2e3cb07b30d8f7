"""The page of `korbert search-eval`: the figures of each way of searching, and the queries on which the ways differ."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from korbert.search.evaluation import DEPTH, METRICS, Measured
from pipelines.reports.elements import Element, Entry, Folded, Section
from pipelines.reports.figures import label
from pipelines.reports.kinds.common import beginning
from pipelines.reports.page import write
from pipelines.reports.task import on_one_scale

_EXAMPLES = 20  # for each side of a pair


def write_page(
    path: Path, about: str, pairs: Sequence[tuple[str, Sequence[str]]], right: Mapping[str, str],
    ways: Mapping[str, Measured],
) -> Path:  # fmt: skip
    """Writes the page and returns its path.

    pairs: each query with the ids of the texts that answer it. right: these texts, by their ids.
    """
    figures: list[Element] = []
    for metric in METRICS:
        rows = []
        for way, measured in ways.items():
            value, low, high = measured.figures[metric]
            rows.append((way, value, value if low is None else low, value if high is None else high))
        name = label(metric)
        figures.append(on_one_scale(f"{name[0].upper()}{name[1:]}", metric, rows, ""))
    sections = (
        Section("Figures", figures, "Whiskers: 95 % bootstrap interval over the queries."),
        Section("Where the ways differ", list(differences(pairs, right, ways))),
    )
    return write(path, "searching.html", about=about, sections=sections)


def differences(
    pairs: Sequence[tuple[str, Sequence[str]]], right: Mapping[str, str], ways: Mapping[str, Measured]
) -> Iterator[Folded]:
    """Queries that one way of a pair answers at an earlier rank than the other, largest difference of 1 / rank first.

    Pairs are the first way with each of the others.
    """
    first, *others = ways
    merits = {way: [1 / rank if rank else 0.0 for rank in measured.ranks] for way, measured in ways.items()}
    for other in others:
        for better, worse in ((other, first), (first, other)):
            gains = [one - two for one, two in zip(merits[better], merits[worse], strict=True)]
            clearest = [number for number in sorted(range(len(pairs)), key=lambda n: -gains[n]) if gains[number] > 0]
            entries = []
            for number in clearest[:_EXAMPLES]:
                query, ids = pairs[number]
                ranks = [(way, _rank(measured.ranks[number])) for way, measured in ways.items()]
                texts = beginning(*(right[id] for id in ids if id in right))
                entries.append(Entry(", ".join(ids), beginning(query), ranks, [(texts, ())]))
            if entries:
                yield Folded(f"{better} better than {worse} · {len(clearest):,} of {len(pairs):,} queries", entries)


def _rank(rank: int | None) -> str:
    return f"not among the first {DEPTH}" if rank is None else f"rank {rank}"
