"""Searches with known answers: how well an index finds them, and which hard negatives it finds with them."""

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, get_args

import numpy as np

from korbert.model import Model
from korbert.search.index import Index
from korbert.tasks.files import TaskRow
from korbert.tasks.metrics.statistics import bootstrap_interval
from korbert.tasks.retrieval import Retrieval
from korbert.vectors import SearchWay

METRICS = ("recall@1", "recall@10", "recall@100", "MRR", "nDCG@10")
DEPTH = 100  # texts after the first 100 count as not found
_AT_ONCE = 256


class MeanWithInterval(NamedTuple):
    """Mean over the queries, 0 to 1, and the ends of its 95 % bootstrap interval; None for fewer than two queries."""

    value: float
    low: float | None
    high: float | None


class SearchScores(NamedTuple):
    """What a way of searching finds.

    figures: metric -> its mean over all queries, for each of METRICS. ranks: for each query the rank of the first right
    text, from 1; None if no right text is found.
    """

    figures: dict[str, MeanWithInterval]
    ranks: list[int | None]


def evaluate(
    index: Index,
    queries: Sequence[str],
    relevant: Sequence[Collection[str]],
    ways: Sequence[SearchWay] = get_args(SearchWay),
    reranker: Model | None = None,
) -> dict[str, SearchScores]:
    """Measures what each way of searching finds. relevant: for each query the ids, one or more, of texts that answer.

    reranker: a model of kind "rerank"; adds "reranked", its order of what the index finds by its default way.

    Texts after the first 100 count as not found. All relevant texts of a query are alike (nDCG with gains 0 and 1).
    """
    searches: dict[str, tuple[SearchWay | None, Model | None]] = {way: (way, None) for way in ways}
    if reranker:
        searches["reranked"] = (None, reranker)
    parts = [queries[start : start + _AT_ONCE] for start in range(0, len(queries), _AT_ONCE)]
    gains = 1 / np.log2(np.arange(2, 12))
    scores: dict[str, SearchScores] = {}
    for name, (way, ranker) in searches.items():
        rows: list[list[float]] = []  # the METRICS of each query
        firsts: list[int | None] = []  # the rank of the first right text of each query
        results = chain.from_iterable(index.search(part, DEPTH, way, reranker=ranker) for part in parts)
        for hits, ids in zip(results, relevant, strict=True):
            ranks = np.array([rank for rank, hit in enumerate(hits, 1) if hit.id in ids], np.int64)
            count = len(set(ids))
            recalls = [np.count_nonzero(ranks <= depth) / count for depth in (1, 10, 100)]
            ndcg = gains[ranks[ranks <= 10] - 1].sum() / gains[:count].sum()
            rows.append([*recalls, 1 / ranks[0] if len(ranks) else 0.0, float(ndcg)])
            firsts.append(int(ranks[0]) if len(ranks) else None)
        figures = {}
        for metric, values in zip(METRICS, np.array(rows).T, strict=True):
            interval = bootstrap_interval(values, rng=np.random.default_rng(0)) if len(values) > 1 else None
            low, high = (None, None) if interval is None else interval[:2]
            figures[metric] = MeanWithInterval(float(values.mean()), low, high)
        scores[name] = SearchScores(figures, firsts)
    return scores


def hard_negatives(
    index: Index, rows: Sequence[TaskRow], count: int, way: SearchWay, *, depth: int = 100, most: float = 0.95
) -> Iterator[list[str]]:
    """For each row, the up to `count` best passages of the index that do not answer its `text`.

    index: holds the passage of every row, its `pair`. Passages that answer the same text in another row are left out,
    and so are those that score more than `most` of what the right passage scores, as these often answer it, too, though
    no row says so (Moreira et al. 2024, 3.2: "TopK-PercPos", 95 %). depth: of the search; a row whose right passage is
    not found within it gets none.
    """
    retrieval = Retrieval.of(rows)
    for start in range(0, len(rows), _AT_ONCE):
        queries = retrieval.queries[start : start + _AT_ONCE]
        for number, hits in enumerate(index.search(queries, depth, way), start):
            right_passage = retrieval.passages[retrieval.own[number]]
            right_passages = {
                right_passage,
                *(retrieval.passages[position] for position in retrieval.fits.get(number, ())),
            }
            limit = next((most * hit.score for hit in hits if hit.text == right_passage), float("-inf"))
            yield [hit.passage for hit in hits if hit.text not in right_passages and hit.score <= limit][:count]
