"""What an explorer of a finite environment is: `init / act / observe`, pure functions of a state pytree.

The same explorer runs in `lax.scan` with a functional environment, `vmap`ped over seeds; in a Python loop with any
Gymnasium environment; and under ask / tell, where somebody else owns the loop.
"""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from maxplore.history import Transition


class Finite(eqx.Module):
    """What an explorer may know of a finite environment beforehand."""

    states: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    """Steps of an episode; where nobody knows them, how far to plan."""
    known_end: bool = eqx.field(static=True, default=True)
    """Whether every episode ends after `horizon` steps at the latest."""

    def remaining(self, step: Int[Array, ""]) -> Int[Array, ""]:
        """Steps to plan for, `step` of this episode being done."""
        return jnp.maximum(self.horizon - step, 1) if self.known_end else jnp.full_like(step, self.horizon)


class FiniteExplorer(eqx.Module):
    """A way to choose actions in an environment with numbered states and actions."""

    @abstractmethod
    def init(self, world: Finite, *, key: PRNGKeyArray) -> Any:
        """The explorer's state before the first step."""

    @abstractmethod
    def act(self, world: Finite, mind: Any, state: Int[Array, ""], *, key: PRNGKeyArray) -> Int[Array, ""]:
        """An action for this state of the environment."""

    @abstractmethod
    def observe(
        self, world: Finite, mind: Any, transition: Transition, reward: Float[Array, ""], *, key: PRNGKeyArray
    ) -> Any:
        """The explorer's state after a transition. Pure explorers take no notice of the reward."""
