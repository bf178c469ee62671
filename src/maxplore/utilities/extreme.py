"""One number of the state made as large, or as small, as can be: a wish that puts a model to the test."""

import jax
from jaxtyping import Array, Float

from maxplore.utilities.base import Outcome, Utility, gaussian


class Extreme(Utility):
    """How far the next state lies in a `direction`, in units of each number's spread over D."""

    direction: Float[Array, " dims"]
    """An array, so that another one compiles nothing anew."""

    @property
    def needs_forecast(self) -> bool:
        return False

    def __call__(self, outcome: Outcome) -> Float[Array, " batch"]:
        return jax.vmap(gaussian(outcome).state.normalize)(outcome.next_state) @ self.direction
