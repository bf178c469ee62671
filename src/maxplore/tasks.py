"""Named tasks: rewards of one transition, in the environment's own units, for `Explorer.exploit`.

The paper's running and flipping (section 4.2), its Mountain Car task and its Chain's own reward (section 4.1); and the
ant's far end, which it left alone.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from maxplore.entry import Entry
from maxplore.envs.chain import LEFT_REWARD, RIGHT_REWARD
from maxplore.envs.maze import CELL, CELLS
from maxplore.envs.mountain_car import FLAG
from maxplore.errors import InputError
from maxplore.rewards import Reward

EFFORT = 0.1
"""Price of the squares of Half Cheetah's torques."""


def running(state: Array, action: Array, next_state: Array) -> Array:
    """Half Cheetah: forwards as fast as it goes, minus the effort."""
    return next_state[0] - EFFORT * jnp.sum(action**2)


def flipping(state: Array, action: Array, next_state: Array) -> Array:
    """Half Cheetah: head over heels as fast as it goes, minus the effort."""
    return next_state[12] - EFFORT * jnp.sum(action**2)


def capture_flag(state: Array, action: Array, next_state: Array) -> Array:
    """Mountain Car: 100 for every step at the flag or beyond."""
    return jnp.where(next_state[0] >= FLAG, 100.0, 0.0)


def chain(length: int = 50) -> Reward:
    """The Chain: next to nothing for staying at the left end, 1 for staying at the right."""

    def stay(state: Array, action: Array, next_state: Array) -> Array:
        at_edge = jnp.where(state == 0, LEFT_REWARD, jnp.where(state == length - 1, RIGHT_REWARD, 0.0))
        return jnp.where(next_state == state, at_edge, 0.0)

    return stay


def far_end(state: Array, action: Array, next_state: Array) -> Array:
    """Ant Maze: the metres gained along the U, and 1 for every step in its last cell."""
    there = jnp.max(jnp.abs(next_state[2:4] - CELL * jnp.asarray(CELLS[-1], jnp.float32))) <= CELL / 2
    return along(next_state[2:4]) - along(state[2:4]) + there


def along(place: Array) -> Array:
    """How far along the middle of the U, in metres from the start, the point of it nearest to this place is."""
    corners = CELL * jnp.asarray(CELLS, jnp.float32)
    begin, way = corners[:-1], corners[1:] - corners[:-1]
    share = jnp.clip(jnp.sum((place[None] - begin) * way, axis=1) / CELL**2, 0.0, 1.0)
    off = jnp.sum((begin + share[:, None] * way - place[None]) ** 2, axis=1)
    nearest = jnp.argmin(off)
    return CELL * (nearest + share[nearest])


class Task(NamedTuple):
    """A reward by name."""

    env: str
    """The environment that it is meant for."""
    dims: tuple[int, int] | None
    """Numbers in its observations and actions; None if both are Discrete."""
    make: Callable[[int], Reward]
    """The reward, given the number of states where these are Discrete."""
    about: str


def _task(env: str, dims: tuple[int, int] | None, make: Callable[[int], Reward], described: Reward | None) -> Task:
    text = (described or make).__doc__ or ""
    return Task(env, dims, make, text.partition(": ")[2].strip())


TASKS: Mapping[str, Task] = {
    "running": _task("maxplore/HalfCheetah-v0", (19, 6), lambda _: running, running),
    "flipping": _task("maxplore/HalfCheetah-v0", (19, 6), lambda _: flipping, flipping),
    "capture-flag": _task("maxplore/MountainCar-v0", (2, 1), lambda _: capture_flag, capture_flag),
    "chain": _task("maxplore/Chain-v0", None, chain, None),
    "far-end": _task("maxplore/AntMaze-v0", (31, 8), lambda _: far_end, far_end),
}
"""Every named task."""


def named(task: str, states: Entry, actions: Entry) -> Reward:
    """The reward of a named task in such spaces, or an `InputError`."""
    if task not in TASKS:
        raise InputError(f"reward is {task!r}, expected a function, or one of {', '.join(TASKS)}")
    own = TASKS[task]
    discrete = states.count is not None and actions.count is not None
    dims = None if discrete else (math.prod(states.shape), math.prod(actions.shape))
    if dims != own.dims:
        got = "Discrete ones" if dims is None else f"{dims[0]} and {dims[1]} numbers"
        raise InputError(f"reward is {task!r}, expected the spaces of {own.env}, got {got}: write a function")
    return own.make(states.count or 0)
