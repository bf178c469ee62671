"""How methods are compared over few seeds: interquartile means, with intervals by stratified bootstrap.

After Agarwal and others, "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (2021): the middle half
of all runs is less at the mercy of one lucky seed than the mean, and uses more of them than the median.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

DRAWS = 5000
"""Of the bootstrap."""
LEVEL = 0.95
"""Of its intervals."""


class Estimate(NamedTuple):
    """A number, and between which two it lies."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def iqm(scores: np.ndarray) -> np.ndarray:
    """The mean of the middle half along the last axis; where a quarter is no whole number, ends count in part.

    >>> float(iqm(np.array([0.0, 1.0, 2.0, 300.0])))
    1.5
    """
    order = np.sort(scores, axis=-1)
    count = order.shape[-1]
    # Each score owns an equal stretch of [0, 1]; what counts is how much of it lies in the middle half.
    edges = np.linspace(0.0, 1.0, count + 1)
    weight = np.clip(np.minimum(edges[1:], 0.75) - np.maximum(edges[:-1], 0.25), 0.0, None)
    return np.asarray(order @ (weight / weight.sum()))


def difference(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> Estimate:
    """By how much the first is better: the difference of interquartile means, averaged over strata (tasks).

    Each is one array of scores a stratum. Seeds are drawn again within their stratum and side alone.
    """
    generator = np.random.default_rng(0)  # the same numbers give the same interval
    value, draws = 0.0, np.zeros(DRAWS)
    for sign, side in ((1.0, one), (-1.0, other)):
        for scores in side:
            again = generator.integers(0, len(scores), (DRAWS, len(scores)))
            value += sign * float(iqm(scores)) / len(side)
            draws += sign * iqm(scores[again]) / len(side)
    low, high = np.quantile(draws, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Estimate(value, float(low), float(high))
