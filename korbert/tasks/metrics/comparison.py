"""Significance tests between two models on the same examples, with one or more seeds each."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from korbert.tasks.metrics.statistics import Rows, Score, bootstrap_interval, permutation_p_value

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two models on the same `examples`. low, high: confidence interval of the difference a - b."""

    names: tuple[str, str]
    scores: tuple[float, float]  # means over each side's runs
    runs: tuple[int, int]
    examples: int
    low: float
    high: float
    p_value: float
    confidence: float

    @property
    def difference(self) -> float:
        return self.scores[0] - self.scores[1]

    @property
    def more_than_chance(self) -> bool:
        return self.p_value < 1 - self.confidence

    @property
    def sentence(self) -> str:
        """The result in one plain sentence."""
        verb = {1: "scores higher than", 0: "equals", -1: "scores lower than"}[int(np.sign(self.difference))]
        verdict = "this is more than chance" if self.more_than_chance else "this may be chance"
        seeds = "one run each: other seeds may differ" if self.runs == (1, 1) else "{} and {} runs".format(*self.runs)
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"
        return (
            f"{self.names[0]} ({self.scores[0]:.4f}) {verb} {self.names[1]} ({self.scores[1]:.4f}); {verdict} "
            f"(difference {self.difference:+.4f}, {self.confidence:.0%} interval {self.low:+.4f} to {self.high:+.4f}, "
            f"{p}; {self.examples:,} examples, {seeds})."
        )


def compare(
    a: Sequence[Rows],
    b: Sequence[Rows],
    score: Score | None = None,
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
    resamples: int = 2000,
    names: tuple[str, str] = ("A", "B"),
) -> Comparison | None:
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
    count, of = len(a[0]), score or (lambda numbers, counts: float(counts @ numbers / counts.sum()))
    found = [of(run, np.ones(count, np.int64)) for run in (*a, *b)]
    scores = [value for value in found if value is not None]

    def difference(rows: Rows, counts: NDArray[np.int64]) -> float | None:
        drawn = [value for run in range(len(found)) if (value := of(rows[:, run], counts)) is not None]
        return _difference(drawn, len(a)) if len(drawn) == len(found) else None

    if score is None:
        by_example = (np.mean(a, axis=0) - np.mean(b, axis=0)).round(12)  # 2/3 - 1/3 is 1/3
        interval = bootstrap_interval(by_example, rng=rng, confidence=confidence, resamples=resamples)
    else:
        together = np.stack([*a, *b], axis=1)
        interval = bootstrap_interval(together, difference, rng=rng, confidence=confidence, resamples=resamples)
    if interval is None or len(scores) < len(found):
        return None
    if len(a) == len(b) == 1:
        p_value = permutation_p_value(a[0], b[0], score, rng=rng, resamples=resamples)
        assert p_value is not None, "both runs have a score"
        low, high = interval.low, interval.high
    else:
        low, high, p_value = _with_seeds(scores, len(a), interval.standard_error, count, confidence)
    means = float(np.mean(scores[: len(a)])), float(np.mean(scores[len(a) :]))
    return Comparison(names, means, (len(a), len(b)), count, low, high, p_value, confidence)


def _difference(scores: Sequence[float], first: int) -> float:
    """Mean of the first scores minus the mean of the others."""
    return float(np.mean(scores[:first]) - np.mean(scores[first:]))


def _with_seeds(
    scores: Sequence[float], first: int, standard_error: float, count: int, confidence: float
) -> tuple[float, float, float]:
    """Student's interval and two-sided p-value of the difference, over examples and seeds."""
    difference, seeds = _difference(scores, first), len(scores) - 2
    sides = scores[:first], scores[first:]
    pooled = sum(float(np.var(side)) * len(side) for side in sides) / seeds
    parts = standard_error**2, pooled * sum(1 / len(side) for side in sides)
    variance = sum(parts)
    if variance == 0:  # the same difference on every example and seed
        return difference, difference, float(difference == 0)
    freedom = variance**2 / (parts[0] ** 2 / (count - 1) + parts[1] ** 2 / seeds)
    reach = float(stats.t.ppf((1 + confidence) / 2, freedom)) * variance**0.5
    return difference - reach, difference + reach, float(2 * stats.t.sf(abs(difference) / variance**0.5, freedom))
