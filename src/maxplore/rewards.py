"""A reward as users write it, and as the compiled code calls it."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Shaped

from maxplore.compiling import compiled
from maxplore.errors import InputError
from maxplore.spaces import Codec

Reward = Callable[[Array, Array, Array], ArrayLike]
"""`reward(state, action, next_state)` of one transition, in `jax.numpy`, in the environment's own units.

A state is the observation (flattened, unless it is Discrete), an action what the environment is given.
"""

Inner = Callable[[Array, Array, Array], Array]
"""The same in maxplore's own arrays."""


class Traced:
    """A user's function in maxplore's own arrays, as it was when it was given: what it looks at may change later. Those
    that compute the same are equal, so that what is compiled for one serves the other."""

    def __init__(self, program: Any) -> None:
        self._run, (result,) = jaxpr_as_fun(program), program.out_avals
        self.dtype = result.dtype
        self._known_by = (str(program.jaxpr), *(np.asarray(const).tobytes() for const in program.consts))
        self._hash = hash(self._known_by)

    def __call__(self, state: Array, action: Array, next_state: Array) -> Array:
        (value,) = self._run(state, action, next_state)
        return jnp.asarray(value)  # a constant comes as it was written

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Traced) and self._known_by == other._known_by)

    def __hash__(self) -> int:
        return self._hash


def inner(
    reward: Reward, observations: Codec, actions: Codec, *, name: str = "reward", dtype: DTypeLike | None = jnp.float32
) -> Traced:
    """The reward, or what else has its form, as a function of maxplore's own arrays, or an `InputError` if it cannot be
    compiled."""

    def own(state: Array, action: Array, next_state: Array) -> Array:
        paid = reward(observations.traced(state), actions.traced(action), observations.traced(next_state))
        return jnp.asarray(paid, dtype)

    state, action = (jax.ShapeDtypeStruct(x.entry.shape, x.entry.dtype) for x in (observations, actions))
    try:
        program = jax.make_jaxpr(own)(state, action, state)
    except (Exception, SystemExit) as error:  # the user's own code may raise anything
        reason = str(error).strip().partition("\n")[0]
        raise InputError(
            f"{name} cannot be compiled ({type(error).__name__}: {reason}): write it for one transition in jax.numpy, "
            "with jnp.where in place of if"
        ) from error
    (shape,) = (value.shape for value in program.out_avals)
    if shape != ():
        raise InputError(f"{name} gives an array of shape {shape}, expected one number for one transition")
    return Traced(program)


def ends(terminated: Reward, observations: Codec, actions: Codec) -> Traced:
    """What tells the last transition of an episode, in maxplore's own arrays."""
    over = inner(terminated, observations, actions, name="terminated", dtype=None)
    if over.dtype != jnp.bool_:
        raise InputError(f"terminated gives {over.dtype}, expected a truth value, such as that of a comparison")
    return over


@compiled
def pay(reward: Inner, state: Array, action: Array, next_state: Array) -> Array:
    """What one transition pays, compiled."""
    return reward(state, action, next_state)


def every_reward(reward: Inner, states: int, actions: int) -> Shaped[Array, "states actions states"]:
    """What every transition of a finite environment pays, or an `InputError` if some pay is not finite."""
    over = jax.vmap(jax.vmap(jax.vmap(reward, (None, None, 0)), (None, 0, None)), (0, None, None))
    table = compiled(over)(*(jnp.arange(count, dtype=jnp.int32) for count in (states, actions, states)))
    if not bool(jnp.all(jnp.isfinite(table))):
        place = [int(x) for x in jnp.argwhere(~jnp.isfinite(table))[0]]
        raise InputError(f"reward is not finite for state, action, next state = {place} (counted from 0)")
    return table
