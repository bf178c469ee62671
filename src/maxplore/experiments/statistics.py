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

Scores = Sequence[np.ndarray]
"""Of one method: for each task, one number a seed. The same seed is the same run in every task."""


class Estimate(NamedTuple):
    """A number, and between which two it lies."""

    value: float
    low: float
    high: float


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


def difference(ones: Sequence[Scores], others: Sequence[Scores]) -> Estimate:
    """By how much the first methods are better: the difference of interquartile means, averaged over methods and tasks.

    Runs are drawn again within their method alone, and with a run all of its tasks: they share its luck.
    """
    generator = np.random.default_rng(0)  # the same numbers give the same interval
    value, draws = 0.0, np.zeros(DRAWS)
    for sign, side in ((1.0, ones), (-1.0, others)):
        for method in side:
            again = generator.integers(0, len(method[0]), (DRAWS, len(method[0])))
            weight = sign / (len(side) * len(method))
            value += weight * sum(float(iqm(scores)) for scores in method)
            draws += weight * sum(iqm(scores[again]) for scores in method)
    low, high = np.quantile(draws, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Estimate(value, float(low), float(high))


def level(scores: Scores) -> Estimate:
    """How high a method scores: its interquartile mean, averaged over tasks."""
    return difference([scores], [])
