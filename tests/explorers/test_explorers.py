"""Explorers on a short Chain: what each must do, and that a run is a function of its seed alone."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxplore.envs import Chain
from maxplore.explorers import (
    BootstrappedDqnExplorer,
    EbDqnExplorer,
    Finite,
    FiniteAgent,
    FiniteMaxConfig,
    MaxExplorer,
    OracleExplorer,
    RandomExplorer,
    episodes_to_explore,
    run,
)
from maxplore.explorers.dqn import Learner, Replay, thermometer
from maxplore.explorers.max import tabulate
from maxplore.history import Transition
from maxplore.models.mlp import MLP

EXPLORERS = {
    "random": RandomExplorer(),
    "oracle": OracleExplorer(),
    "max": MaxExplorer(),
    "eb-dqn": EbDqnExplorer(),
    "bootstrapped-dqn": BootstrappedDqnExplorer(),
}
LENGTH = 12


def transition(state, action, following, terminated=False, truncated=False):
    return Transition(*map(jnp.int32, (state, action, following)), *map(jnp.bool_, (terminated, truncated)))


def shares(explorer, seeds, episodes=8, length=LENGTH):
    def one(key):
        key_chain, key_run = jax.random.split(key)
        return run(explorer, Chain.random(length, key=key_chain), episodes, key=key_run)

    return np.asarray(jax.jit(lambda keys: jax.lax.map(one, keys))(jax.random.split(jax.random.key(0), seeds)))


@pytest.mark.parametrize("name", EXPLORERS)
def test_a_run_is_a_function_of_its_seed_and_seeds_differ(name):
    explorer = EXPLORERS[name]

    def one(key):
        return run(explorer, Chain.random(LENGTH, key=key), 5, key=key)

    compiled = jax.jit(lambda keys: jax.lax.map(one, keys))
    first, again = (np.asarray(compiled(jax.random.split(jax.random.key(0), 4))) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (np.diff(first, axis=1) >= 0).all(), "what was tried stays tried"
    assert len(np.unique(first[:, :3], axis=0)) > 1


def test_max_explores_about_as_fast_as_the_oracle_and_random_does_not():
    taken = {
        name: np.median(episodes_to_explore(jnp.asarray(shares(EXPLORERS[name], 5))))
        for name in ("max", "oracle", "random")
    }
    assert taken["max"] <= taken["oracle"] + 1
    assert taken["random"] > taken["max"]


@pytest.mark.parametrize("name", EXPLORERS)
def test_the_plain_loop_through_gymnasium_does_exactly_what_the_compiled_run_does(name):
    """The same explorer, asked and told step by step, with the same keys."""
    explorer, episodes, seed = EXPLORERS[name], 5, 3
    chain = Chain.random(LENGTH, key=jax.random.key(seed))
    compiled = np.asarray(jax.jit(lambda key: run(explorer, chain, episodes, key=key))(jax.random.key(9)))

    env = gym.make("maxplore/Chain-v0", length=LENGTH, seed=seed)
    agent, tried, told = FiniteAgent(explorer, Finite(LENGTH, 2, chain.horizon), key=jax.random.key(9)), set(), []
    for _ in range(episodes):
        state, _ = env.reset()
        for _ in range(chain.horizon):
            action = agent.ask(state)
            following, reward, terminated, truncated, _ = env.step(action)
            agent.tell(transition(state, action, following, terminated, truncated), float(reward))
            tried.add((int(state), action))
            state = following
        told.append(len(tried) / (2 * LENGTH))
    np.testing.assert_allclose(told, compiled, rtol=1e-6)


def test_a_run_that_stops_when_everything_is_explored_says_the_same():
    chain, key = Chain.random(LENGTH, key=jax.random.key(0)), jax.random.key(1)
    whole, stopped = (run(OracleExplorer(), chain, 8, key=key, stop_when_explored=stop) for stop in (False, True))
    np.testing.assert_array_equal(whole, stopped)
    assert whole[-1] == 1


def test_maxs_utility_is_the_divergence_of_its_ensemble_high_only_where_it_has_not_been():
    chain, explorer = Chain.random(LENGTH, key=jax.random.key(0)), MaxExplorer(FiniteMaxConfig(warm_up=0))
    world = Finite(LENGTH, 2, chain.horizon)
    mind = explorer.init(world, key=jax.random.key(1))
    observe = jax.jit(lambda mind, t: explorer.observe(world, mind, t, jnp.float32(0), key=jax.random.key(2)))
    for state, action in [(s, a) for s in range(6) for a in (0, 1)] * 2:
        following, _ = chain.step(jnp.int32(state), jnp.int32(action), key=jax.random.key(0))
        mind = observe(
            mind, Transition(jnp.int32(state), jnp.int32(action), following, jnp.bool_(False), jnp.bool_(False))
        )
    pays = np.asarray(tabulate(mind).pays)
    assert pays[:6].max() < 0.1 * pays[6:].mean()
    np.testing.assert_allclose(tabulate(mind).transition.sum(-1), 1, rtol=1e-5)


def test_episodes_to_explore_counts_from_one():
    assert episodes_to_explore(jnp.array([[0.5, 1.0, 1.0], [1.0, 1.0, 1.0], [0.1, 0.2, 0.9]])).tolist() == [2, 1, 4]


def test_the_replay_is_a_ring():
    replay = Replay.empty(3)
    for k in range(5):
        replay = replay.add(transition(k, 0, k), jnp.float32(k))
    assert sorted(np.asarray(replay.reward).tolist()) == [2.0, 3.0, 4.0]
    batch, reward = replay.sample(64, key=jax.random.key(0))
    np.testing.assert_array_equal(batch.state, reward)
    assert set(np.asarray(reward)) == {2.0, 3.0, 4.0}


def test_a_q_network_learns_the_value_of_a_known_problem():
    """One action; state 0 leads to 1, which pays 1 and ends: Q(0) = discount, Q(1) = 1."""
    rows = Transition(
        jnp.array([0, 1]), jnp.array([0, 0]), jnp.array([1, 0]), jnp.array([False, True]), jnp.zeros(2, bool)
    )
    network = MLP(2, 1, depth=1, width=16, activation="tanh", key=jax.random.key(0))
    settings = {"learning_rate": 1e-3, "discount": 0.5, "target_every": 10}
    step = jax.jit(lambda learner: learner.update(jnp.eye(2), rows, jnp.array([0.0, 1.0]), **settings))
    learner = Learner.create(network, 1e-3)
    for _ in range(400):
        learner = step(learner)
    np.testing.assert_allclose(jax.vmap(learner.network)(jnp.eye(2))[:, 0], [0.5, 1.0], atol=0.03)


def test_thermometer():
    np.testing.assert_array_equal(thermometer(3), [[1, 0, 0], [1, 1, 0], [1, 1, 1]])
