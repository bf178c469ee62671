"""The price on large actions: by hand, around any utility."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxplore import CategoricalEnsemble, InputError, MemberConfig
from maxplore.models.gaussian import Gaussian
from maxplore.utilities import UTILITIES, ActionPenalty, Disagreement, JensenShannon, Outcome, Task, Utility


def constant(reward: float) -> Task:
    return Task(lambda state, action, next_state: jnp.asarray(reward))


@pytest.mark.parametrize(
    ("action", "pay"),
    [
        ([[3.0, 4.0], [0.0, -2.0]], [10 - 0.1 * 25, 10 - 0.1 * 4]),
        ([[0.0], [0.5]], [10.0, 10 - 0.1 * 0.25]),
    ],
    ids=["vector", "one dimension"],
)
def test_by_hand(outcome_of: Callable[..., Outcome], action: list, pay: list[float]):
    """A reward of 10 less 0.1 |a|^2."""
    np.testing.assert_allclose(ActionPenalty(constant(10.0), 0.1)(outcome_of(action=jnp.array(action))), pay, rtol=1e-6)


def test_around_a_utility_that_looks_at_the_forecast(outcome_of: Callable[..., Outcome]):
    """The rows' disagreement is (1, 0), the squared norm of actions (4, 9)."""
    mean = jnp.array([[[0.0, 0.0], [5.0, 5.0]], [[2.0, 0.0], [5.0, 5.0]]])
    outcome = outcome_of(Gaussian(mean, jnp.ones((2, 2, 2))), action=jnp.array([[2.0], [3.0]]))
    np.testing.assert_allclose(ActionPenalty(Disagreement(), 0.5)(outcome), [1 - 2.0, 0 - 4.5], rtol=1e-6)


def test_weight_0_changes_nothing_and_penalties_add_up(outcome_of: Callable[..., Outcome]):
    outcome = outcome_of(action=jnp.array([[2.0], [3.0]]))
    np.testing.assert_array_equal(ActionPenalty(constant(1.0), 0.0)(outcome), [1.0, 1.0])
    twice = ActionPenalty(ActionPenalty(constant(1.0), 0.25), 0.75)
    np.testing.assert_allclose(twice(outcome), ActionPenalty(constant(1.0), 1.0)(outcome), rtol=1e-6)


def test_gradient_is_that_of_the_squared_norm(outcome_of: Callable[..., Outcome]):
    penalised = ActionPenalty(constant(1.0), 0.5)
    slope = jax.grad(lambda action: jnp.sum(penalised(outcome_of(action=action))))(jnp.array([[2.0], [0.0]]))
    np.testing.assert_allclose(slope, [[-2.0], [0.0]])


@pytest.mark.parametrize(
    "inner", [constant(1.0), *(kind() for kind in UTILITIES.values())], ids=lambda u: type(u).__name__
)
def test_needs_a_forecast_exactly_if_the_inner_utility_does(inner: Utility):
    assert ActionPenalty(inner, 0.1).needs_forecast == inner.needs_forecast
    assert ActionPenalty(ActionPenalty(inner, 0.1), 0.1).needs_forecast == inner.needs_forecast


def test_numbered_actions_are_refused():
    """Action 3 is not nine times as large as action 1."""
    ensemble = CategoricalEnsemble(4, 2, MemberConfig(members=2, depth=1, width=4), key=jax.random.key(0))
    state, action = jnp.array([0, 1]), jnp.array([0, 1])
    outcome = Outcome(ensemble, state, action, state, ensemble.forecast(state, action))
    with pytest.raises(InputError, match="ActionPenalty needs real actions"):
        ActionPenalty(JensenShannon(), 0.1)(outcome)
