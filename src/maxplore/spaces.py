"""Gymnasium's spaces, and the plain arrays that maxplore thinks in."""

import warnings
from typing import Any

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jaxtyping import Array

from maxplore.entry import FINITE, LARGEST, Entry, as_array, refuse
from maxplore.errors import InputError

IMAGE_PIXELS = 4096
"""A box of more numbers than this is taken for an image."""

SLACK = 0.1
"""How far a real number may lie outside the bounds of its Box, as noise of sensors does: a share of the range between
them; where only one side has a bound, of that bound, or of 1 if that is more. Farther out an action is refused, and an
observation warned of once: environments do not always keep to the bounds that they declare."""


class Numbered:
    """A Discrete space: a whole number, counted from 0 inside."""

    def __init__(self, space: spaces.Discrete) -> None:
        self.start, self._count = int(space.start), int(space.n)
        self.entry = Entry((), self._count)

    def inward(self, name: str, value: Any) -> np.ndarray:
        """The user's value as maxplore's, or an `InputError`."""
        given = as_array(name, value)
        if given.shape != ():
            raise InputError(f"{name} has shape {given.shape}, expected one whole number")
        return self.batch(name, given)

    @property
    def bounds(self) -> None:
        """Numbers have none beyond their count."""

    def outward(self, value: Any) -> Any:
        """maxplore's value as the user's."""
        return np.int64(int(value) + self.start)

    def traced(self, value: Array) -> Array:
        """`outward` inside compiled code."""
        return value + self.start

    def batch(self, name: str, values: Any) -> np.ndarray:
        """Any number of the user's values as maxplore's, or an `InputError`."""
        counted = _counted(name, as_array(name, values), self.start, self._count)
        return counted.astype(self.entry.dtype)


class Vector:
    """Everything else, flattened into a real vector (Dict, Tuple, Box of any shape)."""

    strict = False
    """Whether what is far out of bounds is refused."""

    def __init__(self, space: gym.Space[Any]) -> None:
        self.space = space
        self.entry = Entry((int(spaces.flatdim(space)),))
        flat = space if isinstance(space, spaces.Box) else spaces.flatten_space(space)
        assert isinstance(flat, spaces.Box)
        self._box = flat

    def inward(self, name: str, value: Any) -> np.ndarray:
        return np.asarray(spaces.flatten(self.space, taken(self.space, name, value, strict=self.strict)), np.float32)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the most that each number can be, as the space has it."""
        return self._box.low.reshape(-1), self._box.high.reshape(-1)

    def outward(self, value: Any) -> Any:
        return spaces.unflatten(self.space, np.asarray(value))

    def traced(self, value: Array) -> Array:
        return value

    def batch(self, name: str, values: Any) -> np.ndarray:
        given, shape = as_array(name, values), self._box.shape
        leading = given.ndim - len(shape)
        if leading < 0 or given.shape[leading:] != shape:
            raise InputError(f"{name} has shape {given.shape}, expected {shape} with any number of axes before it")
        _check_within(self._box, name, given, given, strict=self.strict)
        return given.astype(np.float32).reshape(*given.shape[:leading], *self.entry.shape)


class Bounded(Vector):
    """A box of actions; inside it is [-1, 1] in every dimension."""

    strict = True

    def __init__(self, space: spaces.Box) -> None:
        super().__init__(space)
        low, high = (np.asarray(bound, np.float64).reshape(-1) for bound in (space.low, space.high))
        if not (np.isfinite(low) & np.isfinite(high)).all():
            raise InputError(
                f"action_space is {space}, expected finite bounds: give it some by gymnasium's "
                "TransformAction (its ClipAction has none)"
            )
        if (high <= low).any():
            raise InputError(f"action_space is {space}, expected every upper bound to be above the lower one")
        self._low, self._high = low, high
        self._middle, self._half = low / 2 + high / 2, high / 2 - low / 2
        self._shape, self._dtype = space.shape, space.dtype

    def inward(self, name: str, value: Any) -> np.ndarray:
        return ((super().inward(name, value) - self._middle) / self._half).astype(np.float32)

    def outward(self, value: Any) -> Any:
        scaled = self._middle + self._half * np.clip(np.asarray(value, np.float64), -1, 1)
        # Rounding must not carry an action out of its space.
        return np.clip(scaled, self._low, self._high).astype(self._dtype).reshape(self._shape)

    def traced(self, value: Array) -> Array:
        scaled = jnp.asarray(self._middle, jnp.float32) + jnp.asarray(self._half, jnp.float32) * value
        return scaled.reshape(self._shape)

    def batch(self, name: str, values: Any) -> np.ndarray:
        return ((super().batch(name, values) - self._middle) / self._half).astype(np.float32)


Codec = Numbered | Vector | Bounded


def observations(space: gym.Space[Any], *, numbered: bool = True) -> Codec:
    """How observations of this space look inside, or an `InputError` that says what to do about it.

    Numbered states go with `numbered` actions only; with real ones they are seen one-hot.
    """
    if isinstance(space, spaces.Discrete) and numbered:
        return Numbered(space)
    parts = _parts(space)
    for part in parts:
        if isinstance(part, spaces.Box) and (
            (len(part.shape) >= 2 and part.dtype == np.uint8) or np.prod(part.shape) > IMAGE_PIXELS
        ):
            raise InputError(
                f"observation_space has a part of shape {part.shape} and dtype {part.dtype}, an image as it seems, and "
                "images are not supported: give maxplore features of it instead (gymnasium's TransformObservation)"
            )
        if not isinstance(part, spaces.Box | spaces.Discrete | spaces.MultiBinary | spaces.MultiDiscrete):
            raise InputError(
                f"observation_space has a part {part}, expected Box, Discrete, MultiBinary, MultiDiscrete, or Dict and "
                "Tuple of these: change it with gymnasium's TransformObservation"
            )
    if spaces.flatdim(space) == 0:
        raise InputError(f"observation_space is {space}, expected at least one number in it")
    return Vector(space)


def actions(space: gym.Space[Any]) -> Codec:
    """How actions of this space look inside, or an `InputError` that says what to do about it."""
    if isinstance(space, spaces.Discrete):
        return Numbered(space)
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating) and np.prod(space.shape) > 0:
        return Bounded(space)
    raise InputError(
        f"action_space is {space}, expected a Discrete or a Box of real numbers: "
        "change it with gymnasium's TransformAction"
    )


def _parts(space: gym.Space[Any]) -> list[gym.Space[Any]]:
    if isinstance(space, spaces.Dict):
        return [part for child in space.values() for part in _parts(child)]
    if isinstance(space, spaces.Tuple):
        return [part for child in space.spaces for part in _parts(child)]
    return [space]


def taken(space: gym.Space[Any], name: str, value: Any, *, strict: bool = False) -> Any:
    """A copy of the value in the space's own types; an `InputError` that says which part of it is wrong. Real numbers
    far out of bounds are, if it is `strict`; else there is a warning."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        children = dict(space.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces))
        try:
            parts = {key: value[key] for key in children}
            fits = len(value) == len(children)
        except (KeyError, IndexError, TypeError):
            parts, fits = {}, False
        if not fits:
            wanted = ", ".join(map(repr, children))
            raise InputError(f"{name} is a {type(value).__name__}, expected one with exactly the parts {wanted}")
        own = {key: taken(child, f"{name}[{key!r}]", parts[key], strict=strict) for key, child in children.items()}
        return own if isinstance(space, spaces.Dict) else tuple(own.values())
    given = as_array(name, value)
    if given.shape != space.shape:
        raise InputError(f"{name} has shape {given.shape}, expected {space.shape}")
    if isinstance(space, spaces.Box):
        with np.errstate(over="ignore", invalid="ignore"):
            kept = given.astype(space.dtype)
        whole = np.issubdtype(space.dtype, np.integer)
        _check_within(space, name, given, given if whole else kept, strict=strict or whole)
        if not whole:
            return kept
        first, count = space.low, space.high.astype(np.float64) - space.low + 1
    elif isinstance(space, spaces.MultiDiscrete):
        first, count = space.start, space.nvec
    else:
        first, count = (int(space.start), int(space.n)) if isinstance(space, spaces.Discrete) else (0, 2)
    whole = _counted(name, given, first, count) + first
    return np.int64(whole) if isinstance(space, spaces.Discrete) else whole.astype(space.dtype)


def _check_within(box: spaces.Box, name: str, given: np.ndarray, kept: np.ndarray, *, strict: bool) -> None:
    """An `InputError` if what is `kept` of the given numbers is too large to calculate with, or, if it is `strict`, far
    out of bounds; else a warning."""
    low, high, usable = box.low, box.high, np.abs(kept) <= LARGEST
    if (usable & (low <= kept) & (kept <= high)).all():
        return
    refuse(name, given, ~usable, FINITE)
    with np.errstate(over="ignore"):
        extent = high.astype(np.float64) - low
    one_sided = np.maximum(1.0, np.abs(np.where(np.isfinite(low), low, high)))
    slack = SLACK * np.where(np.isfinite(extent), extent, one_sided)
    bad = (kept < low - slack) | (kept > high + slack)
    if bad.any():
        place = tuple(np.argwhere(bad)[0])
        least, most = (np.broadcast_to(bound, given.shape)[place] for bound in (low, high))
        wanted = f"{least} to {most}, as its space has it, or a little beyond: if it is right, widen the space"
        if strict:
            refuse(name, given, bad, wanted)
        index = [int(axis) for axis in place[given.ndim - len(box.shape) :]]
        # Without the number, the text is the same each time, and Python shows it once.
        warnings.warn(f"{name}{index if index else ''} is far out of bounds, expected {wanted}", stacklevel=2)


def _counted(name: str, given: np.ndarray, first: Any, count: Any) -> np.ndarray:
    """Whole numbers that begin at `first`, counted from 0; or an `InputError` that names the first that is none."""
    with np.errstate(invalid="ignore"):
        whole = given.astype(np.int64)
    bad = (whole != given) | (whole < first) | (whole - first >= count)
    if np.any(bad):
        where = tuple(np.argwhere(bad)[0])
        least, many = (int(np.broadcast_to(x, given.shape)[where]) for x in (first, count))
        refuse(name, given, bad, f"a whole number from {least} to {least + many - 1}")
    return np.asarray(whole - first)
