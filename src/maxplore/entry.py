"""What states and actions look like, and the check that data from outside fits."""

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
        rows = given[None] if given.shape == self.shape else given
        if rows.shape[1:] != self.shape or rows.ndim != len(self.shape) + 1:
            raise InputError(
                f"{name} has shape {given.shape}, expected {self.shape} for one transition "
                f"or (n, {', '.join(map(str, self.shape))}) for many"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            cast = rows.astype(np.float32 if self.count is None else np.int64)
        if self.count is None:
            bad, wanted = ~np.isfinite(cast), "a finite float32 number"
        else:
            bad, wanted = (
                (cast != rows) | (cast < 0) | (cast >= self.count),
                f"a whole number from 0 to {self.count - 1}",
            )
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            place = where if given.ndim == rows.ndim else where[1:]
            raise InputError(f"{name}{list(place) if place else ''} is {rows[where]}, expected {wanted}")
        return cast.astype(self.dtype)

    def batch(self, name: str, value: Numbers) -> Array:
        """`value` with any number of leading axes, checked as in `checked`; inside compiled code only its shape is."""
        given = value if isinstance(value, jax.core.Tracer) else as_array(name, value)
        leading = given.ndim - len(self.shape)
        if leading < 0 or given.shape[leading:] != self.shape:
            raise InputError(f"{name} has shape {given.shape}, expected {self.shape} with any number of axes before it")
        if isinstance(given, jax.core.Tracer):
            return given.astype(self.dtype)
        rows = self.checked(name, given.reshape(-1, *self.shape))
        return jnp.asarray(rows.reshape(given.shape))


def as_array(name: str, value: Numbers) -> np.ndarray:
    """Numbers as a NumPy array, or an `InputError` that says why they are none."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InputError(f"{name} is not a rectangular array ({error})") from None
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} has dtype {array.dtype}, expected numbers")
    return array
