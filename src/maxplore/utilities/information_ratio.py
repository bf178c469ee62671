"""The log-ratio of epistemic to aleatoric variance (OPAX, Sukhija et al., 2023)."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from maxplore.utilities.base import Outcome, Utility, gaussian
from maxplore.utilities.numerics import variance_of


def information_ratio(
    mean: Float[Array, "members *batch dims"], variance: Float[Array, "members *batch dims"]
) -> Float[Array, "*batch"]:
    """1/2 sum ln(1 + epistemic / aleatoric), in nats: what one noisy observation tells about a Gaussian mean.

    Epistemic is the variance over members of their means, aleatoric the members' average variance.
    """
    # A dimension that all members hold for certain, and agree on, tells nothing: 0 rather than 0 / 0.
    ratio = variance_of(mean) / jnp.maximum(jnp.mean(variance, axis=0), 1e-30)
    return 0.5 * jnp.sum(jnp.log1p(jnp.minimum(ratio, 1e37)), axis=-1)


class InformationRatio(Utility):
    """OPAX's utility in normalised-delta space. It does not saturate."""

    def __call__(self, outcome: Outcome) -> Float[Array, " batch"]:
        gaussian(outcome)
        return information_ratio(*outcome.forecast)
