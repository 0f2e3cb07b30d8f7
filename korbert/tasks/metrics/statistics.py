"""Confidence intervals of scores, paired significance tests, and comparisons of two models that combine both.

A run is the output of one trained model on n examples: (n,) or (n, ...) numbers. Row i holds everything the score needs
of example i, such as label and prediction. A score takes distinct rows and their counts, `score(rows, counts)`; higher
is better. By default it is `mean`, of rows that are numbers (right or wrong, F1 of an answer).

Resamples are fast because equal examples are drawn together, as counts from a multinomial distribution (bootstrap) or
from binomial ones (permutation): the distribution is that of drawing one by one, at a cost that grows with the distinct
rows and not with the examples. 50,000 pairs of two labels are four rows. `repeated` makes a score of a function of
plain rows, which then costs as much as all of them. The tests compare with the bootstrap and permutation_test of scipy,
which draw one by one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from korbert.messages import Message
from korbert.system import package

RunArray = NDArray[Any]
Counts = NDArray[np.int64]
Score = Callable[[RunArray, Counts], float | None]
"""Takes rows (m, ...) and how often each occurs, counts (m,) int, 0 or more. None if the score is undefined."""

_CONFIDENCE = 0.95  # of every interval
_BATCH = 1_000_000  # counts drawn at a time: 8 MB
_FEW = 0.05  # distinct rows per example; above, a binomial draw per row costs more than an index per example
_EQUAL = 1e-12  # tolerance for sums added in another order


def mean(rows: RunArray, counts: Counts) -> float:
    """The score of rows (m,) that are numbers themselves."""
    return float(counts @ rows / counts.sum())


def repeated(score: Callable[[RunArray], float | None]) -> Score:
    """Makes a score of a function of plain rows, such as Spearman's correlation."""
    return lambda rows, counts: score(np.repeat(rows, counts, axis=0))


class Interval(NamedTuple):
    """Ends of an interval, and the standard deviation of the score over resamples."""

    low: float
    high: float
    standard_error: float


def bootstrap_interval(
    examples: RunArray, score: Score = mean, *, rng: np.random.Generator, resamples: int = 2000
) -> Interval | None:
    """95 % percentile bootstrap interval of a score (Efron and Tibshirani 1993, 13.3).

    examples: a run of two or more examples. None if the score is undefined, or on any resample.
    """
    rows, counts = _distinct(examples)
    total = int(counts.sum())
    scores = [score(rows, counts)]
    for size in _sizes(resamples, len(counts)):
        # Where all rows are distinct, counting drawn indices is faster than a multinomial distribution.
        if total > len(counts):
            drawn = rng.multinomial(total, counts / total, size=size)
        else:
            drawn = np.stack([np.bincount(row, minlength=total) for row in rng.integers(total, size=(size, total))])
        scores += [score(rows, resample) for resample in drawn]
    if None in scores:
        return None
    resampled = np.array(scores[1:], np.float64)
    low, high = np.quantile(resampled, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return Interval(float(low), float(high), float(resampled.std(ddof=1)))


def _distinct(examples: RunArray) -> tuple[RunArray, Counts]:
    """Distinct rows and their counts; all rows with count 1 if hardly any are equal."""
    _, first, counts = np.unique(examples.reshape(len(examples), -1), axis=0, return_index=True, return_counts=True)
    if len(first) > _FEW * len(examples):
        return examples, np.ones(len(examples), np.int64)
    return examples[first], counts.astype(np.int64)


def _sizes(resamples: int, width: int) -> list[int]:
    """How many resamples each batch has. width: number of counts in a resample."""
    batch = max(1, _BATCH // width)
    return [min(batch, resamples - begin) for begin in range(0, resamples, batch)]


class Spread(NamedTuple):
    """Mean of the scores of several seeds, standard deviation (n - 1), and Student's 95 % interval of the mean.

    One seed has neither deviation nor interval: None.
    """

    mean: float
    deviation: float | None
    low: float | None
    high: float | None


def over_seeds(scores: Sequence[float]) -> Spread:
    """Mean, deviation and interval of the scores of several seeds, at least one."""
    middle = float(np.mean(scores))
    count = len(scores)
    if count == 1:
        return Spread(middle, None, None, None)
    stats = package("scipy.stats", "an interval over seeds")
    deviation = float(np.std(scores, ddof=1))
    half_width = float(stats.t.ppf((1 + _CONFIDENCE) / 2, count - 1)) * deviation / count**0.5
    return Spread(middle, deviation, middle - half_width, middle + half_width)


def permutation_p_value(
    a: RunArray, b: RunArray, score: Score = mean, *, rng: np.random.Generator, resamples: int = 2000
) -> float | None:
    """Two-sided p-value of the difference of two runs, by approximate randomization.

    a, b: (n, ...), the same examples in the same order. In every resample, each example's two rows are swapped or not
    by a coin flip (Fisher 1935; Noreen 1989). p = (1 + resamples that differ as much) / (1 + resamples), never 0
    (Phipson and Smyth 2010). None if the score is undefined on a run; a resample without a score counts as different.
    """
    pairs, counts = _distinct(np.stack([a, b], axis=1))
    rows = np.concatenate([pairs[:, 0], pairs[:, 1]])

    def gap(kept: Counts) -> float | None:
        """The difference of the scores of both sides, where `kept` examples of each pair stay in place."""
        swapped = counts - kept
        sides = (np.concatenate([kept, swapped]), np.concatenate([swapped, kept]))
        score_a, score_b = (score(rows, side) for side in sides)
        return None if score_a is None or score_b is None else abs(score_a - score_b)

    observed = gap(counts)
    if observed is None:
        return None
    extreme = 0
    for size in _sizes(resamples, len(counts)):
        if counts.sum() > len(counts):
            kept = rng.binomial(counts, 0.5, size=(size, len(counts)))
        else:
            kept = rng.integers(2, size=(size, len(counts)), dtype=np.int8).astype(np.int64)
        extreme += sum(
            resampled_gap is None or not resampled_gap < observed - _EQUAL for resampled_gap in map(gap, kept)
        )
    return (1 + extreme) / (1 + resamples)


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """Two models on the same `examples`. low, high: 95 % interval of the difference a - b."""

    names: tuple[str, str]
    scores: tuple[float, float]  # means over each side's runs
    runs: tuple[int, int]
    examples: int
    low: float
    high: float
    p_value: float

    @property
    def difference(self) -> float:
        return self.scores[0] - self.scores[1]

    @property
    def more_than_chance(self) -> bool:
        return self.p_value < 1 - _CONFIDENCE

    @property
    def sentence(self) -> Message:
        """The result in one plain sentence."""
        values = {
            "first": self.names[0],
            "first_score": self.scores[0],
            "second": self.names[1],
            "second_score": self.scores[1],
            "verdict": self._verdict(),
        }
        if self.difference > 0:
            return Message(
                "{first} ({first_score:.4f}) scores higher than {second} ({second_score:.4f}); {verdict}", **values
            )
        if self.difference < 0:
            return Message(
                "{first} ({first_score:.4f}) scores lower than {second} ({second_score:.4f}); {verdict}", **values
            )
        return Message("{first} ({first_score:.4f}) equals {second} ({second_score:.4f}); {verdict}", **values)

    def _verdict(self) -> Message:
        """Whether the difference is more than chance, and what says so."""
        runs = Message("{first} and {second} runs", first=self.runs[0], second=self.runs[1])
        if self.runs == (1, 1):
            runs = Message("one run each: other seeds may differ")
        values = {
            "difference": self.difference,
            "confidence": _CONFIDENCE,
            "low": self.low,
            "high": self.high,
            "p_value": "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}",
            "examples": self.examples,
            "runs": runs,
        }
        if self.more_than_chance:
            return Message(
                "this is more than chance (difference {difference:+.4f}, {confidence:.0%} interval {low:+.4f} to "
                "{high:+.4f}, {p_value}; {examples:,} examples, {runs}).",
                **values,
            )
        return Message(
            "this may be chance (difference {difference:+.4f}, {confidence:.0%} interval {low:+.4f} to {high:+.4f}, "
            "{p_value}; {examples:,} examples, {runs}).",
            **values,
        )


def compare(
    a: Sequence[RunArray], b: Sequence[RunArray], score: Score = mean, *,
    rng: np.random.Generator, resamples: int = 2000, names: tuple[str, str] = ("A", "B"),
) -> PairedComparison | None:  # fmt: skip
    """Tests whether sides `a` and `b` differ by more than chance. One run per seed, all on the same examples.

    One run per side: percentile interval and permutation test over the examples; other seeds are not covered.
    More runs: both sources of variance add up. The variance of the difference is that over the examples (bootstrap of
    the difference of mean scores) plus that over the seeds (pooled over the sides, s^2 (1/k_a + 1/k_b)); interval and
    p-value are Student's, with the degrees of freedom of Satterthwaite 1946. This is a normal approximation over
    examples, for 30 or more; it assumes equal seed variance on both sides and so allows a single run on one of them,
    such as a baseline. None if the score is undefined on a run or on a resample.
    """
    lengths = {len(run) for run in (*a, *b)}
    if len(lengths) > 1:
        raise ValueError(f"runs of {sorted(lengths)} examples: all must be on the same examples")
    scores = _all_scores(score, [*a, *b], np.ones(len(a[0]), np.int64))

    def difference(rows: RunArray, counts: Counts) -> float | None:
        run_scores = _all_scores(score, list(rows.swapaxes(0, 1)), counts)
        return None if run_scores is None else _difference(run_scores, len(a))

    interval = bootstrap_interval(np.stack([*a, *b], axis=1), difference, rng=rng, resamples=resamples)
    if interval is None or scores is None:
        return None
    if len(a) == len(b) == 1:
        p_value = permutation_p_value(a[0], b[0], score, rng=rng, resamples=resamples)
        assert p_value is not None, "both runs have a score"
        low, high, _ = interval
    else:
        low, high, p_value = _with_seeds(scores, len(a), interval.standard_error, len(a[0]))
    means = float(np.mean(scores[: len(a)])), float(np.mean(scores[len(a) :]))
    return PairedComparison(names, means, (len(a), len(b)), len(a[0]), low, high, p_value)


def _all_scores(score: Score, runs: Sequence[RunArray], counts: Counts) -> list[float] | None:
    """The score of each run; None if one of them is undefined."""
    scores = [value for run in runs if (value := score(run, counts)) is not None]
    return scores if len(scores) == len(runs) else None


def _difference(scores: Sequence[float], num_first: int) -> float:
    """Mean of the first `num_first` scores minus the mean of the others."""
    return float(np.mean(scores[:num_first]) - np.mean(scores[num_first:]))


def _with_seeds(
    scores: Sequence[float], num_first: int, standard_error: float, count: int
) -> tuple[float, float, float]:
    """Ends of Student's interval and two-sided p-value of the difference, over examples and seeds.

    scores: of all runs; the first `num_first` belong to one side. standard_error: over the `count` examples.
    """
    stats = package("scipy.stats", "a comparison over seeds")
    difference = _difference(scores, num_first)
    seed_freedom = len(scores) - 2
    sides = scores[:num_first], scores[num_first:]
    seed_variance = sum(float(np.var(side)) * len(side) for side in sides) / seed_freedom
    variances = standard_error**2, seed_variance * sum(1 / len(side) for side in sides)
    variance = sum(variances)
    if variance == 0:  # the same difference on every example and seed
        return difference, difference, float(difference == 0)
    freedom = variance**2 / (variances[0] ** 2 / max(count - 1, 1) + variances[1] ** 2 / seed_freedom)
    half_width = float(stats.t.ppf((1 + _CONFIDENCE) / 2, freedom)) * variance**0.5
    p_value = float(2 * stats.t.sf(abs(difference) / variance**0.5, freedom))
    return difference - half_width, difference + half_width, p_value
