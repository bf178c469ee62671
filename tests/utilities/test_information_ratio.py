"""The information ratio: by hand, as a mutual information, and for any Gaussians."""

import math
from collections.abc import Callable

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings

from maxplore.models.gaussian import Gaussian
from maxplore.utilities import InformationRatio, Outcome, information_ratio

repeatable = settings(deadline=None, derandomize=True, max_examples=60)
fast = jax.jit(information_ratio)
slopes = jax.jit(jax.grad(lambda mean, variance: jnp.sum(information_ratio(mean, variance)), argnums=(0, 1)))
Gaussians = tuple[np.ndarray, np.ndarray]


def definition(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    mean, variance = mean.astype(np.float64), variance.astype(np.float64)
    return 0.5 * np.log1p(mean.var(0) / variance.mean(0)).sum(-1)


def mutual_information(prior: float, noise: float) -> float:
    """I(x; x + e) = H(x + e) - H(e) by summing -p ln p over a grid, x of variance `prior` and e of variance `noise`."""

    def entropy(variance: float) -> float:
        deviation = math.sqrt(variance)
        axis, step = np.linspace(-12 * deviation, 12 * deviation, 4001, retstep=True)
        p = np.exp(-0.5 * axis**2 / variance) / math.sqrt(2 * math.pi * variance)
        return float(-np.sum(p * np.log(p)) * step)

    return entropy(prior + noise) - entropy(noise)


def gaussians(members: int = 5, dims: int = 4) -> st.SearchStrategy[Gaussians]:
    """Means up to 1e6; variances from 1e-12 to 1e6, on a log scale."""
    mean = hnp.arrays(np.float32, (members, dims), elements=st.floats(-1e6, 1e6, width=32))
    exponent = hnp.arrays(np.float64, (members, dims), elements=st.floats(-12, 6))
    return st.tuples(mean, exponent.map(lambda e: (10.0**e).astype(np.float32)))


def test_by_hand():
    """Variances over members are 1 and 16, average variances 1/2 and 2: ln 3 / 2 + ln 9 / 2."""
    mean, variance = jnp.array([[1.0, 0.0], [3.0, 8.0]]), jnp.array([[0.25, 1.0], [0.75, 3.0]])
    np.testing.assert_allclose(information_ratio(mean, variance), 1.5 * math.log(3), rtol=1e-6)


@pytest.mark.parametrize("noise", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("prior", [0.04, 1.0, 9.0])
def test_is_what_a_noisy_observation_tells_about_a_gaussian(prior: float, noise: float):
    """Members at +- sqrt(prior) have variance `prior` over them."""
    mean = jnp.sqrt(prior) * jnp.array([[-1.0], [1.0]])
    value = fast(mean, jnp.full((2, 1), noise))
    np.testing.assert_allclose(value, 0.5 * math.log(1 + prior / noise), rtol=1e-5)
    np.testing.assert_allclose(value, mutual_information(prior, noise), rtol=1e-5)


@pytest.mark.parametrize("batch", [(), (7,), (2, 3)])
def test_any_batch(batch: tuple[int, ...]):
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(5, *batch, 4)), rng.uniform(0.1, 2.0, size=(5, *batch, 4))
    np.testing.assert_allclose(fast(mean, variance), definition(mean, variance), rtol=1e-5)


@repeatable
@given(gaussians())
@example((np.float32(838861.75) + np.zeros((5, 4), np.float32), np.full((5, 4), 1e-12, np.float32)))
@example((np.float32(1e6) + np.eye(5, 4, dtype=np.float32) / 16, np.full((5, 4), 1e-6, np.float32)))
def test_equals_its_definition(members: Gaussians):
    """Also where members lie close together and far from 0."""
    np.testing.assert_allclose(fast(*members), definition(*members), rtol=1e-4, atol=1e-4)


@repeatable
@given(gaussians())
def test_finite_with_finite_gradients_and_never_negative(members: Gaussians):
    assert np.isfinite(fast(*members))
    assert fast(*members) >= 0
    assert all(np.isfinite(slope).all() for slope in slopes(*members))


@repeatable
@given(gaussians(), st.permutations(range(5)))
def test_order_of_members_is_nothing_to_it(members: Gaussians, order: list[int]):
    mean, variance = members
    np.testing.assert_allclose(fast(mean[order], variance[order]), fast(mean, variance), rtol=1e-4, atol=1e-4)


@repeatable
@given(gaussians(members=1), gaussians())
def test_identical_means_give_exactly_0_whatever_the_variances(one: Gaussians, five: Gaussians):
    mean, variance = np.repeat(one[0], 5, axis=0), five[1]
    assert fast(mean, variance) == 0
    assert all(np.isfinite(slope).all() for slope in slopes(mean, variance))


def test_noise_makes_the_same_disagreement_worth_less(outcome_of: Callable[..., Outcome]):
    """Members 0, 3, 6 have variance 6 over them in the first dimension, 0 in the second; a row of each noise."""
    mean = jnp.array([0.0, 3.0, 6.0])[:, None, None] * jnp.array([1.0, 0.0])[None, None, :] * jnp.ones((1, 2, 1))
    variance = jnp.array([1.0, 100.0])[None, :, None] * jnp.ones((3, 1, 2))
    pay = InformationRatio()(outcome_of(Gaussian(mean, variance)))
    np.testing.assert_allclose(pay, [0.5 * math.log(7), 0.5 * math.log(1.06)], rtol=1e-5)
