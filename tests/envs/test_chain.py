"""The Chain against its description in the paper."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import maxplore
from maxplore import InputError
from maxplore.envs import Chain

assert maxplore.__version__  # importing maxplore registers its environments


def every_step(chain):
    pairs = [(state, action) for state in range(chain.length) for action in (0, 1)]
    return {(s, a): chain.step(jnp.int32(s), jnp.int32(a), key=jax.random.key(0)) for s, a in pairs}


def test_it_passes_gymnasiums_own_check():
    for trap in (False, True):
        check_env(gym.make("maxplore/Chain-v0", length=10, stochastic_trap=trap).unwrapped, skip_render_check=True)


def test_an_episode_begins_in_state_1_and_lasts_length_plus_9_steps():
    env = gym.make("maxplore/Chain-v0", length=12)
    state, _ = env.reset(seed=0)
    assert state == 1
    ends = [env.step(0)[2:4] for _ in range(21)]
    assert ends == [(False, False)] * 20 + [(False, True)]


def test_actions_move_by_one_swapped_where_the_seed_says_and_edges_hold():
    chain = Chain(jnp.array([False, True, False, True]))
    going = {
        (s, a): int(chain.step(jnp.int32(s), jnp.int32(a), key=jax.random.key(0))[0]) for s in range(4) for a in (0, 1)
    }
    assert going == {(0, 0): 0, (0, 1): 1, (1, 0): 2, (1, 1): 0, (2, 0): 1, (2, 1): 3, (3, 0): 3, (3, 1): 2}


def test_only_staying_at_an_edge_is_rewarded():
    chain = Chain(jnp.zeros(4, bool))
    pays = {
        (s, a): float(chain.step(jnp.int32(s), jnp.int32(a), key=jax.random.key(0))[1])
        for s in range(4)
        for a in (0, 1)
    }
    assert {pair: value for pair, value in pays.items() if value} == {(0, 0): pytest.approx(0.001), (3, 1): 1.0}


def test_about_half_of_the_states_are_swapped_and_seeds_differ():
    swaps = np.array([Chain.random(50, key=jax.random.key(k)).swapped for k in range(100)])
    np.testing.assert_allclose(swaps.mean(), 0.5, atol=0.03)
    assert len(np.unique(swaps, axis=0)) == 100


def test_the_trap_leads_to_0_or_1_with_equal_chance_whatever_the_action():
    chain = Chain(jnp.zeros(5, bool), stochastic_trap=True)
    for action in (0, 1):
        step = jax.vmap(lambda key, action=action: chain.step(jnp.int32(0), jnp.int32(action), key=key)[0])
        drawn = np.asarray(step(jax.random.split(jax.random.key(0), 2000)))
        assert set(drawn) == {0, 1}
        np.testing.assert_allclose(drawn.mean(), 0.5, atol=0.04)


def test_shell_and_core_take_the_same_steps():
    env = gym.make("maxplore/Chain-v0", length=15, seed=3)
    core = Chain.random(15, key=jax.random.key(3))
    numbers = np.random.default_rng(0)
    shell_state, _ = env.reset(seed=0)
    core_state = core.reset()
    for _ in range(core.horizon):
        assert int(core_state) == shell_state
        action = int(numbers.integers(2))
        core_state, core_reward = core.step(core_state, jnp.int32(action), key=jax.random.key(0))
        shell_state, reward, _, _, _ = env.step(action)
        assert reward == pytest.approx(float(core_reward))


def test_the_same_seed_gives_the_same_walk_through_the_trap():
    walks = []
    for _ in range(2):
        env = gym.make("maxplore/Chain-v0", length=6, stochastic_trap=True)
        env.reset(seed=5)
        walks.append([int(env.step(0)[0]) for _ in range(12)])
    assert walks[0] == walks[1]


def test_what_cannot_be_is_refused():
    with pytest.raises(InputError, match="length is 1, expected at least 2"):
        Chain.random(1, key=jax.random.key(0))
    env = gym.make("maxplore/Chain-v0").unwrapped
    env.reset()
    with pytest.raises(InputError, match="action is 2, expected 0 or 1"):
        env.step(2)


def test_it_draws_itself():
    env = gym.make("maxplore/Chain-v0", length=5, render_mode="ansi").unwrapped
    env.reset()
    assert env.render() == ".*..."
