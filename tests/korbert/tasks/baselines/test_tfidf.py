"""The linear baselines, and their features, against scikit-learn put together another way."""

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, f1_score
from sklearn.metrics.pairwise import paired_cosine_distances
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from korbert.errors import CorpusError
from korbert.tasks.baselines import TextPairs, fit_labels, fit_multilabel, fit_scores, tfidf
from korbert.tasks.baselines.features import tfidf_features
from korbert.tasks.baselines.tfidf import nearest_sentences, sentences
from korbert.tasks.files import TaskRows
from korbert.tasks.kinds.multiple_choice import MultipleChoice
from korbert.tasks.splits import Splits

GOOD, BAD = ["정말", "재밌", "다"], ["너무", "지루", "하", "다"]
VALUES = [0.3, 3.0]
TRAIN, VALIDATION, TEST = slice(0, 120), slice(120, 170), slice(170, 200)
CONTEXT = "세종은 1.5배 큰 집에 살았다. 한글을 만들었다!\n 끝  "


def _texts(seed):
    """200 texts of 1 to 8 words, of which some are frequent."""
    rng, frequencies = np.random.default_rng(seed), 1 / np.arange(1, 41)
    words = [f"말{number}" for number in range(40)]
    return [list(rng.choice(words, rng.integers(1, 9), p=frequencies / frequencies.sum())) for _ in range(200)]


def _vectorizer():
    """Of texts with a space between words; our features say the same of lists of words."""
    how = {"tokenizer": str.split, "token_pattern": None, "lowercase": False, "ngram_range": (1, 2)}
    return TfidfVectorizer(**how, min_df=2, sublinear_tf=True)


def _joined(texts):
    return [" ".join(text) for text in texts]


def _of_two(first, second, from_training_rows):
    """The features of pairs, dense."""
    vectorizer = _vectorizer().fit(from_training_rows)
    a, b = (vectorizer.transform(side).toarray() for side in (first, second))
    return np.hstack([a, b, np.abs(a - b), 1 - paired_cosine_distances(a, b)[:, None]])


A, B = _texts(1), _texts(2)
LABELS = np.array([sum(map(len, text)) % 3 for text in A])
BOTH = np.array([len(set(a) & set(b)) for a, b in zip(A, B, strict=True)])  # words that two texts share


def _chosen(fit, score):
    """Of the models of all values, the one with the best score; the first of equals."""
    models = {value: fit(value) for value in VALUES}
    value = max(VALUES, key=lambda value: score(models[value]))
    return value, models[value]


def _linear(c):
    return LogisticRegression(C=c, solver="liblinear", tol=1e-8, max_iter=10_000)


def _ridge(alpha):
    return Ridge(alpha=alpha, solver="cholesky")


SEVERAL = np.array([[f"말{number}" in text for number in (2, 3, 5)] for text in A])


def _accuracy(labels):
    """As a function of probabilities."""
    return lambda probabilities: accuracy_score(labels, probabilities.argmax(axis=1))


@pytest.mark.parametrize(
    ("fit", "labels", "options", "average"),
    [
        (fit_labels, LABELS % 2, {"num_labels": 2}, "macro"),
        (fit_labels, LABELS, {"num_labels": 3}, "macro"),
        (fit_multilabel, SEVERAL, {}, "micro"),
    ],
)
def test_labels_of_texts(fit, labels, options, average):
    def score(probabilities):
        predicted = probabilities > 0.5 if fit is fit_multilabel else probabilities.argmax(axis=1)
        return f1_score(labels[VALIDATION], predicted, average=average)

    predictions, chosen = fit(
        [A[part] for part in (TRAIN, VALIDATION, TEST)], labels[TRAIN], score, values=VALUES, **options
    )

    def trained(c):
        rest = OneVsRestClassifier(LogisticRegression(C=c, solver="liblinear"))
        return make_pipeline(_vectorizer(), rest).fit(_joined(A[TRAIN]), labels[TRAIN].astype(int))

    value, model = _chosen(
        trained,
        lambda model: f1_score(labels[VALIDATION], model.predict(_joined(A[VALIDATION])), average=average),
    )
    assert chosen == value
    np.testing.assert_allclose(predictions, model.predict_proba(_joined(A[TEST])), rtol=1e-12)


@pytest.mark.parametrize("fit", [fit_labels, fit_scores])
def test_pairs(fit):
    rows = _of_two(_joined(A), _joined(B), _joined(A[TRAIN] + B[TRAIN]))
    inputs = [TextPairs(A[part], B[part]) for part in (TRAIN, VALIDATION, TEST)]
    if fit is fit_labels:
        targets, model_of, predict, close = (BOTH > 1).astype(np.int64), _linear, "predict_proba", 1e-3
        predictions, chosen = fit_labels(inputs, targets[TRAIN], _accuracy(targets[VALIDATION]), 2, VALUES)
    else:
        targets, model_of, predict, close = BOTH / 3, _ridge, "predict", 1e-4
        predictions, chosen = fit_scores(
            inputs, targets[TRAIN], lambda found: np.corrcoef(targets[VALIDATION], found)[0, 1], VALUES
        )
    score = accuracy_score if fit is fit_labels else lambda one, other: np.corrcoef(one, other)[0, 1]
    value, model = _chosen(
        lambda value: model_of(value).fit(rows[TRAIN], targets[TRAIN]),
        lambda model: score(targets[VALIDATION], model.predict(rows[VALIDATION])),
    )
    assert chosen == value
    np.testing.assert_allclose(predictions, getattr(model, predict)(rows[TEST]), atol=close)


def test_scores_of_single_texts_chosen_by_another_score():
    scores = np.array([float("말0" in text) for text in A])
    inputs = [A[part] for part in (TRAIN, VALIDATION, TEST)]
    _, chosen = fit_scores(
        inputs, scores[TRAIN], lambda found: -float(np.abs(scores[VALIDATION] - found).mean()), [100.0, 0.1]
    )
    assert chosen == 0.1


def test_choices():
    """Two to four choices a row; the right one shares most words with the text."""
    endings = [list(row)[: 2 + i % 3] for i, row in enumerate(zip(B, *map(_texts, (5, 6, 7)), strict=True))]
    places = np.array([int(np.argmax([len(set(a) & set(e)) for e in row])) for a, row in zip(A, endings, strict=True)])
    rows = [
        {"text": " ".join(a), "choices": _joined(row), "label": str(place)}
        for a, row, place in zip(A, endings, places, strict=True)
    ]
    morphemes = {text: text.split() for row in rows for text in (row["text"], *row["choices"])}
    kind = MultipleChoice(metrics=("accuracy",), max_length=32, most=4)
    parts = Splits(*(TaskRows(rows[part], [None] * len(rows[part])) for part in (TRAIN, VALIDATION, TEST)))
    _, best = kind.baselines(parts, morphemes)

    numbers = [i for i, row in enumerate(endings) for _ in row]
    flat = [ending for row in endings for ending in row]
    right = [place == places[i] for i, row in enumerate(endings) for place in range(len(row))]
    learned = sum(number < 120 for number in numbers)
    features = _of_two(_joined([A[i] for i in numbers]), _joined(flat), _joined(A[TRAIN] + flat[:learned]))

    def likeliest(c):
        likely = _linear(c).fit(features[:learned], right[:learned]).predict_proba(features)[:, 1]
        return np.array([likely[np.array(numbers) == i].argmax() for i in range(200)])

    models = {c: likeliest(c) for c in tfidf.VALUES}
    value = max(models, key=lambda c: accuracy_score(places[VALIDATION], models[c][VALIDATION]))
    assert best.facts == {"c": value}
    assert [found["choice"] for found in best.predictions] == models[value][TEST].tolist()
    assert [sum(found["probabilities"]) for found in best.predictions] == pytest.approx(np.ones(30))
    assert [len(found["probabilities"]) for found in best.predictions] == list(map(len, endings[TEST]))


def test_a_pair_of_equal_texts_and_one_of_strangers():
    train, pairs = tfidf_features([GOOD, BAD] * 2, [GOOD, BAD] * 2, TextPairs([GOOD, GOOD, []], [GOOD, ["너무"], GOOD]))
    width = train.shape[1]
    equal, strange, empty = pairs.toarray()
    assert not equal[2 * width : -1].any()
    assert (equal[-1], strange[-1], empty[-1]) == (pytest.approx(1), 0, 0)
    assert (strange[2 * width : -1] == strange[:width] + strange[width : 2 * width]).all()


def test_equal_and_undefined_scores():
    labels = np.array([1, 0] * 20)
    inputs = [GOOD, BAD] * 20, [GOOD, BAD], [GOOD, BAD, []]
    predictions, chosen = fit_labels(inputs, labels, _accuracy([1, 0]), 2, [4.0, 1.0])
    assert chosen == 1.0
    assert predictions[0, 1] > 0.7 > 0.3 > predictions[1, 1]
    texts, scores = [GOOD, BAD] * 5, np.array([1.0, 0.0] * 5)
    predictions, chosen = fit_scores((texts, texts[:1], texts), scores, lambda found: None, [2.0, 1.0])
    assert chosen == 1.0


def test_labels_that_all_texts_have_or_none(monkeypatch):
    texts, labels = [GOOD, BAD, ["그저", "그렇", "다"]], np.array([3, 0, 1])
    predictions, _ = fit_labels((texts * 20, texts, texts), np.tile(labels, 20), _accuracy(labels), 4, [4.0])
    assert predictions.argmax(axis=1).tolist() == [3, 0, 1]
    assert predictions.sum(axis=1) == pytest.approx([1, 1, 1])
    assert predictions[:, 2].tolist() == [0, 0, 0]
    texts, labels = [GOOD, BAD] * 5, np.full(10, 2)
    predictions, _ = fit_labels((texts, texts, texts[:2]), labels, _accuracy(labels), 3, [1.0])
    assert predictions.tolist() == [[0, 0, 1]] * 2
    texts, targets = [GOOD, BAD] * 20, np.array([[1, 1, 0], [0, 1, 0]] * 20, bool)
    predictions, _ = fit_multilabel((texts, texts[:2], [GOOD, BAD]), targets, lambda found: None, [4.0])
    assert predictions[:, 1:].tolist() == [[1, 0], [1, 0]]
    assert (predictions[:, 0] > 0.5).tolist() == [True, False]
    steps = []  # each is told
    monkeypatch.setattr("korbert.tasks.baselines.tfidf.track", lambda *told, **more: nullcontext(steps.append))
    fit_labels(([GOOD, BAD] * 5, [GOOD], [BAD]), np.array([1, 0] * 5), _accuracy([1]), 2, [1.0, 2.0])
    assert steps == [1, 1, 1]
    # Texts with nothing in common are refused.
    for inputs in ([["가"], ["나"]], TextPairs([["가"], []], [["나"], ["다"]])):
        with pytest.raises(CorpusError, match="no two training texts share a morpheme: give more texts to learn from"):
            fit_labels([inputs] * 3, np.array([1, 0]), _accuracy([1, 0]), 2)


def test_many_labels_are_one_model_for_each_value(monkeypatch):
    """One-vs-rest would take ten minutes for 200 labels."""
    fits, fit = [], LogisticRegression.fit
    monkeypatch.setattr(LogisticRegression, "fit", lambda self, *data: fits.append(self.C) or fit(self, *data))
    labels = np.repeat(np.arange(30), 6)
    texts = [[f"말{label}", "다"] for label in labels]
    predictions, _ = fit_labels((texts, texts, texts[::6]), labels, _accuracy(labels), 31, [30.0, 300.0])
    assert (fits, predictions.shape) == ([30.0, 300.0], (30, 31))
    assert predictions.argmax(axis=1).tolist() == list(range(30))
    assert predictions.sum(axis=1) == pytest.approx(1)
    assert (predictions[:, 30] == 0).all()  # has no row


def test_the_nearest_sentence():
    spans = sentences(CONTEXT)
    assert [CONTEXT[start:end] for start, end in spans] == ["세종은 1.5배 큰 집에 살았다.", "한글을 만들었다!", "끝"]
    assert (sentences(" \n "), sentences("?")) == ([], [(0, 1)])
    found = nearest_sentences([CONTEXT], [("누가 한글을 만들었나?", CONTEXT), ("quux", CONTEXT), ("한글", " ")])
    assert [CONTEXT[start:end] for start, end, _ in found] == ["한글을 만들었다!", "세종은 1.5배 큰 집에 살았다.", ""]
    cosines = [cosine for *_, cosine in found]
    assert 0 < cosines[0] < 1
    assert cosines[1:] == [0, 0]
    assert nearest_sentences([CONTEXT], [("한글을 만들었다!", CONTEXT)])[0][2] == pytest.approx(1)
    with pytest.raises(CorpusError, match="no characters"):
        nearest_sentences([" "], [])
