"""Figures that are made of runs: a sweep of ordinary ones, which goes on where it was stopped, and takes more seeds."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from maxplore.errors import InputError
from maxplore.experiments.kept import Kept, Seen
from maxplore.experiments.spec import Claim, Curve, Experiment, Judge, Measured, Say, quartiles
from maxplore.experiments.statistics import Scores, difference
from maxplore.methods import METHODS
from maxplore.sweep import Engine, Trial, run_all

FIRST_SEED = 1000
"""Seeds that are reported begin here; what was tuned was tuned on others."""

COMPARED = ("max", "tvax", "jdrx", "perx", "random")
"""Methods of the paper's continuous half."""

ACTIVE, REACTIVE = ("max", "tvax"), ("jdrx", "perx")

ENOUGH_SEEDS = 3
"""With fewer, no method is called better than another."""


class Swept(NamedTuple):
    """What came of a sweep."""

    runs: dict[str, list[Seen]]
    """Of every method, those that came to their end."""
    about: dict[str, Any]
    """For the summary: how many of each there were, why others failed, and which code made them."""


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

    @property
    def columns(self) -> tuple[int, ...]:
        """Those of a state that it reads, and that are kept."""
        ...

    def run(self, folder: Path, say: Say, engine: Engine | None = None) -> Measured:
        """Do the work that is not done yet, with this engine."""
        ...


def named(trials: Iterable[Trial]) -> dict[str, Trial]:
    """Trials of one environment by the names of their folders."""
    return {f"{trial.method}-{trial.seed}": trial for trial in trials}


def swept(figure: OfRuns, folder: Path, say: Say, engine: Engine | None = None) -> Swept:
    """Bring all trials of a figure to their end, and read what they have seen. What is kept of one stands for its run.

    One that fails is said to, and left out; an `InputError` if a method is left with none.
    """
    from maxplore import __version__

    trials, kept = figure.trials, Kept(folder, figure.columns)
    outcomes = run_all(trials, folder, engine=engine, say=say, keeper=kept)
    failed = {outcome.name: outcome.reason for outcome in outcomes if not outcome.ended}
    runs: dict[str, list[Seen]] = {trial.method: [] for trial in trials.values()}
    for name, trial in trials.items():
        if name not in failed:
            runs[trial.method].append(kept.seen(name, trial))
    for method, own in runs.items():
        if not own:
            reason = next(why for name, why in failed.items() if trials[name].method == method)
            raise InputError(f"no run of {method} came to its end: {reason}")
    makers = Counter(run.made_by for own in runs.values() for run in own)
    others = sum(run.version != __version__ for own in runs.values() for run in own)
    if others:
        say(f"{others} of {makers.total()} trials are of another version of maxplore: made_by in summary.json has it")
    counts = {method: len(own) for method, own in runs.items()}
    steps = next(iter(trials.values())).steps
    return Swept(runs, {"steps": steps, "runs": counts, "failed": failed, "made_by": dict(makers)})


def of_seeds(summary: Mapping[str, Any]) -> str:
    """How many runs a line of the figure is made of, in words: those that came to their end."""
    least, most = (extreme(summary["runs"].values()) for extreme in (min, max))
    return f"{most} seed{'s' * (most > 1)}" if least == most else f"{least} to {most} seeds"


def curve(marks: tuple[int, ...], values: np.ndarray) -> Curve:
    """Median, quartiles and mean over seeds, `[seeds, marks]`."""
    values = np.asarray(values, np.float64)
    return {**quartiles(values), "x": list(marks), "mean": values.mean(axis=0).round(4).tolist()}


def better(one: str, other: str) -> Judge:
    """That this method scores higher than that: the interval of the difference lies above 0, over enough seeds."""

    def judge(scores: Mapping[str, Scores]) -> tuple[float, bool, tuple[float, float]]:
        found = difference([scores[one]], [scores[other]])
        enough = min(len(scores[name][0]) for name in (one, other)) >= ENOUGH_SEEDS
        return found.value, enough and found.low > 0, (found.low, found.high)

    return Judge(judge, f"95% interval above 0, {ENOUGH_SEEDS} seeds or more", (one, other))


def in_order(
    is_better: str, gained: str, said: tuple[str, str, str], judge: Callable[[str, str], Judge]
) -> list[Claim]:
    """What the paper claims of its methods in both bodies, in its words: every active one before every reactive one,
    of the active ones MAX, and PERX behind."""
    both, best, worst = said
    pairs = {(one, other): both for one in ACTIVE for other in REACTIVE}
    pairs |= {("max", "tvax"): best, ("jdrx", "perx"): worst}
    return [
        Claim(f"{one.upper()} {is_better} {other.upper()}: {gained}", paper, judge(one, other))
        for (one, other), paper in pairs.items()
    ]
