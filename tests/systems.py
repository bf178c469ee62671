"""Small systems whose answers are known."""

import copy
from typing import Any

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from maxplore import GaussianConfig, GaussianEnsemble, History
from maxplore.normalizer import Normalizer

DRIFT = np.array([[-0.2, 0.1], [0.0, -0.3]])
PUSH = np.array([[0.0], [0.5]])


def linear_gaussian(n, noise, seed=0, spread=1.0):
    """Transitions of s' = s + DRIFT s + PUSH a + noise, at random states and actions."""
    numbers = np.random.default_rng(seed)
    states = spread * numbers.normal(size=(n, 2))
    actions = numbers.uniform(-1, 1, size=(n, 1))
    exact = states + states @ DRIFT.T + actions @ PUSH.T
    return states, actions, exact + noise * numbers.normal(size=(n, 2)), exact


def history_of(states, actions, next_states):
    return History.continuous(states.shape[1], actions.shape[1], capacity=4096).append(states, actions, next_states)


def known_ensemble(offsets, variance, key):
    """Members that predict s' = s + a + their own offset, with the given variance in every dimension."""
    offsets = jnp.asarray(offsets, jnp.float32)
    members, dims = offsets.shape
    low, high = -10.0, 2.0
    config = GaussianConfig(members=members, depth=0, log_variance=(low, high))
    ensemble = GaussianEnsemble(dims, dims, config, key=key)
    weight = jnp.zeros((members, 2 * dims, 2 * dims))
    weight = weight.at[:, dims:, :dims].set(jnp.broadcast_to(jnp.eye(dims), (members, dims, dims)))
    level = (np.log(variance) - low) / (high - low)
    raw = jnp.full((members, dims), float(np.log(level / (1 - level))))
    bias = jnp.concatenate([offsets, raw], axis=1)
    return eqx.tree_at(
        lambda e: (e.members.dynamics.layers[0].weight, e.members.dynamics.layers[0].bias, e.fitted),
        ensemble,
        (weight, bias, jnp.bool_(True)),
    )


def rescaled(ensemble, scale):
    """The same ensemble whose deltas are in units of `scale`."""
    dims = ensemble.delta.mean.size
    return eqx.tree_at(
        lambda e: e.delta, ensemble, Normalizer(jnp.zeros(dims), jnp.full(dims, float(scale)), jnp.ones(dims, bool))
    )


class Reusing(gym.Wrapper[Any, Any, Any, Any]):
    """One buffer for all observations, changed in place, and actions that are written over, as robots and vector
    environments have it; `happened` has each step as it really was."""

    def __init__(self, env):
        super().__init__(env)
        self.happened = []
        self._buffer = None

    def reset(self, *, seed=None, options=None):
        observation, info = self.env.reset(seed=seed, options=options)
        return self._seen(observation), info

    def step(self, action: Any) -> Any:
        before, done = copy.deepcopy((self._buffer, action))
        following, *rest = self.env.step(copy.deepcopy(action))
        self._seen(following)
        self.happened.append((before, done, copy.deepcopy(self._buffer)))
        if isinstance(action, np.ndarray):
            action[...] = 0.0
        return (self._buffer, *rest)

    def _seen(self, observation):
        if self._buffer is None:
            self._buffer = jax.tree.map(np.array, observation)
        else:
            jax.tree.map(np.copyto, self._buffer, observation)
        return self._buffer
