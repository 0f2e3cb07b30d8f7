"""Hard negatives: passages that a search finds for a query that others answer."""

from collections.abc import Iterator, Sequence

from korbert.search.index import Index
from korbert.tasks.files import TaskRow
from korbert.tasks.retrieval import Retrieval
from korbert.vectors import Way

_AT_ONCE = 256


def hard_negatives(
    index: Index, rows: Sequence[TaskRow], count: int, way: Way, *, depth: int = 100, most: float = 0.95
) -> Iterator[list[str]]:
    """For each row, the up to `count` best passages of the index that do not answer its `text`.

    index: holds the passage of every row, its `pair`. Passages that answer the same text in another row are left out,
    and so are those that score more than `most` of what the right passage scores, as these often answer it, too, though
    no row says so (Moreira et al. 2024, 3.2: "TopK-PercPos", 95 %). depth: of the search; a row whose right passage is
    not found within it gets none.
    """
    searched = Retrieval.of(rows)
    for start in range(0, len(rows), _AT_ONCE):
        queries = searched.queries[start : start + _AT_ONCE]
        for number, hits in enumerate(index.search(queries, depth, way), start):
            own = searched.passages[searched.own[number]]
            right = {own, *(searched.passages[fit] for fit in searched.fits.get(number, ()))}
            limit = next((most * hit.score for hit in hits if hit.text == own), float("-inf"))
            yield [hit.text for hit in hits if hit.text not in right and hit.score <= limit][:count]
