"""What a run's folder has to tell: all that a page is made from, read while somebody may still be writing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from maxplore.errors import InputError
from maxplore.report.naming import dimensions
from maxplore.runs.coded import decoded
from maxplore.runs.directory import Folder, RunConfig
from maxplore.runs.figures import Curve, curves
from maxplore.runs.record import Event, Record

MOST_FRAMES = 24
"""Moments that a slider goes through."""

FEW_FRAMES = 8
"""The same for a run of which no landscape is kept."""


@dataclass(frozen=True)
class Walk:
    """Where a run has been: a row for the start of every episode, and one for every step."""

    states: np.ndarray
    """`[rows, dims]` in the environment's own units, or `[rows]` of numbers counted from 0."""
    actions: np.ndarray
    """`[rows]`, what led there: a number counted from 0, or -1 for a start, or for an action that has no number."""
    steps: np.ndarray
    """`[rows]`, transitions so far."""
    times: np.ndarray
    """`[rows]`, those of the same episode."""


@dataclass(frozen=True)
class Frame:
    """A moment of a run, and what its models knew then."""

    step: int
    tables: dict[str, np.ndarray]
    """As `Explorer.survey` has them; empty if nothing was kept."""


@dataclass(frozen=True)
class Story:
    """A run."""

    name: str
    folder: Folder
    config: RunConfig
    spaces: tuple[gym.Space[Any], gym.Space[Any]]
    steps: int
    aimed: int
    curves: dict[str, Curve]
    walk: Walk
    frames: list[Frame]
    tasks: list[dict[str, Any]]
    events: list[Event]

    @property
    def finite(self) -> bool:
        """Whether states and actions are numbered."""
        return all(isinstance(space, spaces.Discrete) for space in self.spaces)

    @property
    def surveyed(self) -> bool:
        """Whether anything is known of what its models knew."""
        return any(frame.tables for frame in self.frames)

    @cached_property
    def dimensions(self) -> list[str]:
        """What the numbers of a state are called."""
        return dimensions(self.config.env, self.spaces[0])

    @property
    def videos(self) -> list[Path]:
        """Films in the folder. A link could lead to a file of somebody else's."""
        found = sorted(self.folder.videos.glob("*.mp4"))
        return [file for file in found if file.is_file() and not file.is_symlink()]


def told(folders: Sequence[Folder]) -> list[Story]:
    """The stories of runs, under their folders' names, or whole paths if two would be called the same."""
    short = [folder.path.resolve().name for folder in folders]
    names = short if len(set(short)) == len(short) else [str(folder.path) for folder in folders]
    return [_told(folder, name) for folder, name in zip(folders, names, strict=True)]


def _told(folder: Folder, name: str) -> Story:
    config = folder.read_config()
    own = folder.spaces(config)
    with Record.read(folder.record) as record:
        walk = _walk(record, own)
        return Story(
            name=name,
            folder=folder,
            config=config,
            spaces=own,
            steps=int(walk.steps[-1]) if len(walk.steps) else 0,
            aimed=record.aimed,
            curves=curves(record),
            walk=walk,
            frames=_frames(record, own, int(walk.steps[-1]) if len(walk.steps) else 0),
            tasks=list(record.tasks()),
            events=list(record.events()),
        )


def _walk(record: Record, own: tuple[gym.Space[Any], gym.Space[Any]]) -> Walk:
    space, moves = own
    finite = all(isinstance(each, spaces.Discrete) for each in own)
    rows = list(record.transitions())
    begun = {episode.episode: episode for episode in record.episodes()}  # after the steps: none of theirs is missing
    states: list[Any] = []
    actions, steps, times = [], [], []
    episode = None
    for row in rows:
        if row.episode != episode:
            if row.episode not in begun:
                raise InputError(f"{record.path} has no episode {row.episode}: the record is damaged")
            episode = row.episode
            states.append(decoded(space, begun[episode].observation))
            actions.append(-1)
            steps.append(row.step)
            times.append(0)
        states.append(decoded(space, row.next_observation))
        actions.append(int(decoded(moves, row.action)) - int(moves.start) if isinstance(moves, spaces.Discrete) else -1)
        steps.append(row.step + 1)
        times.append(times[-1] + 1)
    if finite:
        assert isinstance(space, spaces.Discrete)
        table = np.array([int(state) - int(space.start) for state in states], np.int64)
    else:
        table = np.array([spaces.flatten(space, state) for state in states], np.float32)
        table = table.reshape(len(states), int(spaces.flatdim(space)))
        if not np.isfinite(table).all():
            raise InputError(f"{record.path} has an observation that is not finite: the record is damaged")
    return Walk(table, np.array(actions, np.int64), np.array(steps, np.int64), np.array(times, np.int64))


def _frames(record: Record, own: tuple[gym.Space[Any], gym.Space[Any]], steps: int) -> list[Frame]:
    known = [step for step in record.surveyed if step <= steps]
    if known:
        return [Frame(step, _checked(record, own, record.landscapes(step))) for step in thinned(known, MOST_FRAMES)]
    return [Frame(step, {}) for step in thinned(range(1, steps + 1), FEW_FRAMES)]


def _checked(
    record: Record, own: tuple[gym.Space[Any], gym.Space[Any]], tables: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The tables, or an `InputError` if they are not those of this run's spaces."""
    space, moves = own
    if isinstance(space, spaces.Discrete) and isinstance(moves, spaces.Discrete):
        expected = {"pairs": (int(space.n), int(moves.n))}
    else:
        probes = len(tables.get("states", ()))
        levels = len(tables.get("reliability", ()))
        expected = {"states": (probes, int(spaces.flatdim(space))), "utility": (probes, 1), "reliability": (levels, 2)}
    fits = {name: table.shape for name, table in tables.items()} == expected and all(map(len, tables.values()))
    if not fits or not np.isfinite(tables.get("states", 0.0)).all():
        raise InputError(f"{record.path} has a landscape of another form: the record is damaged")
    return tables


def thinned(given: Iterable[Any], most: int) -> list[Any]:
    """At most so many of them, evenly spread, the last among them."""
    own = list(given)
    if len(own) <= most:
        return own
    return [own[round((k + 1) * len(own) / most) - 1] for k in range(most)]
