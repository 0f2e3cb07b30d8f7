"""Fits the linear model of words and vectors with scikit-learn, and chooses by folds: C, and whether words help.

The columns are those of the vectors alone, or of words and vectors. Words are added if the share of held-out rows that
are predicted correctly rises by more than two standard errors. With few rows they make predictions worse: most words
of a new text were not in training.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from korbert.modeling import HASH_BITS, LinearModel, Network
from korbert.system import Advance, untracked
from korbert.tasks.terms import Terms

CS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # inverse strengths of regularization, tried in this order
_FOLDS = 5
_FOLDS_OF_SEVERAL = 3  # a model of each label, and each fold
_ROWS_TO_CHOOSE = 10_000  # rows on which C and words are chosen; more say nothing new
_ERRORS = 2  # standard errors that the gain of words has to exceed
_MIN_ROWS = 2  # rows with a term, below which it gets no weight
_TOLERANCE = 1e-3
_MOST_ITERATIONS = 300
_CERTAIN = 14.0  # log-odds of what all rows have, or none: a probability of 1e-6

_Floats = NDArray[np.float64]
Matrix: TypeAlias = Any  # scipy.sparse.csr_matrix, or an array, float64
_Fold: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]  # numbers of the rows to fit on, and of those held out


@dataclass(frozen=True)
class LinearInputs:
    """What N rows have: their terms, and the vectors of their texts, (N, D)."""

    terms: Terms
    vectors: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.vectors)

    def rows(self, numbers: NDArray[np.int64]) -> "LinearInputs":
        """Some rows."""
        return LinearInputs(self.terms.select(numbers), self.vectors[numbers])


class Words:
    """TF-IDF of the terms that at least two rows have, as sparse columns; each group is scaled to length 1."""

    def __init__(self, terms: Terms) -> None:
        from sklearn.feature_extraction.text import TfidfTransformer

        ids, rows_with = np.unique(terms.ids, return_counts=True)  # a row has a term once, with its count
        self.ids = ids[rows_with >= _MIN_ROWS]
        groups = self.ids >> HASH_BITS
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        self._groups = [slice(*ends) for ends in pairwise([*starts, len(groups)])]  # columns of each
        counts = self._counts(terms)
        self._weights = [TfidfTransformer(sublinear_tf=True).fit(counts[:, group]) for group in self._groups]

    def columns(self, terms: Terms) -> Matrix:
        """(N, number of terms)."""
        from scipy import sparse

        counts = self._counts(terms)
        pairs = zip(self._weights, self._groups, strict=True)
        parts = [weights.transform(counts[:, group]) for weights, group in pairs]
        return sparse.hstack(parts, format="csr") if parts else sparse.csr_matrix((counts.shape[0], 0))

    @property
    def frequencies(self) -> NDArray[np.float32]:
        """Inverse document frequencies of the terms."""
        return np.concatenate([np.empty(0, np.float32), *(own.idf_ for own in self._weights)]).astype(np.float32)

    def _counts(self, terms: Terms) -> Matrix:
        from scipy import sparse

        places = np.searchsorted(self.ids, terms.ids)
        known = places < len(self.ids)
        known[known] = self.ids[places[known]] == terms.ids[known]
        before = np.concatenate([[0], np.cumsum(known)])
        shape = (len(terms.offsets) - 1, len(self.ids))
        return sparse.csr_matrix(
            (terms.counts[known].astype(np.float64), places[known], before[terms.offsets]), shape=shape
        )


class FoldChoice(NamedTuple):
    """What folds chose. scores: (N, C) log-odds of the rows, whose numbers are `rows`, by models without them.

    gain: of words, in the share of held-out rows that are right, and its standard error.
    """

    with_words: bool
    c: float
    gain: tuple[float, float]
    rows: NDArray[np.int64]
    scores: _Floats


def choose(
    inputs: LinearInputs, targets: NDArray[Any], num_labels: int, texts: Sequence[str], advance: Advance = untracked
) -> FoldChoice:
    """Chooses C, and whether words help.

    targets: (N,) label ids, or (N, C) bool where a text may have several labels. texts: rows of equal texts are in one
    fold.
    """
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(len(inputs))[:_ROWS_TO_CHOOSE])
    sample = inputs.rows(rows)
    own = targets[rows]
    folds = list(_folds(own, [texts[number] for number in rows]))
    if not folds:
        return FoldChoice(False, CS[0], (0.0, 0.0), rows, np.zeros((len(rows), num_labels)))
    trials = []
    for with_words in (False, True):
        trials.append(_choose_c(sample, own, num_labels, folds, with_words))
        advance(1)
    vectors, both = (_right(trial.scores, own) for trial in trials)
    gain, error = float((both - vectors).mean()), float((both - vectors).std() / np.sqrt(len(rows)))
    with_words = gain > _ERRORS * error
    best = trials[with_words]
    return FoldChoice(with_words, best.c, (gain, error), rows, best.scores)


def fit(
    inputs: LinearInputs, targets: NDArray[Any], num_labels: int, choice: FoldChoice, start: Network, num_texts: int
) -> LinearModel:
    """The model of all rows. start: the model whose encoder gives the vectors."""
    words = Words(inputs.terms) if choice.with_words else None
    weights, bias = _Models(_matrix(inputs, words), targets, num_labels).fit(choice.c)
    num_terms = 0 if words is None else len(words.ids)
    model = LinearModel.on(start, num_labels, num_terms, num_texts)
    if words is not None:
        model.terms.copy_(torch.from_numpy(words.ids))
        model.frequencies.copy_(torch.from_numpy(words.frequencies))
        model.words.data.copy_(torch.from_numpy(weights[:, :num_terms].T))
    model.vectors.weight.data.copy_(torch.from_numpy(weights[:, num_terms:]))
    model.vectors.bias.data.copy_(torch.from_numpy(bias))
    return model.eval()


class _Trial(NamedTuple):
    """The best C, and the scores (N, C) of rows by models that had not seen them."""

    c: float
    loss: float
    scores: _Floats


def _choose_c(
    inputs: LinearInputs, targets: NDArray[Any], num_labels: int, folds: Sequence[_Fold], with_words: bool
) -> _Trial:
    """Tries the values of C in ascending order, until the held-out loss rises."""
    models = []
    others = []
    for train, test in folds:
        words = Words(inputs.rows(train).terms) if with_words else None
        models.append(_Models(_matrix(inputs.rows(train), words), targets[train], num_labels))
        others.append(_matrix(inputs.rows(test), words))
    best = _Trial(0.0, np.inf, np.empty(0))
    for c in CS:
        scores = np.zeros((len(inputs), num_labels))
        for (_, test), model, matrix in zip(folds, models, others, strict=True):
            weights, bias = model.fit(c)
            scores[test] = matrix @ weights.T + bias
        loss = _loss(scores, targets)
        if loss >= best.loss:
            break
        best = _Trial(c, loss, scores)
    return best


def _folds(targets: NDArray[Any], texts: Sequence[str]) -> Iterator[_Fold]:
    """Folds for cross-validation; rows with the same text share a fold. Yields none if all rows have the same text."""
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    _, groups = np.unique(np.array(texts, dtype=object), return_inverse=True)
    several = targets.ndim > 1
    count = min(_FOLDS_OF_SEVERAL if several else _FOLDS, int(groups.max()) + 1)
    if count < 2:
        return
    splitter: Any = GroupKFold(count, shuffle=True, random_state=0)
    if not several and np.bincount(targets).max() >= count:
        splitter = StratifiedGroupKFold(count, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")
        yield from splitter.split(np.zeros(len(texts)), None if several else targets, groups)


def _matrix(inputs: LinearInputs, words: Words | None) -> Matrix:
    from scipy import sparse

    vectors = inputs.vectors.astype(np.float64)
    if words is None:
        return vectors
    return sparse.hstack([words.columns(inputs.terms), sparse.csr_matrix(vectors)], format="csr")


class _Models:
    """Logistic regression on the columns of some rows.

    Two labels, and several labels per row: a binary model per label, by coordinate descent in the dual (an eighth of
    the time of L-BFGS). Otherwise one multinomial model, by L-BFGS.
    """

    def __init__(self, matrix: Matrix, targets: NDArray[Any], num_labels: int) -> None:
        from sklearn.linear_model import LogisticRegression

        self._matrix = matrix
        self._columns = [targets] if targets.ndim == 1 else list(targets.T.astype(np.int64))
        self._num_labels = num_labels
        self._several = targets.ndim > 1
        binary = {"solver": "liblinear", "dual": True, "max_iter": 1_000, "random_state": 0}
        multinomial = {"max_iter": _MOST_ITERATIONS, "tol": _TOLERANCE, "warm_start": True}
        is_binary = self._several or len(np.unique(targets)) == 2
        self._model = LogisticRegression(**(binary if is_binary else multinomial))

    def fit(self, c: float) -> tuple[_Floats, _Floats]:
        """Weights (C, K) and bias (C,): of log-odds, or of log probabilities up to a number of the row."""
        from sklearn.exceptions import ConvergenceWarning

        weights = np.zeros((self._num_labels, self._matrix.shape[1]))
        bias = np.full(self._num_labels, -_CERTAIN)
        model = self._model.set_params(C=c)
        for number, targets in enumerate(self._columns):
            seen = np.unique(targets)
            if len(seen) > 1:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    model.fit(self._matrix, targets)
            if self._several and len(seen) == 1:  # all rows have the label, or none
                bias[number] = _CERTAIN if seen[0] else -_CERTAIN
            elif self._several:
                weights[number], bias[number] = model.coef_[0], model.intercept_[0]
            elif len(seen) == 1:
                bias[seen] = _CERTAIN
            elif len(seen) == 2:  # scikit-learn gives the log-odds of the second label
                signs = np.array([-0.5, 0.5])
                weights[seen], bias[seen] = signs[:, None] * model.coef_, signs * model.intercept_
            else:
                weights[seen], bias[seen] = model.coef_, model.intercept_
        return weights, bias


def _loss(scores: _Floats, targets: NDArray[Any]) -> float:
    """Nats per row."""
    logits = torch.from_numpy(scores)
    if targets.ndim > 1:
        losses = F.binary_cross_entropy_with_logits(logits, torch.from_numpy(targets).double(), reduction="none")
        return losses.sum(dim=1).mean().item()
    return F.cross_entropy(logits, torch.from_numpy(targets)).item()


def _right(scores: _Floats, targets: NDArray[Any]) -> _Floats:
    """Whether each row is predicted correctly, (N,): 1 or 0; with several labels, the F1 of the row."""
    if targets.ndim == 1:
        return np.asarray(scores.argmax(axis=1) == targets, np.float64)
    given = scores > 0
    return np.asarray(2 * (given & targets).sum(axis=1) / np.maximum(1, given.sum(axis=1) + targets.sum(axis=1)))
