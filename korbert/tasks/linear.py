"""Fits linear models of words and of vectors with scikit-learn; cross-validation chooses C, encoder, weight of words.

The outputs of both, log-odds of labels or predicted numbers, are added, each with a weight. C minimizes the loss on
held-out rows after calibration, which all log-odds get; before it, C would only make up for overconfidence. For labels,
a prior keeps the C of vectors near 3 while rows are few, and words that say more about the labels are regularized less
(`_evidence`): from 100 rows on, that lowers the loss of words on most sets, by up to 13 %. The vectors are those of the
first encoder, or of another one if its loss is lower by more than two standard errors. The weight of words is the one
with the largest gain, mean minus two standard errors. It is 0 if no gain is positive (with few rows, most words of a
new text were not in training), or if vectors alone are right on 95 % of the rows.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from korbert.modeling import HASH_BITS, LinearModel
from korbert.system import Advance, untracked
from korbert.tasks.metrics.calibration import scale_of
from korbert.tasks.terms import Terms

CS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # inverse strengths of regularization, tried in this order
_CS_OF_WORDS = (*CS, 300.0, 1_000.0, 3_000.0)  # words of long texts
_CS_OF_NUMBERS = (0.03, 0.1, *CS)
_USUAL_C = 3.0  # for labels by vectors
_PRIOR_OF_C = 1.0  # nats, times log(C / usual)^2: a penalty that matters with few rows
_FOLDS = 5
_FOLDS_OF_SEVERAL = 3  # a model of each label, and each fold
_ROWS_TO_CHOOSE = 10_000  # rows on which C and words are chosen; more say nothing new
_ERRORS = 2  # standard errors that a gain has to exceed
EASY = 0.95  # of held-out rows right: there is little to gain, and texts of another kind may lose
WORD_SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # weights of words; vectors have the rest
NOVELTY_ROWS = 2_000  # of training, by which it is estimated how unlike them a text is
_FEWEST_OF_USUAL = 40
_MIN_ROWS = 2  # rows with a term, below which it gets no weight
_ROWS_PER_TERM = 30_000  # of many rows, one in so many: rarer terms make a model large, and no better with vectors
_TOLERANCE = 1e-3
_ROWS_AS_COLUMNS = 2_000  # up to which the columns of a model are replaced by as many as there are rows
_NO_VALUE = 1e-9  # of an eigenvalue, as a share of the largest one
_MOST_ITERATIONS = 300
_TINY = 1e-12
_CERTAIN = 14.0  # log-odds of what all rows have, or none: a probability of 1e-6

Column: TypeAlias = Literal["words", "vectors"]
COLUMNS: tuple[Column, ...] = ("words", "vectors")
_Floats = NDArray[np.float64]
Matrix: TypeAlias = Any  # scipy.sparse.csr_matrix, or an array, float64
_Fold: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]  # numbers of the rows to fit on, and of those held out


@dataclass(frozen=True)
class LinearInputs:
    """What N rows have: their terms, and the vectors of their texts: (N, D), of pairs with what they share, (N, 4 x D).

    texts: the vectors before they are centred, of the first NOVELTY_ROWS rows: (R, texts of a row x D).
    """

    terms: Terms
    vectors: NDArray[np.float32]
    texts: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.vectors)

    def rows(self, numbers: NDArray[np.int64]) -> "LinearInputs":
        """Some rows."""
        return LinearInputs(self.terms.select(numbers), self.vectors[numbers])


class Words:
    """TF-IDF of the terms that enough rows have, as sparse columns; each group is scaled to length 1."""

    def __init__(self, terms: Terms) -> None:
        from sklearn.feature_extraction.text import TfidfTransformer

        ids, rows_with = np.unique(terms.ids, return_counts=True)  # a row has a term once, with its count
        self.ids = ids[rows_with >= max(_MIN_ROWS, (len(terms.offsets) - 1) / _ROWS_PER_TERM)]
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


class Trial(NamedTuple):
    """The best C, and the outputs (N, C) of rows by models that had not seen them, calibrated.

    loss: of these. scale: by which outputs of the model are multiplied to calibrate them.
    """

    c: float
    loss: float
    scores: _Floats
    scale: float = 1.0


class FoldChoice(NamedTuple):
    """What folds chose.

    trials: of the model of each column, the vectors those of the chosen encoder. encoder: its number. losses: of each
    encoder, as in `losses_of`. words_share: the weight of words, 0 if they do not help. gain: by which the loss falls
    with words, of that weight or else of 0.1, and its standard error. rows: the numbers of the rows of the trials.
    """

    trials: Mapping[Column, Trial]
    encoder: int
    losses: Sequence[float]
    words_share: float
    gain: tuple[float, float]
    rows: NDArray[np.int64]

    @property
    def scores(self) -> _Floats:
        """The outputs of the held-out rows, (N, C)."""
        return sum_of_scores({name: trial.scores for name, trial in self.trials.items()}, self.words_share)


def sum_of_scores(scores: Mapping[Column, _Floats], share: float) -> _Floats:
    """The outputs of words and vectors together, or of the only one. share: the weight of words."""
    if len(scores) == 1:
        return next(iter(scores.values()))
    return (1 - share) * scores["vectors"] + share * scores["words"]


def best_share(scores: Mapping[Column, _Floats], targets: NDArray[Any]) -> float:
    """The weight of words that maximizes mean gain - 2 standard errors."""
    gains = {share: _gains(scores, share, targets) for share in WORD_SHARES}
    return max(WORD_SHARES, key=lambda share: gains[share].mean() - _ERRORS * _standard_error(gains[share]))


def choose(
    inputs: Sequence[LinearInputs], targets: NDArray[Any], num_outputs: int, texts: Sequence[str],
    columns: Sequence[Column] = COLUMNS, advance: Advance = untracked,
) -> FoldChoice:  # fmt: skip
    """Chooses the encoder, the C of each column, and the weight of words.

    inputs: the same rows with the vectors of each encoder. targets: (N,) label ids, (N, C) bool where a text may have
    several labels, or (N,) float64 numbers. texts: rows of equal texts are in one fold. columns: those that the model
    may have.
    """
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(len(targets))[:_ROWS_TO_CHOOSE])
    samples = [own.rows(rows) for own in inputs]
    own = targets[rows]
    folds = list(_folds(own, [texts[number] for number in rows]))
    trials: dict[Column, Trial] = {}
    losses = []
    encoder = 0
    if "vectors" in columns:
        of_encoders = []
        for sample in samples:
            of_encoders.append(_choose_c(sample, own, num_outputs, folds, "vectors"))
            advance(1)
        losses = [trial.loss for trial in of_encoders]
        by_row = [losses_of(trial.scores, own) for trial in of_encoders]
        better = [number for number, row in enumerate(by_row) if exceeds(by_row[0] - row)]
        encoder = min(better, key=losses.__getitem__, default=0)
        trials["vectors"] = of_encoders[encoder]
    if "words" in columns:
        trials["words"] = _choose_c(samples[encoder], own, num_outputs, folds, "words")
        advance(1)
    if len(trials) == 1 or not folds:
        return FoldChoice(trials, encoder, losses, float("vectors" not in columns), (0.0, 0.0), rows)
    scores = {name: trial.scores for name, trial in trials.items()}
    share = best_share(scores, own)
    gains = _gains(scores, share or WORD_SHARES[1], own)
    if merits_of(scores["vectors"], own).mean() >= EASY:
        share = 0.0
    return FoldChoice(trials, encoder, losses, share, (float(gains.mean()), _standard_error(gains)), rows)


def _gains(scores: Mapping[Column, _Floats], share: float, targets: NDArray[Any]) -> _Floats:
    """By how much words, with a weight, lower the loss of vectors on each row, (N,)."""
    return losses_of(scores["vectors"], targets) - losses_of(sum_of_scores(scores, share), targets)


def _standard_error(values: _Floats) -> float:
    """Of the mean."""
    return float(values.std() / np.sqrt(len(values)))


def exceeds(gains: _Floats) -> bool:
    """Whether the mean of paired differences is above 0 by more than two standard errors."""
    return bool(gains.mean() > _ERRORS * _standard_error(gains))


def held_out(
    inputs: LinearInputs, choice: FoldChoice, targets: NDArray[Any], num_outputs: int, texts: Sequence[str]
) -> _Floats:
    """The outputs of all rows, (N, C), each by a model of other rows that is as `choose` chose from some of them.

    inputs: with the vectors of the chosen encoder. The rest as `choose` takes it.
    """
    if len(choice.rows) == len(targets):
        return choice.scores
    scores = {column: np.zeros((len(targets), num_outputs)) for column in choice.trials}
    for train, test in _folds(targets, texts):
        for column, trial in choice.trials.items():
            words = Words(inputs.rows(train).terms) if column == "words" else None
            model = _models(_matrix(inputs.rows(train), words), targets[train], num_outputs, column)
            weights, bias = model.fit(trial.c)
            scores[column][test] = trial.scale * (_matrix(inputs.rows(test), words) @ weights.T + bias)
    return sum_of_scores(scores, choice.words_share)


def fit(
    inputs: LinearInputs, targets: NDArray[Any], num_outputs: int, column: Column, c: float, reader: LinearModel
) -> LinearModel:
    """The model of one column. reader: a model that gives the vectors."""
    words = Words(inputs.terms) if column == "words" else None
    weights, bias = _models(_matrix(inputs, words), targets, num_outputs, column).fit(c)
    model = LinearModel.on(reader, num_outputs, 0 if words is None else len(words.ids), reader.num_texts)
    if words is None:
        model.vectors.weight.data.copy_(torch.from_numpy(weights))
    else:
        model.terms.copy_(torch.from_numpy(words.ids))
        model.frequencies.copy_(torch.from_numpy(words.frequencies))
        model.words.data.copy_(torch.from_numpy(weights.T))
        model.vectors.weight.data.zero_()
        model.reads_vectors = False
    model.vectors.bias.data.copy_(torch.from_numpy(bias))
    return model.eval()


def _choose_c(
    inputs: LinearInputs, targets: NDArray[Any], num_outputs: int, folds: Sequence[_Fold], column: Column
) -> Trial:
    """Tries C in ascending order until the calibrated held-out loss plus the penalty of the prior no longer falls."""
    if not folds:
        return Trial(CS[0], 0.0, np.zeros((len(inputs), num_outputs)))
    models = []
    held_out_matrices = []
    for train, test in folds:
        words = Words(inputs.rows(train).terms) if column == "words" else None
        models.append(_models(_matrix(inputs.rows(train), words), targets[train], num_outputs, column))
        held_out_matrices.append(_matrix(inputs.rows(test), words))
    prior = _PRIOR_OF_C * (column == "vectors" and not _is_numeric(targets))
    best, least = Trial(0.0, np.inf, np.empty(0)), np.inf
    of_labels = {"words": _CS_OF_WORDS, "vectors": CS}[column]
    for c in _CS_OF_NUMBERS if _is_numeric(targets) else of_labels:
        scores = np.zeros((len(inputs), num_outputs))
        for (_, test), model, matrix in zip(folds, models, held_out_matrices, strict=True):
            weights, bias = model.fit(c)
            scores[test] = matrix @ weights.T + bias
        scale = scale_on(scores, targets)
        loss = float(losses_of(scale * scores, targets).mean())
        cost = loss * len(inputs) + prior * np.log(c / _USUAL_C) ** 2
        if cost >= least:
            break
        best, least = Trial(c, loss, scale * scores, scale), cost
    return best


def _folds(targets: NDArray[Any], texts: Sequence[str]) -> Iterator[_Fold]:
    """Folds for cross-validation; rows with the same text share a fold. Yields none if all rows have the same text.

    Folds that scikit-learn leaves empty are left out.
    """
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    _, groups = np.unique(np.array(texts, dtype=object), return_inverse=True)
    several = targets.ndim > 1
    stratifies = not several and not _is_numeric(targets)
    count = min(_FOLDS_OF_SEVERAL if several else _FOLDS, int(groups.max()) + 1)
    if count < 2:
        return
    splitter: Any = GroupKFold(count, shuffle=True, random_state=0)
    if stratifies and np.bincount(targets).max() >= count:
        splitter = StratifiedGroupKFold(count, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")
        folds = splitter.split(np.zeros(len(texts)), targets if stratifies else None, groups)
        yield from ((train, test) for train, test in folds if len(train) and len(test))


def _matrix(inputs: LinearInputs, words: Words | None) -> Matrix:
    """The columns of a model: of words, or the vectors."""
    return inputs.vectors.astype(np.float64) if words is None else words.columns(inputs.terms)


def _is_numeric(targets: NDArray[Any]) -> bool:
    """Whether targets are numbers to predict, not labels."""
    return targets.ndim == 1 and np.issubdtype(targets.dtype, np.floating)


def _models(matrix: Matrix, targets: NDArray[Any], num_outputs: int, column: Column) -> "_Classifiers | _Regressor":
    if _is_numeric(targets):
        return _Regressor(matrix, targets)
    return _Classifiers(matrix, targets, num_outputs, weighs=column == "words")


def _evidence(words: Matrix, targets: Sequence[NDArray[Any]]) -> _Floats:
    """Returns how much each word says about the labels of the rows that contain it, (K,), 1 on average.

    It is the square root of the absolute log-count ratio of naive Bayes (Wang and Manning 2012). Each label has a ratio
    against all others. The ratios of all labels and targets are combined by their root mean square, in which a label
    weighs as much as it has rows. All are 1 if no word says anything. words: (N, K), sparse, of N rows and K words.
    targets: arrays of label ids, each (N,).
    """
    has_word = (words > 0).astype(np.float64)
    rows_with_word = has_word.sum(axis=0).A1
    squares = np.zeros(words.shape[1])
    for labels_of_rows in targets:
        labels, counts = np.unique(labels_of_rows, return_counts=True)
        if len(labels) == 1:  # a label of all rows tells no words apart
            continue
        for label, num_rows in zip(labels, counts, strict=True):
            rows_with_both = has_word[labels_of_rows == label].sum(axis=0).A1
            in_label = 1 + rows_with_both  # one more, as the logarithm of 0 is not finite
            in_others = 1 + rows_with_word - rows_with_both
            ratios = in_label / in_label.sum() * in_others.sum() / in_others
            squares += num_rows * np.log(ratios) ** 2
    evidence: _Floats = squares**0.25  # the square root of the root of the squares
    if not evidence.any():
        return np.ones(len(evidence))
    return evidence / max(float(evidence.sum()), _TINY) * len(evidence)


class _Regressor:
    """Ridge regression on the columns of some rows."""

    def __init__(self, matrix: Matrix, targets: NDArray[Any]) -> None:
        self._matrix = matrix
        self._targets = targets

    def fit(self, c: float) -> tuple[_Floats, _Floats]:
        """Weights (1, K) and bias (1,)."""
        from sklearn.linear_model import Ridge

        if not self._matrix.shape[1]:  # no word occurs twice
            return np.zeros((1, 0)), np.array([self._targets.mean()])
        model = Ridge(1 / c, tol=_TOLERANCE).fit(self._matrix, self._targets)
        return model.coef_[None], np.array([model.intercept_])


class _Classifiers:
    """Logistic regression on the columns of some rows. weighs: the columns are words, scaled by their `_evidence`.

    Two labels, and several labels per row: a binary model per label, by coordinate descent in the dual (an eighth of
    the time of L-BFGS). Otherwise one multinomial model, by L-BFGS. For few rows with many columns, these are replaced
    by the rows' coordinates in the space that they span, where the weights of least loss lie: the model is the same,
    and found exactly in a hundredth of the time.
    """

    def __init__(self, matrix: Matrix, targets: NDArray[Any], num_labels: int, *, weighs: bool = False) -> None:
        from sklearn.linear_model import LogisticRegression

        self._columns = [targets] if targets.ndim == 1 else list(targets.T.astype(np.int64))
        self._evidence = _evidence(matrix, self._columns) if weighs else np.ones(1)
        self._matrix = self._read = matrix.multiply(self._evidence).tocsr() if weighs else matrix
        self._num_labels = num_labels
        self._several = targets.ndim > 1
        binary = {"solver": "liblinear", "dual": True, "max_iter": 1_000, "random_state": 0}
        multinomial = {"max_iter": _MOST_ITERATIONS, "tol": _TOLERANCE, "warm_start": True}
        is_binary = self._several or len(np.unique(targets)) == 2
        self._span: _Floats | None = None
        rows, columns = matrix.shape
        if not is_binary and rows < columns and rows <= _ROWS_AS_COLUMNS:
            self._columns_of_rows()
            multinomial |= {"max_iter": 3_000, "tol": 1e-6}
        self._model = LogisticRegression(**(binary if is_binary else multinomial))

    def _columns_of_rows(self) -> None:
        """Replaces the matrix X by U S of its singular value decomposition; `_span`: U / S."""
        gram = self._matrix @ self._matrix.T
        values, vectors = np.linalg.eigh(gram.toarray() if hasattr(gram, "toarray") else gram)
        kept = values > _NO_VALUE * values[-1]
        lengths = np.sqrt(values[kept])
        self._read = vectors[:, kept] * lengths
        self._span = vectors[:, kept] / lengths

    def fit(self, c: float) -> tuple[_Floats, _Floats]:
        """Weights (C, K) and bias (C,): of log-odds, or of log probabilities up to a number of the row."""
        from sklearn.exceptions import ConvergenceWarning

        weights = np.zeros((self._num_labels, self._matrix.shape[1]))
        if not self._read.shape[1]:  # no word occurs twice, or all vectors are 0
            return weights, np.zeros(self._num_labels)
        bias = np.full(self._num_labels, -_CERTAIN)
        model = self._model.set_params(C=c)
        for number, targets in enumerate(self._columns):
            seen = np.unique(targets)
            if len(seen) > 1:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    model.fit(self._read, targets)
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
                found = model.coef_
                if self._span is not None:
                    found = (self._matrix.T @ (self._span @ found.T)).T
                weights[seen], bias[seen] = found, model.intercept_
        return weights * self._evidence, bias


def losses_of(scores: NDArray[np.floating], targets: NDArray[Any]) -> _Floats:
    """The loss of each row, (N,): in nats, with several labels the sum over the labels; of a number, its squared error
    in variances of the targets.
    """
    if _is_numeric(targets):
        errors: _Floats = scores[:, 0] - targets
        return errors**2 / max(float(targets.var()), _TINY)
    logits = torch.from_numpy(scores.astype(np.float64))
    if targets.ndim > 1:
        losses = F.binary_cross_entropy_with_logits(logits, torch.from_numpy(targets).double(), reduction="none")
        return np.asarray(losses.sum(dim=1))
    return np.asarray(F.cross_entropy(logits, torch.from_numpy(targets), reduction="none"))


def usual_of(vectors: NDArray[np.float32]) -> tuple[Tensor, Tensor, Tensor] | None:
    """What vectors are usual, as LinearModel.set_usual takes it; None for too few or equal ones. vectors: (N, D).

    The covariance is shrunk (Ledoit and Wolf 2004). The distances of one half of the rows are those from the other.
    """
    from sklearn.covariance import LedoitWolf

    rows = np.random.default_rng(0).permutation(len(vectors))[:NOVELTY_ROWS].astype(np.int64)
    if len(rows) < _FEWEST_OF_USUAL:
        return None
    sample = vectors[rows].astype(np.float64)

    def fitted(own: _Floats) -> tuple[_Floats, _Floats]:
        found = LedoitWolf(store_precision=False).fit(own)
        return found.location_, np.linalg.inv(np.linalg.cholesky(found.covariance_)).T

    distances = []
    try:
        for one, other in ((sample[::2], sample[1::2]), (sample[1::2], sample[::2])):
            mean, whitening = fitted(one)
            distances.append(np.linalg.norm((other - mean) @ whitening, axis=1))
        mean, whitening = fitted(sample)
    except np.linalg.LinAlgError:  # the vectors of a half are equal
        return None
    percentiles = np.quantile(np.concatenate(distances), np.linspace(0, 1, 101))
    return torch.from_numpy(mean), torch.from_numpy(whitening), torch.from_numpy(percentiles)


def scale_on(scores: _Floats, targets: NDArray[Any]) -> float:
    """What to multiply the scores of held-out rows by to calibrate them; numbers are as they are."""
    if _is_numeric(targets):
        return 1.0
    return scale_of(scores, lambda scaled: float(losses_of(scaled, targets).sum()))


def merits_of(scores: _Floats, targets: NDArray[Any]) -> _Floats:
    """How good the prediction of each row is, (N,): 1 right, 0 wrong; with several labels, the F1 of the row; of a
    number, the negative loss.
    """
    if _is_numeric(targets):
        return -losses_of(scores, targets)
    if targets.ndim == 1:
        return np.asarray(scores.argmax(axis=1) == targets, np.float64)
    given = scores > 0
    return np.asarray(2 * (given & targets).sum(axis=1) / np.maximum(1, given.sum(axis=1) + targets.sum(axis=1)))
