"""Jensen-Renyi divergence: against integrals and eq. 10 in float64, and what must hold for any Gaussians."""

import itertools
import math
from collections.abc import Callable

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from scipy.optimize import approx_fprime

from maxplore.models.gaussian import Gaussian
from maxplore.utilities import JensenRenyi, Outcome, jensen_renyi, rescale_variance

repeatable = settings(deadline=None, derandomize=True, max_examples=60)
fast = jax.jit(jensen_renyi)
value_and_slopes = jax.jit(jax.value_and_grad(lambda m, v: jnp.sum(jensen_renyi(m, v)), argnums=(0, 1)))
Gaussians = tuple[np.ndarray, np.ndarray]
"""Mean and variance, `[members, ..., dims]`, in float32."""


def eq_10(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """The paper's equation word by word, in float64."""
    mean, variance = mean.astype(np.float64), variance.astype(np.float64)
    members, dims = mean.shape[0], mean.shape[-1]
    omega = variance[:, None] + variance[None]
    log_overlap = -0.5 * ((mean[:, None] - mean[None]) ** 2 / omega + np.log(omega)).sum(-1)
    log_sum = np.logaddexp.reduce(log_overlap.reshape(members**2, *log_overlap.shape[2:]), axis=0)
    half_log_determinant = 0.5 * np.log(variance).sum(-1)
    return 2 * math.log(members) - log_sum - half_log_determinant.mean(0) - dims * math.log(2) / 2


def by_integration(mean: np.ndarray, variance: np.ndarray) -> float:
    """H2(mixture) - average H2(member) with H2(p) = -ln int p^2, summed over a fine grid of one or two dimensions."""
    dims = mean.shape[-1]
    axis, step = np.linspace(-12, 12, 601, retstep=True)
    point = np.stack(np.meshgrid(*[axis] * dims), axis=-1)[None]
    m, v = (np.expand_dims(x.astype(np.float64), tuple(range(1, dims + 1))) for x in (mean, variance))
    density = np.prod(np.exp(-0.5 * (point - m) ** 2 / v) / np.sqrt(2 * np.pi * v), axis=-1)
    everywhere = tuple(range(-dims, 0))
    member_entropy = -np.log(np.sum(density**2, axis=everywhere) * step**dims)
    mixture_entropy = -np.log(np.sum(density.mean(0) ** 2) * step**dims)
    return float(mixture_entropy - member_entropy.mean())


def ordinary(*shape: int, seed: int = 0) -> Gaussians:
    """Gaussians whose means differ about as much as they are wide."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape).astype(np.float32), np.exp(rng.uniform(-2, 0.5, shape)).astype(np.float32)


def few_dimensions(members: int = 3, dims: int = 4) -> st.SearchStrategy[Gaussians]:
    """Every variance from 1e-12 to 1e6 and every mean up to 1e6, each drawn for itself on a log scale."""
    shape = (members, dims)
    variance = hnp.arrays(np.float64, shape, elements=st.floats(-12, 6)).map(lambda e: 10.0**e)
    size = hnp.arrays(np.float64, shape, elements=st.floats(-12, 6)).map(lambda e: 10.0**e)
    sign = hnp.arrays(np.float64, shape, elements=st.sampled_from([-1.0, 0.0, 1.0]))
    return st.tuples(size, sign, variance).map(
        lambda drawn: ((drawn[0] * drawn[1]).astype(np.float32), drawn[2].astype(np.float32))
    )


@st.composite
def many_dimensions(draw: st.DrawFn, members: int = 5, dims: int = 1000) -> Gaussians:
    """The same in 1,000 dimensions, where a seed stands for the single numbers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    low, high = draw(st.floats(-12, 6)), draw(st.floats(-12, 6))
    size = 10.0 ** draw(st.floats(-12, 6))
    variance = 10.0 ** (low + (high - low) * rng.uniform(size=(members, dims)))
    return (size * rng.uniform(-0.5, 0.5, (members, dims))).astype(np.float32), variance.astype(np.float32)


wide = few_dimensions() | many_dimensions()


def corner(members: int, dims: int, gap: float, variances: tuple[float, float]) -> Gaussians:
    """Members by turns at 0 and at `gap`, dimensions by turns with one variance and the other."""
    place = np.add.outer(np.arange(members), np.arange(dims))
    mean = np.where(np.arange(members)[:, None] % 2, gap, 0.0) + np.zeros((1, dims))
    return mean.astype(np.float32), np.where(place % 2, *variances).astype(np.float32)


# Known answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize("members", [2, 3])
def test_equals_numerical_integration(members: int, dims: int):
    for seed in range(3):
        mean, variance = ordinary(members, dims, seed=seed)
        np.testing.assert_allclose(fast(mean, variance), by_integration(mean, variance), atol=1e-5)


@pytest.mark.parametrize("gap", [0.0, 0.1, 1.0, 3.0, 100.0])
@pytest.mark.parametrize("variance", [0.01, 1.0, 25.0])
def test_pair_of_equal_variance_in_closed_form(gap: float, variance: float):
    """-ln (1 + exp(-gap^2 / 4 variance)) / 2: from 0 to ln 2 as they part."""
    value = fast(jnp.array([[0.0], [gap]]), jnp.full((2, 1), variance))
    np.testing.assert_allclose(value, -math.log((1 + math.exp(-(gap**2) / (4 * variance))) / 2), atol=1e-6)


@pytest.mark.parametrize("ratio", [1.0, 10.0, 100.0, 1e4])
def test_pair_of_equal_mean_in_closed_form(ratio: float):
    overlap = (1 / math.sqrt(2) + 1 / math.sqrt(2 * ratio) + 2 / math.sqrt(1 + ratio)) / 4
    expected = -math.log(overlap) - math.log(ratio) / 4 - math.log(2) / 2
    np.testing.assert_allclose(fast(jnp.zeros((2, 1)), jnp.array([[1.0], [ratio]])), expected, atol=1e-5)


def test_may_be_negative_where_variances_differ():
    """Quadratic Renyi entropy is not concave: a mixture can have less of it than its members on average."""
    mean, variance = np.zeros((2, 1), np.float32), np.array([[1.0], [5000.0]], np.float32)
    assert float(fast(mean, variance)) < -0.5
    np.testing.assert_allclose(fast(mean, variance), eq_10(mean, variance), atol=1e-5)


@pytest.mark.parametrize("members", [1, 2, 3, 5, 32])
def test_members_far_apart_give_ln_n(members: int):
    mean = 1e3 * np.arange(members)[:, None] * np.ones((1, 6))
    np.testing.assert_allclose(fast(mean, np.ones((members, 6))), math.log(members), atol=1e-6)


@pytest.mark.parametrize("batch", [(), (7,), (2, 3)])
@pytest.mark.parametrize("members", [1, 2, 3, 5, 32])
def test_any_batch_equals_eq_10(members: int, batch: tuple[int, ...]):
    mean, variance = ordinary(members, *batch, 6)
    np.testing.assert_allclose(fast(mean, variance), eq_10(mean, variance), atol=1e-4)


@pytest.mark.parametrize("dims", [1, 20, 300])
def test_any_number_of_dimensions_equals_eq_10(dims: int):
    mean, variance = ordinary(5, 8, dims)
    mean = mean / math.sqrt(dims)
    np.testing.assert_allclose(fast(mean, variance), eq_10(mean, variance), rtol=1e-5, atol=1e-4)


def test_jit_and_vmap_change_nothing():
    mean, variance = (jnp.asarray(x) for x in ordinary(3, 2, 2))
    plain = jensen_renyi(mean, variance)
    np.testing.assert_allclose(fast(mean, variance), plain, atol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.vmap(jensen_renyi, in_axes=1))(mean, variance), plain, atol=1e-5)


def test_where_all_means_lie_is_nothing_to_it():
    """Sixty-fourths shifted by 4096 are exact in float32, so only a loss inside could change the answer."""
    mean, variance = ordinary(5, 7, 6)
    mean = np.round(64 * mean) / 64
    np.testing.assert_allclose(fast(mean + 4096, variance), fast(mean, variance), atol=1e-4)


@pytest.mark.parametrize("unit", [2.0**-15, 2.0**-5, 2.0**9])
def test_unit_of_measurement_is_nothing_to_it(unit: float):
    mean, variance = ordinary(5, 7, 6)
    np.testing.assert_allclose(fast(unit * mean, unit**2 * variance), fast(mean, variance), atol=1e-4)


@pytest.mark.parametrize("members", [1, 2, 5])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_gradients_equal_finite_differences_of_eq_10(members: int, seed: int):
    mean, variance = ordinary(members, 4, seed=seed)

    def flat(x: np.ndarray) -> float:
        return float(eq_10(*x.reshape(2, members, 4)))

    expected = approx_fprime(np.stack([mean, variance]).astype(np.float64).ravel(), flat)
    _, slopes = value_and_slopes(mean, variance)
    np.testing.assert_allclose(np.stack(slopes).ravel(), np.asarray(expected), rtol=1e-4, atol=1e-4)


# Any input -------------------------------------------------------------------------------------------


def assert_finite(mean: np.ndarray, variance: np.ndarray) -> None:
    value, slopes = value_and_slopes(mean, variance)
    assert np.isfinite(value)
    assert all(np.isfinite(slope).all() for slope in slopes)
    assert float(value) <= math.log(mean.shape[0]) + 1e-6


@pytest.mark.parametrize(("members", "dims"), [(1, 1), (5, 1), (2, 1000), (5, 1000)])
def test_finite_in_every_corner(members: int, dims: int):
    for gap, *variances in itertools.product([0.0, 1e-12, 1e6], [1e-12, 1e6], [1e-12, 1e6]):
        assert_finite(*corner(members, dims, gap, (variances[0], variances[1])))


@repeatable
@given(wide)
def test_finite_and_at_most_ln_n(gaussians: Gaussians):
    assert_finite(*gaussians)


@repeatable
@given(wide)
def test_equals_eq_10(gaussians: Gaussians):
    np.testing.assert_allclose(fast(*gaussians), eq_10(*gaussians), rtol=1e-4, atol=1e-3)


@repeatable
@given(wide)
def test_a_mixture_has_no_less_entropy_than_its_narrowest_member(gaussians: Gaussians):
    """So it falls no deeper below 0 than entropies differ, and not at all where variances are equal."""
    mean, variance = gaussians
    entropy = 0.5 * np.log(variance.astype(np.float64)).sum(-1)
    lowest = entropy.min() - entropy.mean()
    assert float(fast(mean, variance)) >= lowest - 1e-3 - 1e-5 * abs(lowest)
    assert float(fast(mean, np.broadcast_to(variance[:1], variance.shape))) >= -1e-5


@repeatable
@given(few_dimensions(), st.permutations(range(3)), st.permutations(range(4)))
def test_order_of_members_and_of_dimensions_is_nothing_to_it(gaussians: Gaussians, members: list[int], dims: list[int]):
    mean, variance = gaussians
    moved = fast(mean[members][:, dims], variance[members][:, dims])
    np.testing.assert_allclose(moved, fast(mean, variance), rtol=1e-5, atol=1e-5)


@repeatable
@given(wide)
def test_identical_members_give_0(gaussians: Gaussians):
    """In 4 and in 1,000 dimensions, with no slope either (in units of 1 / standard deviation and 1 / variance)."""
    mean, variance = (np.repeat(x[:1], 5, axis=0) for x in gaussians)
    value, (slope_mean, slope_variance) = value_and_slopes(mean, variance)
    np.testing.assert_allclose(value, 0.0, atol=1e-5)
    np.testing.assert_allclose(slope_mean * np.sqrt(variance), 0.0, atol=1e-5)
    np.testing.assert_allclose(slope_variance * variance, 0.0, atol=1e-5)


@repeatable
@given(st.floats(-12, 6), st.floats(-1e6, 1e6, width=32))
@example(math.log10(0.05), 0.0)
def test_identical_members_give_0_if_all_dimensions_round_alike(exponent: float, mean: float):
    """The same number 1,000 times: an error of rounding that always has the same sign would show."""
    shape = (5, 1000)
    value = fast(np.full(shape, mean, np.float32), np.full(shape, 10.0**exponent, np.float32))
    np.testing.assert_allclose(value, 0.0, atol=1e-5)


# lambda ----------------------------------------------------------------------------------------------

variances = hnp.arrays(np.float32, 8, elements=st.floats(-12, 0).map(lambda e: float(np.float32(1.5 * 10.0**e))))


@repeatable
@given(variances)
def test_lambda_1_leaves_variances_as_they_are(variance: np.ndarray):
    np.testing.assert_allclose(rescale_variance(jnp.asarray(variance), 1.5, 1.0), variance, rtol=1e-6)


@repeatable
@given(variances)
def test_lambda_0_puts_the_upper_bound_in_place_of_all(variance: np.ndarray):
    np.testing.assert_allclose(rescale_variance(jnp.asarray(variance), 1.5, 0.0), 1.5)


@repeatable
@given(variances, st.floats(0, 1))
def test_lambda_draws_variances_towards_the_bound(variance: np.ndarray, temperature: float):
    rescaled = rescale_variance(jnp.asarray(variance), 1.5, temperature)
    expected = temperature * variance.astype(np.float64) + (1 - temperature) * 1.5
    np.testing.assert_allclose(rescaled, expected, rtol=1e-6)


# The utility -----------------------------------------------------------------------------------------

UPPER = math.exp(0.5)
"""The upper bound of variances of the ensemble in conftest.py."""


def test_utility_is_the_divergence_at_lambda_one_tenth(outcome_of: Callable[..., Outcome]):
    mean, variance = ordinary(3, 2, 2)
    value = JensenRenyi()(outcome_of(Gaussian(jnp.asarray(mean), jnp.asarray(variance))))
    np.testing.assert_allclose(value, eq_10(mean, 0.9 * UPPER + 0.1 * variance.astype(np.float64)), atol=1e-5)


def test_utility_with_lambda_1_keeps_variances(outcome_of: Callable[..., Outcome]):
    mean, variance = ordinary(3, 2, 2)
    value = JensenRenyi(temperature=1.0)(outcome_of(Gaussian(jnp.asarray(mean), jnp.asarray(variance))))
    np.testing.assert_allclose(value, eq_10(mean, variance), atol=1e-5)


def test_utility_with_lambda_0_sees_only_means(outcome_of: Callable[..., Outcome]):
    """The first transition's members agree on the mean, the second's do not; variances are anything."""
    _, variance = ordinary(3, 2, 2)
    mean = jnp.zeros((3, 2, 2)).at[0, 1].set(2.0)
    value = JensenRenyi(temperature=0.0)(outcome_of(Gaussian(mean, jnp.asarray(variance))))
    apart = math.exp(-(2.0**2 + 2.0**2) / (4 * UPPER))
    np.testing.assert_allclose(value, [0.0, -math.log((5 + 4 * apart) / 9)], atol=1e-6)


def test_arrays_of_any_kind_are_taken():
    """NumPy, float64 and whole numbers, eagerly, with and without double precision switched on."""
    mean, variance = np.array([[0.0], [3.0]]), np.array([[1.0], [1.0]])
    wanted = float(jensen_renyi(jnp.asarray(mean, jnp.float32), jnp.asarray(variance, jnp.float32)))
    assert wanted == pytest.approx(2 * math.log(2) - math.log(2 + 2 * math.exp(-9 / 4)), rel=1e-5)
    for double in (False, True):
        with jax.enable_x64(double):
            for kind in (np.float64, np.int64):
                assert float(jensen_renyi(mean.astype(kind), variance.astype(kind))) == pytest.approx(wanted, rel=1e-5)
            assert float(jensen_renyi(jnp.asarray(mean), jnp.asarray(variance))) == pytest.approx(wanted, rel=1e-5)
