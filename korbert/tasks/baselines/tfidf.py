"""Linear models on TF-IDF of morphemes: logistic regression for labels and choices, ridge for scores.

Each function fits on `train`, chooses one of `values` (C, the inverse regularization strength, or alpha, the strength)
by its score on `validation`, and predicts test; each has at least one row. train and validation are inputs with
targets. CorpusError if no two training texts share a morpheme. `nearest_sentences` is the baseline of questions.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier

from korbert.errors import CorpusError
from korbert.progress import track
from korbert.tasks.baselines.features import Choices, Inputs, Matrix, Pairs, Texts, tfidf_features
from korbert.tasks.metrics import multilabel
from korbert.tasks.metrics.classification import METRICS, Metric, confusion
from korbert.tasks.metrics.regression import pearson

VALUES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_MOST_MODELS = 20  # of one-vs-rest: 200 labels of 4,000 rows take ten minutes, one multinomial model a fifth of that
_MOST_ITERATIONS = 50
_SENTENCE = re.compile(r"\S.*?(?:[.?!]+(?=\s|$)|$)", re.MULTILINE)

Floats = NDArray[np.float64]
Predict = Callable[[Matrix], Floats]
Labelled = tuple[Texts | Pairs, NDArray[Any]]


class Baseline(NamedTuple):
    """Predictions for the test rows, and the value with the best validation score, the smallest among ties.

    | kind | predictions, float64 |
    |---|---|
    | labels | (N, labels): probabilities that sum to 1 |
    | several labels per text | (N, labels): the probability of each; predicted above 0.5 |
    | scores | (N,) |
    | choices | (N, maximum choices): probabilities that sum to 1, 0 for choices that a row lacks |
    """

    predictions: Floats
    chosen: float


def fit_labels(
    train: Labelled, validation: Labelled, test: Texts | Pairs, values: Sequence[float] = VALUES, *,
    num_labels: int = 2, choose_by: Metric = "accuracy",
) -> Baseline:  # fmt: skip
    """One label per row, (N,) int64. values: of C. Up to 20 labels, one-vs-rest; with more, one multinomial model.

    A label without a training row has probability 0.
    """
    seen = np.unique(train[1])

    def fit(features: Matrix, c: float) -> Predict:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # close enough for a baseline
            model = _classifier(len(seen), c).fit(features, train[1])

        def predict(rows: Matrix) -> Floats:
            probabilities = np.zeros((rows.shape[0], num_labels))
            probabilities[:, seen] = model.predict_proba(rows)
            return probabilities

        return predict

    def score(probabilities: Floats) -> float:
        return METRICS[choose_by](confusion(validation[1], probabilities.argmax(axis=1), num_labels))

    return _best((train[0], validation[0], test), values, fit, score)


def _classifier(num_labels: int, c: float) -> Any:
    """A classifier of scikit-learn for so many labels."""
    if num_labels == 1:
        return DummyClassifier()
    if num_labels > _MOST_MODELS:
        return LogisticRegression(C=c, max_iter=_MOST_ITERATIONS, tol=1e-3)
    return OneVsRestClassifier(LogisticRegression(C=c, solver="liblinear", max_iter=1_000))


def fit_multilabel(
    train: Labelled, validation: Labelled, test: Texts | Pairs, values: Sequence[float] = VALUES, *,
    choose_by: Callable[[NDArray[np.bool_], NDArray[np.bool_]], float] = multilabel.micro_f1,
) -> Baseline:  # fmt: skip
    """Any number of labels per row, (N, labels) bool, one binary model per label. values: of C.

    choose_by: a function of targets and labels predicted above 0.5. A label that all or no training rows have keeps
    probability 1 or 0.
    """

    def fit(features: Matrix, c: float) -> Predict:
        models = [_logistic(features, right, c) for right in train[1].T]
        return lambda rows: np.column_stack([model(rows) for model in models])

    inputs = train[0], validation[0], test
    return _best(inputs, values, fit, lambda probabilities: choose_by(validation[1], probabilities > 0.5))


def fit_scores(
    train: Labelled, validation: Labelled, test: Texts | Pairs, values: Sequence[float] = VALUES, *,
    choose_by: Callable[[Floats, Floats], float | None] = pearson,
) -> Baseline:  # fmt: skip
    """Ridge regression: one number per row, (N,) float64. values: of alpha. choose_by: of targets and predictions."""

    def fit(features: Matrix, alpha: float) -> Predict:
        model = Ridge(alpha=alpha, solver="sparse_cg", tol=1e-6).fit(features, train[1])
        return model.predict  # type: ignore[no-any-return]

    return _best((train[0], validation[0], test), values, fit, partial(choose_by, validation[1]))


def fit_choices(
    train: tuple[Choices, NDArray[np.int64]], validation: tuple[Choices, NDArray[np.int64]], test: Choices,
    values: Sequence[float] = VALUES, *, choose_by: Metric = "accuracy",
) -> Baseline:  # fmt: skip
    """The index of the correct choice, (N,) int64. values: of C.

    A binary model scores each choice with its text; probabilities of a row are scaled to sum to 1.
    """
    right = np.concatenate([np.arange(n) == index for n, index in zip(train[0].counts, train[1], strict=True)])
    width = max(len(choices) for inputs in (train[0], validation[0], test) for choices in inputs.choices)

    def by_row(probabilities: Floats, inputs: Choices) -> Floats:
        table = np.zeros((len(inputs.texts), width))
        table[np.arange(width) < np.array(inputs.counts, np.int64)[:, None]] = probabilities
        return np.asarray(table / table.sum(axis=1, keepdims=True))

    def score(probabilities: Floats) -> float:
        return METRICS[choose_by](confusion(validation[1], by_row(probabilities, validation[0]).argmax(axis=1), width))

    inputs = train[0], validation[0], test
    best = _best(inputs, values, lambda features, c: _logistic(features, right, c), score)
    return Baseline(by_row(best.predictions, test), best.chosen)


def _best(
    inputs: Sequence[Inputs], values: Sequence[float], fit: Callable[[Matrix, float], Predict],
    score: Callable[[Floats], float | None],
) -> Baseline:  # fmt: skip
    """inputs: of train, validation and test. fit: of train and a value. score: of the validation predictions."""
    with track("TF-IDF baseline", total=1 + len(values), unit="steps") as advance:
        train, validation, test = tfidf_features(*inputs)
        advance(1)
        models: dict[float, Predict] = {}
        scores: list[float] = []
        for value in sorted(values):
            models[value] = fit(train, value)
            validation_score = score(models[value](validation))
            scores.append(-np.inf if validation_score is None else validation_score)
            advance(1)
    chosen = list(models)[int(np.argmax(scores))]  # the first among ties
    return Baseline(models[chosen](test), chosen)


def _logistic(features: Matrix, right: NDArray[np.bool_], c: float) -> Predict:
    """Fits a binary model: rows -> probabilities (N,). Constant if all or no training rows are positive."""
    if right.all() or not right.any():
        return lambda rows: np.full(rows.shape[0], float(right[0]))
    model = LogisticRegression(C=c, solver="liblinear", max_iter=1_000).fit(features, right)
    return lambda rows: model.predict_proba(rows)[:, 1]


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
    of_context = {context: sentences(context) for _, context in asked}
    nearest = []
    for question, context in asked:
        spans = of_context[context]
        if not spans:
            nearest.append((0, 0, 0.0))
            continue
        rows = vectors.transform([question, *(context[start:end] for start, end in spans)])
        cosines = (rows[1:] @ rows[0].T).toarray()[:, 0]
        best = int(np.argmax(cosines))
        nearest.append((*spans[best], float(cosines[best])))
    return nearest
