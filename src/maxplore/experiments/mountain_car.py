"""Figure 5: what MAX does not know of Mountain Car, over positions and velocities, and where it went."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from maxplore.envs.mountain_car import FLAG, LEFT, MAX_SPEED, RIGHT
from maxplore.experiments.spec import Asked, Claim, Judge, Measured, Say, resized
from maxplore.experiments.swept import FIRST_SEED, curve, swept
from maxplore.sweep import Trial
from maxplore.sweep.work import GRID, landscape_file

MARKS = (100, 150, 220, 800)
"""Steps after which the paper shows the landscape."""
FIRST_EPISODE = 500


@dataclass(frozen=True)
class MountainCarFigure:
    """Landscapes of one seed, and what all of them have in common."""

    title: str = "What MAX does not know of Mountain Car (fig. 5)"
    seeds: int = 5
    steps: int = 800
    preset: str = "fast"

    def at(self, asked: Asked) -> "MountainCarFigure":
        figure = replace(self, preset=asked.preset)
        if asked.preset == "smoke":
            figure = replace(figure, seeds=1, steps=60)
        return resized(figure, asked, ("seeds", "steps"))

    @property
    def marks(self) -> tuple[int, ...]:
        """Steps that are shown: the paper's, as far as there are so many."""
        return tuple(mark for mark in MARKS if mark <= self.steps) or (self.steps // 2, self.steps)

    def run(self, folder: Path, say: Say) -> Measured:
        seeds = range(FIRST_SEED, FIRST_SEED + self.seeds)
        trials = {
            ("max", seed): Trial("maxplore/MountainCar-v0", "max", seed, self.steps, self.preset, landscapes=self.marks)
            for seed in seeds
        }
        runs = swept(trials, folder, say)["max"]
        plains: list[np.ndarray] = []
        for seed in seeds:
            files = [landscape_file(folder / "runs" / f"max-{seed}", mark) for mark in self.marks]
            plains.append(np.stack([np.load(file, allow_pickle=False)["utility"] for file in files]))
        flags = [first_at_flag(run.states) for run in runs]
        unknown = np.stack(plains).mean(axis=(2, 3))
        cells = np.array([[covered(run.states[:mark]) for mark in self.marks] for run in runs])
        measured = {"flag": flags, "unknown": unknown, "cells": cells}
        return Measured(
            {"trial": repr(next(iter(trials.values())))},
            [claim.judged(measured) for claim in CLAIMS],
            {
                "unknown, mean over the plane (nats)": curve(self.marks, unknown),
                "cells visited, of 1600": curve(self.marks, cells),
            },
            {
                "first_at_flag": [None if np.isinf(flag) else int(flag) for flag in flags],
                "landscapes": plains[0].round(4).tolist(),
                "trajectory": runs[0].states.round(4).tolist(),
                "episodes": runs[0].episodes.tolist(),
            },
        )

    def draw(self, summary: dict[str, Any]) -> Any:
        import matplotlib.pyplot as plt
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize

        plains, path = np.array(summary["landscapes"]), np.array(summary["trajectory"])
        marks, episodes = summary["curves"]["cells visited, of 1600"]["x"], np.array(summary["episodes"])
        scale = Normalize(0, float(plains.max()))
        figure, panels = plt.subplots(
            1, len(marks), figsize=(3.3 * len(marks) + 0.8, 3.4), layout="constrained", sharey=True, squeeze=False
        )
        for panel, plain, mark in zip(panels[0], plains, marks, strict=True):
            panel.imshow(
                plain.T,
                origin="lower",
                extent=(LEFT, RIGHT, -MAX_SPEED, MAX_SPEED),
                aspect="auto",
                cmap="viridis",
                norm=scale,
                interpolation="bilinear",
            )
            for episode in range(int(episodes[mark - 1]) + 1):
                own = path[:mark][episodes[:mark] == episode]
                panel.plot(*own.T, ":", color="white", linewidth=1.2)
            panel.axvline(FLAG, color="tab:red", linewidth=1)
            panel.set(title=f"{mark} steps", xlabel="position", xlim=(LEFT, RIGHT), ylim=(-MAX_SPEED, MAX_SPEED))
        panels[0, 0].set_ylabel("velocity")
        figure.colorbar(ScalarMappable(scale, "viridis"), ax=panels, label="uncertainty, mean over actions (nats)")
        return figure


def first_at_flag(states: np.ndarray) -> float:
    """Steps until the car was at the flag; infinite if it never was."""
    there = states[:, 0] >= FLAG
    return float(np.argmax(there) + 1) if there.any() else np.inf


def covered(states: np.ndarray) -> int:
    """Cells of the landscape's grid that were visited."""
    low, high = np.array([LEFT, -MAX_SPEED]), np.array([RIGHT, MAX_SPEED])
    cells = np.floor(GRID * (states - low) / (high - low)).clip(0, GRID - 1).astype(int)
    return len(np.unique(cells, axis=0))


def _reached(measured: Any) -> tuple[float, bool]:
    share = float(np.mean(np.array(measured["flag"]) <= FIRST_EPISODE))
    return share, share == 1.0


def _soon(measured: Any) -> tuple[float, bool]:
    median = float(np.median(measured["flag"]))
    return median, median <= MARKS[2]


def _shrinks(measured: Any) -> tuple[float, bool]:
    ratio = float(np.median(measured["unknown"][:, -1] / measured["unknown"][:, 0]))
    return ratio, ratio < 1


def _goes_between(measured: Any) -> tuple[float, bool]:
    cells = measured["cells"]
    ratio = float(np.median(cells[:, -1] / cells[:, -2]))
    return ratio, ratio >= BETWEEN


BETWEEN = 1.5

CLAIMS = (
    Claim("at the flag within the first episode, with no reward: share of seeds", "yes", Judge(_reached)),
    Claim("at the flag by step 220: median of the step", "at most 220", Judge(_soon)),
    Claim("less is unknown at the last mark than at the first: ratio (median)", "less", Judge(_shrinks)),
    Claim(
        "later spirals go between the first: cells visited by the last mark over those by the one before, at least 1.5",
        "more",
        Judge(_goes_between),
    ),
)
