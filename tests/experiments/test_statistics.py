"""Comparisons over few seeds, in cases where the answer is known."""

import numpy as np
import pytest

from maxplore.experiments.statistics import difference, iqm
from maxplore.experiments.swept import better


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([5.0], 5.0),
        ([1.0, 3.0], 2.0),
        ([0.0, 1.0, 2.0], 1.0),
        ([0.0, 0.0, 3.0], 0.5),  # a quarter of three is 3/4: of the ends a quarter each counts, of 3/2 in all
        ([-100.0, 1.0, 3.0, 900.0], 2.0),
        ([0.0, 0.0, 10.0, 20.0, 20.0, 30.0, 99.0, 99.0], 20.0),
    ],
)
def test_the_middle_half_counts(scores, expected):
    np.testing.assert_allclose(iqm(np.array(scores)), expected)
    np.testing.assert_allclose(iqm(np.array(scores[::-1])), expected)


def test_it_is_that_of_scipy_where_quarters_are_whole():
    from scipy.stats import trim_mean

    scores = np.random.default_rng(0).normal(size=(3, 12))
    np.testing.assert_allclose(iqm(scores), trim_mean(scores, 0.25, axis=1))


def test_what_is_equal_differs_by_nothing_and_what_is_apart_by_something():
    scores = np.random.default_rng(1).normal(size=8)
    same = difference([scores], [scores])
    assert same.value == 0
    assert same.low < 0 < same.high
    apart = difference([scores + 10], [scores])
    np.testing.assert_allclose(apart.value, 10)
    assert 8 < apart.low < 10 < apart.high < 12
    assert difference([scores + 10], [scores]) == apart, "the same numbers, the same interval"


def test_tasks_are_strata_that_count_alike():
    few, many = np.array([1.0, 1.0]), np.array([4.0] * 20)
    found = difference([few, many], [np.zeros(2), np.zeros(20)])
    assert found == (2.5, 2.5, 2.5)


def test_a_method_is_better_only_if_the_interval_says_so():
    scores = {
        "max": [np.array([5.0, 6.0, 7.0])],
        "tvax": [np.array([1.0, 2.0, 3.0])],
        "random": [np.array([0.0, 6, 12])],
    }
    value, holds = better(("max",), ("tvax",)).of(scores)
    assert holds
    np.testing.assert_allclose(value, 4.0)
    value, holds = better(("max",), ("random",)).of(scores)
    assert not holds
    np.testing.assert_allclose(value, 0.0, atol=1e-9)
    value, holds = better(("max", "tvax"), ("random",)).of(scores)
    assert not holds
