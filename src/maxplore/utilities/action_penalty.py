"""A price on large actions, around any utility."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from maxplore.errors import InputError
from maxplore.utilities.base import Outcome, Utility


class ActionPenalty(Utility):
    """`utility` minus `weight` times the squared norm of the action."""

    utility: Utility
    weight: float

    @property
    def needs_forecast(self) -> bool:
        return self.utility.needs_forecast

    def __call__(self, outcome: Outcome) -> Float[Array, " batch"]:
        worth = self.utility(outcome)
        if not jnp.issubdtype(outcome.action.dtype, jnp.floating):
            raise InputError("ActionPenalty needs real actions, got numbered ones: a number has no size to penalise")
        return worth - self.weight * jnp.sum(outcome.action**2, axis=1)

    def divergence(self, outcome: Outcome) -> Float[Array, " batch"] | None:
        return self.utility.divergence(outcome)

    def decides(self, outcome: Outcome, drawn: Int[Array, " batch"]) -> Int[Array, " batch"]:
        return self.utility.decides(outcome, drawn)
