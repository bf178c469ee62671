"""The analytic gradient on problems with known optima."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxplore import InputError
from maxplore.normalizer import Normalizer
from maxplore.solvers.gradient import Gradient, GradientConfig, lambda_returns, renormalized
from tests.counting import compilations
from tests.solvers.landscape import DISCOUNT, START, cost_of, linear_quadratic, optimal_cost, rooms_pay, two_rooms

CONFIG = GradientConfig(iterations=300, actors=16, lifetime=30, width=32, discount=DISCOUNT)
SOLVER = Gradient(CONFIG)


def test_it_comes_near_the_optimum_of_a_linear_quadratic_task():
    best, action = optimal_cost(START)
    assert abs(action) < 1, "the optimum is one of [-1, 1]"
    solution = SOLVER.solve(linear_quadratic(), START, None, key=jax.random.key(0))
    assert cost_of(solution.policy, START) < 1.05 * best
    worth = SOLVER.worth(solution.memory)
    assert worth.discount == DISCOUNT
    np.testing.assert_allclose(worth(jnp.asarray(START, jnp.float32)), -best, rtol=0.3)
    assert solution.info.after > solution.info.before
    assert int(solution.info.steps) == 300 * 16 * 10
    assert int(solution.info.nonfinite) == int(solution.info.clipped) == int(solution.info.skipped) == 0


def test_it_goes_to_the_farther_room_if_that_pays_more():
    """In the beginning the slope is steeper towards the near room."""
    for near, far in ((0.3, 1.0), (1.0, 0.1)):
        solution = SOLVER.solve(two_rooms(near, far), np.zeros(2), None, key=jax.random.key(3))
        assert rooms_pay(solution.policy, near, far) > 0.95


def test_utilities_that_are_not_finite_are_counted_and_do_no_harm():
    """Beyond 2.2 utility and gradient are NaN; some actors get there, the policy is none the worse."""
    solution = SOLVER.solve(two_rooms(end=2.2), np.zeros(2), None, key=jax.random.key(3))
    assert int(solution.info.nonfinite) > 0
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(eqx.filter(solution.policy, eqx.is_array)))
    assert rooms_pay(solution.policy, 0.3, 1.0) > 0.9


def test_one_compilation_for_all_models_states_and_memories():
    models = two_rooms(), two_rooms(0.5, 0.7), linear_quadratic()
    first = SOLVER.solve(models[0], np.zeros(2), None, key=jax.random.key(0))
    key, other = jax.random.key(0), jax.random.key(1)
    with compilations() as found:
        again = SOLVER.solve(models[1], np.ones(2), None, first.memory, key=other)
        same = SOLVER.solve(models[0], np.zeros(2), None, key=key)
        SOLVER.solve(models[2], START, None, again.memory, key=other)
    assert not found
    for one, two in zip(jax.tree.leaves(first), jax.tree.leaves(same), strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_warm_start_goes_on_where_the_last_solve_ended():
    mdp = two_rooms()
    first = SOLVER.solve(mdp, np.zeros(2), None, key=jax.random.key(3))
    second = SOLVER.solve(mdp, np.zeros(2), None, first.memory, key=jax.random.key(4))
    assert int(second.memory.actor_moments.steps) == 600
    assert second.info.before > first.info.before + 0.1
    np.testing.assert_allclose(second.info.before, first.info.after, atol=0.1)


def test_new_statistics_do_not_change_what_policy_and_value_say():
    """They are folded into the first layer."""
    climber = SOLVER.solve(two_rooms(), np.zeros(2), None, key=jax.random.key(0)).memory
    other = Normalizer(jnp.array([3.0, -1.0]), jnp.array([0.2, 5.0]), jnp.ones(2, bool))
    moved = eqx.filter_jit(renormalized)(climber, other)
    states = jnp.array([[0.0, 0.0], [1.0, -2.0]])
    np.testing.assert_allclose(jax.vmap(moved.actor)(states), jax.vmap(climber.actor)(states), atol=1e-5)
    np.testing.assert_allclose(moved.values(states), climber.values(states), atol=1e-4)


def test_returns_against_a_slow_loop():
    numbers = np.random.default_rng(0)
    rewards, values = numbers.normal(size=(2, 6, 3)).astype(np.float32)
    ends = numbers.uniform(size=(6, 3)) < 0.2
    discount, trace = 0.9, 0.7
    found = lambda_returns(jnp.asarray(rewards), jnp.asarray(values), jnp.asarray(ends), discount=discount, trace=trace)
    expected, following = np.zeros((6, 3)), values[-1] * ~ends[-1]
    for t in reversed(range(6)):
        ahead = (1 - trace) * values[t] + trace * following
        following = expected[t] = rewards[t] + discount * ahead * ~ends[t]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_new_units_of_the_value_leave_it_as_it_is():
    value = SOLVER.solve(two_rooms(), np.zeros(2), None, key=jax.random.key(0)).memory.value
    state = jnp.array([0.3, -0.4])
    moved = value.rescaled(jnp.array([100.0, 140.0]), jnp.ones(2, bool), 0.5)
    np.testing.assert_allclose(moved.center, 0.5 * value.center + 60.0, rtol=1e-5)
    np.testing.assert_allclose(moved(state), value(state), rtol=1e-4)


def test_what_it_cannot_do_is_refused():
    with pytest.raises(InputError, match=r"gradient needs real states and actions, got .*use icem"):
        SOLVER.solve(two_rooms(numbered=True), np.zeros(2), None, key=jax.random.key(0))
    with pytest.raises(InputError, match="horizon is 0, expected at least 1"):
        GradientConfig(horizon=0)
    with pytest.raises(InputError, match=r"trace is 1\.5, expected a share"):
        GradientConfig(trace=1.5)
    with pytest.raises(InputError, match=r"state\[0\] is nan"):
        SOLVER.solve(two_rooms(), [np.nan, 0.0], None, key=jax.random.key(0))
