"""TF-IDF of morphemes: a row of features per text, pair of texts, or choice.

Features of a text are its morpheme unigrams and bigrams that occur in at least two training texts, with sublinear
counts, scaled to length 1. Those of two texts a and b are concatenated: a, b, |a - b|, and the cosine of a and b, over
terms learned from both sides together. Other features were worse on six sets (benchmarks/RESULTS.md, "Features of
TF-IDF").
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, TypeAlias

import numpy as np

from korbert.errors import CorpusError

Texts: TypeAlias = Sequence[Sequence[str]]
"""The morphemes of each text."""

Matrix: TypeAlias = Any  # scipy.sparse.csr_matrix, float64


@dataclass(frozen=True)
class Pairs:
    """Two texts per row, as morphemes."""

    first: Sequence[Sequence[str]]
    second: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Choices:
    """A text and its choices per row, two or more, as morphemes."""

    texts: Sequence[Sequence[str]]
    choices: Sequence[Sequence[Sequence[str]]]

    @property
    def counts(self) -> list[int]:
        """The number of choices of each row."""
        return [len(choices) for choices in self.choices]


Inputs: TypeAlias = Texts | Pairs | Choices


def tfidf_features(train: Inputs, *others: Inputs) -> list[Matrix]:
    """Features of the training inputs and of each of the others, with terms and frequencies fitted on training inputs.

    One row per text or pair; for Choices, one row per choice, all choices of the first text first. CorpusError if no
    two training texts share a morpheme.
    """
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer  # a second, and models need none

    # Unigrams, and bigrams joined by a space, which no form contains.
    counter = CountVectorizer(
        analyzer=lambda forms: [*forms, *map(" ".join, pairwise(forms))], min_df=2, dtype=np.float64
    )
    weighting = TfidfTransformer(sublinear_tf=True)
    try:
        if isinstance(train, Pairs):
            counts = counter.fit_transform(chain(train.first, train.second))
        elif isinstance(train, Choices):
            counts = counter.fit_transform(chain(train.texts, *train.choices))
        else:
            counts = counter.fit_transform(train)
    except ValueError as error:
        raise CorpusError("no two training texts share a morpheme: give more texts to learn from") from error
    weighting.fit(counts)

    def of_texts(texts: Iterable[Sequence[str]]) -> Matrix:
        return weighting.transform(counter.transform(texts), copy=False)

    def of(inputs: Inputs) -> Matrix:
        if isinstance(inputs, Pairs):
            return _side_by_side(of_texts(inputs.first), of_texts(inputs.second))
        if isinstance(inputs, Choices):
            repeated = np.repeat(np.arange(len(inputs.texts)), inputs.counts)
            return _side_by_side(of_texts(inputs.texts)[repeated], of_texts(chain.from_iterable(inputs.choices)))
        return of_texts(inputs)

    learned = of(train) if isinstance(train, Pairs | Choices) else weighting.transform(counts, copy=False)
    return [learned, *map(of, others)]


def _side_by_side(first: Matrix, second: Matrix) -> Matrix:
    from scipy import sparse

    cosine = sparse.csr_matrix(first.multiply(second).sum(axis=1))
    return sparse.hstack([first, second, abs(first - second), cosine], format="csr")
