"""Figure 3: how much of its maze the ant has seen, by step and method, and where MAX went."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from maxplore.envs.maze import CELL, CELLS, cell_at
from maxplore.experiments.kept import Seen
from maxplore.experiments.spec import Asked, Claim, Judge, Measured, Say, judged, resized
from maxplore.experiments.swept import (
    COMPARED,
    FIRST_SEED,
    better,
    checked_methods,
    curve,
    in_order,
    marks_within,
    named,
    of_seeds,
    swept,
)
from maxplore.sweep import Engine, Trial

ENV = "maxplore/AntMaze-v0"
MARKS = (300, 600, 3600, 12_000)
"""Steps after which the paper shows positions."""
POINTS = 24
"""Of a curve."""
SHOWN = 4000
"""Positions of a panel, at the most."""


@dataclass(frozen=True)
class AntMazeFigure:
    """The fraction of the maze explored, and MAX's positions in it."""

    title: str = "Ant Maze: how much of it was explored (fig. 3)"
    seeds: int = 3
    steps: int = 12_000
    methods: tuple[str, ...] = COMPARED
    preset: str = "fast"

    @property
    def claims(self) -> tuple[Claim, ...]:
        return CLAIMS

    def at(self, asked: Asked) -> "AntMazeFigure":
        figure = replace(self, preset=asked.preset)
        if asked.preset == "paper":
            figure = replace(figure, seeds=8)
        if asked.preset == "smoke":
            figure = replace(figure, seeds=1, steps=60, methods=("max", "random"))
        figure = resized(figure, asked, ("seeds", "steps", "methods"))
        checked_methods(figure.methods)
        return figure

    @property
    def trials(self) -> dict[str, Trial]:
        """Every run."""
        return named(
            Trial(ENV, method, seed, self.steps, self.preset)
            for seed in range(FIRST_SEED, FIRST_SEED + self.seeds)
            for method in self.methods
        )

    @property
    def columns(self) -> tuple[int, ...]:
        """Where the ant is."""
        return 2, 3

    def run(self, folder: Path, say: Say, engine: Engine | None = None) -> Measured:
        runs, about = swept(self, folder, say, engine)
        marks = np.unique(np.linspace(0, self.steps, POINTS + 1).astype(int))[1:]
        shares = {name: np.array([explored(run, marks) for run in own]) for name, own in runs.items()}
        wanderer = "max" if "max" in runs else self.methods[0]
        return Measured(
            {"trial": repr(next(iter(self.trials.values())))},
            judged(CLAIMS, {name: [values.mean(axis=1), values[:, -1]] for name, values in shares.items()}),
            {name: curve(tuple(marks.tolist()), values) for name, values in shares.items()},
            {
                **about,
                "final_fraction": {name: values[:, -1].round(4).tolist() for name, values in shares.items()},
                "positions_of": wanderer,
                "positions": {str(mark): positions(runs[wanderer], mark) for mark in marks_within(MARKS, self.steps)},
            },
        )

    def draw(self, summary: dict[str, Any]) -> Any:
        import matplotlib.pyplot as plt

        shown = summary["positions"]
        figure = plt.figure(figsize=(11.5, 7.2), layout="constrained")
        halves: Any = figure.subfigures(2, 1, height_ratios=(1.15, 1))
        above, below = halves
        figure.suptitle(self.title)
        plan, curves = above.subplots(1, 2, width_ratios=(1, 2.4))
        _draw_environment(plan)
        for name, own in summary["curves"].items():
            (line,) = curves.plot(own["x"], own["mean"], label=name, linewidth=1.8)
            curves.fill_between(own["x"], own["p25"], own["p75"], color=line.get_color(), alpha=0.15, linewidth=0)
        curves.set(xlabel="step", ylabel="fraction of the maze explored", ylim=(0, 1.03))
        curves.set_title(f"mean and quartiles of {of_seeds(summary)}", fontsize="medium")
        curves.legend(frameon=False, loc="lower right")
        below.suptitle(f"positions of {summary['positions_of'].upper()}, all of its runs", fontsize="medium")
        panels = below.subplots(1, len(shown), squeeze=False)[0]
        dots: Any = None
        for panel, (mark, places) in zip(panels, shown.items(), strict=True):
            _draw_walls(panel)
            x, y, when = np.array(places).T
            dots = panel.scatter(x, y, c=when, s=3, cmap="viridis_r", vmin=0, vmax=1, linewidths=0)
            panel.set_title(f"{int(mark):,} steps", fontsize="medium")
        below.colorbar(dots, ax=panels, label="time within the episode", shrink=0.8, ticks=(0, 1)).set_ticklabels(
            ["first", "last"]
        )
        return figure


def explored(run: Seen, marks: np.ndarray) -> np.ndarray:
    """The share of the seven cells that was visited by each mark. Where only noise can have been counts for nothing."""
    cells = np.array([-1 if (cell := cell_at(float(x), float(y))) is None else cell for x, y in run.states])
    first = [np.argmax(cells == cell) if (cells == cell).any() else len(cells) for cell in range(len(CELLS))]
    return np.array([sum(at < mark for at in first) for mark in marks]) / len(CELLS)


def positions(runs: list[Seen], mark: int) -> list[list[float]]:
    """Where the ants were by then, and when in its episode, from 0 to 1; thinned out evenly."""
    rows: list[np.ndarray] = []
    for run in runs:
        episodes = run.episodes[:mark]
        begins = np.concatenate([[0], np.flatnonzero(np.diff(episodes)) + 1])
        when = (np.arange(mark) - begins[np.searchsorted(begins, np.arange(mark), side="right") - 1]) / EPISODE
        rows.append(np.column_stack([run.states[:mark], when]))
    every = np.concatenate(rows)
    return every[:: -(-len(every) // SHOWN)].round(3).tolist()


EPISODE = 300


def _draw_environment(panel: Any) -> None:
    """The maze as the camera above sees it; its plan where nothing can be rendered."""
    import gymnasium as gym

    panel.set_title("Ant Maze", fontsize="medium")
    try:
        env = gym.make(ENV, render_mode="rgb_array")
        env.reset(seed=0)
        picture = np.asarray(env.render())
        env.close()
    except Exception:  # no graphics on this machine: drivers fail in ways of their own
        _draw_walls(panel)
        panel.plot(0, 0, "o", color="tab:red")
        return
    panel.imshow(picture)
    panel.set_axis_off()


def _draw_walls(panel: Any) -> None:
    """The plan: walls are dark."""
    from matplotlib.patches import Rectangle

    panel.set(xlim=(-1.5 * CELL, 3.5 * CELL), ylim=(-1.5 * CELL, 3.5 * CELL), aspect="equal", facecolor="#33415c")
    for x, y in CELLS:
        panel.add_patch(Rectangle((CELL * (x - 0.5), CELL * (y - 0.5)), CELL, CELL, color="white", zorder=0.5))
    panel.set(xticks=[], yticks=[])


def _all(fraction: float) -> Judge:
    def judge(scores: Any) -> tuple[float, bool]:
        median = float(np.median(scores["max"][1]))
        return median, median >= fraction

    return Judge(judge, f"at least {fraction:g}", ("max",))


def _area(one: str, other: str) -> Judge:
    """By the area under the curve alone: how quickly."""
    own = better(one, other)
    return replace(own, of=lambda scores: own.of({name: each[:1] for name, each in scores.items()}))


CLAIMS = (
    *in_order(
        "is quicker than", "area gained", ("significantly quicker", "the quickest", "PERX performs poorly"), _area
    ),
    Claim("MAX is quicker than random actions: area gained", "the quickest", _area("max", "random")),
    Claim("MAX has seen all of the maze in the end: median fraction", "1", _all(1.0)),
)
