"""Settings by name: every field of a config, however deep, can be set on its own."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from numbers import Integral, Real
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin

import numpy as np

from maxplore.errors import InputError

Config = TypeVar("Config")
Path = tuple[str, ...]


def names_of(config: Any) -> dict[str, Path]:
    """The name of every setting of a config, and where it lives: `discount`, or `planner_discount` if there are two."""
    paths = list(_paths(config))
    shared = Counter(name for path in paths for name in _endings(path))
    return {next((name for name in _endings(path) if shared[name] == 1), "_".join(path)): path for path in paths}


def overridden(config: Config, settings: Mapping[str, Any]) -> Config:
    """The config with these settings changed, or an `InputError` that names what is wrong.

    >>> from maxplore.models import GaussianConfig
    >>> overridden(GaussianConfig(), {"members": 7}).members
    7
    """
    known = names_of(config)
    for name in settings:
        if name not in known:
            near = get_close_matches(name, known, n=3, cutoff=0.5) or sorted(known) or ["(there are none)"]
            raise InputError(f"there is no setting {name!r} here, expected one of: {', '.join(near)}")
    return _with(config, {known[name]: (name, value) for name, value in settings.items()})


def _endings(path: Path) -> Iterator[str]:
    """The last name of a path, the last two, ..."""
    return ("_".join(path[k:]) for k in reversed(range(len(path))))


def _paths(config: Any) -> Iterator[Path]:
    for field in fields(config):
        value = getattr(config, field.name)
        if is_dataclass(value) and not isinstance(value, type):
            yield from ((field.name, *rest) for rest in _paths(value))
        else:
            yield (field.name,)


def _with(config: Any, changes: Mapping[Path, tuple[str, Any]]) -> Any:
    """All changes at once: what only makes sense together is checked together."""
    new: dict[str, Any] = {}
    for field in fields(config):
        old = getattr(config, field.name)
        own = {path[1:]: change for path, change in changes.items() if path[0] == field.name}
        if () in own:
            new[field.name] = _fitting(*own[()], field.type, old)
        elif own:
            new[field.name] = _with(old, own)
    return replace(config, **new) if new else config


def _fitting(name: str, value: Any, wanted: Any, old: Any) -> Any:
    """The value in the field's own type, or an `InputError`."""
    try:
        return _cast(value, wanted)
    except TypeError:
        kind = wanted.__name__ if wanted in (bool, int, float, str) else wanted
        raise InputError(f"{name} is {value!r}, expected {kind}, such as {old!r}") from None


def _cast(value: Any, wanted: Any) -> Any:
    """The value in this type, or a `TypeError`; whole numbers may stand for real ones, a list for a tuple."""
    origin, parts = get_origin(wanted) or wanted, get_args(wanted)
    if origin is UnionType:
        for part in parts:
            try:
                return _cast(value, part)
            except TypeError:
                continue
    elif origin is tuple and isinstance(value, tuple | list) and len(value) == len(parts):
        return tuple(_cast(each, part) for each, part in zip(value, parts, strict=True))
    elif origin in (bool, int, float):
        if isinstance(value, bool | np.bool):
            if origin is bool:
                return bool(value)
        elif origin is int and isinstance(value, Integral):
            return int(value)
        elif origin is float and isinstance(value, Real) and not math.isnan(value):
            return float(value)
    elif origin is Callable:
        if callable(value):
            return value
    elif not parts and isinstance(value, origin):  # str, None
        return value
    raise TypeError
