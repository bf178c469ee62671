"""Exact planning against hand-computed values."""

import jax.numpy as jnp
import numpy as np

from maxplore.solvers import Table, value_iteration


def corridor(pays, goes_on=None):
    """Action 0 stays, action 1 moves right; the last state holds."""
    states = len(pays)
    transition = np.zeros((states, 2, states), np.float32)
    for s in range(states):
        transition[s, 0, s] = 1
        transition[s, 1, min(s + 1, states - 1)] = 1
    goes_on = np.ones(states) if goes_on is None else goes_on
    return Table(jnp.asarray(transition), jnp.asarray(pays, jnp.float32), jnp.asarray(goes_on, jnp.float32))


def test_a_far_prize_is_worth_walking_to_only_if_there_is_time():
    table = corridor([[0.1, 0.0], [0.0, 0.0], [0.0, 0.0], [9.0, 0.0]])
    for remaining, walk in ((3, False), (4, True)):
        values = value_iteration(table, jnp.int32(remaining), 10, discount=1.0)[0]
        assert (values[1] > values[0]) == walk
    np.testing.assert_allclose(value_iteration(table, jnp.int32(4), 10, discount=1.0)[0], [0.4, 9.0], rtol=1e-5)


def test_discounting_prefers_the_nearer():
    table = corridor([[1.0, 0.0], [0.0, 0.0], [3.0, 0.0]])
    patient, hasty = (value_iteration(table, jnp.int32(3), 10, discount=d)[0] for d in (1.0, 0.1))
    assert np.argmax(patient) == 0 == np.argmax(hasty)
    assert np.argmax(value_iteration(table, jnp.int32(8), 10, discount=0.99)[0]) == 1
    assert np.argmax(value_iteration(table, jnp.int32(8), 10, discount=0.3)[0]) == 0


def test_nothing_is_paid_after_the_end_of_an_episode():
    table = corridor([[0.0, 1.0], [5.0, 5.0]], goes_on=[1.0, 0.0])
    np.testing.assert_allclose(value_iteration(table, jnp.int32(5), 10, discount=1.0)[0], [1.0, 1.0])


def test_chance_is_averaged():
    transition = jnp.array([[[0.25, 0.75]], [[0.0, 1.0]]])
    table = Table(transition, jnp.array([[0.0], [4.0]]), jnp.ones(2))
    np.testing.assert_allclose(value_iteration(table, jnp.int32(2), 5, discount=1.0)[:, 0], [3.0, 8.0])
