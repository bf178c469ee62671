"""What all utilities have in common: saturation, refusal of the wrong ensemble, one finite number a transition."""

import math
from typing import Any

import equinox as eqx
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

from maxplore.errors import InputError
from maxplore.models.categorical import CategoricalEnsemble
from maxplore.models.ensemble import Ensemble, MemberConfig
from maxplore.models.gaussian import GaussianEnsemble
from maxplore.utilities import UTILITIES, ActionPenalty, Outcome, Utility, saturation

GAUSSIAN = sorted(set(UTILITIES) - {"jensen_shannon"})
repeatable = settings(deadline=None, derandomize=True, max_examples=60)


@pytest.fixture(scope="module")
def categorical() -> CategoricalEnsemble:
    """Two members: as many as a Gaussian has parameters, the likeliest to be mistaken for one."""
    return CategoricalEnsemble(4, 2, MemberConfig(members=2, depth=1, width=4), key=jax.random.key(0))


def discrete_outcome(ensemble: CategoricalEnsemble) -> Outcome:
    state, action = jnp.array([0, 1, 3]), jnp.array([0, 1, 1])
    return Outcome(ensemble, state, action, jnp.array([1, 2, 3]), ensemble.forecast(state, action))


def continuous_outcome(ensemble: Ensemble[Any], action: jax.Array) -> Outcome:
    state = jnp.array([[0.0, 1.0], [2.0, -1.0], [0.0, 0.0]])
    return Outcome(ensemble, state, action, state + 1.0, ensemble.forecast(state, action))


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
        with pytest.raises(InputError, match="GaussianEnsemble, got CategoricalEnsemble.*jensen_shannon"):
            utility(discrete_outcome(categorical))


@pytest.mark.parametrize("name", GAUSSIAN)
def test_gaussian_utility_pays_each_row_a_finite_number_with_a_finite_slope_in_the_action(
    name: str, ensemble: GaussianEnsemble
):
    utility, action = UTILITIES[name](), jnp.array([[0.0], [1.0], [-1.0]])

    def pay(action: jax.Array) -> jax.Array:
        return utility(continuous_outcome(ensemble, action))

    assert_one_finite_number_a_row(utility, continuous_outcome(ensemble, action))
    assert jnp.isfinite(jax.jit(jax.grad(lambda action: jnp.sum(pay(action))))(action)).all()


def test_categorical_utility_pays_each_row_a_finite_number(categorical: CategoricalEnsemble):
    assert_one_finite_number_a_row(UTILITIES["jensen_shannon"](), discrete_outcome(categorical))


def assert_one_finite_number_a_row(utility: Utility, outcome: Outcome) -> None:
    pay = utility(outcome)
    assert pay.shape == (3,)
    assert jnp.isfinite(pay).all()
    np.testing.assert_allclose(eqx.filter_jit(utility)(outcome), pay, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", sorted(UTILITIES))
def test_a_utility_that_needs_no_forecast_does_without(
    name: str, ensemble: GaussianEnsemble, categorical: CategoricalEnsemble
):
    utility = UTILITIES[name]()
    outcome = (
        discrete_outcome(categorical) if name == "jensen_shannon" else continuous_outcome(ensemble, jnp.zeros((3, 1)))
    )
    if not utility.needs_forecast:
        without = eqx.tree_at(lambda o: o.forecast, outcome, None)
        np.testing.assert_array_equal(utility(without), utility(outcome))
    assert utility.needs_forecast == (name != "trajectory_variance")
