"""Runs an experiment: the numbers, the claims judged on them, the figure. The plot only reads recorded numbers."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import matplotlib as mpl
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from maxplore.envs.chain import Chain
from maxplore.errors import InputError
from maxplore.experiments.spec import EXPERIMENTS, Experiment, Line
from maxplore.explorers import run

MASTER = 2019
"""Seeds reported are drawn from this key; those used for tuning were not."""


def explored_shares(line: Line, seeds: int, episodes: int) -> np.ndarray:
    """The explored share after each episode, `[seeds, episodes]`."""

    def one(key: PRNGKeyArray) -> Float[Array, " episodes"]:
        key_chain, key_run = jax.random.split(key)
        chain = Chain.random(line.length, stochastic_trap=line.stochastic_trap, key=key_chain)
        return run(line.explorer, chain, episodes, key=key_run, stop_when_explored=True)

    keys = jax.random.split(jax.random.key(MASTER), seeds)
    size = min(line.at_once, seeds)
    whole = jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=size if size > 1 else None))
    return np.asarray(whole(keys))


def reproduce(
    name: str, out: Path, *, seeds: int | None = None, episodes: int | None = None, say: Callable[[str], None]
) -> dict[str, Any]:
    """Run a figure, write `summary.json`, PNG and SVG into `out`, and return the summary."""
    if name not in EXPERIMENTS:
        raise InputError(f"figure is {name!r}, expected one of {', '.join(EXPERIMENTS)}")
    for argument, value in (("seeds", seeds), ("episodes", episodes)):
        if value is not None and value < 1:
            raise InputError(f"--{argument} is {value}, expected at least 1")
    experiment = EXPERIMENTS[name]
    experiment = replace(experiment, seeds=seeds or experiment.seeds, episodes=episodes or experiment.episodes)
    shares: dict[str, np.ndarray] = {}
    for label, line in experiment.lines.items():
        shares[label] = explored_shares(line, experiment.seeds, experiment.episodes)
        say(f"{label}: {np.median(shares[label][:, -1]):.0%} explored after {experiment.episodes} episodes")
    summary = summarize(name, experiment, shares)
    out.mkdir(parents=True, exist_ok=True)
    figure = draw(experiment, summary)
    for suffix in ("png", "svg"):
        figure.savefig(out / f"{name}.{suffix}", dpi=150)
    temporary = out / "summary.json.part"
    temporary.write_text(json.dumps(summary, indent=1) + "\n")
    temporary.replace(out / "summary.json")
    return summary


def summarize(name: str, experiment: Experiment, shares: dict[str, np.ndarray]) -> dict[str, Any]:
    """The numbers of a figure, and the claims judged on them."""
    from maxplore import __version__

    claims: list[dict[str, Any]] = []
    for claim in experiment.claims:
        measured, holds = claim.judge(shares)
        # JSON has no infinity: a share never reached is null
        value = round(measured, 4) if np.isfinite(measured) else None
        claims.append({"claim": claim.claim, "paper": claim.paper, "measured": value, "holds": bool(holds)})
    episodes = list(range(1, experiment.episodes + 1))
    return {
        "figure": name,
        "command": f"maxplore reproduce {name} --seeds {experiment.seeds} --episodes {experiment.episodes}",
        "version": __version__,
        "config": {label: repr(line) for label, line in experiment.lines.items()},
        "seeds": experiment.seeds,
        "claims": claims,
        "curves": {
            label: {
                "x": episodes,
                **{
                    key: np.quantile(values, quantile, axis=0).round(4).tolist()
                    for key, quantile in (("median", 0.5), ("p25", 0.25), ("p75", 0.75))
                },
            }
            for label, values in shares.items()
        },
    }


def draw(experiment: Experiment, summary: dict[str, Any]) -> Any:
    """Median and quartiles of the explored share by episode."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panel = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
    drawn = {label: curve for label, curve in summary["curves"].items() if not label.startswith("oracle,")}
    colors = plt.get_cmap("viridis" if len(drawn) > 8 else "tab10")
    for number, (label, curve) in enumerate(drawn.items()):
        color = colors(number / len(drawn)) if len(drawn) > 8 else colors(number)
        style = "--" if label.startswith("oracle") else "-"
        panel.plot(curve["x"], curve["median"], style, color=color, label=label, linewidth=1.6)
        if len(drawn) <= 8:
            panel.fill_between(curve["x"], curve["p25"], curve["p75"], color=color, alpha=0.18, linewidth=0)
    panel.axvline(3, color="grey", linestyle=":", linewidth=1)
    panel.set(xlabel="episode", ylabel="explored share of state-action pairs", ylim=(0, 1.02), title=experiment.title)
    panel.legend(frameon=False, fontsize=8, ncols=2 if len(drawn) > 8 else 1, loc="lower right")
    return figure
