"""Numbers that a config, or an argument, cannot have: refused by name."""

import math
from numbers import Integral
from typing import Any

from maxplore.errors import InputError


def at_least(least: int, config: Any, *names: str) -> None:
    """Whole numbers that begin at `least`."""
    for name in names:
        if not getattr(config, name) >= least:
            raise InputError(f"{name} is {getattr(config, name)}, expected at least {least}")


def not_negative(config: Any, *names: str) -> None:
    """Finite numbers from 0 on."""
    for name in names:
        if not 0 <= getattr(config, name) < math.inf:
            raise InputError(f"{name} is {getattr(config, name)}, expected 0 or more")


def positive(config: Any, *names: str) -> None:
    """Finite numbers above 0."""
    for name in names:
        if not 0 < getattr(config, name) < math.inf:
            raise InputError(f"{name} is {getattr(config, name)}, expected more than 0")


def share(config: Any, *names: str) -> None:
    """Numbers from 0 to 1."""
    for name in names:
        if not 0 <= getattr(config, name) <= 1:
            raise InputError(f"{name} is {getattr(config, name)}, expected a share from 0 to 1")


def bounds(config: Any, *names: str) -> None:
    """Pairs of finite numbers, the lower one first."""
    for name in names:
        low, high = getattr(config, name)
        if not -math.inf < low < high < math.inf:
            raise InputError(f"{name} is {getattr(config, name)}, expected finite bounds, the lower one first")


def counted(name: str, value: Any) -> int:
    """A whole number from 1 on that JAX can count to, or an `InputError`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) < 2**31:
        raise InputError(f"{name} is {value!r}, expected a whole number of at least 1 (and below 2**31)")
    return int(value)
