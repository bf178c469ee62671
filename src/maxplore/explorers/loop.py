"""A whole run as one pure function: an explorer in a functional environment, ready for `jit`, `vmap` and `lax.map`."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from maxplore.envs.chain import Chain
from maxplore.explorers.base import Finite, FiniteExplorer
from maxplore.history import Transition


def run(
    explorer: FiniteExplorer, chain: Chain, episodes: int, *, key: PRNGKeyArray, stop_when_explored: bool = False
) -> Float[Array, " episodes"]:
    """The share of all state-action pairs that were tried, after each episode.

    With `stop_when_explored`, nothing is done any more after the last new pair: the share stays 1.
    """
    world = Finite(chain.length, 2, chain.horizon)
    key_init, key_run = jax.random.split(key)

    def step(carry: tuple[Any, Array, Array], number: Array) -> tuple[tuple[Any, Array, Array], None]:
        mind, state, tried = carry
        key_act, key_observe, key_env = step_keys(key_run, number)
        action = explorer.act(world, mind, state, key=key_act)
        following, reward = chain.step(state, action, key=key_env)
        last = number % world.horizon == world.horizon - 1
        transition = Transition(state, action, following, jnp.zeros((), bool), last)
        mind = explorer.observe(world, mind, transition, reward, key=key_observe)
        return (mind, following, tried.at[state, action].set(True)), None

    def step_or_rest(carry: tuple[Any, Array, Array], number: Array) -> tuple[tuple[Any, Array, Array], None]:
        if not stop_when_explored:
            return step(carry, number)
        return jax.lax.cond(jnp.all(carry[2]), lambda: (carry, None), lambda: step(carry, number))

    def episode(carry: tuple[Any, Array], number: Array) -> tuple[tuple[Any, Array], Float[Array, ""]]:
        def go(carry: tuple[Any, Array]) -> tuple[Any, Array]:
            mind, tried = carry
            steps = number * world.horizon + jnp.arange(world.horizon)
            (mind, _, tried), _ = jax.lax.scan(step_or_rest, (mind, chain.reset(), tried), steps)
            return mind, tried

        done = jnp.all(carry[1]) if stop_when_explored else False
        carry = jax.lax.cond(done, lambda carry: carry, go, carry)
        return carry, jnp.mean(carry[1])

    tried: Bool[Array, "states actions"] = jnp.zeros((world.states, world.actions), bool)
    start = (explorer.init(world, key=key_init), tried)
    return jax.lax.scan(episode, start, jnp.arange(episodes))[1]


def step_keys(key: PRNGKeyArray, number: Int[Array, ""]) -> tuple[PRNGKeyArray, PRNGKeyArray, PRNGKeyArray]:
    """The keys of a run's step: to act, to observe, and for the environment. Every loop that uses them agrees."""
    key_act, key_observe, key_env = jax.random.split(jax.random.fold_in(key, number), 3)
    return key_act, key_observe, key_env


def episodes_to_explore(shares: Float[Array, "*seeds episodes"]) -> Int[Array, "*seeds"]:
    """How many episodes it took to try every pair; one more than there were if not all were tried."""
    done = shares >= 1.0
    return jnp.where(jnp.any(done, axis=-1), jnp.argmax(done, axis=-1) + 1, shares.shape[-1] + 1)
