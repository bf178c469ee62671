"""A trial: a run, and what is asked of it on the way. It is data; how far it has come is read off its folder."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from maxplore.errors import InputError
from maxplore.runs import files
from maxplore.runs.directory import Folder
from maxplore.runs.record import Record

Solved = tuple[str, int]
"""A task, and the steps of D that it was solved from."""


@dataclass(frozen=True)
class Trial:
    """What to do: in plain numbers and words, so that any machine can be told."""

    env: str
    method: str
    seed: int
    steps: int
    preset: str = "fast"
    env_kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Of the method, by name."""
    landscapes: tuple[int, ...] = ()
    """Steps after which the utility is kept over the whole plane of states, of which there are two dimensions."""
    tasks: tuple[str, ...] = ()
    """Named tasks that are solved from D,"""
    after: tuple[int, ...] = ()
    """each from the first so many steps of it,"""
    solving: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """with these settings of exploitation,"""
    episodes: int = 3
    """and rated in so many real episodes."""

    @property
    def kind(self) -> tuple[str, str, str, int, int]:
        """The same for trials that take about as long as each other."""
        return self.env, self.method, self.preset, self.steps, len(self.asked)

    @property
    def asked(self) -> list[Solved]:
        """Tasks to solve."""
        return [(task, steps) for steps in self.after if steps <= self.steps for task in self.tasks]

    def write(self, file: Path) -> None:
        """Put it down where a worker finds it."""
        files.write_text(file, json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, file: Path) -> "Trial":
        """What was put down, or an `InputError`."""
        try:
            return cls.of(json.loads(files.read(file)))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise InputError(f"{file} is no trial, or damaged ({type(error).__name__}: {error})") from None

    @classmethod
    def of(cls, told: dict[str, Any]) -> "Trial":
        """What JSON has of it; a `TypeError` or `KeyError` if that is none."""
        own: dict[str, Any] = {**told, **{name: tuple(told[name]) for name in ("landscapes", "tasks", "after")}}
        return cls(**own)


class OtherRunError(InputError):
    """The folder of a trial holds a run of something else."""


class Done(NamedTuple):
    """How far a trial is."""

    steps: int
    solved: frozenset[Solved]
    landscapes: frozenset[int]

    def explored(self, trial: Trial) -> bool:
        """Whether it has seen all that it is to see."""
        return self.steps >= trial.steps and self.landscapes.issuperset(trial.landscapes)

    def ends(self, trial: Trial) -> bool:
        """Whether nothing is left to do."""
        return self.explored(trial) and self.solved.issuperset(trial.asked)

    def share(self, trial: Trial) -> float:
        """How much of all that is, from 0 to 1: to solve all its tasks counts as much as to explore."""
        explored = min(self.steps / trial.steps, 1.0)
        return (explored + len(self.solved & {*trial.asked}) / len(trial.asked)) / 2 if trial.asked else explored


NOTHING = Done(0, frozenset(), frozenset())


def whole(trial: Trial) -> Done:
    """How far a trial is that has ended."""
    return Done(trial.steps, frozenset(trial.asked), frozenset(trial.landscapes))


@runtime_checkable
class Keeper(Protocol):
    """Keeps what came of trials elsewhere: one that it has is done, whether its run is there or not."""

    def has(self, name: str, trial: Trial) -> bool:
        """Whether all of the trial is kept; an `InputError` if that cannot be told, or it is another."""
        ...

    def keep(self, name: str, trial: Trial, *, now: bool) -> None:
        """A trial has ended, just now or before: keep what came of it."""
        ...


def done(trial: Trial, path: Path) -> Done:
    """How far the trial in this folder is; an `InputError` if it holds another run.

    A record that another machine is writing is not opened: SQLite shares its log within one machine only. Until that
    one is done, the newest checkpoint tells.
    """
    folder = Folder(path)
    if not folder.is_run:
        return NOTHING
    config = folder.read_config()
    for name in ("env", "env_kwargs", "method", "preset", "seed", "settings"):
        own, asked = getattr(config, name), plain(getattr(trial, name))
        if own != asked:
            raise OtherRunError(f"{path} has a run with {name} {own!r}, expected {asked!r}: give another --out")
    if folder.written_elsewhere:
        return NOTHING._replace(steps=next((step for step, _ in folder.all_checkpoints()), 0))
    with Record.read(folder.record) as record:
        steps = record.steps
        solved = frozenset(returns_of(trial, record))
    kept = frozenset(at for at in trial.landscapes if folder.landscape(at).is_file())
    for at in trial.landscapes:
        if at < steps and at not in kept:
            raise OtherRunError(f"{path} is past step {at}, and its landscape then was not kept: give another --out")
    return Done(steps, solved, kept)


def returns_of(trial: Trial, record: Record) -> dict[Solved, list[float]]:
    """Real returns of what was solved as the trial has it."""
    return {own: row["returns"] for own, row in solved_of(trial, record).items()}


def solved_of(trial: Trial, record: Record) -> dict[Solved, dict[str, Any]]:
    """Rows of what was solved as the trial has it; what somebody else solved in the same run is not its."""
    asked = (0, plain(trial.solving))
    return {
        (row["task"], row["step"]): row
        for row in record.tasks()
        if (row["seed"], row["settings"]) == asked
        and len(row["returns"]) == trial.episodes
        and all(isinstance(paid, int | float) for paid in row["returns"])
    }


def plain(value: Any) -> Any:
    """As JSON has it."""
    return json.loads(json.dumps(value))
