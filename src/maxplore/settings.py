"""Settings by name: every field of a config, however deep, can be set on its own."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from typing import Any, TypeVar

from maxplore.errors import InputError

Config = TypeVar("Config")
Path = tuple[str, ...]


def names_of(config: Any) -> dict[str, Path]:
    """The name of every setting of a config, and where it lives: `discount`, or `planner_discount` if there are two."""
    paths = list(_paths(config))
    shared = Counter(path[-1] for path in paths)
    return {path[-1] if shared[path[-1]] == 1 else "_".join(path): path for path in paths}


def overridden(config: Config, settings: Mapping[str, Any]) -> Config:
    """The config with these settings changed, or an `InputError` that names what is wrong.

    >>> from maxplore.models import GaussianConfig
    >>> overridden(GaussianConfig(), {"members": 7}).members
    7
    """
    known = names_of(config)
    for name, value in settings.items():
        if name not in known:
            near = get_close_matches(name, known, n=3, cutoff=0.5) or sorted(known)
            raise InputError(f"there is no setting {name!r} here, expected one of: {', '.join(near)}")
        config = _with(config, known[name], name, value)
    return config


def _paths(config: Any) -> Iterator[Path]:
    for field in fields(config):
        value = getattr(config, field.name)
        if is_dataclass(value) and not isinstance(value, type):
            yield from ((field.name, *rest) for rest in _paths(value))
        else:
            yield (field.name,)


def _with(config: Any, path: Path, name: str, value: Any) -> Any:
    field, *rest = path
    old = getattr(config, field)
    return replace(config, **{field: _with(old, tuple(rest), name, value) if rest else _fitting(name, old, value)})


def _fitting(name: str, old: Any, value: Any) -> Any:
    """The value in the type of what it replaces; whole numbers may stand for real ones."""
    if isinstance(old, bool) or old is None or callable(old):
        fits = old is None or callable(old) or isinstance(value, bool)
    elif isinstance(old, float):
        fits = isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
        value = float(value) if fits else value
    elif isinstance(old, int):
        fits = value is None or (isinstance(value, int) and not isinstance(value, bool))
    else:
        fits = value is None or isinstance(value, type(old))
    if not fits:
        raise InputError(f"{name} is {value!r}, expected {type(old).__name__}, such as {old!r}")
    return value
