"""TF-IDF of morphemes: a row of features per text, pair of texts, or choice.

Features of a text are its morpheme unigrams and bigrams that occur in at least two training texts, with sublinear
counts, scaled to length 1. Those of two texts a and b are concatenated: a, b, |a - b|, and the cosine of a and b, over
terms learned from both sides together.

Measured with Kiwi's morphemes, the validation score of the best C (0.03 to 100) or alpha (0.03 to 30): Pearson (KorSTS)
and accuracy (question pairs, a tenth of the training file held out by hash; KoBEST's WiC, BoolQ, COPA, HellaSwag).

| features | KorSTS | question pairs | WiC | BoolQ | COPA | HellaSwag |
|---|---|---|---|---|---|---|
| a, b | 0.190 | 0.835 | 0.487 | 0.576 | 0.638 | 0.424 |
| difference | 0.615 | 0.921 | 0.571 | 0.569 | 0.640 | 0.412 |
| difference, product | 0.619 | 0.923 | 0.574 | 0.569 | 0.638 | 0.410 |
| a, b, difference, product | 0.596 | 0.917 | 0.543 | 0.577 | 0.636 | 0.432 |
| cosine | 0.671 | 0.857 | 0.544 | 0.506 | 0.474 | 0.496 |
| difference, product, cosine | 0.728 | 0.925 | 0.564 | 0.566 | 0.628 | 0.516 |
| a, b, product, cosine | 0.704 | 0.910 | 0.513 | 0.589 | 0.638 | 0.522 |
| a, b, difference, product, cosine | 0.730 | 0.921 | 0.551 | 0.579 | 0.634 | 0.512 |
| **a, b, difference, cosine** | 0.730 | 0.921 | 0.552 | 0.579 | 0.634 | 0.512 |
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, TypeAlias

import numpy as np

from korbert.errors import CorpusError

Texts: TypeAlias = Iterable[Sequence[str]]
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

    counter = CountVectorizer(analyzer=_grams, min_df=2, dtype=np.float64)
    weighting = TfidfTransformer(sublinear_tf=True)
    try:
        counts = counter.fit_transform(_all_texts(train))
    except ValueError as error:
        raise CorpusError("no two training texts share a morpheme: give more texts to learn from") from error
    weighting.fit(counts)

    def of_texts(texts: Texts) -> Matrix:
        rows = counter.transform(texts)
        return weighting.transform(rows, copy=False) if rows.shape[0] else rows

    def of(inputs: Inputs) -> Matrix:
        if isinstance(inputs, Pairs):
            return _side_by_side(of_texts(inputs.first), of_texts(inputs.second))
        if isinstance(inputs, Choices):
            repeated = np.repeat(np.arange(len(inputs.texts)), inputs.counts)
            return _side_by_side(of_texts(inputs.texts)[repeated], of_texts(chain.from_iterable(inputs.choices)))
        return of_texts(inputs)

    several = isinstance(train, Pairs | Choices)
    learned = of(train) if several else weighting.transform(counts, copy=False)  # texts may be a stream
    return [learned, *(of(inputs) for inputs in others)]


def _all_texts(inputs: Inputs) -> Texts:
    if isinstance(inputs, Pairs):
        return chain(inputs.first, inputs.second)
    if isinstance(inputs, Choices):
        return chain(inputs.texts, *inputs.choices)
    return inputs


def _side_by_side(first: Matrix, second: Matrix) -> Matrix:
    from scipy import sparse

    cosine = sparse.csr_matrix(first.multiply(second).sum(axis=1))
    return sparse.hstack([first, second, abs(first - second), cosine], format="csr")


def _grams(morphemes: Sequence[str]) -> list[str]:
    """Unigrams, and bigrams joined by a space, which no form contains."""
    return [*morphemes, *(f"{first} {second}" for first, second in pairwise(morphemes))]
