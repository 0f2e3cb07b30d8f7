"""Confidence intervals of scores, and paired significance tests (comparison.py combines them).

A run is the output of one trained model on n examples: (n,) or (n, ...) numbers. Row i holds everything the score needs
of example i, such as label and prediction. A score takes distinct rows and their counts, `score(rows, counts)`; higher
is better. Without one, rows are numbers (right or wrong, F1 of an answer) and the score is their mean.

Resamples are fast because equal examples are drawn together, as counts from a multinomial distribution (bootstrap) or
from binomial ones (permutation): the distribution is that of drawing one by one, at a cost that grows with the distinct
rows and not with the examples. 50,000 pairs of two labels are four rows. `repeated` makes a score of a function of
plain rows, which then costs as much as all of them. The tests compare with the bootstrap and permutation_test of scipy,
which draw one by one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Interval",
    "Rows",
    "Score",
    "Spread",
    "bootstrap_interval",
    "over_seeds",
    "permutation_p_value",
    "repeated",
]

Rows = NDArray[Any]
Counts = NDArray[np.int64]
Score = Callable[[Rows, Counts], float | None]
"""Takes rows (m, ...) and how often each occurs, counts (m,) int, 0 or more. None if the score is undefined."""

_BATCH = 1_000_000  # counts drawn at a time: 8 MB
_FEW = 0.05  # distinct rows per example; above, a binomial draw per row costs more than an index per example
_EQUAL = 1e-12  # tolerance for sums added in another order
_DIGITS = 12  # rounds 2/3 - 1/3 to 1/3


def repeated(score: Callable[[Rows], float | None]) -> Score:
    """Makes a score of a function of plain rows, such as Spearman's correlation."""
    return lambda rows, counts: score(np.repeat(rows, counts, axis=0))


class Interval(NamedTuple):
    """Ends of an interval, and the standard deviation of the score over resamples."""

    low: float
    high: float
    standard_error: float


def bootstrap_interval(
    examples: Rows,
    score: Score | None = None,
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
    resamples: int = 2000,
    method: Literal["percentile", "BCa"] = "percentile",
) -> Interval | None:
    """Bootstrap confidence interval of a score. examples: a run of two or more examples.

    Efron and Tibshirani 1993, 13.3 (percentile) and 14.3 (BCa, which corrects bias and skew, and evaluates the score
    once more per distinct row, unless it is the mean). None if the score is undefined, or on any resample.
    """
    rows, counts = _distinct(examples)
    value = _scores(score, rows, counts[None])[0]
    drawn = np.concatenate([_scores(score, rows, batch) for batch in _resampled(counts, resamples, rng)])
    ends = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    if method == "BCa" and np.ptp(drawn) > 0:
        ends = _bca_ends(ends, value, drawn, _left_out(score, rows, counts), counts)
    if np.isnan([value, *drawn, *ends]).any():
        return None
    low, high = np.quantile(drawn, ends)
    return Interval(float(low), float(high), float(drawn.std(ddof=1)))


def _distinct(examples: Rows) -> tuple[Rows, Counts]:
    """Distinct rows and their counts; all rows with count 1 if hardly any are equal."""
    _, first, counts = np.unique(examples.reshape(len(examples), -1), axis=0, return_index=True, return_counts=True)
    if len(first) > _FEW * len(examples):
        return examples, np.ones(len(examples), np.int64)
    return examples[first], counts.astype(np.int64)


def _resampled(counts: Counts, resamples: int, rng: np.random.Generator) -> Iterator[Counts]:
    """Batches (R, rows) int of counts: R resamples of the examples with replacement, `resamples` in total."""
    total = int(counts.sum())
    for size in _sizes(resamples, len(counts)):
        if total > len(counts):
            yield rng.multinomial(total, counts / total, size=size)
        else:
            yield np.stack([np.bincount(row, minlength=total) for row in rng.integers(total, size=(size, total))])


def _sizes(resamples: int, width: int) -> list[int]:
    batch = max(1, _BATCH // width)
    return [min(batch, resamples - begin) for begin in range(0, resamples, batch)]


def _scores(score: Score | None, rows: Rows, drawn: NDArray[np.int64]) -> NDArray[np.float64]:
    """(R,) float: the score for each row of counts in drawn, (R, rows); nan if undefined."""
    if score is None:
        return np.asarray(drawn @ rows.astype(np.float64) / drawn.sum(axis=1))
    return np.array([np.nan if (value := score(rows, counts)) is None else value for counts in drawn], np.float64)


def _left_out(score: Score | None, rows: Rows, counts: Counts) -> NDArray[np.float64]:
    """Leave-one-out scores, one per distinct row: (rows,) float."""
    if score is None:
        return np.asarray((counts @ rows.astype(np.float64) - rows) / (counts.sum() - 1))
    scores = np.empty(len(rows))
    for row in range(len(rows)):
        fewer = counts.copy()
        fewer[row] -= 1
        scores[row] = _scores(score, rows, fewer[None])[0]
    return scores


def _bca_ends(
    ends: NDArray[Any], value: float, drawn: NDArray[Any], left_out: NDArray[Any], counts: Counts
) -> NDArray[Any]:
    """Quantile levels of the BCa interval; Efron and Tibshirani 1993, (14.9) to (14.15)."""
    from scipy import stats  # slower to import than a model to load

    bias = stats.norm.ppf(((drawn < value).mean() + (drawn <= value).mean()) / 2)
    moves = counts @ left_out / counts.sum() - left_out
    acceleration = (counts @ moves**3) / (6 * (counts @ moves**2) ** 1.5)
    moved = bias + stats.norm.ppf(ends)
    return np.asarray(stats.norm.cdf(bias + moved / (1 - acceleration * moved)))


class Spread(NamedTuple):
    """Mean of the scores of `seeds` seeds, standard deviation (n - 1), and Student's interval of the mean.

    One seed has neither deviation nor interval: None.
    """

    mean: float
    deviation: float | None
    low: float | None
    high: float | None
    seeds: int


def over_seeds(scores: Sequence[float], *, confidence: float = 0.95) -> Spread:
    """Mean, deviation and interval of the scores of several seeds, at least one."""
    from scipy import stats

    mean, count = float(np.mean(scores)), len(scores)
    if count == 1:
        return Spread(mean, None, None, None, 1)
    deviation = float(np.std(scores, ddof=1))
    reach = float(stats.t.ppf((1 + confidence) / 2, count - 1)) * deviation / count**0.5
    return Spread(mean, deviation, mean - reach, mean + reach, count)


def _coin_p_value(heads: int, thrown: int) -> float:
    from scipy import stats

    return float(stats.binomtest(heads, thrown).pvalue) if thrown else 1.0


def permutation_p_value(
    a: Rows, b: Rows, score: Score | None = None, *, rng: np.random.Generator, resamples: int = 2000
) -> float | None:
    """Two-sided p-value of the difference of two runs, by approximate randomization.

    a, b: (n, ...), the same examples in the same order. In every resample, each example's two rows are swapped or not
    by a coin flip (Fisher 1935; Noreen 1989). p = (1 + resamples that differ as much) / (1 + resamples), never 0
    (Phipson and Smyth 2010), but exact for the mean of rights and wrongs, where it is McNemar's. None if the score is
    undefined on a run; a resample without a score counts as different.
    """
    if score is None:
        return _sign_p_value(a.astype(np.float64) - b, rng, resamples)
    pairs, counts = _distinct(np.stack([a, b], axis=1))
    rows = np.concatenate([pairs[:, 0], pairs[:, 1]])
    scores = _scores(score, rows, _sides(counts[None], counts))
    if np.isnan(scores).any():
        return None
    extreme = 0
    for kept in _coins(counts, resamples, rng):
        drawn = _scores(score, rows, _sides(kept, counts)).reshape(2, -1)
        extreme += int((~(np.abs(drawn[0] - drawn[1]) < abs(scores[0] - scores[1]) - _EQUAL)).sum())
    return (1 + extreme) / (1 + resamples)


def _sides(kept: NDArray[np.int64], counts: Counts) -> NDArray[np.int64]:
    """(2 R, 2 rows): counts of both runs' rows on each side, once `kept` (R, rows) stay in place."""
    stay, go = kept, counts - kept
    return np.concatenate([np.concatenate([stay, go], axis=1), np.concatenate([go, stay], axis=1)])


def _coins(counts: Counts, resamples: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Batches (R, rows) int: heads among `counts` coin flips per row, `resamples` in total."""
    for size in _sizes(resamples, len(counts)):
        if counts.sum() > len(counts):
            yield rng.binomial(counts, 0.5, size=(size, len(counts)))
        else:
            yield rng.integers(2, size=(size, len(counts)), dtype=np.int8).astype(np.int64)


def _sign_p_value(differences: NDArray[np.float64], rng: np.random.Generator, resamples: int) -> float:
    """permutation_p_value of a mean, by flipping signs of the differences."""
    differences = differences[differences != 0].round(_DIGITS)
    if len(np.unique(np.abs(differences))) < 2:
        return _coin_p_value(int((differences > 0).sum()), len(differences))
    sizes, counts = _distinct(np.abs(differences))
    least = abs(differences.sum()) - _EQUAL * len(differences)
    extreme = sum(
        int((np.abs((2 * heads - counts) @ sizes) >= least).sum()) for heads in _coins(counts, resamples, rng)
    )
    return (1 + extreme) / (1 + resamples)
