"""What the environments with vectors ask of their arguments."""

import math
from typing import Any

import gymnasium as gym
import numpy as np

from maxplore.entry import as_array, refuse
from maxplore.errors import InputError


def actions(count: int) -> gym.spaces.Box:
    """Actions in [-1, 1]."""
    return gym.spaces.Box(-1.0, 1.0, (count,), np.float32)


def clipped(action: Any, shape: tuple[int, ...] | None) -> np.ndarray:
    """The action within [-1, 1], as Gymnasium's own environments have it; one that is no number is refused."""
    given = as_array("action", action)
    if given.shape != shape:
        raise InputError(f"action has shape {given.shape}, expected {shape}")
    refuse("action", given, ~np.isfinite(given), "a finite number")
    return np.clip(given, -1.0, 1.0)


def check_options(env: gym.Env[Any, Any], noise: float, render_mode: str | None) -> None:
    """Refuse a noise that is no standard deviation, and a way to render that the environment does not know."""
    if not 0 <= noise < math.inf:
        raise InputError(f"noise is {noise}, expected a standard deviation: a finite number, at least 0")
    known = env.metadata["render_modes"]
    if render_mode is not None and render_mode not in known:
        raise InputError(f"render_mode is {render_mode!r}, expected None or {' or '.join(map(repr, known))}")
