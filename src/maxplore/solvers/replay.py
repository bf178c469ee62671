"""Transitions with their utilities as rows of one array: a batch is then one look-up."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from maxplore.history import History
from maxplore.mdp import ExplorationMDP, Step
from maxplore.normalizer import Normalizer

BLOCK = 1024
"""Transitions of D whose utility is computed at once."""


class Batch(NamedTuple):
    """Some transitions, their states normalised."""

    state: Float[Array, "batch dims"]
    action: Float[Array, "batch actions"]
    next_state: Float[Array, "batch dims"]
    reward: Float[Array, " batch"]
    terminated: Float[Array, " batch"]

    @classmethod
    def of(cls, rows: Float[Array, "batch columns"], normalizer: Normalizer, actions: int) -> "Batch":
        """The transitions in such rows."""
        dims = normalizer.mean.size
        state, action, next_state, rest = jnp.split(rows, [dims, dims + actions, 2 * dims + actions], axis=1)
        normalize = jax.vmap(normalizer.normalize)
        return cls(normalize(state), action, normalize(next_state), rest[:, 0], rest[:, 1])


def from_steps(steps: Step) -> Float[Array, "rows columns"]:
    """Imagined steps `[horizon, actors]` as rows."""
    flags = steps.terminated.astype(jnp.float32)
    columns = (steps.state, steps.action, steps.next_state, steps.reward[..., None], flags[..., None])
    rows = jnp.concatenate(columns, axis=-1)
    return rows.reshape(-1, rows.shape[-1])


def from_history(mdp: ExplorationMDP, history: History) -> tuple[Float[Array, "capacity columns"], Int[Array, ""]]:
    """D as rows, paid by the current ensemble, and how many utilities were not finite (they become 0)."""
    rows, block = history.transitions, min(BLOCK, history.capacity)

    def pay(number: Int[Array, ""], so_far: tuple[Array, Array]) -> tuple[Array, Array]:
        # The last block begins again from the top of D: a utility that compares rows sees none but real ones.
        index = (number * block + jnp.arange(block)) % jnp.maximum(history.size, 1)
        some, (paid, over) = history[index], so_far
        ended = some.terminated | mdp.ended(some.state, some.action, some.next_state)
        return paid.at[index].set(mdp.worth(some.state, some.action, some.next_state)), over.at[index].set(ended)

    blocks, nothing = -(-history.size // block), jnp.zeros(history.capacity)
    paid, over = jax.lax.fori_loop(0, blocks, pay, (nothing, nothing.astype(bool)))
    finite = jnp.isfinite(paid)
    reward, flags = jnp.where(finite, paid, 0.0), over.astype(jnp.float32)
    columns = (rows.state, rows.action, rows.next_state, reward[:, None], flags[:, None])
    return jnp.concatenate(columns, axis=1), jnp.sum(~finite, dtype=jnp.int32)
