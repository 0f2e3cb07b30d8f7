"""The estimators, under scikit-learn's own checks and in its tools.

The checks make X of numbers: here each number is a word, so that a row is a text.
"""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from korbert.errors import SettingsError
from korbert.sklearn import TextClassifier, TextRegressor, TextVectorizer

WORDS = ["영", "일", "이", "삼", "사", "오", "육", "칠", "팔", "구"]
TEXTS = ["정말 재미있다", "시간이 아깝다", "또 보고 싶다", "지루했다"] * 3
MOODS = ["긍정", "부정"] * 6
QUICK = {"features": "last", "epochs": 1, "settings": {"max_length": 32}, "device": "cpu"}
ROUNDING = "numbers of float32, in batches of other sizes, agree to 6 digits, not to 7"
UNTAUGHT = "asks for a good fit to numbers, which are words here, of an encoder of random weights"


@pytest.fixture(scope="module")
def start(untrained):
    return str(untrained())


def _texts(rows):
    """Rows of numbers as texts; texts as they are."""
    if hasattr(rows, "tocsr"):
        raise TypeError("sparse rows have no words")
    rows = np.asarray(rows)
    return list(rows) if rows.ndim == 1 else [" ".join(WORDS[int(3 * abs(n)) % 10] for n in row) for row in rows]


class _OnNumbers:
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.string, tags.no_validation = True, False, True
        return tags

    def fit(self, X, y=None):
        return super().fit(_texts(X), y)


class _Predicting(_OnNumbers):
    def predict(self, X):
        return super().predict(_texts(X))


class Classifier(_Predicting, TextClassifier):
    def predict_proba(self, X):
        return super().predict_proba(_texts(X))


class Regressor(_Predicting, TextRegressor):
    pass


class Vectorizer(_OnNumbers, TextVectorizer):
    def transform(self, X):
        return super().transform(_texts(X))


NOT_FOR_TEXTS = {
    Classifier: {"check_classifiers_train": UNTAUGHT, "check_methods_subset_invariance": ROUNDING},
    Regressor: {
        "check_regressors_train": UNTAUGHT,
        "check_methods_subset_invariance": ROUNDING,
        "check_fit2d_1sample": "the error is korbert's, which says that all rows have the same score",
    },
    Vectorizer: {
        "check_transformer_general": "asks to refuse rows of another number of features: a text has none",
        "check_methods_subset_invariance": ROUNDING,
    },
}


@pytest.mark.filterwarnings("ignore")  # of the checks themselves
@pytest.mark.parametrize("kind", [Vectorizer, pytest.param(Classifier, marks=pytest.mark.slow),
                                  pytest.param(Regressor, marks=pytest.mark.slow)])  # fmt: skip
def test_the_checks_of_scikit_learn_pass(kind, start):
    how = {"device": "cpu"} if kind is Vectorizer else QUICK
    done = check_estimator(kind(start, **how), expected_failed_checks=NOT_FOR_TEXTS[kind], on_skip=None)
    assert sum(check["status"] == "passed" for check in done) > 30
    assert {check["check_name"] for check in done if check["status"] == "xfail"} <= NOT_FOR_TEXTS[kind].keys()


def test_a_classifier_is_searched_and_pickled_with_its_weights(start):
    grid = GridSearchCV(TextClassifier(start, **QUICK), {"learning_rate": [1e-3, 1e-2]}, cv=2)
    best = grid.fit(TEXTS, MOODS).best_estimator_
    assert best.classes_.tolist() == ["긍정", "부정"]
    assert best.scores_.keys() == {"accuracy", "macro_f1"}
    again = pickle.loads(pickle.dumps(best))
    np.testing.assert_array_equal(again.predict_proba(TEXTS), best.predict_proba(TEXTS))
    assert again.predict(TEXTS).tolist() == best.predict(TEXTS).tolist()
    assert again.model_.can == ("predict", "embed")


def test_a_vectorizer_in_a_pipeline(start):
    pipeline = make_pipeline(TextVectorizer(start, pooling="max", size=8, device="cpu"), LogisticRegression())
    assert cross_val_score(pipeline, pd.Series(TEXTS), MOODS, cv=2).shape == (2,)
    fitted = pipeline[0].fit()
    assert fitted.transform(np.array(TEXTS[:2])).shape == (2, 8)
    assert fitted.get_feature_names_out()[-1] == "textvectorizer7"


def test_pairs_of_texts_and_labels_that_are_numbers(start):
    frame = pd.DataFrame({"one": TEXTS, "other": TEXTS[::-1]})
    assert TextRegressor(start, **QUICK).fit(frame, np.arange(12.0)).predict(frame[:2]).shape == (2,)
    classifier = TextClassifier(start, random_state=np.random.RandomState(1), **QUICK)
    classes = classifier.fit(list(zip(TEXTS, TEXTS, strict=True)), [2.0, 1.0] * 6).predict([("가", "나")])
    assert (set(classes) <= {1.0, 2.0}, classes.dtype) == (True, np.float64)
    for refuses in (classifier.predict, lambda rows: classifier.fit(rows, [1, 2])):
        with pytest.raises(SettingsError, match=r"X\[1\] has an empty text: leave it out"):
            refuses([("가", "나"), ("가", " ")])


def test_what_is_no_text_is_refused(start):
    for rows, said in (
        ([1.5] * 4, r"X\[0\] is 1.5: give a text or a pair of texts"),
        ([], "X is empty"),
        ([("가", "나"), "가"], r"X\[1\] has 1 texts: give 1 or 2, in all rows alike"),
        ([("가", "나", "다")], r"X\[0\] has 3 texts"),
    ):
        with pytest.raises(SettingsError, match=said):
            TextRegressor(start, **QUICK).fit(rows, np.arange(len(rows)))


@pytest.mark.parametrize(
    ("mistake", "error", "said"),
    [
        (lambda own, start: own.predict(TEXTS), NotFittedError, None),
        (lambda own, start: own.fit(TEXTS, ["가"] * 12), ValueError, r"y has 1 class \('가'\): give 2 or more"),
        (lambda own, start: own.fit(TEXTS, MOODS[:4]), ValueError, "inconsistent numbers of samples"),
        (
            lambda own, start: own.fit(pd.DataFrame({"후기": TEXTS, "감정": MOODS}), MOODS),
            SettingsError,
            "X holds y in one of its columns: give the column of texts alone",
        ),
        (
            lambda own, start: TextClassifier(start, settings={"epoch": 2}).fit(TEXTS, MOODS),
            SettingsError,
            "epoch: no such key",
        ),
        (
            lambda own, start: TextVectorizer(start).fit().transform([("가", "나")]),
            SettingsError,
            r"X\[0\] has 2 texts: give 1",
        ),
    ],
)
def test_other_mistakes(start, mistake, error, said):
    with pytest.raises(error, match=said):
        mistake(TextClassifier(start, **QUICK), start)
