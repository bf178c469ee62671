"""Tree search on problems whose best action is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxplore.solvers.mcts import Search, mcts
from tests.solvers.test_value_iteration import corridor


def searched(table, remaining=6, search=None, seeds=20):
    plan = jax.jit(lambda key: mcts(table, jnp.int32(0), jnp.int32(remaining), 6, search or Search(), key=key))
    return np.array([plan(key) for key in jax.random.split(jax.random.key(0), seeds)])


def test_it_finds_the_better_arm():
    values = searched(corridor([[0.2, 1.0], [0.0, 0.0]]), remaining=1)
    assert (values.argmax(1) == 1).all()


def test_it_finds_a_prize_two_steps_away():
    values = searched(corridor([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]))
    assert (values.argmax(1) == 1).mean() > 0.9


@pytest.mark.parametrize("remaining", [1, 6])
def test_values_are_returns_of_plans(remaining):
    """Where every step pays 1, every plan is worth the number of steps left."""
    values = searched(corridor([[1.0, 1.0], [1.0, 1.0]]), remaining, seeds=3)
    np.testing.assert_allclose(values, remaining, rtol=1e-5)


def test_it_looks_no_further_than_its_depth():
    prize = corridor([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    np.testing.assert_array_equal(searched(prize, search=Search(depth=2), seeds=3), 0.0)


def test_nothing_is_paid_after_the_end_of_an_episode():
    values = searched(corridor([[0.0, 1.0], [5.0, 5.0]], goes_on=[1.0, 0.0]), seeds=3)
    np.testing.assert_allclose(values[:, 1], 1.0, rtol=1e-5)
