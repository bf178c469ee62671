"""The imagined MDP against models whose moments are known."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxplore import (
    CategoricalEnsemble,
    ExplorationMDP,
    GaussianConfig,
    GaussianEnsemble,
    History,
    InputError,
    MemberConfig,
)
from maxplore.utilities import ActionPenalty, Disagreement, JensenRenyi, JensenShannon, Task, disagreement
from tests.systems import history_of, known_ensemble

ACTORS, HORIZON = 4000, 6
OFFSETS = np.array([[0.2, -0.1], [0.4, 0.3], [-0.3, 0.1]])


def pushing(states, key):
    del key
    return jnp.full(states.shape, 0.1)


@pytest.mark.parametrize("utility", [Disagreement(), Task(lambda s, a, s2: s2[0])], ids=["all members", "own member"])
def test_rollouts_of_a_known_model_reproduce_its_moments(utility):
    """After t steps: mean s0 + t (a + mean offset), variance t (noise + variance of the offsets)."""
    mdp = ExplorationMDP(known_ensemble(OFFSETS, variance=0.04, key=jax.random.key(0)), utility)
    start = jnp.array([1.0, -2.0])
    rollout = eqx.filter_jit(mdp.rollout)(pushing, mdp.start(start, ACTORS), HORIZON, key=jax.random.key(1))
    assert rollout.state.shape == (HORIZON, ACTORS, 2)
    np.testing.assert_array_equal(rollout.state[0], np.broadcast_to(start, (ACTORS, 2)))
    np.testing.assert_array_equal(rollout.state[1:], rollout.next_state[:-1])
    for t in range(1, HORIZON + 1):
        states = np.asarray(rollout.next_state[t - 1])
        np.testing.assert_allclose(states.mean(0), start + t * (0.1 + OFFSETS.mean(0)), atol=0.05)
        np.testing.assert_allclose(states.var(0), t * (0.04 + OFFSETS.var(0)), rtol=0.1)


def test_one_step_is_a_mixture_and_not_an_average():
    ensemble = known_ensemble([[-5.0], [5.0]], variance=1e-3, key=jax.random.key(0))
    mdp = ExplorationMDP(ensemble, Disagreement())
    step = mdp.step(jnp.zeros((2000, 1)), jnp.zeros((2000, 1)), key=jax.random.key(1))
    to_the_right = np.asarray(step.next_state)[:, 0] > 0
    np.testing.assert_allclose(np.abs(step.next_state), 5.0, atol=0.2)
    np.testing.assert_allclose(to_the_right.mean(), 0.5, atol=0.04)


def test_it_pays_the_utility_of_the_forecast():
    ensemble = known_ensemble(OFFSETS, variance=0.04, key=jax.random.key(0))
    states, actions = jnp.ones((4, 2)), jnp.full((4, 2), 0.5)
    step = ExplorationMDP(ensemble, Disagreement()).step(states, actions, key=jax.random.key(1))
    np.testing.assert_allclose(step.reward, disagreement(ensemble.forecast(states, actions).mean), rtol=1e-6)
    penalised = ExplorationMDP(ensemble, ActionPenalty(Disagreement(), 2.0)).step(
        states, actions, key=jax.random.key(1)
    )
    np.testing.assert_allclose(penalised.reward, step.reward - 2.0 * 0.5, rtol=1e-5)


def test_a_task_pays_its_reward_in_the_units_of_the_environment():
    ensemble = known_ensemble(OFFSETS, variance=0.04, key=jax.random.key(0))
    mdp = ExplorationMDP(ensemble, Task(lambda s, a, s2: 10 * s[0] + a[1] + 100 * s2[1]))
    step = mdp.step(jnp.ones((4, 2)), jnp.full((4, 2), 0.5), key=jax.random.key(1))
    np.testing.assert_allclose(step.reward, 10 + 0.5 + 100 * step.next_state[:, 1], rtol=1e-5)


def test_real_transitions_are_worth_what_they_would_have_paid():
    ensemble = known_ensemble(OFFSETS, variance=0.04, key=jax.random.key(0))
    mdp = ExplorationMDP(ensemble, Task(lambda s, a, s2: s2[0] - s[0]))
    worth = mdp.worth(jnp.zeros((3, 2)), jnp.zeros((3, 2)), jnp.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]))
    np.testing.assert_array_equal(worth, [1.0, 2.0, 3.0])


def seen(low, high):
    corners = np.array([low, high])
    return history_of(corners, np.zeros((2, len(low))), corners)


def test_what_leaves_the_plausible_range_is_clipped_and_counted():
    ensemble = known_ensemble([[100.0, 0.0]], variance=1e-4, key=jax.random.key(0))
    mdp = ExplorationMDP(ensemble, Disagreement(), seen([-1.0, -1.0], [1.0, 1.0]), margin=0.5)
    step = mdp.step(jnp.zeros((5, 2)), jnp.zeros((5, 2)), key=jax.random.key(1))
    np.testing.assert_array_equal(step.next_state[:, 0], 2.0)  # 1 + half of the extent 2
    assert (np.abs(step.next_state[:, 1]) < 1).all()
    np.testing.assert_array_equal(step.info.clipped, 1)
    np.testing.assert_array_equal(step.info.nonfinite, 0)


def test_there_is_no_land_beyond_the_bounds_of_the_space():
    ensemble = known_ensemble([[100.0, -100.0]], variance=1e-4, key=jax.random.key(0))
    space = np.array([-np.inf, -1.25]), np.array([1.5, np.inf])
    mdp = ExplorationMDP(ensemble, Disagreement(), seen([-1.0, -1.0], [1.0, 1.0]), margin=0.5, space=space)
    step = mdp.step(jnp.zeros((5, 2)), jnp.zeros((5, 2)), key=jax.random.key(1))
    np.testing.assert_array_equal(step.next_state, np.tile([1.5, -1.25], (5, 1)))


def test_a_real_start_outside_the_range_is_left_where_it_is():
    ensemble = known_ensemble([[-0.5, 0.5]], variance=1e-4, key=jax.random.key(0))
    mdp = ExplorationMDP(ensemble, Disagreement(), seen([-1.0, -1.0], [1.0, 1.0]), margin=0.0)
    step = mdp.step(jnp.full((3, 2), 7.0), jnp.zeros((3, 2)), key=jax.random.key(1))
    np.testing.assert_allclose(step.next_state[:, 0], 6.5, atol=0.1)  # it may come nearer
    np.testing.assert_array_equal(step.next_state[:, 1], 7.0)  # but go no further
    np.testing.assert_array_equal(step.info.clipped, 1)


def test_what_is_not_finite_is_replaced_and_counted():
    ensemble = known_ensemble([[np.nan, 0.0]], variance=1e-4, key=jax.random.key(0))
    mdp = ExplorationMDP(ensemble, Task(lambda s, a, s2: jnp.log(-1.0 - s2[1] ** 2)))
    step = mdp.step(jnp.full((3, 2), 7.0), jnp.zeros((3, 2)), key=jax.random.key(1))
    np.testing.assert_array_equal(step.next_state[:, 0], 7.0)
    np.testing.assert_array_equal(step.reward, 0.0)
    np.testing.assert_array_equal(step.info.nonfinite, 2)  # one entry of the state, and the reward


def test_numbered_states_hide_nothing_either():
    """Members that predict nothing finite, and a state and an action that do not exist."""
    ensemble = CategoricalEnsemble(3, 2, MemberConfig(members=2, depth=0), key=jax.random.key(0))
    broken = eqx.tree_at(lambda e: e.members.dynamics.layers[0].bias, ensemble, jnp.full((2, 3), jnp.nan))
    for model, states, actions in ((broken, [0, 1], [0, 1]), (ensemble, [77, 1], [0, -3])):
        for utility in (Task(lambda s, a, s2: jnp.float32(1.0)), JensenShannon()):
            mdp = ExplorationMDP(model, utility)
            step = mdp.step(jnp.array(states), jnp.array(actions), key=jax.random.key(1))
            assert (np.asarray(step.info.nonfinite) >= 1).all()
            np.testing.assert_array_equal(step.next_state, states)


def test_saturation_is_reported_whatever_is_put_around_the_divergence():
    ensemble = known_ensemble([[-50.0, 0.0], [50.0, 0.0]], variance=0.04, key=jax.random.key(0))
    states, actions = jnp.zeros((3, 2)), jnp.full((3, 2), 0.5)
    for utility in (JensenRenyi(), ActionPenalty(JensenRenyi(), 2.0)):
        step = ExplorationMDP(ensemble, utility).step(states, actions, key=jax.random.key(1))
        np.testing.assert_allclose(step.info.saturation, 1.0, rtol=1e-5)
    step = ExplorationMDP(ensemble, Disagreement()).step(states, actions, key=jax.random.key(1))
    assert np.isnan(np.asarray(step.info.saturation)).all(), "no ceiling"


def test_what_makes_no_mdp_is_refused():
    ensemble = known_ensemble(OFFSETS, variance=0.04, key=jax.random.key(0))
    history = seen([-1.0, -1.0], [1.0, 1.0])
    with pytest.raises(InputError, match=r"margin is -1\.0, expected 0 or more"):
        ExplorationMDP(ensemble, Disagreement(), history, margin=-1.0)
    with pytest.raises(InputError, match="history is empty"):
        ExplorationMDP(ensemble, Disagreement(), History.continuous(2, 2))
    with pytest.raises(InputError, match=r"the history's actions are .*\(5,\).*, expected .*\(2,\)"):
        ExplorationMDP(ensemble, Disagreement(), History.continuous(2, 5))
    mdp = ExplorationMDP(ensemble, Disagreement(), history)
    with pytest.raises(InputError, match=r"actions has shape \(4,\), expected \(4, 2\)"):
        mdp.step(jnp.zeros((4, 2)), jnp.zeros(4), key=jax.random.key(0))
    with pytest.raises(InputError, match=r"state\[1\] is nan"):
        mdp.start([0.0, np.nan], 3)
    assert mdp.start([0, 1], 3).dtype == jnp.float32


def test_an_end_is_judged_where_the_actor_really_is():
    """A head that ends episodes beyond 5, and a range that ends at 1: nobody gets there."""
    config = GaussianConfig(members=1, depth=0, log_variance=(-10.0, 2.0), termination=True)
    ensemble = GaussianEnsemble(1, 1, config, key=jax.random.key(0))
    bias = jnp.array([[100.0, -5.0]])
    beyond = [
        jnp.zeros((1, 3, 64)).at[:, 2, 0].set(10.0),
        jnp.zeros((1, 64)).at[:, 0].set(-50.0),
        jnp.zeros((1, 64, 64)).at[:, 0, 0].set(1.0),
        jnp.zeros((1, 64)),
        jnp.zeros((1, 64, 1)).at[:, 0].set(1.0),
    ]
    ensemble = eqx.tree_at(
        lambda e: (
            e.members.dynamics.layers[0].weight,
            e.members.dynamics.layers[0].bias,
            e.members.termination.layers[0].weight,
            e.members.termination.layers[0].bias,
            e.members.termination.layers[1].weight,
            e.members.termination.layers[1].bias,
            e.members.termination.layers[2].weight,
        ),
        ensemble,
        (jnp.zeros((1, 2, 2)), bias, *beyond),
    )
    rows = jnp.zeros((8, 1)), jnp.zeros((8, 1))
    free = ExplorationMDP(ensemble, Disagreement()).step(*rows, key=jax.random.key(0))
    assert np.asarray(free.terminated).all()
    kept = ExplorationMDP(ensemble, Disagreement(), seen([-1.0], [1.0]), margin=0.0).step(*rows, key=jax.random.key(0))
    assert not np.asarray(kept.terminated).any()


def test_an_ended_episode_stands_still_and_pays_nothing():
    config = GaussianConfig(members=2, depth=1, width=8, termination=True)
    ensemble = GaussianEnsemble(1, 1, config, key=jax.random.key(0))
    always = eqx.tree_at(lambda e: e.members.termination.layers[-1].bias, ensemble, jnp.full((2, 1), 50.0))
    mdp = ExplorationMDP(always, Task(lambda s, a, s2: jnp.float32(1.0)))
    rollout = mdp.rollout(lambda s, key: jnp.zeros((4, 1)), jnp.zeros((4, 1)), 3, key=jax.random.key(1))
    np.testing.assert_array_equal(rollout.terminated, [[True] * 4, [False] * 4, [False] * 4])
    np.testing.assert_array_equal(rollout.alive, [[True] * 4, [False] * 4, [False] * 4])
    np.testing.assert_array_equal(rollout.reward.sum(0), 1.0)
    np.testing.assert_array_equal(rollout.next_state[0], rollout.next_state[2])


def test_plans_are_followed_as_a_policy_would():
    mdp = ExplorationMDP(known_ensemble(OFFSETS, variance=0.04, key=jax.random.key(0)), Disagreement())
    start, key = mdp.start(jnp.zeros(2), 8), jax.random.key(1)
    walk = mdp.rollout(pushing, start, 3, key=key)
    plan = mdp.follow(jnp.full((3, 8, 2), 0.1), start, key=key)
    for one, two in zip(jax.tree.leaves(walk), jax.tree.leaves(plan), strict=True):
        np.testing.assert_array_equal(one, two)


def test_an_ended_episode_may_begin_again():
    config = GaussianConfig(members=2, depth=1, width=8, termination=True)
    ensemble = GaussianEnsemble(1, 1, config, key=jax.random.key(0))
    always = eqx.tree_at(lambda e: e.members.termination.layers[-1].bias, ensemble, jnp.full((2, 1), 50.0))
    mdp = ExplorationMDP(always, Task(lambda s, a, s2: jnp.float32(1.0)))
    rollout = mdp.rollout(
        lambda s, key: jnp.zeros((4, 1)), jnp.full((4, 1), 3.0), 3, key=jax.random.key(1), restart=True
    )
    assert np.asarray(rollout.terminated).all()
    assert np.asarray(rollout.alive).all()
    np.testing.assert_array_equal(rollout.state, 3.0)
    np.testing.assert_array_equal(rollout.reward, 1.0)


def test_imagined_steps_can_be_differentiated_and_one_bad_actor_spoils_no_other():
    """s' = s + a + offset + noise, so ds'/da = 1; the second actor's utility has no finite gradient."""
    mdp = ExplorationMDP(
        known_ensemble([[0.0]], variance=0.04, key=jax.random.key(0)), Task(lambda s, a, s2: jnp.sqrt(s2[0]))
    )

    def paid(actions):
        step = mdp.step(jnp.array([[4.0], [-4.0]]), actions, key=jax.random.key(1))
        return jnp.sum(step.reward), step.next_state

    slope, next_states = jax.grad(paid, has_aux=True)(jnp.zeros((2, 1)))
    np.testing.assert_allclose(slope[0], 0.5 / np.sqrt(next_states[0]), rtol=1e-5)
    np.testing.assert_array_equal(slope[1], 0.0)


def test_numbered_states_follow_the_average_of_the_members_tables():
    config = MemberConfig(members=2, depth=0)
    ensemble = CategoricalEnsemble(3, 1, config, key=jax.random.key(0))
    mdp = ExplorationMDP(ensemble, JensenShannon(), History.discrete(3, 1))
    table = np.asarray(ensemble.predict(np.arange(3), np.zeros(3, int))).mean(0)
    rollout = mdp.rollout(lambda s, key: jnp.zeros_like(s), mdp.start(jnp.array(0), 5000), 3, key=jax.random.key(1))
    for t in range(3):
        shares = np.bincount(rollout.next_state[t], minlength=3) / 5000
        np.testing.assert_allclose(shares, np.linalg.matrix_power(table, t + 1)[0], atol=0.03)
    assert (np.asarray(rollout.reward) <= np.log(2)).all()
    assert (np.asarray(rollout.reward) >= 0).all()


def test_different_keys_imagine_differently_and_the_same_key_the_same():
    mdp = ExplorationMDP(known_ensemble(OFFSETS, variance=0.04, key=jax.random.key(0)), JensenRenyi())
    states = [mdp.step(jnp.zeros((8, 2)), jnp.zeros((8, 2)), key=jax.random.key(k)).next_state for k in (1, 1, 2)]
    np.testing.assert_array_equal(states[0], states[1])
    assert not np.allclose(states[0], states[2])


def test_large_members_are_forecast_one_by_one_with_the_same_result():
    large = GaussianEnsemble(2, 2, GaussianConfig(members=3, depth=2, width=512), key=jax.random.key(0))
    assert large.apart() is not None
    assert known_ensemble(OFFSETS, variance=0.04, key=jax.random.key(0)).apart() is None
    rows = jnp.ones((4, 2)), jnp.zeros((4, 2))
    for one_by_one, together in zip(large.forecast(*rows, apart=large.apart()), large.forecast(*rows), strict=True):
        np.testing.assert_allclose(one_by_one, together, rtol=1e-4, atol=1e-5)


def test_a_margin_of_inf_is_no_range_even_where_a_dimension_stands_still():
    rows = np.array([[0.0, 5.0], [1.0, 5.0]])
    history = History.continuous(2, 1).append(rows, np.zeros((2, 1)), rows)
    ensemble = GaussianEnsemble(2, 1, GaussianConfig(members=2, depth=1, width=4), key=jax.random.key(0))
    mdp = ExplorationMDP(ensemble.adapted(history), JensenRenyi(), history, margin=math.inf)
    step = mdp.step(jnp.array([[100.0, 5.0]]), jnp.zeros((1, 1)), key=jax.random.key(1))
    assert int(step.info.clipped.sum()) == int(step.info.nonfinite.sum()) == 0
    assert np.isfinite(step.next_state).all()


def test_actors_begin_in_any_of_many_states():
    mdp = ExplorationMDP(known_ensemble(OFFSETS, variance=0.04, key=jax.random.key(0)), Disagreement())
    states = jnp.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(mdp.start(states, 4), states[jnp.array([0, 1, 2, 0])])
    drawn = np.asarray(mdp.start(states, 300, key=jax.random.key(1)))
    shares = [np.mean(np.all(drawn == np.asarray(state), axis=1)) for state in states]
    np.testing.assert_allclose(shares, 1 / 3, atol=0.1)


@pytest.mark.parametrize("utility", [Disagreement(), Task(lambda s, a, s2: s2[0])], ids=["all members", "own member"])
def test_a_given_member_is_followed_and_a_tasks_own_end_ends(utility):
    """s' = s + a + the member's offset, with next to no noise; beyond 1/4 in the first dimension it is over."""
    ensemble = known_ensemble(OFFSETS, variance=1e-4, key=jax.random.key(0))
    mdp = ExplorationMDP(ensemble, utility, ending=lambda s, a, s2: s2[0] > 0.25)
    step = mdp.step(jnp.zeros((3, 2)), jnp.zeros((3, 2)), key=jax.random.key(1), member=jnp.array([2, 0, 1]))
    np.testing.assert_allclose(step.next_state, OFFSETS[[2, 0, 1]], atol=0.05)
    np.testing.assert_array_equal(step.terminated, [False, False, True])
