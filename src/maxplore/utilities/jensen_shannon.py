"""Jensen-Shannon divergence of categorical predictions (eq. 7 and 8)."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from maxplore.errors import InputError
from maxplore.models.categorical import CategoricalEnsemble
from maxplore.utilities.base import Outcome, Utility


def jensen_shannon(
    probabilities: Num[Array, "members *batch states"] | Num[np.ndarray, "members *batch states"],
) -> Float[Array, "*batch"]:
    """How much the members' distributions disagree, in nats: 0 if all are equal, ln N if all are disjoint.

    >>> jensen_shannon(jnp.array([[1.0, 0.0], [0.0, 1.0]])).round(4)
    Array(0.6931, dtype=float32)
    """
    probabilities = jnp.asarray(probabilities)
    probabilities = probabilities.astype(jnp.promote_types(probabilities.dtype, jnp.float32))
    # Entropy of the average minus the average entropy, as the mean KL to the average: less cancellation.
    tiny = jnp.finfo(probabilities.dtype).tiny
    # One member as reference: the average of equal members is then exactly that member.
    average = probabilities[:1] + jnp.mean(probabilities - probabilities[:1], axis=0, keepdims=True)
    log_ratio = jnp.log(jnp.maximum(probabilities, tiny)) - jnp.log(jnp.maximum(average, tiny))
    divergence = jnp.mean(jnp.sum(probabilities * log_ratio, axis=-1), axis=0)
    return jnp.clip(divergence, 0.0, math.log(probabilities.shape[0]))


class JensenShannon(Utility):
    """MAX's utility for discrete environments: the expected information gain about the transition function."""

    def __call__(self, outcome: Outcome) -> Float[Array, " batch"]:
        return self.divergence(outcome)

    def divergence(self, outcome: Outcome) -> Float[Array, " batch"]:
        if not isinstance(outcome.ensemble, CategoricalEnsemble):
            raise InputError(f"jensen_shannon needs a CategoricalEnsemble, got {type(outcome.ensemble).__name__}")
        return jensen_shannon(jax.nn.softmax(outcome.forecast))
