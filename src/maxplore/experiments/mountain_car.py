"""Figure 5: what MAX does not know of Mountain Car, over positions and velocities, and where it went."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from maxplore.envs.mountain_car import FLAG, LEFT, MAX_SPEED, RIGHT
from maxplore.experiments.spec import Asked, Claim, Judge, Measured, Say, resized
from maxplore.experiments.swept import FIRST_SEED, curve, marks_within, named, of_seeds, swept
from maxplore.sweep import Engine, Trial
from maxplore.sweep.work import GRID

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

    @property
    def claims(self) -> tuple[Claim, ...]:
        return CLAIMS

    def at(self, asked: Asked) -> "MountainCarFigure":
        figure = replace(self, preset=asked.preset)
        if asked.preset == "smoke":
            figure = replace(figure, seeds=1, steps=60)
        return resized(figure, asked, ("seeds", "steps"))

    @property
    def trials(self) -> dict[str, Trial]:
        """Every run, those of MAX with their landscapes."""
        marks = marks_within(MARKS, self.steps)
        return named(
            Trial(
                "maxplore/MountainCar-v0",
                method,
                seed,
                self.steps,
                self.preset,
                landscapes=marks if method == "max" else (),
            )
            for seed in range(FIRST_SEED, FIRST_SEED + self.seeds)
            for method in ("max", "random")
        )

    @property
    def columns(self) -> tuple[int, ...]:
        """Position and velocity."""
        return 0, 1

    def run(self, folder: Path, say: Say, engine: Engine | None = None) -> Measured:
        marks = marks_within(MARKS, self.steps)
        runs, about = swept(self, folder, say, engine)
        plains = np.stack([[run.landscapes[mark] for mark in marks] for run in runs["max"]])
        flags = [first_at_flag(run.states) for run in runs["max"]]
        unknown = plains.mean(axis=(2, 3))
        cells = {
            name: np.array([[covered(run.states[:mark]) for mark in marks] for run in runs[name]]) for name in runs
        }
        measured = {"flag": flags, "unknown": unknown, "cells": cells}
        return Measured(
            {"trial": repr(next(iter(self.trials.values())))},
            [claim.judged(measured) for claim in CLAIMS],
            {
                "unknown, mean over the plane (nats)": curve(marks, unknown),
                "cells visited, of 1600": curve(marks, cells["max"]),
                "cells visited by random actions": curve(marks, cells["random"]),
            },
            {
                **about,
                "first_at_flag": [None if np.isinf(flag) else int(flag) for flag in flags],
                "landscapes": plains[0].astype(float).round(4).tolist(),
                "trajectory": runs["max"][0].states.astype(float).round(4).tolist(),
                "episodes": runs["max"][0].episodes.tolist(),
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
        figure.suptitle(f"{self.title}: one run of {of_seeds(summary)}")
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
    return ratio, ratio <= HALF


def _beats_chance(measured: Any) -> tuple[float, bool]:
    own, random = (float(np.median(measured["cells"][name][:, -1])) for name in ("max", "random"))
    return own / random, own / random >= TWICE


HALF, TWICE = 0.5, 2.0

CLAIMS = (
    Claim("at the flag within the first episode, with no reward: share of seeds", "yes", Judge(_reached, "all")),
    Claim("at the flag by step 220: median of the step", "at most 220", Judge(_soon, f"at most {MARKS[2]}")),
    Claim(
        "at most half as much is unknown at the last mark as at the first: ratio (median)",
        "less",
        Judge(_shrinks, f"at most {HALF}"),
    ),
    Claim(
        "its spirals fill the plane: cells visited, at least twice those of random actions (medians)",
        "spirals in between",
        Judge(_beats_chance, f"at least {TWICE:g}"),
    ),
)
