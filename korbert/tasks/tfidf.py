"""The baseline that a classifier has to beat: TF-IDF of morphemes and logistic regression."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from korbert.errors import CorpusError

__all__ = ["Baseline", "fit_baseline"]

Texts = Iterable[Sequence[str]]  # the morphemes of each text


@dataclass(frozen=True)
class Baseline:
    """The C that got most validation texts right (the smallest of equals), and the test texts by it.

    trials: C -> validation texts it got right. probability: (N,) float64, of label 1 for each test text.
    """

    c: float
    trials: Mapping[float, int]
    probability: NDArray[np.float64]


def fit_baseline(
    train: tuple[Texts, NDArray[np.int64]],
    validation: tuple[Texts, NDArray[np.int64]],
    test: Texts,
    values: Sequence[float],
    advance: Callable[[int], None] = lambda count: None,
) -> Baseline:
    """Learns two labels from `train`, chooses C out of `values` by `validation`, and looks at `test` once.

    Features are single morphemes and pairs of neighbours that two training texts have, with sublinear counts. advance:
    called with 1 when the features are there, and after each C. Raises CorpusError where no two training texts have a
    morpheme in common.
    """
    vectorizer = TfidfVectorizer(analyzer=_grams, min_df=2, sublinear_tf=True, dtype=np.float64)
    try:
        features = vectorizer.fit_transform(train[0])
        advance(1)
    except ValueError as error:
        raise CorpusError("no two training texts share a morpheme: give more texts to learn from") from error
    held_out = vectorizer.transform(validation[0])
    models, trials = {}, {}
    for c in sorted(values):
        models[c] = LogisticRegression(C=c, solver="liblinear", max_iter=1_000).fit(features, train[1])
        trials[c] = int((models[c].predict(held_out) == validation[1]).sum())
        advance(1)
    chosen = max(trials, key=lambda c: trials[c])  # the first of equals
    return Baseline(chosen, trials, models[chosen].predict_proba(vectorizer.transform(test))[:, 1])


def _grams(morphemes: Sequence[str]) -> list[str]:
    """Morphemes, and neighbours joined by a space, which no form holds."""
    return [*morphemes, *(f"{first} {second}" for first, second in pairwise(morphemes))]
