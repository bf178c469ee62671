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
    same = difference([[scores]], [[scores]])
    assert same.value == 0
    assert same.low < 0 < same.high
    apart = difference([[scores + 10]], [[scores]])
    np.testing.assert_allclose(apart.value, 10)
    assert 8 < apart.low < 10 < apart.high < 12
    assert difference([[scores + 10]], [[scores]]) == apart, "the same numbers, the same interval"


def test_tasks_and_methods_count_alike():
    one, other = [np.array([1.0, 1.0]), np.array([4.0, 4.0])], [np.zeros(20), np.array([2.0] * 20)]
    assert difference([one, other], [[np.zeros(3), np.zeros(3)]]) == (1.75, 1.75, 1.75)


def test_a_run_is_drawn_with_all_of_its_tasks():
    """What one task loses the other gains in every run: in the mean there is no doubt at all."""
    scores = np.random.default_rng(2).normal(size=5)
    found = difference([[scores, 3.0 - scores]], [[np.zeros(5), np.zeros(5)]])
    separate = difference([[scores]], [[np.zeros(5)]])
    assert found.high - found.low < 0.5 * (separate.high - separate.low)


def test_a_method_is_better_only_if_the_interval_says_so_and_there_are_seeds():
    scores = {
        "max": [np.array([5.0, 6.0, 7.0])],
        "tvax": [np.array([1.0, 2.0, 3.0])],
        "random": [np.array([0.0, 6.0, 12.0])],
    }
    value, holds, (low, high) = better("max", "tvax").of(scores)
    assert holds
    assert 0 < low < value < high
    np.testing.assert_allclose(value, 4.0)
    value, holds, (low, high) = better("max", "random").of(scores)
    assert not holds
    assert low < 0 < high
    few = {name: [own[:2] for own in each] for name, each in scores.items()}
    assert not better("max", "tvax").of(few)[1], "two seeds tell nothing"


@pytest.mark.parametrize(("seeds", "most"), [(3, 0.125), (8, 0.05)])
def test_equal_methods_are_seldom_told_apart(seeds, most, monkeypatch):
    """As docs/reproduce.md says. Nominal is 0.025."""
    monkeypatch.setattr("maxplore.experiments.statistics.DRAWS", 400)
    generator = np.random.default_rng(3)
    trials = [generator.normal(size=(2, seeds)) for _ in range(400)]
    wrong = np.mean([difference([[one]], [[other]]).low > 0 for one, other in trials])
    assert wrong <= most
