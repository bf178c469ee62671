"""A task's reward with a price on what the model does not know: a guard against policies that live off its errors."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from maxplore.utilities.base import Outcome, Utility, gaussian
from maxplore.utilities.disagreement import disagreement
from maxplore.utilities.task import Task


class Cautious(Utility):
    """The reward as the most pessimistic member has it, minus `penalty` times the members' disagreement."""

    task: Task
    penalty: float = eqx.field(static=True, default=0.0)
    """Reward lost for a disagreement of one standard deviation of the delta, averaged over dimensions."""
    pessimistic: bool = eqx.field(static=True, default=False)
    """Whether the least counts that any member's expected next state pays, or only the next state drawn."""
    unit: float | Float[Array, ""] = 1.0
    """What counts as 1; an array if it changes, so that nothing is compiled anew."""

    @property
    def needs_forecast(self) -> bool:
        return self.pessimistic or self.penalty > 0

    def __call__(self, outcome: Outcome) -> Float[Array, " batch"]:
        paid, ensemble = self.task(outcome), gaussian(outcome)
        if not self.needs_forecast:
            return paid / self.unit
        if self.pessimistic:
            expected = outcome.state[None] + jax.vmap(jax.vmap(ensemble.delta.denormalize))(outcome.forecast.mean)
            by_member = jax.vmap(jax.vmap(self.task.reward), in_axes=(None, None, 0))
            paid = jnp.minimum(paid, jnp.min(by_member(outcome.state, outcome.action, expected), axis=0))
        return (paid - self.penalty * disagreement(outcome.forecast.mean) / outcome.state.shape[1]) / self.unit
