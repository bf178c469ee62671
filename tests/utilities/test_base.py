"""What all utilities have in common: saturation, refusal of the wrong ensemble, one finite number a transition."""

import math

import equinox as eqx
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

from maxplore.errors import InputError
from maxplore.models.categorical import CategoricalEnsemble
from maxplore.models.ensemble import MemberConfig
from maxplore.models.gaussian import GaussianEnsemble
from maxplore.utilities import UTILITIES, ActionPenalty, Outcome, saturation

GAUSSIAN = sorted(set(UTILITIES) - {"jensen_shannon"})
repeatable = settings(deadline=None, derandomize=True, max_examples=60)


@pytest.fixture(scope="module")
def categorical() -> CategoricalEnsemble:
    """Two members: as many as a Gaussian has parameters, the likeliest to be mistaken for one."""
    return CategoricalEnsemble(4, 2, MemberConfig(members=2, depth=1, width=4), key=jax.random.key(0))


def discrete_outcome(ensemble: CategoricalEnsemble) -> Outcome:
    state, action = jnp.array([0, 1, 3]), jnp.array([0, 1, 1])
    return Outcome(ensemble, state, action, jnp.array([1, 2, 3]), ensemble.forecast(state, action))


# Saturation ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("members", [2, 3, 5, 32])
@pytest.mark.parametrize("share", [-0.5, 0.0, 0.5, 1.0])
def test_saturation_is_the_share_of_ln_n(members: int, share: float):
    utility = jnp.full((2, 3), share * math.log(members))
    np.testing.assert_allclose(saturation(utility, members), np.full((2, 3), share), rtol=1e-6)


@repeatable
@given(st.floats(-100, 100, width=32))
def test_one_member_is_never_saturated(utility: float):
    assert saturation(jnp.asarray(utility), members=1) == 0


# Every utility ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GAUSSIAN)
def test_gaussian_utility_refuses_a_categorical_ensemble(name: str, categorical: CategoricalEnsemble):
    """And says what it needs, what it got and what to use."""
    for utility in (UTILITIES[name](), ActionPenalty(UTILITIES[name](), 0.1)):
        with pytest.raises(InputError, match=r"GaussianEnsemble, got CategoricalEnsemble.*jensen_shannon"):
            utility(discrete_outcome(categorical))


@pytest.mark.parametrize("name", GAUSSIAN)
def test_gaussian_utility_pays_each_row_a_finite_number_with_a_finite_slope_in_the_action(
    name: str, ensemble: GaussianEnsemble
):
    """Compiled, as a solver has it, from the action through the members to the pay."""
    state, action = jnp.array([[0.0, 1.0], [2.0, -1.0], [0.0, 0.0]]), jnp.array([[0.0], [1.0], [-1.0]])

    @jax.jit
    def pay_and_slope(action: jax.Array) -> tuple[jax.Array, ...]:
        def pay(action: jax.Array) -> jax.Array:
            return UTILITIES[name]()(Outcome(ensemble, state, action, state + 1, ensemble.forecast(state, action)))

        value, pull = jax.vjp(pay, action)
        return value, *pull(jnp.ones_like(value))

    value, slope = pay_and_slope(action)
    assert value.shape == (3,)
    assert jnp.isfinite(value).all()
    assert jnp.isfinite(slope).all()


def test_categorical_utility_pays_each_row_a_finite_number(categorical: CategoricalEnsemble):
    value = eqx.filter_jit(UTILITIES["jensen_shannon"]())(discrete_outcome(categorical))
    assert value.shape == (3,)
    assert jnp.isfinite(value).all()
