"""Spaces and settings as plain JSON, and back. Only what is listed here is ever built from a file."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from maxplore import models, solvers, utilities
from maxplore.errors import InputError
from maxplore.explorers.training import Minibatches, UntilFitted
from maxplore.solvers.mcts import Search
from maxplore.solvers.value_iteration import ValueIteration

PARTS: Mapping[str, type[Any]] = {
    part.__name__: part
    for part in (
        models.FitConfig,
        models.GaussianConfig,
        models.MemberConfig,
        solvers.Gradient,
        solvers.GradientConfig,
        solvers.Icem,
        solvers.IcemConfig,
        solvers.Sac,
        solvers.SacConfig,
        utilities.ActionPenalty,
        utilities.Disagreement,
        utilities.InformationRatio,
        utilities.JensenRenyi,
        utilities.PredictionError,
        utilities.TrajectoryVariance,
        Minibatches,
        Search,
        UntilFitted,
        ValueIteration,
    )
}
"""Parts of a method that a setting can be."""


def setting_to_plain(name: str, value: Any) -> Any:
    """A setting as JSON, or an `InputError` if it is something of the user's own."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return [setting_to_plain(name, each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    if is_dataclass(value) and type(value).__name__ in PARTS and PARTS[type(value).__name__] is type(value):
        own = {field.name: setting_to_plain(name, getattr(value, field.name)) for field in fields(value)}
        return {"part": type(value).__name__, "settings": own}
    raise InputError(f"{name} is {value!r}, which cannot be saved: expected numbers, words, or parts of maxplore's own")


def setting_from_plain(value: Any) -> Any:
    """The setting that JSON stands for."""
    if isinstance(value, list):
        return tuple(setting_from_plain(each) for each in value)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        own = {name: setting_from_plain(each) for name, each in value["settings"].items()}  # pyright: ignore
        return PARTS[value["part"]](**own)  # pyright: ignore[reportUnknownArgumentType]
    return value


def space_to_plain(space: gym.Space[Any]) -> dict[str, Any]:
    """A space as JSON."""
    match space:
        case spaces.Box():
            low, high = ([str(bound) for bound in ends.reshape(-1).tolist()] for ends in (space.low, space.high))
            return {"kind": "Box", "low": low, "high": high, "shape": list(space.shape), "dtype": str(space.dtype)}
        case spaces.Discrete():
            return {"kind": "Discrete", "n": int(space.n), "start": int(space.start), "dtype": str(space.dtype)}
        case spaces.MultiBinary():
            return {"kind": "MultiBinary", "n": space.n if isinstance(space.n, int) else list(space.shape)}
        case spaces.MultiDiscrete():
            counts, first = np.asarray(space.nvec).tolist(), np.asarray(space.start).tolist()
            return {"kind": "MultiDiscrete", "nvec": counts, "start": first, "dtype": str(space.dtype)}
        case spaces.Tuple():
            return {"kind": "Tuple", "parts": [space_to_plain(part) for part in space.spaces]}
        case spaces.Dict():
            if not all(isinstance(name, str) for name in space.spaces):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InputError(
                    f"a space is {space}, which cannot be saved: expected words for the names of its parts"
                )
            return {"kind": "Dict", "parts": [[name, space_to_plain(part)] for name, part in space.spaces.items()]}
        case _:
            raise InputError(f"a space is {space}, which cannot be saved")


def space_from_plain(plain: Any) -> gym.Space[Any]:
    """The space that JSON stands for."""
    match plain["kind"]:
        case "Box":
            dtype, shape = np.dtype(plain["dtype"]), tuple(plain["shape"])
            number = float if np.issubdtype(dtype, np.floating) else int
            low, high = (np.array([number(x) for x in plain[end]], dtype).reshape(shape) for end in ("low", "high"))
            return spaces.Box(low, high, shape, dtype.type)
        case "Discrete":
            return spaces.Discrete(plain["n"], start=plain["start"], dtype=np.dtype(plain["dtype"]).type)
        case "MultiBinary":
            return spaces.MultiBinary(plain["n"])
        case "MultiDiscrete":
            counts, first = (np.array(plain[name]) for name in ("nvec", "start"))
            return spaces.MultiDiscrete(counts, dtype=np.dtype(plain["dtype"]).type, start=first)
        case "Tuple":
            return spaces.Tuple([space_from_plain(part) for part in plain["parts"]])
        case "Dict":
            return spaces.Dict([(name, space_from_plain(part)) for name, part in plain["parts"]])  # in their own order
        case kind:
            raise ValueError(f"there is no space of kind {kind!r}")
