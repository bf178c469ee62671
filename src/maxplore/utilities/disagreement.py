"""Disagreement of the members' means, their variances left aside."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from maxplore.utilities.base import Outcome, Utility, gaussian
from maxplore.utilities.numerics import safe_sqrt, variance_of


def disagreement(mean: Float[Array, "members *batch dims"]) -> Float[Array, "*batch"]:
    """Sum over dimensions of the standard deviation over members of their means."""
    return jnp.sum(safe_sqrt(variance_of(mean)), axis=-1)


class Disagreement(Utility):
    """Disagreement in normalised-delta space (after Pathak et al., 2019). It does not saturate."""

    def __call__(self, outcome: Outcome) -> Float[Array, " batch"]:
        gaussian(outcome)
        return disagreement(outcome.forecast.mean)
