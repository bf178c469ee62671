"""What a utility is: a function from a batch of transitions to what each of them pays."""

import math
from abc import abstractmethod
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, Int, Shaped

from maxplore.errors import InputError
from maxplore.models.ensemble import Ensemble
from maxplore.models.gaussian import GaussianEnsemble


class Outcome(eqx.Module):
    """A batch of transitions, real or imagined, with what the ensemble said of them beforehand."""

    ensemble: Ensemble[Any]
    state: Shaped[Array, "batch *state"]
    action: Shaped[Array, "batch *action"]
    next_state: Shaped[Array, "batch *state"]
    forecast: Any
    """Every member's prediction, `[members, batch, ...]`; None for a utility that does not look at it."""


class Utility(eqx.Module):
    """What a transition pays in the exploration MDP."""

    @abstractmethod
    def __call__(self, outcome: Outcome) -> Float[Array, " batch"]: ...

    def divergence(self, outcome: Outcome) -> Float[Array, " batch"] | None:
        """The divergence in it, which saturates at ln N; None for a utility that has no such ceiling."""
        return None

    def decides(self, outcome: Outcome, drawn: Int[Array, " batch"]) -> Int[Array, " batch"]:
        """Which member says where each imagined transition leads: the one `drawn`, or another. Its next state is still
        unknown: that from which it begins stands in its place. Only a utility that `needs_forecast` is asked."""
        return drawn

    @property
    def needs_forecast(self) -> bool:
        """Whether it looks at every member's prediction; if not, imagination is N times cheaper."""
        return True


def gaussian(outcome: Outcome) -> GaussianEnsemble:
    """The ensemble behind an outcome, for utilities that need Gaussian members."""
    if isinstance(outcome.ensemble, GaussianEnsemble):
        return outcome.ensemble
    raise InputError(
        f"this utility needs a GaussianEnsemble, got {type(outcome.ensemble).__name__}: use jensen_shannon"
    )


def saturation(utility: Float[Array, "*batch"], members: int) -> Float[Array, "*batch"]:
    """The share of its ceiling ln N that a divergence has reached: near 1 it no longer tells novelties apart.

    >>> import jax.numpy as jnp
    >>> float(saturation(jnp.log(5.0), members=5))
    1.0
    """
    return utility / math.log(members) if members > 1 else 0.0 * utility
