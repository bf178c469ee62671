"""A task's reward in the utility's place: exploitation reuses everything that exploration has."""

from collections.abc import Callable

import equinox as eqx
import jax
from jaxtyping import Array, Float

from maxplore.utilities.base import Outcome, Utility


class Task(Utility):
    """A `reward(state, action, next_state)` written for one transition, in the environment's own units."""

    reward: Callable[[Array, Array, Array], Array] = eqx.field(static=True)

    @property
    def needs_forecast(self) -> bool:
        return False

    def __call__(self, outcome: Outcome) -> Float[Array, " batch"]:
        return jax.vmap(self.reward)(outcome.state, outcome.action, outcome.next_state)
