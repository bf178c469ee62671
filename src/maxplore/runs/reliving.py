"""What a run has lived through, lived through again: from a checkpoint and the record, without the environment."""

import hashlib
import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import gymnasium as gym

from maxplore.devices import DevicesError
from maxplore.errors import InputError
from maxplore.explorer import Experience, Explorer, load_file
from maxplore.runs.coded import decoded, encoded
from maxplore.runs.directory import Folder, RunConfig
from maxplore.runs.record import Record


def restored(directory: Path, *, devices: int = 1) -> Explorer:
    """The explorer of a run as of its last recorded step. No environment is made, nothing is written."""
    folder = Folder(directory)
    config = folder.read_config()
    with Record.read(folder.record) as record:
        spaces = folder.spaces(config)
        explorer, first = newest(folder, config, record, warnings.warn, devices=devices)
        for _ in relived(explorer, record, spaces, first):
            pass
    return explorer


def told(folder: Folder, record: Record, steps: int) -> Explorer:
    """An explorer that knows the first `steps` transitions of a run, and has no model yet: good to solve tasks with."""
    config = folder.read_config()
    if not 0 < steps <= record.steps:
        raise InputError(f"{steps} steps are asked for, expected 1 to {record.steps}, which {folder.path} has")
    spaces = folder.spaces(config)
    explorer = Explorer(*spaces, method="random", seed=config.seed, horizon=config.horizon)
    for step, *_ in islice(lived(record, spaces), steps):
        explorer.tell(*step[:3], terminated=step.terminated, truncated=step.truncated)
    return explorer


Spaces = tuple[gym.Space[Any], gym.Space[Any]]


def lived(record: Record, spaces: Spaces, first: int = 0) -> Iterator[tuple[Experience, int, bool]]:
    """Steps on record, from the `first` on, their episode, and whether it begins with them."""
    space, moves = spaces
    begins = {own.first_step: own.observation for own in record.episodes()}
    before: Any = None
    if first > 0 and first not in begins:
        before = decoded(space, next(record.transitions(first - 1)).next_observation)
    for step in record.transitions(first):
        begun = step.step in begins
        if begun:
            before = decoded(space, begins[step.step])
        action, following = decoded(moves, step.action), decoded(space, step.next_observation)
        own = Experience(before, action, following, step.terminated, step.truncated, step.reward)
        yield own, step.episode, begun
        before = following


def known(config: RunConfig, record: Record, steps: int) -> str:
    """A digest of all that an explorer knows after so many steps: what was asked, and D."""
    asked = (config.env, config.env_kwargs, config.method, config.preset, config.seed, config.horizon, config.settings)
    return hashlib.blake2b(json.dumps(asked).encode() + record.digest(steps), digest_size=8).hexdigest()


def newest(
    folder: Folder, config: RunConfig, record: Record, warn: Callable[[str], Any], *, devices: int = 1
) -> tuple[Explorer, int]:
    """The explorer of the newest checkpoint that is sound and no newer than the record, and its step."""
    steps, spaces = record.steps, folder.spaces(config)
    passed: list[str] = []
    for step, file in folder.all_checkpoints():
        try:
            if step > steps:
                raise InputError(f"{file} is of step {step}, and the record ends at {steps}")
            rows = (own for own, *_ in lived(record, spaces))
            explorer = load_file(file, lived=rows, known=known(config, record, step), devices=devices)
        except DevicesError:
            raise  # which is not the file's fault
        except InputError as error:
            passed.append(f"{error}: the checkpoint before is taken")
            continue
        for text in passed:
            warn(text)
        return explorer, step
    why = f"{folder.checkpoints} has no checkpoint that can be read: the run cannot go on"
    raise InputError(f"{why}, but its {steps} steps are sound, maxplore export {folder.path} --to npz keeps them")


def relived(explorer: Explorer, record: Record, spaces: Spaces, first: int) -> Iterable[bool]:
    """Ask and tell what is on record, from a step on; of each step, whether the action would be the same today. In
    episodes of a policy the explorer was never asked, and is not now."""
    moves, told = spaces[1], record.told
    for step, episode, begun in lived(record, spaces, first):
        same = True
        if episode not in told:
            if begun:
                explorer.begin(step.observation)
            same = encoded(moves, explorer.ask(step.observation)) == encoded(moves, step.action)
        explorer.tell(*step[:3], terminated=step.terminated, truncated=step.truncated, reward=step.reward)
        yield same
