"""Soft actor-critic on problems with known optima."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxplore import ExplorationMDP, History, InputError
from maxplore.normalizer import Normalizer
from maxplore.solvers.replay import from_history
from maxplore.solvers.sac import Sac, SacConfig, renormalized
from tests.counting import compilations
from tests.solvers.landscape import (
    DISCOUNT,
    START,
    cost_of,
    data,
    linear_quadratic,
    optimal_cost,
    rooms_pay,
    two_rooms,
)

CONFIG = SacConfig(
    episodes=40,
    steps=30,
    actors=16,
    updates=100,
    batch_size=128,
    width=64,
    discount=DISCOUNT,
    tau=0.02,
    temperature=0.01,
    log_std=(-5.0, 2.0),
    initial_log_std=0.0,
)
MODERN = dataclasses.replace(
    CONFIG, updates=50, learning_rate=3e-3, twin_targets=True, automatic=True, target_entropy=-1.0
)
REACTIVE = dataclasses.replace(CONFIG, active=False, history_updates=1500, warm_start=True)
IDS = ["the paper's form", "today's form"]


@pytest.mark.parametrize("config", [CONFIG, MODERN], ids=IDS)
def test_it_comes_near_the_optimum_of_a_linear_quadratic_task(config):
    """Learning from samples alone is slower than by derivatives: within a quarter of the least cost."""
    mdp, (best, _) = linear_quadratic(), optimal_cost(START)
    solution = Sac(config).solve(mdp, START, data(mdp, -1.5, 1.5), key=jax.random.key(0))
    assert cost_of(solution.policy, START, steps=30) < 1.25 * best
    assert cost_of(lambda s: jnp.zeros(1), START, steps=30) > 3 * best
    worth = Sac(config).worth(solution.memory)
    assert worth.discount == DISCOUNT
    np.testing.assert_allclose(worth(jnp.asarray(START, jnp.float32)), -best, rtol=0.4)
    assert solution.info.after > solution.info.before
    assert int(solution.info.steps) == 40 * 30 * 16
    assert int(solution.info.nonfinite) == int(solution.info.clipped) == int(solution.info.skipped) == 0


def test_it_goes_to_the_farther_room_if_that_pays_more_and_from_scratch_each_time():
    mdp, key = two_rooms(), jax.random.key(3)
    first = Sac(CONFIG).solve(mdp, np.zeros(2), data(mdp), key=key)
    assert rooms_pay(first.policy, 0.3, 1.0) > 0.95
    again = Sac(CONFIG).solve(mdp, np.zeros(2), data(mdp), first.memory, key=key)
    for one, two in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(("near", "far"), [(0.3, 1.0), (1.0, 0.1)])
def test_the_temperature_finds_the_entropy_that_was_asked_for(near, far):
    """It swings around what was asked for, so that the mean over keys tells, and one of them does not."""
    mdp, solver = two_rooms(near, far), Sac(dataclasses.replace(MODERN, episodes=2 * MODERN.episodes))
    solutions = [solver.solve(mdp, np.zeros(2), data(mdp), key=jax.random.key(key)) for key in (3, 4, 5, 6)]
    for solution in solutions:
        assert rooms_pay(solution.policy, near, far) > 0.95
        assert abs(np.log(solution.info.temperature / MODERN.temperature)) > 0.1
    np.testing.assert_allclose(np.mean([solution.info.entropy for solution in solutions]), -1.0, atol=0.25)


class NoImagination(ExplorationMDP):
    """An MDP that knows what happened and cannot imagine anything."""

    def advance(self, states, actions, chance, *, apart=None, member=None):
        raise AssertionError("an imagined step")


def reactive(near=0.3, far=1.0):
    mdp = two_rooms(near, far)
    return NoImagination(mdp.ensemble, mdp.utility)  # pyright: ignore[reportCallIssue]  (its parent's constructor)


def test_reactive_methods_learn_from_what_happened_alone():
    solution = Sac(REACTIVE).solve(reactive(), np.zeros(2), data(reactive()), key=jax.random.key(0))
    assert rooms_pay(solution.policy, 0.3, 1.0) > 0.95
    assert int(solution.info.steps) == 0
    assert np.isnan(solution.info.after)


def test_more_data_and_a_new_model_compile_nothing_and_a_warm_start_goes_on():
    models, keys = (reactive(), reactive(0.5, 0.4)), jax.random.split(jax.random.key(0))
    history = data(models[0])
    more = history.append(np.ones(2), np.zeros(1), np.ones(2))
    first = Sac(REACTIVE).solve(models[0], np.zeros(2), history, key=keys[0])
    with compilations() as found:
        second = Sac(REACTIVE).solve(models[1], np.ones(2), more, first.memory, key=keys[1])
    assert not found
    assert int(first.memory.moments.steps) == 1500
    assert int(second.memory.moments.steps) == 3000


def test_new_statistics_do_not_change_what_the_networks_say():
    agent = Sac(REACTIVE).solve(reactive(), np.zeros(2), data(reactive()), key=jax.random.key(0)).memory
    other = Normalizer(jnp.array([3.0, -1.0]), jnp.array([0.2, 5.0]), jnp.ones(2, bool))
    moved = eqx.filter_jit(renormalized)(agent, other)
    state, solver = jnp.array([1.0, -2.0]), Sac(CONFIG)
    np.testing.assert_allclose(solver.actor(moved)(state), solver.actor(agent)(state), atol=1e-5)
    both = [
        [critic(jnp.append(a.normalizer.normalize(state), 0.5)) for critic in a.networks.critics]
        for a in (agent, moved)
    ]
    np.testing.assert_allclose(both[0], both[1], atol=1e-4)


def test_utilities_that_are_not_finite_are_counted_and_do_no_harm():
    mdp = two_rooms(end=1.0)
    solution = Sac(CONFIG).solve(mdp, np.zeros(2), data(mdp), key=jax.random.key(3))
    assert int(solution.info.nonfinite) > int(np.sum(np.asarray(data(mdp).transitions.next_state)[:500, 0] > 1.0))
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(eqx.filter(solution.policy, eqx.is_array)))
    assert rooms_pay(solution.policy, 0.3, 1.0) > 0.5


def test_d_is_paid_by_the_current_model():
    """In blocks, the last of them filled up with rows from the top."""
    mdp = two_rooms(end=1.5)
    history = data(mdp, n=1300)
    rows, strange = eqx.filter_jit(from_history)(mdp, history)
    real = history[jnp.arange(1300)]
    worth = np.asarray(mdp.worth(real.state, real.action, real.next_state))
    np.testing.assert_allclose(rows[:1300, -2], np.nan_to_num(worth), rtol=1e-5, atol=1e-6)
    assert int(strange) == np.isnan(worth).sum() > 0


def test_what_it_cannot_do_is_refused():
    mdp = two_rooms()
    with pytest.raises(InputError, match=r"sac needs real states and actions, got .*use icem"):
        Sac().solve(two_rooms(numbered=True), np.zeros(2), None, key=jax.random.key(0))
    with pytest.raises(InputError, match="Sac learns from D: give a history"):
        Sac().solve(mdp, np.zeros(2), None, key=jax.random.key(0))
    with pytest.raises(InputError, match="history is empty"):
        Sac().solve(mdp, np.zeros(2), History.continuous(2, 1), key=jax.random.key(0))
    with pytest.raises(InputError, match="random_episodes is 3, expected fewer than the 2 episodes"):
        SacConfig(episodes=2)
    with pytest.raises(InputError, match="batch_size is 0, expected at least 1"):
        SacConfig(batch_size=0)
    with pytest.raises(InputError, match="nothing would be learned"):
        SacConfig(active=False, history_updates=0)
