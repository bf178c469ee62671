"""An external reward mixed into any utility: exploration that also minds a task."""

from jaxtyping import Array, Float, Int

from maxplore.utilities.base import Outcome, Utility
from maxplore.utilities.task import Task


class WithReward(Utility):
    """`utility` plus `weight` times a task's reward."""

    utility: Utility
    task: Task
    weight: float

    @property
    def needs_forecast(self) -> bool:
        return self.utility.needs_forecast

    def __call__(self, outcome: Outcome) -> Float[Array, " batch"]:
        return self.utility(outcome) + self.weight * self.task(outcome)

    def divergence(self, outcome: Outcome) -> Float[Array, " batch"] | None:
        return self.utility.divergence(outcome)

    def decides(self, outcome: Outcome, drawn: Int[Array, " batch"]) -> Int[Array, " batch"]:
        return self.utility.decides(outcome, drawn)
