"""Observations and actions as bytes, to the last bit, and back: what a record keeps of them."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from maxplore.errors import InputError

COUNTED = (spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)


def encoded(space: gym.Space[Any], value: Any) -> bytes:
    """A value of this space as bytes.

    >>> encoded(spaces.Discrete(4), 3)
    b'\\x03\\x00\\x00\\x00\\x00\\x00\\x00\\x00'
    """
    return b"".join(
        np.ascontiguousarray(own, _stored(part)).tobytes() for part, own in _pairs(space, value)
    )  # a Box keeps its own type, so nothing is rounded


def decoded(space: gym.Space[Any], data: bytes) -> Any:
    """The value that the bytes stand for; an `InputError` if they are too few or too many.

    >>> decoded(spaces.Discrete(4), encoded(spaces.Discrete(4), 3))
    np.int64(3)
    """
    value, rest = _taken(space, data)
    if rest:
        raise _misfit(space, data)
    return value


def _children(space: gym.Space[Any]) -> dict[Any, gym.Space[Any]]:
    """The parts of a Dict or a Tuple, by name or number."""
    if isinstance(space, spaces.Dict):
        return dict(space.items())
    assert isinstance(space, spaces.Tuple)
    return dict(enumerate(space.spaces))


def _pairs(space: gym.Space[Any], value: Any) -> list[tuple[gym.Space[Any], Any]]:
    if isinstance(space, spaces.Dict | spaces.Tuple):
        return [pair for key, child in _children(space).items() for pair in _pairs(child, value[key])]
    return [(space, value)]


def _stored(space: gym.Space[Any]) -> np.dtype[Any]:
    """The type of number that is written; whole ones are as long as can be, so that no space is too large."""
    return np.dtype(np.int64) if isinstance(space, COUNTED) else np.dtype(space.dtype)


def _taken(space: gym.Space[Any], data: bytes) -> tuple[Any, bytes]:
    """The first value in the bytes, and the bytes that follow."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        own: dict[Any, Any] = {}
        for key, child in _children(space).items():
            own[key], data = _taken(child, data)
        return (own if isinstance(space, spaces.Dict) else tuple(own.values())), data
    kind, shape = _stored(space), space.shape or ()
    size = kind.itemsize * int(np.prod(shape))
    if len(data) < size:
        raise _misfit(space, data)
    return _spoken(space, np.frombuffer(data[:size], kind).reshape(shape)), data[size:]


def _spoken(space: gym.Space[Any], value: np.ndarray) -> Any:
    """The array as the space itself would hand it out."""
    if isinstance(space, spaces.Discrete):
        return np.int64(value)
    return value.astype(space.dtype)


def _misfit(space: gym.Space[Any], data: bytes) -> InputError:
    return InputError(f"{len(data)} bytes are kept where a value of {space} was expected: the record is damaged")
