"""Jensen-Shannon divergence: against its definitions in float64, and what must hold for any probabilities."""

import math
from typing import Any

import equinox as eqx
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import xlogy

from maxplore.models.categorical import CategoricalEnsemble
from maxplore.models.ensemble import MemberConfig
from maxplore.utilities import JensenShannon, Outcome, jensen_shannon

repeatable = settings(deadline=None, derandomize=True, max_examples=60)
fast = jax.jit(jensen_shannon)
slope = jax.jit(jax.grad(lambda p: jnp.sum(jensen_shannon(p))))


def entropy_difference(p: np.ndarray) -> np.ndarray:
    """Entropy of the average minus the average entropy (eq. 8), in float64."""
    p = p.astype(np.float64)
    return -xlogy(p.mean(0), p.mean(0)).sum(-1) + xlogy(p, p).sum(-1).mean(0)


def expected_information_gain(p: np.ndarray) -> float:
    """Eq. 1 and 4 by enumeration: the average over next states of KL(posterior over members || prior)."""
    members, states = p.shape
    gain = 0.0
    for state in range(states):
        evidence = float(p[:, state].astype(np.float64).mean())
        for member in range(members):
            posterior = float(p[member, state]) / (members * evidence) if evidence else 0.0
            gain += evidence * posterior * math.log(posterior * members) if posterior else 0.0
    return gain


def random_probabilities(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.ones(shape[-1]), shape[:-1]).astype(np.float32)


def distributions(members: int = 3, states: int = 4, smallest: float = 0.0) -> st.SearchStrategy[np.ndarray]:
    """Probabilities of any size down to 1e-37, and some that are 0 unless `smallest` forbids it."""
    tiny = st.floats(-37, 0).map(lambda exponent: max(10.0**exponent, smallest))
    zeros = st.nothing() if smallest else st.just(0.0)

    def normalised(weights: np.ndarray) -> np.ndarray:
        weights[:, 0] += weights.sum(1) == 0
        return (weights / weights.sum(1, keepdims=True)).astype(np.float32)

    return hnp.arrays(np.float64, (members, states), elements=zeros | tiny).map(normalised)


# Known answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("probabilities", "nats"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], math.log(2)),
        ([[1.0, 0.0], [0.5, 0.5]], 0.75 * math.log(4 / 3) + 0.25 * math.log(4) - 0.5 * math.log(2)),
        ([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], math.log(3) - 2 / 3 * math.log(2)),
        ([[0.2, 0.3, 0.5]], 0.0),
    ],
)
def test_by_hand(probabilities: list[list[float]], nats: float):
    np.testing.assert_allclose(fast(jnp.array(probabilities)), nats, atol=1e-6)


@pytest.mark.parametrize("members", [1, 2, 3, 5, 32])
def test_disjoint_members_give_ln_n(members: int):
    np.testing.assert_allclose(fast(np.eye(members)), math.log(members), atol=1e-6)


@pytest.mark.parametrize("batch", [(), (7,), (2, 3)])
@pytest.mark.parametrize("members", [1, 2, 5, 32])
def test_any_batch_equals_the_definition(members: int, batch: tuple[int, ...]):
    p = random_probabilities(members, *batch, 6)
    np.testing.assert_allclose(fast(p), entropy_difference(p), atol=1e-6)


def test_jit_and_vmap_change_nothing():
    p = jnp.asarray(random_probabilities(2, 3, 4))
    plain = jensen_shannon(p)
    np.testing.assert_allclose(fast(p), plain, atol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(jensen_shannon, in_axes=1))(p), plain, atol=1e-6)


# Any input -------------------------------------------------------------------------------------------


@repeatable
@given(distributions())
def test_equals_its_definition_by_enumeration(p: np.ndarray):
    np.testing.assert_allclose(fast(p), entropy_difference(p), atol=1e-6)


@repeatable
@given(distributions())
def test_is_the_expected_information_gain(p: np.ndarray):
    """What section 2.2 sets out from: information about which member is right, in nats."""
    np.testing.assert_allclose(fast(p), expected_information_gain(p), atol=1e-6)


@repeatable
@given(distributions())
def test_lies_between_0_and_ln_n(p: np.ndarray):
    assert 0.0 <= float(fast(p)) <= math.log(3) + 1e-6


@repeatable
@given(distributions(), st.permutations(range(3)), st.permutations(range(4)))
def test_order_of_members_and_of_states_is_nothing_to_it(p: np.ndarray, members: list[int], states: list[int]):
    np.testing.assert_allclose(fast(p[members][:, states]), fast(p), atol=1e-6)


@repeatable
@given(distributions(members=1))
def test_identical_members_give_exactly_0(p: np.ndarray):
    assert float(fast(np.repeat(p, 3, axis=0))) == 0.0


@repeatable
@given(distributions())
def test_gradient_is_finite_even_at_zeros(p: np.ndarray):
    assert np.isfinite(slope(p)).all()


@repeatable
@given(distributions(smallest=1e-6))
def test_gradient_is_the_log_ratio_to_the_average(p: np.ndarray):
    """d JSD / d p_i(s) = ln(p_i(s) / average(s)) / N."""
    exact = p.astype(np.float64)
    np.testing.assert_allclose(slope(p), np.log(exact / exact.mean(0)) / 3, atol=1e-5)


# The utility -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ensemble() -> CategoricalEnsemble:
    return CategoricalEnsemble(4, 2, MemberConfig(members=2, depth=1, width=4), key=jax.random.key(0))


def pay(ensemble: CategoricalEnsemble, logits: Any) -> jax.Array:
    rows = jnp.zeros(logits.shape[1], jnp.int32)
    return eqx.filter_jit(JensenShannon())(Outcome(ensemble, rows, rows, rows, jnp.asarray(logits, jnp.float32)))


def test_utility_takes_logits(ensemble: CategoricalEnsemble):
    p = random_probabilities(2, 3, 4)
    constant = np.array([[[5.0]], [[-7.0]]])
    np.testing.assert_allclose(pay(ensemble, np.log(p) + constant), entropy_difference(p), atol=1e-6)


def test_members_certain_of_different_states_pay_ln_2_with_a_finite_gradient(ensemble: CategoricalEnsemble):
    logits = jnp.array([[[1e4, 0.0, 0.0, -1e4]], [[0.0, 1e4, -1e4, 0.0]]])
    np.testing.assert_allclose(pay(ensemble, logits), [math.log(2)], atol=1e-6)
    assert jnp.isfinite(jax.grad(lambda x: jnp.sum(pay(ensemble, x)))(logits)).all()


def test_arrays_of_any_kind_are_taken():
    """NumPy, float64 and whole numbers, eagerly."""
    for kind in (np.float64, np.float32, np.int64):
        assert float(jensen_shannon(np.array([[1, 0], [0, 1]], kind))) == pytest.approx(math.log(2), rel=1e-6)
