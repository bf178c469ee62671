"""Prediction error: by hand, and for any prediction."""

from collections.abc import Callable

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

from maxplore.models.gaussian import Gaussian
from maxplore.utilities import Outcome, PredictionError, prediction_error

repeatable = settings(deadline=None, derandomize=True, max_examples=60)
fast = jax.jit(prediction_error)
slopes = jax.jit(jax.grad(lambda mean, observed: jnp.sum(prediction_error(mean, observed)), argnums=(0, 1)))


def vectors(*shape: int) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(np.float32, shape, elements=st.floats(-1e6, 1e6, width=32))


def test_by_hand():
    """The members' average is (1, 2), the observation (4, 0): 9 + 4."""
    mean = jnp.array([[0.0, 1.0], [2.0, 3.0]])
    np.testing.assert_allclose(prediction_error(mean, jnp.array([4.0, 0.0])), 13.0)


@pytest.mark.parametrize("batch", [(), (7,), (2, 3)])
def test_any_batch(batch: tuple[int, ...]):
    rng = np.random.default_rng(0)
    mean, observed = rng.normal(size=(3, *batch, 4)), rng.normal(size=(*batch, 4))
    expected = ((mean.mean(0) - observed) ** 2).sum(-1)
    np.testing.assert_allclose(fast(mean, observed), expected, rtol=1e-5)


@repeatable
@given(vectors(3, 4), vectors(4))
def test_equals_its_definition(mean: np.ndarray, observed: np.ndarray):
    reach = max(np.abs(mean).max(), np.abs(observed).max())
    expected = ((mean.astype(np.float64).mean(0) - observed) ** 2).sum()
    np.testing.assert_allclose(fast(mean, observed), expected, rtol=1e-5, atol=1e-6 * reach**2 + 1e-36)


@repeatable
@given(vectors(3, 4), vectors(4))
def test_finite_with_finite_gradients_and_never_negative(mean: np.ndarray, observed: np.ndarray):
    assert np.isfinite(fast(mean, observed))
    assert fast(mean, observed) >= 0
    assert all(np.isfinite(slope).all() for slope in slopes(mean, observed))


@repeatable
@given(vectors(3, 4), vectors(4), st.permutations(range(3)))
def test_order_of_members_is_nothing_to_it(mean: np.ndarray, observed: np.ndarray, order: list[int]):
    reach = max(np.abs(mean).max(), np.abs(observed).max())
    np.testing.assert_allclose(
        fast(mean[order], observed), fast(mean, observed), rtol=1e-5, atol=1e-6 * reach**2 + 1e-36
    )


@repeatable
@given(vectors(4), hnp.arrays(np.float32, 4, elements=st.integers(-1000, 1000)))
def test_0_if_the_average_is_right_however_members_differ(gap: np.ndarray, observed: np.ndarray):
    """The gap is rounded to whole numbers, so that the two members' average is exact."""
    gap = np.round(gap)
    assert fast(np.stack([observed - gap, observed + gap]), observed) == 0


def test_utility_counts_in_standard_deviations_of_the_state(outcome_of: Callable[..., Outcome]):
    """The members' average of normalised deltas is (1, 0), in the environment's units (1, -1/2).

    The state really moved by (2, -1), so the error is (1, -1/2), in scales (2, 1/4) of the state (1/2, -2).
    In the second row the prediction was right.
    """
    average = jnp.array([[1.0, 0.0], [1.0, 0.0]])
    apart = jnp.array([[0.5, -3.0], [7.0, 1.0]])
    forecast = Gaussian(jnp.stack([average - apart, average, average + apart]), jnp.ones((3, 2, 2)))
    state = jnp.array([[1.0, 2.0], [5.0, 6.0]])
    next_state = state + jnp.array([[2.0, -1.0], [1.0, -0.5]])
    pay = PredictionError()(outcome_of(forecast, state=state, next_state=next_state))
    np.testing.assert_allclose(pay, [0.5**2 + 2.0**2, 0.0], rtol=1e-6, atol=1e-6)


def test_utility_is_blind_to_variances(outcome_of: Callable[..., Outcome]):
    mean = jax.random.normal(jax.random.key(0), (3, 2, 2))
    sure, unsure = (outcome_of(Gaussian(mean, jnp.full((3, 2, 2), variance))) for variance in (1e-4, 1.0))
    np.testing.assert_array_equal(PredictionError()(sure), PredictionError()(unsure))
