"""Estimators of scikit-learn: a classifier, a regressor and a vectorizer of Korean texts.

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from korbert.sklearn import TextVectorizer
    >>> texts = ["정말 재미있는 영화", "시간이 아깝다", "또 보고 싶다", "지루했다"]
    >>> pipeline = make_pipeline(TextVectorizer(), LogisticRegression()).fit(texts, ["긍정", "부정", "긍정", "부정"])
    >>> pipeline.predict(texts).tolist()
    ['긍정', '부정', '긍정', '부정']

X is a list, an array or a column of texts; for the classifier and the regressor also one of pairs of texts, or a frame
with two columns. They learn as `korbert.finetune` does: a part of the rows selects the epoch. Models are pickled with
their weights, and raise the errors of korbert for texts and settings, those of scikit-learn for y.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from korbert.errors import SettingsError
from korbert.messages import Message
from korbert.model import Model
from korbert.pipelines.library import finetune
from korbert.records import is_empty
from korbert.system import needed_for
from korbert.tasks.files import label
from korbert.vectors import PoolingName

with needed_for("korbert.sklearn"):
    from sklearn import base
    from sklearn.utils import check_random_state, column_or_1d
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import assert_all_finite, check_consistent_length, check_is_fitted

__all__ = ["TextClassifier", "TextRegressor", "TextVectorizer"]

_Model = Model | str


class _TextEstimator(base.BaseEstimator):
    """An estimator whose X are texts, not numbers."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


class _FineTunedEstimator(_TextEstimator):
    """A model fine-tuned on X and y, with the parameters that TextClassifier explains."""

    _kind: str
    _target: str

    def __init__(
        self, model: _Model = "korbert-mini", *, epochs: int | None = None, learning_rate: float | None = None,
        features: str | None = None, validation_share: float = 0.1, settings: Mapping[str, object] | None = None,
        random_state: object = 0, device: str = "auto",
    ) -> None:  # fmt: skip
        self.model = model
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.features = features
        self.validation_share = validation_share
        self.settings = settings
        self.random_state = random_state
        self.device = device

    def _learn(self, X: object, targets: Sequence[object]) -> None:
        """Fine-tunes `model_`; its scores on the rows that selected the epoch are `scores_`."""
        rows = _filled_rows(X)
        check_consistent_length(rows, targets)
        if len(rows[0]) == 2 and all(str(target) in row for row, target in zip(rows, targets, strict=True)):
            raise SettingsError("X holds y in one of its columns: give the column of texts alone")
        names = ("text", "pair", self._target) if len(rows[0]) == 2 else ("text", self._target)
        training_rows = [
            dict(zip(names, (*row, target), strict=True)) for row, target in zip(rows, targets, strict=True)
        ]
        options: dict[str, Any] = {
            "epochs": self.epochs,
            "learning_rates": self.learning_rate,
            "features": self.features,
        }
        options |= {"validation_share": self.validation_share, "baselines": False, **(self.settings or {})}
        settings = {name: value for name, value in options.items() if value is not None}
        seed = self.random_state
        seeds = [seed if isinstance(seed, int) else int(check_random_state(seed).randint(2**31))]
        result = finetune(self.model, training_rows, kind=self._kind, device=self.device, seeds=seeds, **settings)
        self.scores_ = dict(result.scores)
        self.model_ = Model.load(result.folder, self.device)
        self.model_.name = type(self).__name__
        self.model_.folder = None  # the folder goes with the result

    def _results(self, X: object) -> list[Any]:
        check_is_fitted(self)
        return list(self.model_.predict([row if len(row) == 2 else row[0] for row in _filled_rows(X)]))


class TextClassifier(base.ClassifierMixin, _FineTunedEstimator):
    """A label for each text or pair of texts.

        >>> texts = ["정말 재미있는 영화", "시간이 아깝다", "또 보고 싶다", "지루했다"]
        >>> classifier = korbert.sklearn.TextClassifier().fit(texts * 3, [1, 0, 1, 0] * 3)
        >>> classifier.classes_.tolist(), classifier.predict_proba(["정말 좋다"]).shape
        ([0, 1], (1, 2))

    Args:
        model: The model to begin with: its name, its folder, or itself.
        epochs: The most epochs; the best is kept. None: as `korbert finetune`, and so are the next two.
        learning_rate: Peak learning rate.
        features: Layers of the frozen encoder to train a head on, such as "last"; None: all weights are trained.
        validation_share: Share of the rows that selects the epoch.
        settings: Any other setting of a recipe's task, by its name.
        random_state: Seed of the training.
        device: "auto", "cpu" or "cuda".

    Attributes:
        classes_: The labels, in order.
        model_: The fine-tuned korbert.Model.
        scores_: Metric -> score on the rows that selected the epoch.
    """

    _kind = "classification"
    _target = "label"

    def fit(self, X: object, y: ArrayLike) -> Self:
        """Learns the labels y, numbers or texts, of X. ValueError for fewer than two labels."""
        y = column_or_1d(y, warn=True)
        assert_all_finite(y)
        check_classification_targets(y)
        self.classes_, places = np.unique(y, return_inverse=True)
        self._names = [label(str(name)) for name in self.classes_]
        if not 1 < len(self._names) == len(set(self._names)):
            count = len(self._names)
            known = ", ".join(map(repr, self._names))
            classes = "1 class" if count == 1 else f"{count} classes"
            raise ValueError(f"y has {classes} ({known}): give 2 or more that differ when written")
        self._learn(X, [self._names[place] for place in places])
        return self

    def predict_proba(self, X: object) -> NDArray[np.float64]:
        """(N, classes): the probability of each label, in the order of classes_."""
        probabilities = (result.probabilities for result in self._results(X))
        return np.array([[row[name] for name in self._names] for row in probabilities], dtype=np.float64)

    def predict(self, X: object) -> NDArray[Any]:
        """(N,): the most probable label of each."""
        best = self.predict_proba(X).argmax(axis=1)  # first, as it refuses what is not fitted
        return np.asarray(self.classes_[best])


class TextRegressor(base.RegressorMixin, _FineTunedEstimator):
    """A number for each text or pair of texts. Parameters are those of TextClassifier.

        >>> pairs = [("비가 온다", "비가 내린다"), ("비가 온다", "밥을 먹는다")] * 5
        >>> regressor = korbert.sklearn.TextRegressor(features="last", epochs=1).fit(pairs, [5.0, 0.5] * 5)
        >>> regressor.predict([("눈이 온다", "눈이 내린다")]).shape
        (1,)

    Attributes:
        model_: The fine-tuned korbert.Model.
        scores_: Metric -> score on the rows that selected the epoch.
    """

    _kind = "regression"
    _target = "score"

    def fit(self, X: object, y: ArrayLike) -> Self:
        """Learns the numbers y of X."""
        numbers: NDArray[np.float64] = column_or_1d(y, dtype=np.float64, warn=True)
        assert_all_finite(numbers)
        self._learn(X, numbers.tolist())
        return self

    def predict(self, X: object) -> NDArray[np.float64]:
        """(N,): the number of each."""
        return np.array(self._results(X), dtype=np.float64)


class TextVectorizer(base.ClassNamePrefixFeaturesOutMixin, base.TransformerMixin, _TextEstimator):
    """Embeds each text with Model.embed; by default vectors have length 1.

        >>> korbert.sklearn.TextVectorizer(pooling="max").fit_transform(["비가 온다", "밥을 먹는다"]).shape
        (2, 256)

    Args:
        model: A model: its name, its folder, or itself.
        layer: As in Model.embed, and so are the next three; None: the model's default.
        pooling: How the vectors of pieces become that of the text.
        normalize: Whether vectors have length 1; False: as they are pooled.
        size: Number of leading dimensions to keep; None: all.
        batch_size: Texts at once in the model.
        device: "auto", "cpu" or "cuda".

    Attributes:
        model_: The korbert.Model.
    """

    def __init__(
        self, model: _Model = "korbert-mini", *, layer: int | Sequence[int] | None = None,
        pooling: PoolingName | None = None, normalize: bool = True, size: int | None = None,
        batch_size: int = 64, device: str = "auto",
    ) -> None:  # fmt: skip
        self.model = model
        self.layer = layer
        self.pooling = pooling
        self.normalize = normalize
        self.size = size
        self.batch_size = batch_size
        self.device = device

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # vectors are float32
        return tags

    def fit(self, X: object = None, y: object = None) -> Self:
        """Loads the model, which learns nothing from X."""
        self.model_ = self.model if isinstance(self.model, Model) else Model.load(self.model, self.device)
        settings = self.model_.vector_settings(**self._chosen_settings())
        self._n_features_out = settings.size or self.model_.width(settings)
        return self

    def transform(self, X: object) -> NDArray[np.float32]:
        """(N, D): the vector of each text."""
        check_is_fitted(self)
        texts = [row[0] for row in _rows(X, width=1)]
        return self.model_.embed(texts, self.batch_size, **self._chosen_settings())

    def _chosen_settings(self) -> Any:
        asked = {name: getattr(self, name) for name in ("layer", "pooling", "normalize", "size")}
        return {name: value for name, value in asked.items() if value is not None}


def _filled_rows(X: object) -> list[tuple[str, ...]]:
    """`_rows`, none of whose texts may be empty: of such a text nothing is learned, and for it nothing is predicted."""
    rows = _rows(X)
    if (empty := next((place for place, row in enumerate(rows) if any(map(is_empty, row))), None)) is not None:
        raise SettingsError("X[{empty}] has an empty text: leave it out", empty=empty)
    return rows


def _rows(X: Any, width: int = 2) -> list[tuple[str, ...]]:
    """The text or the pair of texts of each row of X, at most `width`. SettingsError for anything else."""
    cells = X.to_numpy() if hasattr(X, "to_numpy") else [X] if isinstance(X, str) else X
    rows = [(cell,) if isinstance(cell, str) else cell for cell in cells]
    for place, row in enumerate(rows):
        if not isinstance(row, Sequence | np.ndarray) or not all(isinstance(cell, str) for cell in row):
            what = Message("a text or a pair of texts") if width == 2 else Message("a text")
            raise SettingsError("X[{place}] is {row!r:.40}: give {what}", place=place, row=row, what=what)
        if not len(rows[0]) == len(row) <= width:
            what = Message("1 or 2") if width == 2 else Message("1")
            raise SettingsError(
                "X[{place}] has {texts} texts: give {what}, in all rows alike", place=place, texts=len(row), what=what
            )
    if not rows:
        raise SettingsError("X is empty: give at least one text")
    return [tuple(map(str, row)) for row in rows]
