"""Prediction error (PERX): how wrong the ensemble's mean was about what happened."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from maxplore.utilities.base import Outcome, Utility, gaussian


def prediction_error(
    mean: Float[Array, "members *batch dims"], observed: Float[Array, "*batch dims"]
) -> Float[Array, "*batch"]:
    """Squared error of the members' average prediction, summed over dimensions.

    Noise is as rewarding to it as novelty, for ever.
    """
    return jnp.sum((jnp.mean(mean, axis=0) - observed) ** 2, axis=-1)


class PredictionError(Utility):
    """PERX's utility: the error in the next state, in standard deviations of the state."""

    def __call__(self, outcome: Outcome) -> Float[Array, " batch"]:
        ensemble = gaussian(outcome)
        ratio = ensemble.delta.scale / ensemble.state.scale  # from deltas' to states' standard deviations
        in_states = jax.vmap(lambda delta: ratio * delta)
        observed = jax.vmap(ensemble.normalized_delta)(outcome.state, outcome.next_state)
        return prediction_error(jax.vmap(in_states)(outcome.forecast.mean), in_states(observed))
