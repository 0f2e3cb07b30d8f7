"""Linear models on TF-IDF of morphemes: logistic regression for labels, ridge for scores.

The inputs of each function are training, validation and test rows, at least one of each. The function fits on the
training rows and their targets, chooses C, the inverse regularization strength, or alpha, the strength, by the score of
its predictions for the validation rows, and predicts the test rows. score: returns None if it is undefined.
vocabulary_texts: the texts that terms are learned from; by default the training texts. CorpusError if no two of them
share a morpheme. `nearest_sentences` is the baseline of question answering.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier

from korbert.errors import CorpusError
from korbert.system import track
from korbert.tasks.baselines.features import Matrix, TextPairs, Texts, tfidf_features

VALUES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # of C or alpha
_MOST_MODELS = 20  # of one-vs-rest: 200 labels of 4,000 rows take ten minutes, one multinomial model a fifth of that
_MOST_ITERATIONS = 50
_SENTENCE = re.compile(r"\S.*?(?:[.?!]+(?=\s|$)|$)", re.MULTILINE)

Floats = NDArray[np.float64]
Inputs = Sequence[Texts | TextPairs]
Predict = Callable[[Matrix], Floats]
Scorer = Callable[[Floats], float | None]
Fitted = tuple[Floats, float]
"""Predictions for the test rows, and the value with the best validation score, the smallest among ties."""


def fit_labels(
    inputs: Inputs, targets: NDArray[np.int64], score: Scorer, num_labels: int, values: Sequence[float] = VALUES
) -> Fitted:
    """Fits one label per row. Predictions: (N, num_labels) probabilities that sum to 1, 0 for a label without a row.

    Up to 20 labels are fitted one-vs-rest, more labels as one multinomial model.
    """
    seen = np.unique(targets)

    def fit(features: Matrix, c: float) -> Predict:
        model: Any = OneVsRestClassifier(LogisticRegression(C=c, solver="liblinear", max_iter=1_000))
        if len(seen) == 1:
            model = DummyClassifier()
        elif len(seen) > _MOST_MODELS:
            model = LogisticRegression(C=c, max_iter=_MOST_ITERATIONS, tol=1e-3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # close enough for a baseline
            model.fit(features, targets)

        def predict(rows: Matrix) -> Floats:
            probabilities = np.zeros((rows.shape[0], num_labels))
            probabilities[:, seen] = model.predict_proba(rows)
            return probabilities

        return predict

    return _best(inputs, fit, score, values)


def fit_multilabel(
    inputs: Inputs, targets: NDArray[np.bool_], score: Scorer, values: Sequence[float] = VALUES, *,
    vocabulary_texts: Texts | None = None,
) -> Fitted:  # fmt: skip
    """Fits any number of labels per row, with a binary model for each label. targets: (N, labels).

    Predictions: (N, labels) probabilities. A label that all or no training rows have keeps probability 1 or 0.
    """

    def fit(features: Matrix, c: float) -> Predict:
        model: Any = OneVsRestClassifier(LogisticRegression(C=c, solver="liblinear", max_iter=1_000))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Label .* present in all training examples")
            model.fit(features, targets.astype(int))
        # For a single label, predict_proba has two columns: without the label, and with it.
        return lambda rows: model.predict_proba(rows)[:, -targets.shape[1] :]

    return _best(inputs, fit, score, values, vocabulary_texts)


def fit_scores(inputs: Inputs, targets: Floats, score: Scorer, values: Sequence[float] = VALUES) -> Fitted:
    """Fits one number per row by ridge regression. Predictions: (N,)."""

    def fit(features: Matrix, alpha: float) -> Predict:
        model = Ridge(alpha=alpha, solver="sparse_cg", tol=1e-6).fit(features, targets)
        return model.predict  # type: ignore[no-any-return]

    return _best(inputs, fit, score, values)


def _best(
    inputs: Inputs, fit: Callable[[Matrix, float], Predict], score: Scorer, values: Sequence[float],
    vocabulary_texts: Texts | None = None,
) -> Fitted:  # fmt: skip
    with track("TF-IDF baseline", total=1 + len(values), unit="steps") as advance:
        if vocabulary_texts is None:
            vocabulary_texts = [*chain(*inputs[0])] if isinstance(inputs[0], TextPairs) else inputs[0]
        train, validation, test = tfidf_features(vocabulary_texts, *inputs)
        advance(1)
        models: dict[float, Predict] = {}
        scores: dict[float, float] = {}
        for value in sorted(values):
            models[value] = fit(train, value)
            validation_score = score(models[value](validation))
            scores[value] = -np.inf if validation_score is None else validation_score
            advance(1)
    chosen = max(scores, key=scores.__getitem__)  # the first among ties
    return models[chosen](test), chosen


def sentences(text: str) -> list[tuple[int, int]]:
    """Half-open spans of sentences, stripped. A sentence ends at the end of its line, or at . ? or ! before a space."""
    return [(match.start(), match.start() + len(match[0].rstrip())) for match in _SENTENCE.finditer(text)]


def nearest_sentences(train: Iterable[str], asked: Sequence[tuple[str, str]]) -> list[tuple[int, int, float]]:
    """For each (question, context), the span of the first nearest sentence and its cosine to the question, 0 to 1.

    train: texts to fit character bigrams on, spaces next to words included. A context without a sentence gives
    (0, 0, 0.0). CorpusError if the texts have no bigram.
    """
    vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 2), sublinear_tf=True)
    try:
        vectors.fit(train)
    except ValueError as error:
        raise CorpusError("the training texts have no characters: give others to learn from") from error
    spans_of_context = {context: sentences(context) for _, context in asked}
    nearest = []
    for question, context in asked:
        spans = spans_of_context[context]
        if not spans:
            nearest.append((0, 0, 0.0))
            continue
        rows = vectors.transform([question, *(context[start:end] for start, end in spans)])
        cosines = (rows[1:] @ rows[0].T).toarray()[:, 0]
        best = int(np.argmax(cosines))
        nearest.append((*spans[best], float(cosines[best])))
    return nearest
