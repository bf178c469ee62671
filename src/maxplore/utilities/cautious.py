"""A task's reward with a price on what the model does not know: a guard against policies that live off its errors."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from maxplore.utilities.base import Outcome, Utility, gaussian
from maxplore.utilities.disagreement import disagreement
from maxplore.utilities.task import Task


class Cautious(Utility):
    """The reward in its `unit` where each step goes as badly as any member expects, minus `penalty` times how much more
    they disagree than is `usual`."""

    task: Task
    penalty: float = eqx.field(static=True, default=0.0)
    """Units lost for a disagreement of one standard deviation of the delta, averaged over dimensions."""
    pessimistic: bool = eqx.field(static=True, default=False)
    """Whether each step leads where the member has it that expects to be paid least; of equals, one by chance. What
    pays later, and whether the episode ends, is not looked at."""
    unit: float | Float[Array, ""] = 1.0
    """What counts as 1; an array if it changes, so that nothing is compiled anew."""
    usual: float | Float[Array, ""] = 0.0
    """Disagreement, over all dimensions, that costs nothing."""

    @property
    def needs_forecast(self) -> bool:
        return self.pessimistic or self.penalty > 0

    def __call__(self, outcome: Outcome) -> Float[Array, " batch"]:
        paid = self.task(outcome) / self.unit
        if self.penalty > 0:
            gaussian(outcome)  # or one line that says why not
            more = jnp.maximum(disagreement(outcome.forecast.mean) - self.usual, 0.0)
            paid = paid - self.penalty * more / outcome.state.shape[1]
        return paid

    def decides(self, outcome: Outcome, drawn: Int[Array, " batch"]) -> Int[Array, " batch"]:
        if not self.pessimistic:
            return drawn
        change = jax.vmap(jax.vmap(gaussian(outcome).delta.denormalize))(outcome.forecast.mean)
        by_member = jax.vmap(jax.vmap(self.task.reward), in_axes=(None, None, 0))
        expected = by_member(outcome.state, outcome.action, outcome.state[None] + change)
        expected = jnp.where(jnp.isnan(expected), jnp.inf, expected)
        # The search begins with the member drawn: of equals, which comes first is left to chance.
        order = (jnp.arange(len(expected))[:, None] + drawn[None]) % len(expected)
        least = jnp.argmin(jnp.take_along_axis(expected, order, axis=0), axis=0)
        return (least + drawn) % len(expected)
