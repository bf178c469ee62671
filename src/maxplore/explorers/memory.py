"""What a finite explorer remembers of its transitions: counts, which are all there is to know about D here."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from maxplore.explorers.base import Finite
from maxplore.history import Transition


class Memory(eqx.Module):
    """How often each pair led where, which states ended an episode, and what time it is."""

    counts: Float[Array, "states actions states"]
    terminal: Bool[Array, " states"]
    step: Int[Array, ""]
    """Steps since the episode began."""
    total: Int[Array, ""]
    """Steps in all."""

    @classmethod
    def empty(cls, world: Finite) -> "Memory":
        zero = jnp.zeros((), jnp.int32)
        counts = jnp.zeros((world.states, world.actions, world.states))
        return cls(counts, jnp.zeros(world.states, bool), zero, zero)

    def add(self, transition: Transition) -> "Memory":
        place = (transition.state, transition.action, transition.next_state)
        over = transition.terminated | transition.truncated
        return Memory(
            self.counts.at[place].add(1.0),
            self.terminal.at[transition.next_state].max(transition.terminated),
            jnp.where(over, 0, self.step + 1),
            self.total + 1,
        )

    def began(self) -> "Memory":
        """The same, at the beginning of an episode."""
        return eqx.tree_at(lambda memory: memory.step, self, jnp.zeros_like(self.step))

    @property
    def visited(self) -> Bool[Array, "states actions"]:
        return jnp.sum(self.counts, axis=-1) > 0

    @property
    def frequencies(self) -> Float[Array, "states actions states"]:
        """The observed distribution of next states; zeros for a pair never tried."""
        visits = jnp.sum(self.counts, axis=-1, keepdims=True)
        return self.counts / jnp.maximum(visits, 1.0)
