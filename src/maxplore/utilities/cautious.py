"""A task's reward with a price on what the model does not know: a guard against policies that live off its errors."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from maxplore.utilities.base import Outcome, Utility, gaussian
from maxplore.utilities.disagreement import disagreement
from maxplore.utilities.task import Task


class Cautious(Utility):
    """The reward where all that members disagree about goes badly, minus `penalty` times how much they disagree."""

    task: Task
    penalty: float = eqx.field(static=True, default=0.0)
    """Reward lost for a disagreement of one standard deviation of the delta, averaged over dimensions."""
    pessimistic: bool = eqx.field(static=True, default=False)
    """Whether each step leads where the member has it that expects to be paid least: a plan then lives off no error
    that any member does not share."""
    unit: float | Float[Array, ""] = 1.0
    """What counts as 1; an array if it changes, so that nothing is compiled anew."""

    @property
    def needs_forecast(self) -> bool:
        return self.pessimistic or self.penalty > 0

    def __call__(self, outcome: Outcome) -> Float[Array, " batch"]:
        paid = self.task(outcome)
        if self.penalty > 0:
            paid = paid - self.penalty * disagreement(outcome.forecast.mean) / outcome.state.shape[1]
        return paid / self.unit

    def decides(self, outcome: Outcome) -> Int[Array, " batch"] | None:
        if not self.pessimistic:
            return None
        change = jax.vmap(jax.vmap(gaussian(outcome).delta.denormalize))(outcome.forecast.mean)
        by_member = jax.vmap(jax.vmap(self.task.reward), in_axes=(None, None, 0))
        expected = by_member(outcome.state, outcome.action, outcome.state[None] + change)
        return jnp.argmin(jnp.where(jnp.isfinite(expected), expected, jnp.inf), axis=0)
