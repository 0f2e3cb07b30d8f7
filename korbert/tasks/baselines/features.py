"""TF-IDF of morphemes: a row of features per text or pair of texts.

Features of a text are its morpheme unigrams and bigrams that occur in at least two training texts, with sublinear
counts, scaled to length 1. The features of two texts are those of the first, a, and of the second, b, |a - b|, and the
cosine of a and b, concatenated; terms are learned from both sides together. Other features were worse on six sets
(benchmarks/RESULTS.md, "Features of TF-IDF").
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
    """Returns the features of each input, with the terms of `vocabulary_texts` and their frequencies there.

    All texts are given as morphemes. CorpusError if no two of `vocabulary_texts` share a morpheme.
    """
    from scipy import sparse
    from sklearn.feature_extraction.text import TfidfVectorizer  # takes a second to import; models do not need it

    # Unigrams, and bigrams joined by a space, which no form contains.
    vectorizer = TfidfVectorizer(
        analyzer=lambda forms: [*forms, *map(" ".join, pairwise(forms))], min_df=2, sublinear_tf=True
    )
    try:
        vocabulary_features = vectorizer.fit_transform(vocabulary_texts)
    except ValueError as error:
        raise CorpusError("no two training texts share a morpheme: give more texts to learn from") from error

    def features_of(texts: Texts | TextPairs) -> Matrix:
        if not isinstance(texts, TextPairs):
            return vocabulary_features if texts is vocabulary_texts else vectorizer.transform(texts)
        first, second = map(vectorizer.transform, texts)
        cosine = sparse.csr_matrix(first.multiply(second).sum(axis=1))
        return sparse.hstack([first, second, abs(first - second), cosine], format="csr")

    return list(map(features_of, inputs))
