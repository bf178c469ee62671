"""The exact solution of a tabulated exploration MDP."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from maxplore.errors import InputError


class Table(eqx.Module):
    """A finite MDP written out: where each pair leads, what it pays, and how likely the episode goes on."""

    transition: Float[Array, "states actions states"]
    pays: Float[Array, "states actions"]
    goes_on: Float[Array, " states"]
    """Chance that the episode goes on once in this state: 0 for a terminal one."""


@runtime_checkable
class Planner(Protocol):
    """One way to solve a tabulated MDP."""

    def values(
        self, table: Table, state: Int[Array, ""], remaining: Int[Array, ""], horizon: int, *, key: PRNGKeyArray
    ) -> Float[Array, " actions"]:
        """What each action in `state` promises with `remaining` steps of at most `horizon` to go."""
        ...


@dataclass(frozen=True)
class ValueIteration:
    """The exact solution, to the end of the episode."""

    discount: float = 0.95
    """Of utilities: among equally novel things, the nearer first."""
    once: bool = False
    """Plan for the best single utility ahead, not for the sum of all: no loops between uncertain pairs."""

    def __post_init__(self) -> None:
        if not 0 <= self.discount <= 1:
            raise InputError(f"discount is {self.discount}, expected a number from 0 to 1")

    def values(
        self, table: Table, state: Int[Array, ""], remaining: Int[Array, ""], horizon: int, *, key: PRNGKeyArray
    ) -> Float[Array, " actions"]:
        return value_iteration(table, remaining, horizon, discount=self.discount, once=self.once)[state]


def value_iteration(
    table: Table, remaining: Int[Array, ""], horizon: int, *, discount: float = 0.95, once: bool = False
) -> Float[Array, "states actions"]:
    """The value of each pair with `remaining` steps of at most `horizon` to go, this one included.

    A plan that loops between two uncertain pairs is paid for them again and again, though the first visit would tell
    all (the paper's section 5). With `once` it is not: a plan is worth the best single utility on its way, as an
    optimal-stopping problem, so going in circles adds nothing.

    >>> stay = jnp.eye(2)[:, None, :]
    >>> table = Table(stay, pays=jnp.array([[1.0], [0.0]]), goes_on=jnp.ones(2))
    >>> value_iteration(table, jnp.int32(3), 10, discount=0.5)[:, 0]
    Array([1.75, 0.  ], dtype=float32)
    """

    def backup(_: Int[Array, ""], value: Float[Array, "states actions"]) -> Float[Array, "states actions"]:
        best = jnp.max(value, axis=1) * table.goes_on
        later = discount * jnp.einsum("ijk,k->ij", table.transition, best)
        return jnp.maximum(table.pays, later) if once else table.pays + later

    nothing = jnp.zeros_like(table.pays)
    return jax.lax.fori_loop(0, jnp.clip(remaining, 1, horizon), backup, nothing)
