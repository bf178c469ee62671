"""Settings by name: every field of a config, however deep, can be set on its own."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from numbers import Integral, Real
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin

import numpy as np

from maxplore.errors import InputError

Config = TypeVar("Config")
Path = tuple[str, ...]


def names_of(config: Any, taken: Collection[str] = ()) -> dict[str, Path]:
    """The shortest name of every setting of a config, and where it lives.

    That is `discount`, or `planner_discount` if there are two, or if `discount` is `taken` by something else.
    """
    known = _unique(config, taken)
    shortest: dict[Path, str] = {}
    for name, path in known.items():
        shortest[path] = min(name, shortest.get(path, name), key=len)
    return {name: path for path, name in shortest.items()}


def overridden(config: Config, settings: Mapping[str, Any], taken: Collection[str] = ()) -> Config:
    """The config with these settings changed, or an `InputError` that names what is wrong.

    A whole part (`solver=Icem()`) can be put in place of another; settings given beside it then change the new one.

    >>> from maxplore.models import GaussianConfig
    >>> overridden(GaussianConfig(), {"members": 7}).members
    7
    """
    parts = {name: path for name, path in _named(_parts(config)).items() if name in settings and name not in taken}
    config = _with(config, {path: (name, settings[name]) for name, path in parts.items()})
    single = {name: value for name, value in settings.items() if name not in parts}
    known = _unique(config, taken)
    for name in single:
        if name not in known:
            shown = names_of(config, taken)
            near = get_close_matches(name, shown, n=3, cutoff=0.5) or sorted(shown) or ["(there are none)"]
            raise InputError(f"there is no setting {name!r} here, expected one of: {', '.join(near)}")
    return _with(config, {known[name]: (name, value) for name, value in single.items()})


def in_force(config: Any) -> dict[str, Any]:
    """Every setting of a config by its shortest name, as plain numbers and words."""

    def value(path: Path) -> Any:
        own = config
        for name in path:
            own = getattr(own, name)
        return own if own is None or isinstance(own, bool | int | float | str) else str(own)

    return {name: value(path) for name, path in sorted(names_of(config).items())}


def _unique(config: Any, taken: Collection[str]) -> dict[str, Path]:
    """Every name that stands for one setting, long ones too; none of those `taken`."""
    return {name: path for name, path in _named(_paths(config)).items() if name not in taken}


def _named(paths: Iterable[Path]) -> dict[str, Path]:
    """Paths by their endings, as far as these are different; a whole path always is."""
    paths = list(paths)
    shared = Counter(name for path in paths for name in _endings(path))
    return {
        name: path for path in paths for name in _endings(path) if shared[name] == 1 or name == "_".join(_spoken(path))
    }


def _spoken(path: Path) -> Path:
    """A path without what nobody would say."""
    return tuple(name for name in path if name != "config")


def _endings(path: Path) -> Iterator[str]:
    """The last name of a path, the last two, ..."""
    spoken = _spoken(path)
    return ("_".join(spoken[k:]) for k in reversed(range(len(spoken))))


def _paths(config: Any) -> Iterator[Path]:
    """All single settings."""
    for field in fields(config):
        value = getattr(config, field.name)
        if is_dataclass(value) and not isinstance(value, type):
            yield from ((field.name, *rest) for rest in _paths(value))
        else:
            yield (field.name,)


def _parts(config: Any) -> Iterator[Path]:
    """All parts that have settings of their own."""
    for field in fields(config):
        value = getattr(config, field.name)
        if is_dataclass(value) and not isinstance(value, type):
            if field.name != "config":
                yield (field.name,)
            yield from ((field.name, *rest) for rest in _parts(value))


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
        elif origin is int and isinstance(value, Integral) and abs(int(value)) < 2**63:
            return int(value)
        elif origin is float and isinstance(value, Real) and not math.isnan(value):
            return float(value)
    elif origin is Callable:
        if callable(value):
            return value
    elif not parts and isinstance(value, origin):  # str, None
        return value
    raise TypeError
