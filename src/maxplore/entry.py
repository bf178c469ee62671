"""What states and actions look like, and the check that data from outside fits."""

import reprlib
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from maxplore.errors import InputError

Numbers = ArrayLike | Sequence[Any]
"""What people have their data in: arrays, numbers, nested lists."""

LARGEST = np.float64(1e9)  # which float16 numbers can be compared with
"""The largest number that a state or an action may hold. A single larger one among others of order 1 leaves float32
nothing to plan with: gradients of policies overflow. Just below it they do not (tests/test_door.py)."""

FINITE = f"a finite number of at most {LARGEST:g} in size (larger ones are for larger units)"


class Entry(eqx.Module):
    """What one state or one action looks like: its shape, and for a discrete one how many there are."""

    shape: tuple[int, ...] = eqx.field(static=True)
    count: int | None = eqx.field(static=True, default=None)

    @property
    def dtype(self) -> jnp.dtype:
        return jnp.dtype(jnp.float32 if self.count is None else jnp.int32)

    def checked(self, name: str, value: Numbers) -> np.ndarray:
        """`value` as rows `[n, *shape]`, or an `InputError` that says which entry of it is wrong."""
        given = as_array(name, value)
        if given.shape == self.shape:
            return self._cast(name, given)[None]
        if given.ndim != len(self.shape) + 1 or given.shape[1:] != self.shape:
            raise InputError(
                f"{name} has shape {given.shape}, expected {self.shape} for one transition "
                f"or (n, {', '.join(map(str, self.shape))}) for many"
            )
        return self._cast(name, given)

    def batch(self, name: str, value: Numbers) -> Array:
        """`value` with any number of leading axes, checked as in `checked`; inside compiled code only its shape is."""
        given = value if isinstance(value, jax.core.Tracer) else as_array(name, value)
        leading = given.ndim - len(self.shape)
        if leading < 0 or given.shape[leading:] != self.shape:
            raise InputError(f"{name} has shape {given.shape}, expected {self.shape} with any number of axes before it")
        if isinstance(given, jax.core.Tracer):
            return given.astype(self.dtype)
        return jnp.asarray(self._cast(name, given))

    def _cast(self, name: str, given: np.ndarray) -> np.ndarray:
        """The numbers in our dtype, or an `InputError` that names the first that does not fit."""
        with np.errstate(over="ignore", invalid="ignore"):
            cast = given.astype(np.float32 if self.count is None else np.int64)
        if self.count is None:
            refuse(name, given, ~(np.abs(cast) <= LARGEST), FINITE)
        else:
            bad = (cast != given) | (cast < 0) | (cast >= self.count)
            refuse(name, given, bad, f"a whole number from 0 to {self.count - 1}")
        return cast.astype(self.dtype)


def refuse(name: str, given: np.ndarray, bad: np.ndarray | np.bool, wanted: str) -> None:
    """Raise an `InputError` that names the first bad entry, if there is one."""
    if np.any(bad):
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InputError(f"{name}{list(where) if where else ''} is {given[where]}, expected {wanted}")


short = reprlib.repr
"""What a wrong argument is called in an error: its `repr`, as far as that is short."""


def as_array(name: str, value: Any) -> np.ndarray:
    """Anything that holds numbers as a NumPy array, or an `InputError` that says why it does not."""
    if _masked(value):
        raise InputError(f"{name} is a masked array, expected a plain one: its mask would be lost, so fill it first")
    try:
        array = np.asarray(value)
    except Exception as error:  # an object from anywhere may convert itself in its own way
        raise InputError(f"{name} is not a rectangular array ({error})") from None
    if array.dtype.kind not in "fiub":
        got = f"is {short(value)}" if array.ndim == 0 else f"has dtype {array.dtype}"
        raise InputError(f"{name} {got}, expected numbers")
    return array


def _masked(value: Any) -> bool:
    """Whether a masked array is anywhere in it."""
    return isinstance(value, np.ma.MaskedArray) or (isinstance(value, list | tuple) and any(map(_masked, value)))
