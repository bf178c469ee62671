"""Figures that are made of runs: a sweep of ordinary ones, which goes on where it was stopped, and takes more seeds."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from maxplore.errors import InputError
from maxplore.experiments.spec import Curve, Experiment, Judge, Measured, Say, quartiles
from maxplore.experiments.statistics import Scores, difference
from maxplore.methods import METHODS
from maxplore.runs.directory import Folder
from maxplore.runs.export import arrays
from maxplore.runs.record import Record
from maxplore.sweep import Engine, Trial, run_all
from maxplore.sweep.trial import Solved, returns_of

FIRST_SEED = 1000
"""Seeds that are reported begin here; what was tuned was tuned on others."""

COMPARED = ("max", "tvax", "jdrx", "perx", "random")
"""Methods of the paper's continuous half."""

ACTIVE, REACTIVE = ("max", "tvax"), ("jdrx", "perx")

ENOUGH_SEEDS = 3
"""With fewer, no method is called better than another."""


class Seen(NamedTuple):
    """What a run has seen, a row a step."""

    path: Path
    """Of the run."""
    states: np.ndarray
    """After each step."""
    episodes: np.ndarray
    tasks: dict[Solved, list[float]]
    """Real returns, by task and the steps of D that it was solved from."""


class Swept(NamedTuple):
    """What came of a sweep."""

    runs: dict[str, list[Seen]]
    """Of every method, those that came to their end."""
    about: dict[str, Any]
    """For the summary: how many of each there were, and why others failed."""


def checked_methods(methods: tuple[str, ...]) -> None:
    """An `InputError` if somebody explores with one that there is not."""
    for name in methods or ("",):
        if name not in METHODS:
            raise InputError(f"--methods has {name!r}, expected some of {', '.join(METHODS)}")


def marks_within(marks: tuple[int, ...], steps: int) -> tuple[int, ...]:
    """Those that so many steps come to; if that is not two of them, half-way and the end."""
    own = tuple(mark for mark in marks if mark <= steps)
    return own if len(own) > 1 else tuple(sorted({max(1, steps // 2), steps}))


@runtime_checkable
class OfRuns(Experiment, Protocol):
    """A figure that is made of runs: these can be run before, and elsewhere."""

    @property
    def trials(self) -> dict[str, Trial]:
        """All that it takes, by the name of each one's folder."""
        ...

    def run(self, folder: Path, say: Say, engine: Engine | None = None) -> Measured:
        """Do the work that is not done yet, with this engine."""
        ...


def named(trials: Iterable[Trial]) -> dict[str, Trial]:
    """Trials of one environment by the names of their folders."""
    return {f"{trial.method}-{trial.seed}": trial for trial in trials}


def swept(trials: Mapping[str, Trial], folder: Path, say: Say, engine: Engine | None = None) -> Swept:
    """Bring all trials to their end, and read what they have seen.

    One that fails is said to, and left out; an `InputError` if a method is left with none.
    """
    outcomes = run_all(trials, folder, engine=engine, say=say)
    failed = {outcome.name: outcome.reason for outcome in outcomes if not outcome.ended}
    runs: dict[str, list[Seen]] = {trial.method: [] for trial in trials.values()}
    for name, trial in trials.items():
        if name not in failed:
            runs[trial.method].append(seen(trial, folder / "runs" / name))
    for method, own in runs.items():
        if not own:
            reason = next(why for name, why in failed.items() if trials[name].method == method)
            raise InputError(f"no run of {method} came to its end: {reason}")
    return Swept(runs, {"runs": {method: len(own) for method, own in runs.items()}, "failed": failed})


def seen(trial: Trial, path: Path) -> Seen:
    """What the run in this folder has seen, as far as the trial goes."""
    folder = Folder(path)
    with Record.read(folder.record) as record:
        rows = arrays(record, *folder.spaces(folder.read_config()))
        tasks = returns_of(trial, record)
    return Seen(path, rows["next_observations"][: trial.steps], rows["episodes"][: trial.steps], tasks)


def curve(marks: tuple[int, ...], values: np.ndarray) -> Curve:
    """Median, quartiles and mean over seeds, `[seeds, marks]`."""
    values = np.asarray(values, np.float64)
    return {**quartiles(values), "x": list(marks), "mean": values.mean(axis=0).round(4).tolist()}


def better(ones: tuple[str, ...], others: tuple[str, ...]) -> Judge:
    """That these methods score higher than those: the interval of the difference lies above 0, over enough seeds."""

    def judge(scores: Mapping[str, Scores]) -> tuple[float, bool, tuple[float, float]]:
        found = difference([scores[name] for name in ones], [scores[name] for name in others])
        enough = min(len(scores[name][0]) for name in (*ones, *others)) >= ENOUGH_SEEDS
        return found.value, enough and found.low > 0, (found.low, found.high)

    return Judge(judge, (*ones, *others))
