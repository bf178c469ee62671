"""The door to a real environment: what it is given and what it tells are copied and checked here, once.

An environment may go on using its buffers: those of its observations, and the action that it was given.
"""

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from maxplore.entry import as_array, short
from maxplore.errors import InputError
from maxplore.spaces import taken


class Told(NamedTuple):
    """What an environment tells of a step."""

    observation: Any
    reward: float
    """0 where it has none."""
    terminated: bool
    truncated: bool


def check_env(env: Any) -> None:
    """An `InputError` if this is no environment."""
    if not isinstance(env, gym.Env):
        raise InputError(f"env is a {type(env).__name__}, expected a Gymnasium environment, such as gym.make has")


def reset_env(env: gym.Env[Any, Any], seed: int | None) -> Any:
    """The first observation of another episode."""
    observation, _ = _parts("reset", env.reset(seed=seed), ("observation", "info"))
    return taken(env.observation_space, "observation", observation)


def step_env(env: gym.Env[Any, Any], action: Any, *, learns_reward: bool = False) -> Told:
    """One step; a reward that is not finite is refused where somebody learns from it."""
    names = ("observation", "reward", "terminated", "truncated", "info")
    following, reward, terminated, truncated, _ = _parts("step", env.step(copy.deepcopy(action)), names)
    return Told(
        taken(env.observation_space, "observation", following),
        0.0 if reward is None else number(reward, finite=learns_reward),
        flag("terminated", terminated),
        flag("truncated", truncated),
    )


def flag(name: str, value: Any) -> bool:
    """A truth value of Python's or NumPy's, or an `InputError`."""
    if isinstance(value, bool | np.bool):
        return bool(value)
    if str(getattr(value, "dtype", "")) != "bool" or value.shape != ():
        raise InputError(f"{name} is {short(value)}, expected True or False")
    return bool(as_array(name, value))


def number(reward: Any, *, finite: bool) -> float:
    """A reward as a plain number, or an `InputError`; it may be NaN unless it is to be `finite`."""
    given = as_array("reward", reward)
    if given.size != 1 or (finite and not abs(given.item()) <= np.finfo(np.float32).max):
        raise InputError(f"reward is {reward}, expected {'a finite' if finite else 'one'} number")
    return float(given.item())


def _parts(what: str, told: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    """What a method of an environment has returned, or an `InputError` if it is not of Gymnasium's present form."""
    if isinstance(told, tuple) and len(told) == len(names) and isinstance(told[-1], Mapping | None):
        return told
    got = f"{len(told)} values" if isinstance(told, tuple) else f"a {type(told).__name__}"
    raise InputError(
        f"the environment's {what} returns {got}, expected {', '.join(names)} (a dict), as in Gymnasium since 0.26: "
        f"wrap it in one whose {what} does"
    )
