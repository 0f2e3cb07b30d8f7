"""The linear baselines, and their features, against scikit-learn put together another way."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

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

GOOD, BAD = ["정말", "재밌", "다"], ["너무", "지루", "하", "다"]
VALUES = [0.3, 3.0]
TRAIN, VALIDATION, TEST = slice(0, 120), slice(120, 170), slice(170, 200)


def _texts(seed: int) -> list[list[str]]:
    """200 texts of 1 to 8 words, of which some are frequent."""
    rng = np.random.default_rng(seed)
    frequencies = 1 / np.arange(1, 41)
    words = [f"말{number}" for number in range(40)]
    return [list(rng.choice(words, rng.integers(1, 9), p=frequencies / frequencies.sum())) for _ in range(200)]


def _vectorizer() -> TfidfVectorizer:
    """Of texts with a space between words; our features say the same of lists of words."""
    return TfidfVectorizer(
        tokenizer=str.split, token_pattern=None, lowercase=False, ngram_range=(1, 2), min_df=2, sublinear_tf=True
    )


def _joined(texts: list[list[str]]) -> list[str]:
    return [" ".join(text) for text in texts]


def _of_two(first: list[str], second: list[str], learned_from: list[str]) -> np.ndarray:
    """The features of pairs, dense."""
    vectorizer = _vectorizer().fit(learned_from)
    a, b = (vectorizer.transform(side).toarray() for side in (first, second))
    return np.hstack([a, b, np.abs(a - b), 1 - paired_cosine_distances(a, b)[:, None]])


A, B = _texts(1), _texts(2)
LABELS = np.array([sum(map(len, text)) % 3 for text in A])
BOTH = np.array([len(set(a) & set(b)) for a, b in zip(A, B, strict=True)])  # words that two texts share


def _pairs(rows: slice) -> Pairs:
    return Pairs(A[rows], B[rows])


def _dense_pairs() -> np.ndarray:
    return _of_two(_joined(A), _joined(B), _joined(A[TRAIN] + B[TRAIN]))


@pytest.mark.parametrize("num_labels", [2, 3])
def test_labels_of_texts(num_labels: int) -> None:
    labels = LABELS % num_labels
    best = fit_labels(
        (A[TRAIN], labels[TRAIN]), (A[VALIDATION], labels[VALIDATION]), A[TEST], VALUES, num_labels=num_labels,
        choose_by="macro_f1",
    )  # fmt: skip
    models, scores = {}, {}
    for c in VALUES:
        models[c] = make_pipeline(_vectorizer(), OneVsRestClassifier(LogisticRegression(C=c, solver="liblinear")))
        models[c].fit(_joined(A[TRAIN]), labels[TRAIN])
        scores[c] = f1_score(labels[VALIDATION], models[c].predict(_joined(A[VALIDATION])), average="macro")
    assert best.chosen == max(scores, key=scores.get)
    expected = models[best.chosen].predict_proba(_joined(A[TEST]))
    np.testing.assert_allclose(best.predictions, expected, rtol=1e-12)


def test_labels_of_pairs() -> None:
    labels, rows = (BOTH > 1).astype(np.int64), _dense_pairs()
    best = fit_labels((_pairs(TRAIN), labels[TRAIN]), (_pairs(VALIDATION), labels[VALIDATION]), _pairs(TEST), VALUES)
    models, scores = {}, {}
    for c in VALUES:
        model = LogisticRegression(C=c, solver="liblinear", tol=1e-8, max_iter=10_000)
        models[c] = model.fit(rows[TRAIN], labels[TRAIN])
        scores[c] = accuracy_score(labels[VALIDATION], model.predict(rows[VALIDATION]))
    assert best.chosen == max(scores, key=scores.get)
    np.testing.assert_allclose(best.predictions, models[best.chosen].predict_proba(rows[TEST]), atol=1e-3)


def test_several_labels_per_text() -> None:
    targets = np.array([[f"말{number}" in text for number in (2, 3, 5)] for text in A])
    best = fit_multilabel((A[TRAIN], targets[TRAIN]), (A[VALIDATION], targets[VALIDATION]), A[TEST], VALUES)
    models, scores = {}, {}
    for c in VALUES:
        models[c] = make_pipeline(_vectorizer(), OneVsRestClassifier(LogisticRegression(C=c, solver="liblinear")))
        models[c].fit(_joined(A[TRAIN]), targets[TRAIN].astype(int))
        scores[c] = f1_score(targets[VALIDATION], models[c].predict(_joined(A[VALIDATION])), average="micro")
    assert best.chosen == max(scores, key=scores.get)
    expected = models[best.chosen].predict_proba(_joined(A[TEST]))
    np.testing.assert_allclose(best.predictions, expected, rtol=1e-12)


def test_scores_of_pairs() -> None:
    scores, rows = BOTH / 3, _dense_pairs()
    best = fit_scores((_pairs(TRAIN), scores[TRAIN]), (_pairs(VALIDATION), scores[VALIDATION]), _pairs(TEST), VALUES)
    models = {alpha: Ridge(alpha=alpha, solver="cholesky").fit(rows[TRAIN], scores[TRAIN]) for alpha in VALUES}
    correlations = {
        alpha: np.corrcoef(scores[VALIDATION], model.predict(rows[VALIDATION]))[0, 1] for alpha, model in models.items()
    }
    assert best.chosen == max(correlations, key=correlations.get)
    np.testing.assert_allclose(best.predictions, models[best.chosen].predict(rows[TEST]), atol=1e-4)


def test_scores_of_single_texts_chosen_by_another_score() -> None:
    scores = np.array([float("말0" in text) for text in A])

    def closeness(targets: np.ndarray, predictions: np.ndarray) -> float:
        return -float(np.abs(targets - predictions).mean())

    best = fit_scores(
        (A[TRAIN], scores[TRAIN]), (A[VALIDATION], scores[VALIDATION]), A[TEST], [100.0, 0.1], choose_by=closeness
    )
    assert best.chosen == 0.1


def test_choices() -> None:
    """Two to four choices a row; the right one shares most words with the text."""
    endings = [[text, _texts(5)[i], _texts(6)[i], _texts(7)[i]][: 2 + i % 3] for i, text in enumerate(B)]
    places = np.array([int(np.argmax([len(set(a) & set(e)) for e in row])) for a, row in zip(A, endings, strict=True)])
    train, validation, test = (Choices(A[part], endings[part]) for part in (TRAIN, VALIDATION, TEST))
    best = fit_choices((train, places[TRAIN]), (validation, places[VALIDATION]), test, VALUES)

    numbers = [i for i, row in enumerate(endings) for _ in row]
    flat = [ending for row in endings for ending in row]
    right = [place == places[i] for i, row in enumerate(endings) for place in range(len(row))]
    learned = sum(number < 120 for number in numbers)
    rows = _of_two(_joined([A[i] for i in numbers]), _joined(flat), _joined(A[TRAIN] + flat[:learned]))
    chosen, scores = {}, {}
    for c in VALUES:
        model = LogisticRegression(C=c, solver="liblinear", tol=1e-8, max_iter=10_000)
        likely = model.fit(rows[:learned], right[:learned]).predict_proba(rows)[:, 1]
        chosen[c] = [
            int(np.argmax([p for p, number in zip(likely, numbers, strict=True) if number == i])) for i in range(200)
        ]
        scores[c] = accuracy_score(places[VALIDATION], chosen[c][VALIDATION])
    assert best.chosen == max(scores, key=scores.get)
    assert best.predictions.argmax(axis=1).tolist() == chosen[best.chosen][TEST]
    assert best.predictions.shape == (30, 4)
    assert best.predictions.sum(axis=1) == pytest.approx(np.ones(30))
    assert [int((row > 0).sum()) for row in best.predictions] == test.counts


def test_a_pair_of_equal_texts_and_one_of_strangers() -> None:
    train, pairs = tfidf_features([GOOD, BAD] * 2, Pairs([GOOD, GOOD, []], [GOOD, ["너무"], GOOD]))
    width = train.shape[1]
    equal, strange, empty = pairs.toarray()
    assert equal[-1] == pytest.approx(1)
    assert not equal[2 * width : -1].any()
    assert (strange[-1], empty[-1]) == (0, 0)
    assert (strange[2 * width : -1] == strange[:width] + strange[width : 2 * width]).all()


def test_it_learns_what_words_tell() -> None:
    labels = np.array([1, 0] * 20)
    best = fit_labels(([GOOD, BAD] * 20, labels), ([GOOD, BAD], np.array([1, 0])), [GOOD, BAD, []], [4.0, 1.0])
    assert best.chosen == 1.0  # the smallest of equals
    assert best.predictions[0, 1] > 0.7 > 0.3 > best.predictions[1, 1]
    assert best.predictions.shape == (3, 2)


def test_any_number_of_labels_and_one_that_no_text_has() -> None:
    texts, labels = [GOOD, BAD, ["그저", "그렇", "다"]], np.array([3, 0, 1])
    best = fit_labels((texts * 20, np.tile(labels, 20)), (texts, labels), texts, [4.0], num_labels=4)
    assert best.predictions.argmax(axis=1).tolist() == [3, 0, 1]
    assert best.predictions.sum(axis=1) == pytest.approx([1, 1, 1])
    assert best.predictions[:, 2].tolist() == [0, 0, 0]


def test_where_all_texts_have_one_label_it_is_given() -> None:
    texts, labels = [GOOD, BAD] * 5, np.full(10, 2)
    best = fit_labels((texts, labels), (texts, labels), texts[:2], [1.0], num_labels=3)
    assert best.predictions.tolist() == [[0, 0, 1]] * 2


def test_a_label_that_all_texts_have_or_none_keeps_that_share() -> None:
    texts, targets = [GOOD, BAD] * 20, np.array([[1, 1, 0], [0, 1, 0]] * 20, bool)
    best = fit_multilabel((texts, targets), (texts[:2], targets[:2]), [GOOD, BAD], [4.0])
    assert best.predictions[:, 1:].tolist() == [[1, 0], [1, 0]]
    assert (best.predictions[:, 0] > 0.5).tolist() == [True, False]


def test_neighbours_count_as_one_feature_and_order_matters() -> None:
    texts = [["안", "좋"], ["좋", "안"]]  # told apart by the pair alone
    labels = np.array([0, 1] * 20)
    best = fit_labels((texts * 20, labels), (texts, np.array([0, 1])), texts, [10.0])
    assert best.predictions.argmax(axis=1).tolist() == [0, 1]


def test_c_is_chosen_by_validation_texts() -> None:
    """Too small a C leaves nothing but how frequent the labels are."""
    generator = np.random.default_rng(0)
    labels = np.array([int(number % 5 == 0) for number in range(200)])
    texts = [[*generator.choice(list("가나다라마바사아자차"), 6), "좋" if label else "싫"] for label in labels]
    best = fit_labels((texts, labels), (texts[:50], labels[:50]), texts[:5], [1e-6, 1.0])
    assert best.chosen == 1.0


def test_single_texts_may_be_streams() -> None:
    texts, labels = [GOOD, BAD] * 5, np.array([1, 0] * 5)
    best = fit_labels((iter(texts), labels), (iter(texts), labels), iter(texts), [1.0])
    np.testing.assert_array_equal(
        best.predictions, fit_labels((texts, labels), (texts, labels), texts, [1.0]).predictions
    )
    assert best.predictions.shape == (10, 2)


def test_an_undefined_score_is_no_better_than_any() -> None:
    texts, scores = [GOOD, BAD] * 5, np.array([1.0, 0.0] * 5)
    best = fit_scores((texts, scores), (texts[:1], scores[:1]), [], [2.0, 1.0])  # one row has no correlation
    assert best.chosen == 1.0


ROWS = [GOOD, BAD] * 5
TARGETS = np.array([1, 0] * 5)
FITS: list[tuple[Callable[..., Any], Any, Any, Any]] = [  # function, inputs, the same without rows, targets
    (fit_labels, ROWS, [], TARGETS),
    (fit_labels, Pairs(ROWS, ROWS), Pairs([], []), TARGETS),
    (fit_multilabel, ROWS, [], np.eye(2, dtype=bool)[TARGETS]),
    (fit_scores, Pairs(ROWS, ROWS), Pairs([], []), TARGETS.astype(float)),
    (fit_choices, Choices(ROWS, [[GOOD, BAD]] * 10), Choices([], []), TARGETS),
]


@pytest.mark.parametrize(("fit", "inputs", "none", "targets"), FITS)
def test_without_test_rows_there_are_no_predictions_and_each_step_is_told(
    fit, inputs, none, targets, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    monkeypatch.setattr("korbert.tasks.baselines.tfidf.track", lambda *told, **more: nullcontext(steps.append))
    best = fit((inputs, targets), (inputs, targets), none, [1.0, 2.0])
    assert steps == [1, 1, 1]
    assert len(best.predictions) == 0


@pytest.mark.parametrize(
    "inputs", [[["가"], ["나"]], Pairs([["가"], []], [["나"], ["다"]]), Choices([["가"], ["나"]], [[["다"]], [["라"]]])]
)
def test_texts_with_nothing_in_common_are_refused(inputs) -> None:
    with pytest.raises(CorpusError, match="no two training texts share a morpheme: give more texts to learn from"):
        tfidf_features(inputs)


def test_many_labels_are_one_model_for_each_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """One-vs-rest would take ten minutes for 200 labels."""
    fits = []
    fit = LogisticRegression.fit

    def counted(self: LogisticRegression, *data: Any) -> LogisticRegression:
        fits.append(self.C)
        return fit(self, *data)

    monkeypatch.setattr(LogisticRegression, "fit", counted)
    labels = np.repeat(np.arange(30), 6)
    texts = [[f"말{label}", "다"] for label in labels]
    best = fit_labels((texts, labels), (texts, labels), texts[::6], [30.0, 300.0], num_labels=31)
    assert fits == [30.0, 300.0]
    assert best.predictions.shape == (30, 31)
    assert best.predictions.argmax(axis=1).tolist() == list(range(30))
    assert best.predictions.sum(axis=1) == pytest.approx(1)
    assert (best.predictions[:, 30] == 0).all()  # has no row
    assert fit_labels((texts, labels), (texts, labels), [], [30.0], num_labels=31).predictions.shape == (0, 31)
