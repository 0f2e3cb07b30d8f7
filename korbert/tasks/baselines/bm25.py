"""BM25 over morphemes: what search by words alone finds."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_K1, _B = 1.2, 0.75  # Robertson and Zaragoza 2009, 3.2


def bm25(texts: Sequence[Sequence[str]], queries: Sequence[Sequence[str]]) -> Callable[[slice], NDArray[np.float64]]:
    """A slice of the queries -> their BM25 scores of all texts, (n, M), with Lucene's idf.

    texts, queries: the morphemes of each.
    """
    from scipy import sparse
    from sklearn.feature_extraction.text import CountVectorizer  # a second, and models need none

    counter = CountVectorizer(analyzer=lambda morphemes: morphemes, dtype=np.float64)
    counts: Any = counter.fit_transform(texts)
    having = counts.getnnz(axis=0)
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    saturation = _K1 * (1 - _B + _B * lengths / max(lengths.mean(), 1))
    weights = counts.copy()
    weights.data /= weights.data + np.repeat(saturation, np.diff(weights.indptr))
    weights = weights @ sparse.diags(np.log1p((len(texts) - having + 0.5) / (having + 0.5)))
    asked = counter.transform(queries)
    return lambda part: np.asarray((asked[part] @ weights.T).todense())
