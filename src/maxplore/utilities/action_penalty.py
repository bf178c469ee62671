"""A price on large actions, around any utility."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from maxplore.utilities.base import Outcome, Utility


class ActionPenalty(Utility):
    """`utility` minus `weight` times the squared norm of the action."""

    utility: Utility
    weight: float

    @property
    def needs_forecast(self) -> bool:
        return self.utility.needs_forecast

    def __call__(self, outcome: Outcome) -> Float[Array, " batch"]:
        action = outcome.action.astype(jnp.float32)
        return self.utility(outcome) - self.weight * jnp.sum(action**2, axis=tuple(range(1, action.ndim)))
