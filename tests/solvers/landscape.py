"""Small problems with known optima, all of one shape, so that a solver is compiled once for all of them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from maxplore import ExplorationMDP, GaussianConfig, GaussianEnsemble, History
from maxplore.utilities import Outcome, Utility

FAR = 1e6


class Landscape(Utility):
    """Quadratic costs, bumps along the first dimension, and a place beyond which utilities are not finite."""

    cost: Float[Array, "2"]
    effort: Float[Array, ""]
    heights: Float[Array, "2"]
    end: Float[Array, ""]

    @property
    def needs_forecast(self) -> bool:
        return False

    def __call__(self, outcome: Outcome) -> Float[Array, " batch"]:
        state, action = outcome.next_state, outcome.action
        place = state[:, :1]
        bumps = jnp.exp(-(((place - CENTERS[None]) / WIDTHS[None]) ** 2)) @ self.heights
        effort = self.effort * jnp.sum(action**2, axis=1) if action.ndim == 2 else 0.0
        broken = 0.0 * jnp.sqrt(self.end - place[:, 0])  # NaN beyond, and so is its gradient
        return bumps - state**2 @ self.cost - effort + broken


CENTERS, WIDTHS = jnp.array([-0.5, 1.5]), jnp.array([0.4, 1.0])
"""A near room and a far one. In 0, the near one's slope is the steeper."""

DRIFT = np.array([[0.0, 0.2], [0.0, 0.0]])
PUSH = np.array([[0.0], [0.3]])
"""s' = s + DRIFT s + PUSH a: a double integrator."""

COST, EFFORT, DISCOUNT = np.array([1.0, 0.3]), 0.5, 0.95
START = np.array([1.0, 0.0])


def known(drift, push, numbered=False):
    """An ensemble of one member that knows s' = s + drift s + push a for sure."""
    config = GaussianConfig(members=1, depth=0, log_variance=(-60.0, -50.0))
    ensemble = GaussianEnsemble(len(push), push.shape[1], config, numbered=numbered, key=jax.random.key(0))
    mean = np.concatenate([drift, push], axis=1).T
    weight = jnp.asarray(np.concatenate([mean, np.zeros_like(mean)], axis=1)[None], jnp.float32)
    return eqx.tree_at(lambda e: e.members.dynamics.layers[0].weight, ensemble, weight)


def linear_quadratic():
    utility = Landscape(jnp.asarray(COST, jnp.float32), jnp.float32(EFFORT), jnp.zeros(2), jnp.float32(FAR))
    return ExplorationMDP(known(DRIFT, PUSH), utility)


def two_rooms(near=0.3, far=1.0, *, end=FAR, numbered=False):
    """A walk along a line; numbered actions are: left, stay, right."""
    push = np.array([[-0.2, 0.0, 0.2], [0.0, 0.0, 0.0]]) if numbered else np.array([[0.2], [0.0]])
    heights = jnp.array([near, far], jnp.float32)
    utility = Landscape(jnp.zeros(2), jnp.float32(0.0), heights, jnp.float32(end))
    return ExplorationMDP(known(np.zeros((2, 2)), push, numbered), utility)


def data(mdp, low=-2.0, high=4.0, *, n=500, seed=0):
    """D: random states and actions, with what the model has them lead to."""
    numbers = np.random.default_rng(seed)
    states, actions = numbers.uniform(low, high, size=(n, 2)), numbers.uniform(-1, 1, size=(n, 1))
    mean, _ = mdp.ensemble.predict(states, actions)
    return History.continuous(2, 1, capacity=1024).append(states, actions, np.asarray(mean[0]))


def optimal_cost(start):
    """The least discounted cost from `start` on, by the Riccati recursion, and the best action there."""
    a, b = np.eye(2) + DRIFT, PUSH
    p, gain = np.zeros((2, 2)), np.zeros((1, 2))
    for _ in range(1000):
        s = np.diag(COST) + DISCOUNT * p
        gain = np.linalg.solve(EFFORT + b.T @ s @ b, b.T @ s @ a)
        p = a.T @ s @ a - a.T @ s @ b @ gain
    return start @ p @ start, -gain @ start


@eqx.filter_jit
def walked(policy, change, push, start, steps):
    """States and actions of a policy in s' = change s + push a."""

    def step(state, _):
        action = policy(state)
        return (after := change @ state + push @ action), (after, action)

    return jax.lax.scan(step, start, None, length=steps)[1]


def cost_of(policy, start, steps=150):
    """The discounted cost of following a policy in the real thing."""
    matrices = (jnp.asarray(x, jnp.float32) for x in (np.eye(2) + DRIFT, PUSH, start))
    states, actions = map(np.asarray, walked(policy, *matrices, steps=steps))
    return DISCOUNT ** np.arange(steps) @ (states**2 @ COST + EFFORT * actions[:, 0] ** 2)


def rooms_pay(policy, near, far, steps=30):
    """What a policy collects in the two rooms from 0 on, as a share of what the best can: to go and stay."""
    matrices = (jnp.asarray(x, jnp.float32) for x in (np.eye(2), [[0.2], [0.0]], np.zeros(2)))
    states, _ = walked(policy, *matrices, steps=steps)
    best = (np.sign(c) * np.minimum(0.2 * np.arange(1, steps + 1), abs(c)) for c in np.asarray(CENTERS))
    return pays(np.asarray(states)[:, 0], near, far) / max(pays(places, near, far) for places in best)


def pays(places, near, far):
    bumps = np.exp(-(((places[:, None] - np.asarray(CENTERS)) / np.asarray(WIDTHS)) ** 2))
    return np.sum(bumps @ np.array([near, far]))
