"""The page of `korbert search-eval`: the figures of each way of searching, and the queries on which the ways differ."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.table import Table

from korbert.messages import Message, in_language, join_messages
from korbert.pipelines.reports.artifacts.task import on_one_scale
from korbert.pipelines.reports.drawing import Element, Example, Folded, Section, beginning, differing, write
from korbert.search.evaluation import DEPTH, METRICS, SearchScores
from korbert.system import console

_EXAMPLES = 20  # for each side of a pair
WAYS = {
    "words": Message("words"),
    "vectors": Message("vectors"),
    "both": Message("both"),
    "reranked": Message("reranked"),
}
"""Display names of the ways of searching."""

_TITLES = {
    "recall@1": Message("Recall at 1"),
    "recall@10": Message("Recall at 10"),
    "recall@100": Message("Recall at 100"),
    "MRR": Message("Mean reciprocal rank"),
    "nDCG@10": Message("Normalized DCG at 10"),
}


def write_page(
    path: Path, about: str, pairs: Sequence[tuple[str, Sequence[str]]], right: Mapping[str, str],
    ways: Mapping[str, SearchScores],
) -> Path:  # fmt: skip
    """Writes the page and returns its path.

    pairs: each query with the ids of the texts that answer it. right: id -> such a text. ways: way -> its scores.
    """
    figures: list[Element] = []
    for metric in METRICS:
        rows = []
        for way, measured in ways.items():
            value, low, high = measured.figures[metric]
            if low is None or high is None:  # too few queries for an interval
                low = high = value
            rows.append((WAYS.get(way, way), value, low, high))
        figures += on_one_scale(_TITLES[metric], metric, rows, "")
    return write(
        path,
        "searching.html",
        about=about,
        sections=(
            Section(Message("Figures"), figures, Message("Whiskers: 95 % bootstrap interval over the queries.")),
            Section(Message("Where the ways differ"), list(differences(pairs, right, ways))),
        ),
    )


def differences(
    pairs: Sequence[tuple[str, Sequence[str]]], right: Mapping[str, str], ways: Mapping[str, SearchScores]
) -> Iterator[Folded]:
    """Yields queries that one way answers at an earlier rank than another, largest difference of 1 / rank first.

    Compares the first way with each of the others.
    """
    row_scores = {way: np.array([1 / rank if rank else 0.0 for rank in of_way.ranks]) for way, of_way in ways.items()}
    for better, worse, order in differing(row_scores):
        entries = []
        for number in order[:_EXAMPLES]:
            query, ids = pairs[number]
            facts = [(WAYS.get(way, way), rank_in_words(of_way.ranks[number])) for way, of_way in ways.items()]
            texts = beginning(*(right[id] for id in ids if id in right))
            entries.append(Example(", ".join(ids), beginning(query), facts, [(texts, ())]))
        verdict = Message("{better} better than {worse}", better=WAYS.get(better, better), worse=WAYS.get(worse, worse))
        queries = Message("{number:,} of {total:,} queries", number=len(order), total=len(pairs))
        yield Folded(join_messages([verdict, queries], " · "), entries)


def rank_in_words(rank: int | None) -> Message:
    if rank is None:
        return Message("not among the first {depth}", depth=DEPTH)
    return Message("rank {rank}", rank=rank)


def show_table(ways: Mapping[str, SearchScores]) -> None:
    """Prints the figures of each way of searching, times 100, with their intervals."""
    table = Table("", *(in_language(WAYS.get(way, way)) for way in ways), box=None, pad_edge=False)
    for metric in next(iter(ways.values())).figures:
        cells = []
        for measured in ways.values():
            value, *ends = (f"{100 * part:.1f}" for part in measured.figures[metric] if part is not None)
            if ends:
                interval = Message("{low} to {high}", low=ends[0], high=ends[1])
                value = f"{value} ({in_language(interval)})"
            cells.append(value)
        table.add_row(metric, *cells)
    console(width=12 + 26 * len(ways)).print(table)  # never wrapped, whatever the width of the terminal
