"""Disagreement of means: by hand, and for any means."""

from collections.abc import Callable

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

from maxplore.models.gaussian import Gaussian
from maxplore.utilities import Disagreement, Outcome, disagreement

repeatable = settings(deadline=None, derandomize=True, max_examples=60)
fast = jax.jit(disagreement)
slope = jax.jit(jax.grad(lambda mean: jnp.sum(disagreement(mean))))


def means(members: int = 5, dims: int = 4) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(np.float32, (members, dims), elements=st.floats(-1e6, 1e6, width=32))


def rounding(mean: np.ndarray) -> float:
    """What float32 may lose: a millionth of the largest number, and squares below 1e-38."""
    return 1e-6 * float(np.abs(mean).max()) + 1e-18


def test_by_hand():
    """Over the two members, standard deviations of the population are 1 and 4."""
    np.testing.assert_allclose(disagreement(jnp.array([[1.0, 0.0], [3.0, 8.0]])), 5.0)


@pytest.mark.parametrize("batch", [(), (7,), (2, 3)])
def test_any_batch(batch: tuple[int, ...]):
    mean = np.random.default_rng(0).normal(size=(5, *batch, 4))
    np.testing.assert_allclose(fast(mean), mean.std(0).sum(-1), rtol=1e-5)


@repeatable
@given(means())
def test_equals_its_definition(mean: np.ndarray):
    expected = mean.astype(np.float64).std(0).sum()
    np.testing.assert_allclose(fast(mean), expected, rtol=1e-5, atol=rounding(mean))


@repeatable
@given(means())
def test_finite_with_finite_gradient_and_never_negative(mean: np.ndarray):
    assert np.isfinite(fast(mean))
    assert fast(mean) >= 0
    assert np.isfinite(slope(mean)).all()


@repeatable
@given(means(), st.permutations(range(5)))
def test_order_of_members_is_nothing_to_it(mean: np.ndarray, order: list[int]):
    np.testing.assert_allclose(fast(mean[order]), fast(mean), rtol=1e-5, atol=rounding(mean))


@repeatable
@given(means(members=1))
def test_identical_members_give_exactly_0(mean: np.ndarray):
    same = np.repeat(mean, 5, axis=0)
    assert fast(same) == 0
    assert np.isfinite(slope(same)).all()


def test_grows_without_end_as_members_part():
    """Unlike a divergence it does not saturate: twice the distance pays twice as much."""
    mean = jnp.array([[0.0], [1000.0]])
    np.testing.assert_allclose(disagreement(2 * mean), 2 * disagreement(mean), rtol=1e-6)


def test_utility_is_that_of_the_forecast_and_blind_to_variances(outcome_of: Callable[..., Outcome]):
    """By row: over members 0, 3, 6 the standard deviation is sqrt 6, over equal ones 0."""
    mean = jnp.array([[[0.0, 1.0], [2.0, 2.0]], [[3.0, 1.0], [2.0, 2.0]], [[6.0, 1.0], [2.0, 2.0]]])
    for variance in (1e-4, 1.0):
        pay = Disagreement()(outcome_of(Gaussian(mean, jnp.full((3, 2, 2), variance))))
        np.testing.assert_allclose(pay, [6**0.5, 0.0], rtol=1e-6)
