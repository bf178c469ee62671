"""A task in the utility's place: a reward written for one transition, paid for each."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from maxplore.utilities import Outcome, Task

STATE = jnp.array([[1.0, 2.0], [3.0, 4.0]])
ACTION = jnp.array([[2.0], [-1.0]])
NEXT_STATE = jnp.array([[1.5, 2.5], [6.0, 3.0]])


def running(state: jax.Array, action: jax.Array, next_state: jax.Array) -> jax.Array:
    """Speed along the first dimension, less a tenth of the squared action."""
    assert state.shape == next_state.shape == (2,)
    assert action.shape == (1,)
    return next_state[0] - state[0] - 0.1 * jnp.sum(action**2)


def test_reward_of_one_transition_is_paid_for_each_row_in_the_environments_units(outcome_of: Callable[..., Outcome]):
    """Statistics of the ensemble do not enter: 0.5 - 0.4 and 3 - 0.1."""
    outcome = outcome_of(state=STATE, action=ACTION, next_state=NEXT_STATE)
    np.testing.assert_allclose(Task(running)(outcome), [0.1, 2.9], rtol=1e-5)
    np.testing.assert_allclose(eqx.filter_jit(Task(running))(outcome), [0.1, 2.9], rtol=1e-5)


def test_sparse_reward(outcome_of: Callable[..., Outcome]):
    goal = Task(lambda state, action, next_state: jnp.where(next_state[0] > 5.0, 1.0, 0.0))
    np.testing.assert_array_equal(goal(outcome_of(next_state=NEXT_STATE)), [0.0, 1.0])


def test_discrete_states_and_actions(outcome_of: Callable[..., Outcome]):
    """A reward of 1 for reaching state 9 by action 1."""
    task = Task(lambda state, action, next_state: jnp.where((next_state == 9) & (action == 1), 1.0, 0.0))
    rows = {"state": jnp.array([8, 8, 0]), "action": jnp.array([1, 0, 1]), "next_state": jnp.array([9, 9, 1])}
    np.testing.assert_array_equal(task(outcome_of(**rows)), [1.0, 0.0, 0.0])


def test_needs_no_forecast():
    assert not Task(running).needs_forecast
