"""Figures that are made of runs: a sweep of ordinary ones, which goes on where it was stopped, and takes more seeds."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from maxplore.errors import InputError
from maxplore.experiments.spec import Curve, Judge, Say
from maxplore.experiments.statistics import difference
from maxplore.methods import METHODS
from maxplore.runs.directory import Folder
from maxplore.runs.export import arrays
from maxplore.runs.record import Record
from maxplore.sweep import Trial, run_all

FIRST_SEED = 1000
"""Seeds that are reported begin here; what was tuned was tuned on others."""

COMPARED = ("max", "tvax", "jdrx", "perx", "random")
"""Methods of the paper's continuous half."""

ACTIVE, REACTIVE = ("max", "tvax"), ("jdrx", "perx")


class Seen(NamedTuple):
    """What a run has seen, a row a step."""

    states: np.ndarray
    """After each step."""
    episodes: np.ndarray
    tasks: dict[tuple[str, int], list[float]]
    """Real returns, by task and the steps of D that it was solved from."""


Runs = dict[str, list[Seen]]
"""Of every method, those of all seeds."""


def checked_methods(methods: tuple[str, ...]) -> None:
    """An `InputError` if somebody explores with one that there is not."""
    for name in methods:
        if name not in METHODS:
            raise InputError(f"--methods has {name!r}, expected some of {', '.join(METHODS)}")


def swept(trials: Mapping[tuple[str, int], Trial], folder: Path, say: Say) -> Runs:
    """Bring all trials, by method and seed, to their end, and read what they have seen.

    One that fails is said to, and left out; an `InputError` if a method is left with none.
    """
    named = {f"{method}-{seed}": trial for (method, seed), trial in trials.items()}
    outcomes = run_all(named, folder / "runs", say=say)
    failed = [outcome for outcome in outcomes if not outcome.ended]
    runs: Runs = {}
    for (method, _), outcome in zip(trials, outcomes, strict=True):
        own = runs.setdefault(method, [])
        if outcome.ended:
            own.append(seen(folder / "runs" / outcome.name))
    for method, own in runs.items():
        if not own:
            raise InputError(f"no run of {method} came to its end: {failed[0].reason}")
    return runs


def seen(path: Path) -> Seen:
    """What the run in this folder has seen."""
    folder = Folder(path)
    with Record.read(folder.record) as record:
        rows = arrays(record, *folder.spaces(folder.read_config()))
        tasks = {(row["task"], row["step"]): row["returns"] for row in record.tasks()}
    return Seen(rows["next_observations"], rows["episodes"], tasks)


def curve(marks: Iterable[int], values: np.ndarray) -> Curve:
    """Median, quartiles and mean over seeds, `[seeds, marks]`."""
    values = np.asarray(values, np.float64)
    quantiles = (("median", 0.5), ("p25", 0.25), ("p75", 0.75))
    return {
        "x": [int(mark) for mark in marks],
        **{name: np.quantile(values, q, axis=0).round(4).tolist() for name, q in quantiles},
        "mean": values.mean(axis=0).round(4).tolist(),
    }


def better(one: tuple[str, ...], other: tuple[str, ...]) -> Judge:
    """That these methods score higher than those: the interval of the difference lies above 0.

    What is measured has, for each method, one array of scores a stratum.
    """

    def judge(scores: Mapping[str, list[np.ndarray]]) -> tuple[float, bool]:
        sides = [
            [np.concatenate(each) for each in zip(*(scores[m] for m in side), strict=True)] for side in (one, other)
        ]
        found = difference(*sides)
        return found.value, found.low > 0

    return Judge(judge, (*one, *other))
