"""Uniformly random actions."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from maxplore.explorers.base import Finite, FiniteExplorer
from maxplore.history import Transition


class RandomExplorer(FiniteExplorer):
    """The baseline that learns nothing."""

    def init(self, world: Finite, *, key: PRNGKeyArray) -> tuple[()]:
        return ()

    def act(self, world: Finite, mind: tuple[()], state: Int[Array, ""], *, key: PRNGKeyArray) -> Int[Array, ""]:
        return jax.random.randint(key, (), 0, world.actions, dtype=jnp.int32)

    def observe(
        self, world: Finite, mind: tuple[()], transition: Transition, reward: Float[Array, ""], *, key: PRNGKeyArray
    ) -> tuple[()]:
        return mind
