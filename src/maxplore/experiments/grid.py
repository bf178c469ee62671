"""The paper's hyper-parameter grids on the Chain, ranked as it ranked them: by the area under the exploration curve."""

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from maxplore.experiments import rows
from maxplore.experiments.exploration import Line, explored_shares, sound_shares
from maxplore.experiments.spec import Asked, Claim, Curve, Measured, Say, quartiles, resized
from maxplore.explorers import (
    PAPER_MAX,
    BootstrappedDqnConfig,
    BootstrappedDqnExplorer,
    EbDqnConfig,
    EbDqnExplorer,
    FiniteExplorer,
    MaxExplorer,
    Minibatches,
    OracleExplorer,
)

Setting = dict[str, int | float]

GRIDS: Mapping[str, Mapping[str, tuple[int | float, ...]]] = {
    "MAX": {
        "depth": (2, 3, 4),
        "width": (64, 128, 256),
        "learning_rate": (1e-3, 1e-4),
        "batch_size": (16, 64, 256),
        "per_episode": (16, 32, 64, 128),
        "weight_decay": (0.0, 1e-5, 1e-6, 1e-7),
    },
    "EB-DQN": {
        "bonus": (5e-3, 1e-2, 1e-1),
        "replay": (256, 10**5),
        "depth": (1, 2, 3),
        "width": (32, 64, 128),
        "learning_rate": (1e-2, 1e-3, 1e-4),
        "batch_size": (16, 32, 64),
        "discount": (0.95, 0.975, 0.99),
        "target_every": (16, 64, 256),
    },
    "Bootstrapped DQN": {
        "depth": (1, 2, 3),
        "width": (32, 64, 128),
        "learning_rate": (1e-2, 1e-3, 1e-4),
        "batch_size": (16, 32, 64),
        "iterations": (16, 32, 64),
        "discount": (0.95, 0.975, 0.99),
        "target_every": (16, 64, 256),
    },
}
"""The tables of appendix C: 864, 4374 and 2187 settings."""

CHOSEN: Mapping[str, Setting] = {
    "MAX": dict(zip(GRIDS["MAX"], (4, 128, 1e-3, 256, 64, 1e-6), strict=True)),
    "EB-DQN": dict(zip(GRIDS["EB-DQN"], (1e-1, 256, 3, 64, 1e-2, 32, 0.975, 256), strict=True)),
    "Bootstrapped DQN": dict(zip(GRIDS["Bootstrapped DQN"], (1, 32, 1e-4, 32, 64, 0.95, 16), strict=True)),
}
"""What the paper chose, in bold in its tables."""


def explorer_of(method: str, setting: Setting) -> FiniteExplorer:
    """The explorer that a row of a grid stands for."""
    if method == "MAX":
        network = {name: setting[name] for name in ("depth", "width")}
        training = {name: value for name, value in setting.items() if name not in network}
        model = replace(PAPER_MAX.model, **network)  # pyright: ignore[reportArgumentType]
        return MaxExplorer(replace(PAPER_MAX, model=model, training=Minibatches(**training)))  # pyright: ignore
    if method == "EB-DQN":
        return EbDqnExplorer(EbDqnConfig(**setting))  # pyright: ignore[reportArgumentType]
    return BootstrappedDqnExplorer(BootstrappedDqnConfig(**setting))  # pyright: ignore[reportArgumentType]


def settings_of(method: str, count: int | None) -> list[Setting]:
    """The paper's choice first, then the rest of the grid in a fixed random order; `count` of them, or all."""
    grid = GRIDS[method]
    every = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    others = [setting for setting in every if setting != CHOSEN[method]]
    order = np.random.default_rng(0).permutation(len(others))
    return [CHOSEN[method], *(others[i] for i in order)][:count]


@dataclass(frozen=True)
class Grid:
    """The grids of all three methods. Every setting done is a line of `grid.jsonl`, and is never run again."""

    title: str = "Hyper-parameter grids on the Chain (appendix C)"
    seeds: int = 5
    episodes: int = 60
    configs: int = 6
    """Settings of each method; 0 is all of them."""

    @property
    def claims(self) -> tuple[Claim, ...]:
        """None: it ranks."""
        return ()

    def at(self, asked: Asked) -> "Grid":
        figure = replace(self, seeds=1, episodes=2, configs=1) if asked.preset == "smoke" else self
        return resized(figure, asked, ("seeds", "episodes", "configs"))

    def run(self, folder: Path, say: Say) -> Measured:
        seeds, episodes = self.seeds, self.episodes
        record = folder / "grid.jsonl"
        done: dict[str, list[list[float]]] = {}
        for row in rows.read(record):
            if row.get("episodes") == episodes and (shares := sound_shares(row, episodes)) is not None:
                done[_name(row)] = shares.tolist()  # the last of a name has the most seeds
        tried: list[dict[str, Any]] = []
        for method in GRIDS:
            for setting in settings_of(method, self.configs or None):
                row = {"method": method, "setting": setting, "seeds": seeds, "episodes": episodes}
                shares = done.get(_name(row), [])
                if len(shares) < seeds:
                    line = Line(explorer_of(method, setting), at_once=seeds if method == "EB-DQN" else 1)
                    shares = [*shares, *explored_shares(line, seeds, episodes, first=len(shares)).round(4).tolist()]
                    rows.append(record, {**row, "shares": shares})
                    say(f"{method} {setting}: area {_area({'shares': shares}):.3f}")
                tried.append({**row, "shares": shares[:seeds]})
        ranked = {
            method: sorted((row for row in tried if row["method"] == method), key=_area, reverse=True)
            for method in GRIDS
        }
        curves: dict[str, Curve] = {}
        for method, order in ranked.items():
            chosen = next(row for row in order if row["setting"] == CHOSEN[method])
            curves[f"{method}, best of those tried"] = quartiles(np.array(order[0]["shares"]))
            curves[f"{method}, the paper's choice"] = quartiles(np.array(chosen["shares"]))
        ranking = {
            method: [
                {"setting": row["setting"], "area": round(_area(row), 4), "chosen": row["setting"] == CHOSEN[method]}
                for row in order
            ]
            for method, order in ranked.items()
        }
        limit = explored_shares(Line(OracleExplorer(), at_once=seeds), seeds, episodes)
        curves["oracle"] = quartiles(limit)
        config = {method: repr(dict(grid)) for method, grid in GRIDS.items()}
        extra = {"ranking": ranking, "oracle_area": round(float(np.median(limit.mean(axis=1))), 4)}
        return Measured(config, [], curves, extra)

    def draw(self, summary: dict[str, Any]) -> Any:
        import matplotlib.pyplot as plt
        from matplotlib.ticker import MaxNLocator

        figure, axes = plt.subplots(1, len(GRIDS), figsize=(13, 4), sharey=True, layout="constrained")
        for panel, (method, order) in zip(axes, summary["ranking"].items(), strict=True):
            areas = np.array([row["area"] for row in order])
            chosen = np.array([row["chosen"] for row in order])
            rank = np.arange(1, len(areas) + 1)
            panel.plot(rank, areas, ".-", color="grey")
            panel.axhline(summary["oracle_area"], color="black", linestyle="--", linewidth=1.1, label="oracle")
            panel.xaxis.set_major_locator(MaxNLocator(integer=True))
            panel.plot(rank[chosen], areas[chosen], "o", color="C3", label="the paper's choice")
            panel.set(title=f"{method}: {len(areas)} settings", xlabel="rank", ylim=(0, 1.02))
        axes[0].set_ylabel("area under the exploration curve")
        axes[0].legend(frameon=False, loc="lower left")
        figure.suptitle(self.title)
        return figure


def _name(row: dict[str, Any]) -> str:
    return json.dumps([row.get(key) for key in ("method", "setting", "episodes")])


def _area(row: dict[str, Any]) -> float:
    """The median over seeds of the area under the exploration curve."""
    return float(np.median(np.array(row["shares"]).mean(axis=1)))
