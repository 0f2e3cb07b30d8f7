"""TF-IDF of morphemes: a row of features per text or pair of texts.

Features of a text are its morpheme unigrams and bigrams that occur in at least two training texts, with sublinear
counts, scaled to length 1. Those of two texts a and b are concatenated: a, b, |a - b|, and the cosine of a and b, over
terms learned from both sides together. Other features were worse on six sets (benchmarks/RESULTS.md, "Features of
TF-IDF").
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from korbert.errors import CorpusError

Texts: TypeAlias = Sequence[Sequence[str]]
"""The morphemes of each text."""

Matrix: TypeAlias = Any  # scipy.sparse.csr_matrix, float64


class TextPairs(NamedTuple):
    """Two texts per row, as morphemes."""

    first: Texts
    second: Texts


def tfidf_features(vocabulary_texts: Iterable[Sequence[str]], *inputs: Texts | TextPairs) -> list[Matrix]:
    """Features of each of the inputs, with the terms and frequencies of the texts `vocabulary_texts`, as morphemes.

    CorpusError if no two of these share a morpheme.
    """
    from scipy import sparse
    from sklearn.feature_extraction.text import TfidfVectorizer  # a second, and models need none

    # Unigrams, and bigrams joined by a space, which no form contains.
    vectorizer = TfidfVectorizer(
        analyzer=lambda forms: [*forms, *map(" ".join, pairwise(forms))], min_df=2, sublinear_tf=True
    )
    try:
        learned = vectorizer.fit_transform(vocabulary_texts)
    except ValueError as error:
        raise CorpusError("no two training texts share a morpheme: give more texts to learn from") from error

    def of(own: Texts | TextPairs) -> Matrix:
        if not isinstance(own, TextPairs):
            return learned if own is vocabulary_texts else vectorizer.transform(own)
        first, second = map(vectorizer.transform, own)
        cosine = sparse.csr_matrix(first.multiply(second).sum(axis=1))
        return sparse.hstack([first, second, abs(first - second), cosine], format="csr")

    return list(map(of, inputs))
