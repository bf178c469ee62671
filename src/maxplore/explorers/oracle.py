"""The limit of what exploration can do: a memory that learns every transition at once."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from maxplore.explorers.base import Finite, FiniteExplorer
from maxplore.explorers.memory import Memory
from maxplore.history import Transition
from maxplore.solvers.value_iteration import Table, value_iteration


class OracleExplorer(FiniteExplorer):
    """Plans exactly, with a utility of 1 for a pair never tried and 0 for every other."""

    warm_up: int = eqx.field(static=True, default=3)
    """Episodes of random actions at the beginning."""
    discount: float = eqx.field(static=True, default=0.95)

    def init(self, world: Finite, *, key: PRNGKeyArray) -> Memory:
        return Memory.empty(world)

    def act(self, world: Finite, mind: Memory, state: Int[Array, ""], *, key: PRNGKeyArray) -> Int[Array, ""]:
        # Where a pair leads that was never tried nobody knows: a plan ends there.
        table = Table(mind.frequencies, 1.0 - mind.visited, 1.0 - mind.terminal)
        values = value_iteration(table, world.remaining(mind.step), world.horizon, discount=self.discount)[state]
        return choose(world, values, mind.total < self.warm_up * world.horizon, key=key)

    def observe(
        self, world: Finite, mind: Memory, transition: Transition, reward: Float[Array, ""], *, key: PRNGKeyArray
    ) -> Memory:
        return mind.add(transition)


def choose(world: Finite, values: Array, at_random: Array, *, key: PRNGKeyArray) -> Int[Array, ""]:
    """The best action, ties broken at random; or any action at all."""
    key_tie, key_any = jax.random.split(key)
    tie = jax.random.uniform(key_tie, values.shape)
    best = jnp.argmax(jnp.where(values >= jnp.max(values), tie, -1.0))
    anything = jax.random.randint(key_any, (), 0, world.actions)
    return jnp.where(at_random, anything, best).astype(jnp.int32)
