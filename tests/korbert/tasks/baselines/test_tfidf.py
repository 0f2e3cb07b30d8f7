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
from korbert.tasks.baselines import Choices, Pairs, fit_choices, fit_labels, fit_multilabel, fit_scores
from korbert.tasks.baselines.features import tfidf_features
from korbert.tasks.baselines.tfidf import nearest_sentences, sentences

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


def _of_two(first, second, learned_from):
    """The features of pairs, dense."""
    vectorizer = _vectorizer().fit(learned_from)
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


@pytest.mark.parametrize(
    ("fit", "labels", "options", "average"),
    [
        (fit_labels, LABELS % 2, {"num_labels": 2, "choose_by": "macro_f1"}, "macro"),
        (fit_labels, LABELS, {"num_labels": 3, "choose_by": "macro_f1"}, "macro"),
        (fit_multilabel, SEVERAL, {}, "micro"),
    ],
)
def test_labels_of_texts(fit, labels, options, average):
    parts = [(A[part], labels[part]) for part in (TRAIN, VALIDATION)]
    best = fit(*parts, A[TEST], VALUES, **options)

    def trained(c):
        rest = OneVsRestClassifier(LogisticRegression(C=c, solver="liblinear"))
        return make_pipeline(_vectorizer(), rest).fit(_joined(A[TRAIN]), labels[TRAIN].astype(int))

    def scored(model):
        return f1_score(labels[VALIDATION], model.predict(_joined(A[VALIDATION])), average=average)

    value, model = _chosen(trained, scored)
    assert best.chosen == value
    np.testing.assert_allclose(best.predictions, model.predict_proba(_joined(A[TEST])), rtol=1e-12)


@pytest.mark.parametrize(
    ("fit", "targets", "model_of", "score", "predict", "close"),
    [
        (fit_labels, (BOTH > 1).astype(np.int64), _linear, accuracy_score, "predict_proba", 1e-3),
        (fit_scores, BOTH / 3, _ridge, lambda one, other: np.corrcoef(one, other)[0, 1], "predict", 1e-4),
    ],
    ids=["labels", "scores"],
)
def test_pairs(fit, targets, model_of, score, predict, close):
    rows = _of_two(_joined(A), _joined(B), _joined(A[TRAIN] + B[TRAIN]))
    train, validation = ((Pairs(A[part], B[part]), targets[part]) for part in (TRAIN, VALIDATION))
    best = fit(train, validation, Pairs(A[TEST], B[TEST]), VALUES)
    value, model = _chosen(
        lambda value: model_of(value).fit(rows[TRAIN], targets[TRAIN]),
        lambda model: score(targets[VALIDATION], model.predict(rows[VALIDATION])),
    )
    assert best.chosen == value
    np.testing.assert_allclose(best.predictions, getattr(model, predict)(rows[TEST]), atol=close)


def test_scores_of_single_texts_chosen_by_another_score():
    def closeness(targets, predictions):
        return -float(np.abs(targets - predictions).mean())

    scores = np.array([float("말0" in text) for text in A])
    parts = [(A[part], scores[part]) for part in (TRAIN, VALIDATION)]
    assert fit_scores(*parts, A[TEST], [100.0, 0.1], choose_by=closeness).chosen == 0.1


def test_choices():
    """Two to four choices a row; the right one shares most words with the text."""
    endings = [list(row)[: 2 + i % 3] for i, row in enumerate(zip(B, *map(_texts, (5, 6, 7)), strict=True))]
    places = np.array([int(np.argmax([len(set(a) & set(e)) for e in row])) for a, row in zip(A, endings, strict=True)])
    train, validation, test = (Choices(A[part], endings[part]) for part in (TRAIN, VALIDATION, TEST))
    best = fit_choices((train, places[TRAIN]), (validation, places[VALIDATION]), test, VALUES)

    numbers = [i for i, row in enumerate(endings) for _ in row]
    flat = [ending for row in endings for ending in row]
    right = [place == places[i] for i, row in enumerate(endings) for place in range(len(row))]
    learned = sum(number < 120 for number in numbers)
    rows = _of_two(_joined([A[i] for i in numbers]), _joined(flat), _joined(A[TRAIN] + flat[:learned]))

    def likeliest(c):
        likely = _linear(c).fit(rows[:learned], right[:learned]).predict_proba(rows)[:, 1]
        return np.array([likely[np.array(numbers) == i].argmax() for i in range(200)])

    value, chosen = _chosen(likeliest, lambda chosen: accuracy_score(places[VALIDATION], chosen[VALIDATION]))
    assert (best.chosen, best.predictions.shape) == (value, (30, 4))
    assert best.predictions.argmax(axis=1).tolist() == chosen[TEST].tolist()
    assert best.predictions.sum(axis=1) == pytest.approx(np.ones(30))
    assert [int((row > 0).sum()) for row in best.predictions] == test.counts


def test_a_pair_of_equal_texts_and_one_of_strangers():
    train, pairs = tfidf_features([GOOD, BAD] * 2, Pairs([GOOD, GOOD, []], [GOOD, ["너무"], GOOD]))
    width = train.shape[1]
    equal, strange, empty = pairs.toarray()
    assert not equal[2 * width : -1].any()
    assert (equal[-1], strange[-1], empty[-1]) == (pytest.approx(1), 0, 0)
    assert (strange[2 * width : -1] == strange[:width] + strange[width : 2 * width]).all()


def test_equal_and_undefined_scores():
    labels = np.array([1, 0] * 20)
    best = fit_labels(([GOOD, BAD] * 20, labels), ([GOOD, BAD], np.array([1, 0])), [GOOD, BAD, []], [4.0, 1.0])
    assert best.chosen == 1.0
    assert best.predictions[0, 1] > 0.7 > 0.3 > best.predictions[1, 1]
    texts, scores = [GOOD, BAD] * 5, np.array([1.0, 0.0] * 5)
    best = fit_scores((texts, scores), (texts[:1], scores[:1]), texts, [2.0, 1.0])  # one row has no correlation
    assert best.chosen == 1.0


def test_labels_that_all_texts_have_or_none(monkeypatch):
    texts, labels = [GOOD, BAD, ["그저", "그렇", "다"]], np.array([3, 0, 1])
    best = fit_labels((texts * 20, np.tile(labels, 20)), (texts, labels), texts, [4.0], num_labels=4)
    assert best.predictions.argmax(axis=1).tolist() == [3, 0, 1]
    assert best.predictions.sum(axis=1) == pytest.approx([1, 1, 1])
    assert best.predictions[:, 2].tolist() == [0, 0, 0]
    texts, labels = [GOOD, BAD] * 5, np.full(10, 2)
    best = fit_labels((texts, labels), (texts, labels), texts[:2], [1.0], num_labels=3)
    assert best.predictions.tolist() == [[0, 0, 1]] * 2
    texts, targets = [GOOD, BAD] * 20, np.array([[1, 1, 0], [0, 1, 0]] * 20, bool)
    best = fit_multilabel((texts, targets), (texts[:2], targets[:2]), [GOOD, BAD], [4.0])
    assert best.predictions[:, 1:].tolist() == [[1, 0], [1, 0]]
    assert (best.predictions[:, 0] > 0.5).tolist() == [True, False]
    steps = []  # each is told
    monkeypatch.setattr("korbert.tasks.baselines.tfidf.track", lambda *told, **more: nullcontext(steps.append))
    fit_labels(([GOOD, BAD] * 5, np.array([1, 0] * 5)), ([GOOD], np.array([1])), [BAD], [1.0, 2.0])
    assert steps == [1, 1, 1]
    # Texts with nothing in common are refused.
    apart = [["가"], ["나"]]
    for inputs in (apart, Pairs([["가"], []], [["나"], ["다"]]), Choices(apart, [[["다"]], [["라"]]])):
        with pytest.raises(CorpusError, match="no two training texts share a morpheme: give more texts to learn from"):
            tfidf_features(inputs)


def test_many_labels_are_one_model_for_each_value(monkeypatch):
    """One-vs-rest would take ten minutes for 200 labels."""
    fits, fit = [], LogisticRegression.fit
    monkeypatch.setattr(LogisticRegression, "fit", lambda self, *data: fits.append(self.C) or fit(self, *data))
    labels = np.repeat(np.arange(30), 6)
    texts = [[f"말{label}", "다"] for label in labels]
    best = fit_labels((texts, labels), (texts, labels), texts[::6], [30.0, 300.0], num_labels=31)
    assert (fits, best.predictions.shape) == ([30.0, 300.0], (30, 31))
    assert best.predictions.argmax(axis=1).tolist() == list(range(30))
    assert best.predictions.sum(axis=1) == pytest.approx(1)
    assert (best.predictions[:, 30] == 0).all()  # has no row


def test_the_nearest_sentence():
    spans = sentences(CONTEXT)
    assert [CONTEXT[start:end] for start, end in spans] == ["세종은 1.5배 큰 집에 살았다.", "한글을 만들었다!", "끝"]
    assert sentences(" \n ") == []
    assert sentences("?") == [(0, 1)]
    found = nearest_sentences([CONTEXT], [("누가 한글을 만들었나?", CONTEXT), ("quux", CONTEXT), ("한글", " ")])
    assert [CONTEXT[start:end] for start, end, _ in found] == ["한글을 만들었다!", "세종은 1.5배 큰 집에 살았다.", ""]
    cosines = [cosine for *_, cosine in found]
    assert 0 < cosines[0] < 1
    assert cosines[1:] == [0, 0]
    assert nearest_sentences([CONTEXT], [("한글을 만들었다!", CONTEXT)])[0][2] == pytest.approx(1)
    with pytest.raises(CorpusError, match="no characters"):
        nearest_sentences([" "], [])
