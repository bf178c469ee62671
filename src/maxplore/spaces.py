"""Gymnasium's spaces, and the plain arrays that maxplore thinks in."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from maxplore.entry import Entry
from maxplore.errors import InputError

IMAGE_PIXELS = 4096
"""A box of more numbers than this is taken for an image."""


class Numbered:
    """A Discrete space: a whole number, counted from 0 inside."""

    def __init__(self, space: spaces.Discrete) -> None:
        self.start = int(space.start)
        self.entry = Entry((), int(space.n))

    def inward(self, name: str, value: Any) -> np.ndarray:
        """The user's value as maxplore's, or an `InputError`."""
        return self.entry.checked(name, np.asarray(value) - self.start)[0]

    def outward(self, value: Any) -> Any:
        """maxplore's value as the user's."""
        return np.int64(int(value) + self.start)

    def batch(self, name: str, values: Any) -> np.ndarray:
        return np.asarray(self.entry.batch(name, np.asarray(values) - self.start))


class Vector:
    """Everything else, flattened into a real vector (Dict, Tuple, Box of any shape)."""

    def __init__(self, space: gym.Space[Any]) -> None:
        self.space = space
        self.entry = Entry((int(spaces.flatdim(space)),))

    def inward(self, name: str, value: Any) -> np.ndarray:
        if isinstance(self.space, spaces.Box):
            flat = np.reshape(np.asarray(value), -1) if np.shape(value) == self.space.shape else value
        else:
            try:
                flat = spaces.flatten(self.space, value)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
                raise InputError(f"{name} is {value!r}, expected an element of {self.space} ({error})") from None
        return self.entry.checked(name, np.asarray(flat))[0]

    def outward(self, value: Any) -> Any:
        return spaces.unflatten(self.space, np.asarray(value))

    def batch(self, name: str, values: Any) -> np.ndarray:
        return np.asarray(self.entry.batch(name, values))


class Bounded(Vector):
    """A box of actions; inside it is [-1, 1] in every dimension."""

    def __init__(self, space: spaces.Box) -> None:
        super().__init__(space)
        low, high = (np.asarray(bound, np.float64).reshape(-1) for bound in (space.low, space.high))
        if not (np.isfinite(low) & np.isfinite(high)).all():
            raise InputError(
                f"action_space is {space}, expected finite bounds: wrap the environment in gymnasium's ClipAction "
                "or RescaleAction"
            )
        if (high <= low).any():
            raise InputError(f"action_space is {space}, expected every upper bound to be above the lower one")
        self._middle, self._half = (low + high) / 2, (high - low) / 2
        self._shape, self._dtype = space.shape, space.dtype

    def inward(self, name: str, value: Any) -> np.ndarray:
        return ((super().inward(name, value) - self._middle) / self._half).astype(np.float32)

    def outward(self, value: Any) -> Any:
        scaled = self._middle + self._half * np.clip(np.asarray(value, np.float64), -1, 1)
        return scaled.astype(self._dtype).reshape(self._shape)

    def batch(self, name: str, values: Any) -> np.ndarray:
        return ((super().batch(name, values) - self._middle) / self._half).astype(np.float32)


Codec = Numbered | Vector | Bounded


def observations(space: gym.Space[Any]) -> Codec:
    """How observations of this space look inside, or an `InputError` that says what to do about it."""
    if isinstance(space, spaces.Discrete):
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
