"""Trajectory variance (TVAX): how far the imagined actors drift apart within a time step."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from maxplore.utilities.base import Outcome, Utility, gaussian
from maxplore.utilities.numerics import safe_sqrt, variance_of


def trajectory_variance(deltas: Float[Array, "batch dims"]) -> Float[Array, " batch"]:
    """Sum over dimensions of the standard deviation over the batch; the same number for every row.

    Risk and uncertainty are one to it: noise alone spreads the actors too.
    """
    spread = jnp.sum(safe_sqrt(variance_of(deltas)))
    return jnp.full(deltas.shape[0], spread)


class TrajectoryVariance(Utility):
    """TVAX's utility, of the normalised deltas of all actors at one time step."""

    @property
    def needs_forecast(self) -> bool:
        return False

    def __call__(self, outcome: Outcome) -> Float[Array, " batch"]:
        return trajectory_variance(jax.vmap(gaussian(outcome).normalized_delta)(outcome.state, outcome.next_state))
