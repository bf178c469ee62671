"""What the numbers of a state are called, where that is known."""

from typing import Any

import gymnasium as gym
from gymnasium import spaces

LEGS = ("front left", "front right", "back left", "back right")
ANT = [f"{part} {leg}" for leg in LEGS for part in ("hip", "ankle")]
CHEETAH = [f"{end} {part}" for end in ("back", "front") for part in ("thigh", "shin", "foot")]

NAMES: dict[str, list[str]] = {
    "maxplore/MountainCar-v0": ["position", "velocity (per step)"],
    "MountainCarContinuous-v0": ["position", "velocity (per step)"],
    "MountainCar-v0": ["position", "velocity (per step)"],
    "Pendulum-v1": ["cosine of the angle", "sine of the angle", "angular velocity (rad/s)"],
    "CartPole-v1": ["cart position", "cart velocity", "pole angle (rad)", "pole angular velocity (rad/s)"],
    "maxplore/HalfCheetah-v0": [
        "mean x velocity (m/s)",
        "height (m)",
        "sine of the pitch",
        "cosine of the pitch",
        *(f"{joint} angle (rad)" for joint in CHEETAH),
        "x velocity (m/s)",
        "z velocity (m/s)",
        "pitch velocity (rad/s)",
        *(f"{joint} velocity (rad/s)" for joint in CHEETAH),
    ],
    "maxplore/AntMaze-v0": [
        "mean x velocity (m/s)",
        "mean y velocity (m/s)",
        "x (m)",
        "y (m)",
        "z (m)",
        *(f"orientation {part}" for part in "wxyz"),
        *(f"{joint} angle (rad)" for joint in ANT),
        *(f"{axis} velocity (m/s)" for axis in "xyz"),
        *(f"{axis} angular velocity (rad/s)" for axis in "xyz"),
        *(f"{joint} velocity (rad/s)" for joint in ANT),
    ],
}
"""By the environment's id, each with its unit."""


def dimensions(env: str, space: gym.Space[Any]) -> list[str]:
    """A name for each number of a state: the known ones, or those of the space's parts with a number."""
    own = NAMES.get(env)
    count = int(spaces.flatdim(space))
    return own if own is not None and len(own) == count else _numbered(space, "")


def _numbered(space: gym.Space[Any], name: str) -> list[str]:
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        return [each for key, part in parts for each in _numbered(part, f"{name} {key}".strip())]
    return [f"{name or 'dimension'} {number}" for number in range(int(spaces.flatdim(space)))]
