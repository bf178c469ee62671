"""Figure 4: how well tasks are solved from what exploration has seen of Half Cheetah, by step and method."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from maxplore.experiments.kept import Seen
from maxplore.experiments.oracle import SEED, STEPS, final, learn, oracle_file
from maxplore.experiments.spec import Asked, Claim, Curve, Judge, Measured, Say, judged, resized
from maxplore.experiments.statistics import level
from maxplore.experiments.swept import (
    COMPARED,
    ENOUGH_SEEDS,
    better,
    checked_methods,
    curve,
    in_order,
    named,
    of_seeds,
    swept,
)
from maxplore.exploit.real import PRICE
from maxplore.sweep import Engine, Trial

ENV = "maxplore/HalfCheetah-v0"
FIRST_SEED = 1014
"""Seeds that are reported begin here: with those before, the settings of exploitation were chosen."""
TASKS = ("running", "flipping")
AFTER = {
    "fast": (5000, 10_000, 20_000),
    "paper": (256, *range(2000, 20_001, 2000)),
    "smoke": (),
}
"""Steps of D that tasks are solved from."""
SOLVING: dict[str, dict[str, Any]] = {
    "fast": {"smoothing": True, "pessimistic": True, "penalty": PRICE, "solver_episodes": 300, "ahead": 0},
    "paper": {
        "members": 32,
        "model_depth": 4,
        "model_width": 512,
        "fit_learning_rate": 1e-3,
        "cooling": 0.0,
        "most_steps": 10**6,
        "solver_episodes": 250,
        "actors": 128,
        "solver_batch_size": 4096,
        "temperature": 0.4,
        "solver_width": 256,
        "updates": 60,
        "penalty": 0.0,
        "pessimistic": False,
        "smoothing": False,
        "episodes": 4,
        "ahead": 0,
    },
    "smoke": {
        "members": 2,
        "model_depth": 1,
        "model_width": 8,
        "most_steps": 10,
        "history_updates": 2,
        "solver_episodes": 4,
        "actors": 2,
        "solver_steps": 5,
        "updates": 2,
        "solver_width": 8,
        "episodes": 1,
        "ahead": 0,
    },
}
"""Settings of exploitation. Policies act as they were learned, as the paper's do, with no looking ahead. Those of
`fast` are the usual ones otherwise, but for half of the imagined episodes, for time: the figure takes thirty policies
at every point. They are said aloud, so that a trial that was kept is known to be of another recipe when they change."""


@dataclass(frozen=True)
class HalfCheetahFigure:
    """Returns of both tasks, and their mean, for every method; and the oracle's, who may learn in reality."""

    title: str = "Half Cheetah: tasks from what was explored (fig. 4)"
    seeds: int = 3
    steps: int = 20_000
    methods: tuple[str, ...] = COMPARED
    preset: str = "fast"
    oracle_steps: int = STEPS

    @property
    def claims(self) -> tuple[Claim, ...]:
        return CLAIMS

    def at(self, asked: Asked) -> "HalfCheetahFigure":
        figure = replace(self, preset=asked.preset)
        if asked.preset == "paper":
            figure = replace(figure, seeds=8)
        if asked.preset == "smoke":
            figure = replace(figure, seeds=1, steps=60, methods=("max",), oracle_steps=1050)
        figure = resized(figure, asked, ("seeds", "steps", "methods"))
        checked_methods(figure.methods)
        return figure

    @property
    def after(self) -> tuple[int, ...]:
        """Steps of D that tasks are solved from: the last is all of it."""
        return (*(steps for steps in AFTER[self.preset] if steps < self.steps), self.steps)

    @property
    def trials(self) -> dict[str, Trial]:
        """Every run, and the tasks that are solved from it."""
        return named(
            Trial(
                ENV, method, seed, self.steps, self.preset, tasks=TASKS, after=self.after, solving=SOLVING[self.preset]
            )
            for seed in range(FIRST_SEED, FIRST_SEED + self.seeds)
            for method in self.methods
        )

    @property
    def columns(self) -> tuple[int, ...]:
        """None: tasks alone tell."""
        return ()

    def run(self, folder: Path, say: Say, engine: Engine | None = None) -> Measured:
        runs, about = swept(self, folder, say, engine)
        oracles = {task: self.oracle(task, folder, say) for task in TASKS}
        curves: dict[str, Curve] = {}
        scores = {name: [paid(own, task, self.after) for task in TASKS] for name, own in runs.items()}
        for name, of_tasks in scores.items():
            for task, values in zip(TASKS, of_tasks, strict=True):
                curves[f"{task}, {name}"] = curve(self.after, values)
            curves[f"average, {name}"] = curve(self.after, np.mean(of_tasks, axis=0))
        last = {name: [values[:, -1] for values in of_tasks] for name, of_tasks in scores.items()}
        last["oracle"] = [np.array([oracles[task]]) for task in TASKS]
        return Measured(
            {
                "trial": repr(next(iter(self.trials.values()))),
                "oracle": f"SAC, {self.oracle_steps} real steps, one seed",
            },
            judged(CLAIMS, last, self.steps),
            curves,
            {
                **about,
                "oracle": oracles,
                "oracle_steps": self.oracle_steps,
                "returns": {
                    name: {task: own.round(2).tolist() for task, own in zip(TASKS, of_tasks, strict=True)}
                    for name, of_tasks in scores.items()
                },
            },
        )

    def oracle(self, task: str, folder: Path, say: Say) -> float:
        """What SAC is paid in the end that learned in the real environment: made once."""
        file = oracle_file(folder, task, self.oracle_steps)
        if (returns := final(file, self.oracle_steps)) is None:
            say(f"the oracle learns {task} in {self.oracle_steps} real steps")
            learn(task, self.oracle_steps, SEED, file)
            returns = final(file, self.oracle_steps)
            assert returns is not None
        return float(np.mean(returns))

    def draw(self, summary: dict[str, Any]) -> Any:
        import matplotlib.pyplot as plt

        figure, panels = plt.subplots(1, 3, figsize=(13, 4.8), layout="constrained")
        oracles = {**summary["oracle"], "average": float(np.mean(list(summary["oracle"].values())))}
        for panel, what in zip(panels, (*TASKS, "average"), strict=True):
            for label, own in summary["curves"].items():
                task, name = label.split(", ")
                if task != what:
                    continue
                (line,) = panel.plot(own["x"], own["mean"], "o-", markersize=4, label=name)
                panel.fill_between(own["x"], own["p25"], own["p75"], color=line.get_color(), alpha=0.1, linewidth=0)
                returns = summary["returns"][name]
                each = np.array(returns[task] if task in returns else np.mean(list(returns.values()), axis=0))
                panel.plot(own["x"], each.T, ".", color=line.get_color(), markersize=3, alpha=0.6)
            learned = f"SAC in reality, {summary['oracle_steps']:,} steps"
            panel.axhline(oracles[what], color="grey", linestyle="--", label=learned)
            panel.set(title=what if what in TASKS else "average of both returns", xlabel="exploration step")
            panel.set_xlim(left=0)
        panels[0].set_ylabel("real return over 100 steps")
        figure.suptitle(f"{self.title}: mean and quartiles of {of_seeds(summary)}; small dots: each of them")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
        return figure


def paid(runs: list[Seen], task: str, after: tuple[int, ...]) -> np.ndarray:
    """Mean real return of a task, `[seeds, points]`."""
    return np.array([[np.mean(run.tasks[task, steps]) for steps in after] for run in runs])


TARGET_STEPS = 20_000
"""Of exploration, that our targets are about."""


def _above(task: str, value: float) -> Judge:
    """That MAX is paid more than this, in the mean of its seeds."""

    def judge(final: Any) -> tuple[float, bool]:
        own = final["max"][TASKS.index(task)]
        return float(np.mean(own)), bool(np.mean(own) > value and len(own) >= ENOUGH_SEEDS)

    return Judge(judge, f"above {value:g}, {ENOUGH_SEEDS} seeds or more", ("max",), TARGET_STEPS)


def _shares(final: Any, *names: str) -> dict[str, list[np.ndarray]]:
    """Returns as shares of the oracle's, so that no task counts for more because its rewards are larger; NaN where the
    oracle has learned nothing."""
    units = [oracle[0] if oracle[0] > 0 else np.nan for oracle in final["oracle"]]
    return {name: [own / unit for own, unit in zip(final[name], units, strict=True)] for name in names}


def _average(one: str, other: str) -> Judge:
    """By both tasks."""
    own = better(one, other)
    return replace(own, of=lambda final: own.of(_shares(final, one, other)), lines=(*own.lines, "oracle"))


def _of_task(task: str, one: str, other: str) -> Judge:
    own, place = _average(one, other), TASKS.index(task)
    return replace(own, of=lambda final: own.of({name: [each[place]] for name, each in final.items()}))


def _suffices(final: Any) -> tuple[float, bool, tuple[float, float]]:
    """What random exploration is paid for running."""
    own = _shares(final, "random")["random"][:1]
    found = level(own)
    return found.value, found.value >= ENOUGH and len(own[0]) >= ENOUGH_SEEDS, (found.low, found.high)


ENOUGH = 0.75
"""Our reading of "sufficient": the paper gives no number."""

CLAIMS = (
    *in_order(
        "beats",
        "share of the oracle's return gained, both tasks",
        ("outperform", "noticeably better", "PERX performs poorly"),
        _average,
    ),
    Claim(
        "MAX beats random actions on flipping: share of the oracle's return gained",
        "needs directed exploration",
        _of_task("flipping", "max", "random"),
    ),
    Claim(
        "random actions suffice for running: share of the oracle's return",
        "sufficient",
        Judge(_suffices, f"at least {ENOUGH}, {ENOUGH_SEEDS} seeds or more", ("random", "oracle")),
    ),
    *(
        Claim(f"our target for MAX after {TARGET_STEPS:,} steps, {task}: mean return", "-", _above(task, value))
        for task, value in (("running", 357.0), ("flipping", 594.0))
    ),
)
