"""Runs an experiment: the numbers, the claims judged on them, the figure. The plot only reads recorded numbers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl

from maxplore.errors import InputError
from maxplore.experiments.chain import EXPERIMENTS
from maxplore.experiments.grid import Grid
from maxplore.experiments.spec import Say


def reproduce(
    name: str,
    out: Path,
    *,
    seeds: int | None = None,
    episodes: int | None = None,
    configs: int | None = None,
    say: Say,
) -> dict[str, Any]:
    """Run a figure, write `summary.json`, PNG and SVG into `out`, and return the summary.

    `configs` is for grids alone: how many settings of each method, 0 for all.
    """
    from maxplore import __version__

    if name not in EXPERIMENTS:
        raise InputError(f"figure is {name!r}, expected one of {', '.join(EXPERIMENTS)}")
    for argument, value in (("seeds", seeds), ("episodes", episodes)):
        if value is not None and value < 1:
            raise InputError(f"--{argument} is {value}, expected at least 1")
    experiment = EXPERIMENTS[name]
    if configs is not None:
        if not isinstance(experiment, Grid):
            raise InputError(f"--configs is for grids, and {name} is none: leave it out")
        if configs < 0:
            raise InputError(f"--configs is {configs}, expected at least 1, or 0 for all")
        experiment = replace(experiment, configs=configs or None)
    seeds, episodes = seeds or experiment.seeds, episodes or experiment.episodes
    out.mkdir(parents=True, exist_ok=True)  # before the work: a folder that cannot be made should not cost it
    measured = experiment.run(seeds, episodes, out, say)
    summary = {
        "figure": name,
        "command": f"maxplore reproduce {name} --seeds {seeds} --episodes {episodes}"
        + (f" --configs {configs}" if configs is not None else ""),
        "version": __version__,
        "config": measured.config,
        "seeds": seeds,
        "claims": measured.claims,
        "curves": measured.curves,
        **measured.extra,
    }
    mpl.use("Agg")
    figure = experiment.draw(summary)
    # All is written before anything is put in its place: pictures never stand beside the numbers of another run.
    for suffix in ("png", "svg"):
        figure.savefig(out / f"{name}.{suffix}.part", dpi=150, format=suffix)
    (out / "summary.json.part").write_text(json.dumps(summary, indent=1) + "\n")
    for file in (f"{name}.png", f"{name}.svg", "summary.json"):
        (out / f"{file}.part").replace(out / file)
    return summary
