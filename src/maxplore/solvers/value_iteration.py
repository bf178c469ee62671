"""The exact solution of a tabulated exploration MDP."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


class Table(eqx.Module):
    """A finite MDP written out: where each pair leads, what it pays, and how likely the episode goes on."""

    transition: Float[Array, "states actions states"]
    pays: Float[Array, "states actions"]
    goes_on: Float[Array, " states"]
    """Chance that the episode goes on once in this state: 0 for a terminal one."""


def value_iteration(
    table: Table, remaining: Int[Array, ""], horizon: int, *, discount: float = 0.95
) -> Float[Array, "states actions"]:
    """The value of each pair with `remaining` steps of at most `horizon` to go, this one included.

    >>> stay = jnp.eye(2)[:, None, :]
    >>> table = Table(stay, pays=jnp.array([[1.0], [0.0]]), goes_on=jnp.ones(2))
    >>> value_iteration(table, jnp.int32(3), 10, discount=0.5)[:, 0]
    Array([1.75, 0.  ], dtype=float32)
    """

    def backup(_: Int[Array, ""], value: Float[Array, "states actions"]) -> Float[Array, "states actions"]:
        best = jnp.max(value, axis=1) * table.goes_on
        return table.pays + discount * jnp.einsum("ijk,k->ij", table.transition, best)

    nothing = jnp.zeros_like(table.pays)
    return jax.lax.fori_loop(0, jnp.clip(remaining, 1, horizon), backup, nothing)
