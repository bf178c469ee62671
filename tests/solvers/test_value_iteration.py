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


def two_uncertain_pairs_and_a_prize():
    """States 0 and 1 lead to each other and pay 0.6 each; four steps to the right of 1 lies a prize of 1."""
    states = 6
    transition = np.zeros((states, 2, states), np.float32)
    transition[0, :, 1] = 1
    transition[1, 0, 0] = 1
    for s in range(1, states):
        transition[s, 1, min(s + 1, states - 1)] = 1
        if s > 1:
            transition[s, 0, s - 1] = 1
    pays = np.zeros((states, 2), np.float32)
    pays[0, :], pays[1, 0], pays[5, :] = 0.6, 0.6, 1.0
    return Table(jnp.asarray(transition), jnp.asarray(pays), jnp.ones(states))


def test_planning_for_sums_loops_between_uncertain_pairs_and_planning_for_one_does_not():
    """The limitation that the paper names in its section 5."""
    table = two_uncertain_pairs_and_a_prize()
    # Paid again and again, the loop (0.6 a step) is worth more than the prize, which is reached on the fifth step.
    loop = value_iteration(table, jnp.int32(6), 10, discount=0.95)[1]
    assert np.argmax(loop) == 0
    once = value_iteration(table, jnp.int32(6), 10, discount=0.95, once=True)[1]
    assert np.argmax(once) == 1
    np.testing.assert_allclose(once, [0.6, 0.95**4], rtol=1e-5)


def test_planning_for_one_utility_never_promises_more_than_the_best_one():
    table = two_uncertain_pairs_and_a_prize()
    for remaining in range(1, 10):
        values = value_iteration(table, jnp.int32(remaining), 10, discount=1.0, once=True)
        assert values.max() == 1.0
        # Out of reach in the time that is left, the prize counts for nothing.
        np.testing.assert_allclose(values[1, 1], 1.0 if remaining >= 5 else 0.6 * (remaining >= 3), atol=1e-6)
