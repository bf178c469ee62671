"""What a run has lived through, lived through again: from a checkpoint and the record, without the environment."""

import warnings
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import gymnasium as gym

from maxplore.devices import DevicesError
from maxplore.errors import InputError
from maxplore.explorer import Explorer, load_file
from maxplore.runs.coded import decoded, encoded
from maxplore.runs.directory import Folder
from maxplore.runs.record import Record


def restored(directory: Path, *, devices: int = 1) -> Explorer:
    """The explorer of a run as of its last recorded step. No environment is made, nothing is written."""
    folder = Folder(directory)
    config = folder.read_config()
    with Record.read(folder.record) as record:
        explorer, first = newest(folder, record.steps, warnings.warn, devices=devices)
        for _ in relived(explorer, record, folder.spaces(config), first):
            pass
    return explorer


def told(folder: Folder, record: Record, steps: int) -> Explorer:
    """An explorer that knows the first `steps` transitions of a run, and has no model yet: good to solve tasks with."""
    config = folder.read_config()
    if not 0 < steps <= record.steps:
        raise InputError(f"{steps} steps are asked for, expected 1 to {record.steps}, which {folder.path} has")
    space, moves = folder.spaces(config)
    explorer = Explorer(space, moves, method="random", seed=config.seed, horizon=config.horizon)
    begins = {own.first_step: own.observation for own in record.episodes()}
    before: Any = None
    for step in islice(record.transitions(), steps):
        if step.step in begins:
            before = decoded(space, begins[step.step])
        following, ends = decoded(space, step.next_observation), (step.terminated, step.truncated)
        explorer.tell(before, decoded(moves, step.action), following, terminated=ends[0], truncated=ends[1])
        before = following
    return explorer


def newest(folder: Folder, steps: int, warn: Callable[[str], Any], *, devices: int = 1) -> tuple[Explorer, int]:
    """The explorer of the newest checkpoint that can be read and is no newer than the record, and its step."""
    passed: list[str] = []
    for step, file in folder.all_checkpoints():
        try:
            if step > steps:
                raise InputError(f"{file} is of step {step}, and the record ends at {steps}")
            explorer = load_file(file, devices=devices)
            if explorer.steps != step:
                raise InputError(f"{file} has {explorer.steps} steps, expected {step}")
        except DevicesError:
            raise  # which is not the file's fault
        except InputError as error:
            passed.append(f"{error}: the checkpoint before is taken")
            continue
        for text in passed:
            warn(text)
        return explorer, step
    raise InputError(f"{folder.checkpoints} has no checkpoint that can be read: the run cannot go on")


def relived(
    explorer: Explorer, record: Record, spaces: tuple[gym.Space[Any], gym.Space[Any]], first: int
) -> Iterable[bool]:
    """Ask and tell what is on record, from a step on; of each step, whether the action would be the same today."""
    space, moves = spaces
    begins = {own.first_step: decoded(space, own.observation) for own in record.episodes()}
    before = None
    if first > 0 and first not in begins:
        before = decoded(space, next(record.transitions(first - 1)).next_observation)
    for step in record.transitions(first):
        if step.step in begins:
            before = begins[step.step]
            explorer.begin(before)
        same = encoded(moves, explorer.ask(before)) == step.action
        following = decoded(space, step.next_observation)
        explorer.tell(
            before,
            decoded(moves, step.action),
            following,
            terminated=step.terminated,
            truncated=step.truncated,
            reward=step.reward,
        )
        before = following
        yield same
