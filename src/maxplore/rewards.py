"""A reward as users write it, and as the compiled code calls it."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Shaped

from maxplore.errors import InputError
from maxplore.spaces import Codec

Reward = Callable[[Array, Array, Array], ArrayLike]
"""`reward(state, action, next_state)` of one transition, in `jax.numpy`, in the environment's own units.

A state is the observation (flattened, unless it is Discrete), an action what the environment is given.
"""

Inner = Callable[[Array, Array, Array], Array]
"""The same in maxplore's own arrays."""


class Shared:
    """A user's function in maxplore's own arrays. The same function of equal spaces is equal: what is compiled for it
    serves whoever comes with it again."""

    def __init__(self, function: Reward, own: Inner, of: tuple[Any, ...]) -> None:
        self._function, self._own, self._of = function, own, of

    def __call__(self, state: Array, action: Array, next_state: Array) -> Array:
        return self._own(state, action, next_state)

    def __eq__(self, other: object) -> bool:
        if self is other:  # at every step: spaces take long to compare
            return True
        return isinstance(other, Shared) and self._function is other._function and self._of == other._of

    def __hash__(self) -> int:
        return id(self._function)


def inner(
    reward: Reward, observations: Codec, actions: Codec, *, name: str = "reward", dtype: DTypeLike = jnp.float32
) -> Shared:
    """The reward, or what else has its form, as a function of maxplore's own arrays, or an `InputError` if it cannot be
    compiled."""

    def own(state: Array, action: Array, next_state: Array) -> Array:
        paid = reward(observations.traced(state), actions.traced(action), observations.traced(next_state))
        return jnp.asarray(paid, dtype)

    state, action = (jax.ShapeDtypeStruct(x.entry.shape, x.entry.dtype) for x in (observations, actions))
    try:
        shape = jax.eval_shape(own, state, action, state).shape
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(
            f"{name} cannot be compiled ({type(error).__name__}: {reason}): write it for one transition in jax.numpy, "
            "with jnp.where in place of if"
        ) from error
    if shape != ():
        raise InputError(f"{name} gives an array of shape {shape}, expected one number for one transition")
    return Shared(reward, own, (observations.like, actions.like, dtype))


def ends(terminated: Reward, observations: Codec, actions: Codec) -> Shared:
    """What tells the last transition of an episode, in maxplore's own arrays."""
    return inner(terminated, observations, actions, name="terminated", dtype=jnp.bool_)


def every_reward(reward: Inner, states: int, actions: int) -> Shaped[Array, "states actions states"]:
    """What every transition of a finite environment pays, or an `InputError` if some pay is not finite."""
    over = jax.vmap(jax.vmap(jax.vmap(reward, (None, None, 0)), (None, 0, None)), (0, None, None))
    table = jax.jit(over)(*(jnp.arange(count, dtype=jnp.int32) for count in (states, actions, states)))
    if not bool(jnp.all(jnp.isfinite(table))):
        place = [int(x) for x in jnp.argwhere(~jnp.isfinite(table))[0]]
        raise InputError(f"reward is not finite for state, action, next state = {place} (counted from 0)")
    return table
