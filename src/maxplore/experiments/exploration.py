"""Figures that show how much was explored by which episode."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, PartitionSpec
from jaxtyping import Array, Float, PRNGKeyArray

from maxplore.compiling import compiled
from maxplore.envs.chain import Chain
from maxplore.experiments import rows
from maxplore.experiments.kept import CHANGED, code
from maxplore.experiments.spec import Asked, Claim, Measured, Say, episodes_needed, judged, quartiles, resized
from maxplore.explorers import FiniteExplorer, run

MASTER = 2020
"""Seeds reported are drawn from this key; those used for tuning were not."""


@dataclass(frozen=True)
class Line:
    """One curve: an explorer on chains of one kind."""

    explorer: FiniteExplorer
    length: int = 50
    stochastic_trap: bool = False
    at_once: int = 1
    """Seeds computed side by side: many for explorers that do the same at every step; one for those that do more now
    and then, since all of a batch would do it every time."""


@dataclass(frozen=True)
class Exploration:
    """Explored share by episode: its lines, in one panel or more, and its claims."""

    title: str
    lines: Mapping[str, Line]
    seeds: int
    episodes: int
    claims: tuple[Claim, ...]
    smoke: tuple[str, ...]
    """Lines that are enough to show that everything works."""
    panels: Mapping[str, tuple[str, ...]] | None = None
    """Titles of panels and the lines in each; None is one panel with all lines."""

    def at(self, asked: Asked) -> "Exploration":
        figure = self
        if asked.preset == "smoke":
            figure = replace(self, seeds=1, episodes=4, lines={label: self.lines[label] for label in self.smoke})
        return resized(figure, asked, ("seeds", "episodes"))

    def run(self, folder: Path, say: Say) -> Measured:
        seeds, episodes = self.seeds, self.episodes
        shares: dict[str, np.ndarray] = {}
        for label, line in self.lines.items():
            shares[label] = kept_shares(folder / "shares.jsonl", line, seeds, episodes)
            say(f"{label}: {np.median(shares[label][:, -1]):.0%} explored after {episodes} episodes")
        needed = {label: _finite(episodes_needed(values)) for label, values in shares.items()}
        return Measured(
            {label: repr(line) for label, line in self.lines.items()},
            judged(self.claims, shares, episodes),
            {label: quartiles(values) for label, values in shares.items()},
            {"episodes_needed": needed, "final_share": {k: v[:, -1].round(4).tolist() for k, v in shares.items()}},
        )

    def draw(self, summary: dict[str, Any]) -> Any:
        import matplotlib.pyplot as plt
        from matplotlib.ticker import MaxNLocator

        panels = self.panels or {self.title: tuple(self.lines)}
        size = (7.5, 4.6) if len(panels) == 1 else (4.6 * len(panels), 4.2)
        figure, axes = plt.subplots(1, len(panels), figsize=size, layout="constrained", sharey=True, squeeze=False)
        for panel, (title, labels) in zip(axes[0], panels.items(), strict=True):
            curves = summary["curves"]
            _draw_panel(panel, {label: curves[label] for label in labels if label in curves})
            panel.set(xlabel="episode", ylim=(0, 1.02), title=title)
            panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes[0, 0].set_ylabel("explored share of state-action pairs")
        if len(panels) > 1:
            figure.suptitle(self.title)
        return figure


def kept_shares(record: Path, line: Line, seeds: int, episodes: int) -> np.ndarray:
    """`explored_shares`, of which the same code runs no seed again that it has put down before: a row of the record is
    a line's next seeds. One that a crash has cut short, or that is anything else, is not there."""
    own: dict[str, Any] = {"code": code(), "line": repr(line), "episodes": episodes}
    shares = np.zeros((0, episodes))
    if not own["code"].endswith(CHANGED):  # who knows what that was
        for row in rows.read(record):
            new = sound_shares(row, episodes) if row == {**row, **own, "first": len(shares)} else None
            shares = shares if new is None else np.concatenate([shares, new])
    if len(shares) < seeds:
        first = len(shares)
        new = explored_shares(line, seeds, episodes, first=first).astype(np.float64).round(6)
        rows.append(record, {**own, "first": first, "shares": new.tolist()})
        shares = np.concatenate([shares, new])
    return shares[:seeds]


def sound_shares(row: dict[str, Any], episodes: int) -> np.ndarray | None:
    """Those of a row; None if they are not shares of whole seeds."""
    try:
        shares = np.array(row["shares"], np.float64)
    except (KeyError, TypeError, ValueError):
        return None
    sound = shares.ndim == 2 and shares.shape[1] == episodes and bool(((shares >= 0) & (shares <= 1)).all())
    return shares if sound else None


def explored_shares(line: Line, seeds: int, episodes: int, *, first: int = 0) -> np.ndarray:
    """The explored share after each episode, `[seeds, episodes]`, of all seeds but so many of the `first`: dealt out to
    all devices."""

    def one(key: PRNGKeyArray) -> Float[Array, " episodes"]:
        key_chain, key_run = jax.random.split(key)
        chain = Chain.random(line.length, stochastic_trap=line.stochastic_trap, key=key_chain)
        return run(line.explorer, chain, episodes, key=key_run, stop_when_explored=True)

    keys = jax.random.split(jax.random.key(MASTER), seeds)[first:]  # of more seeds, the first are the same
    devices = min(jax.device_count(), len(keys))
    share = -(-len(keys) // devices)
    padded = keys[np.arange(share * devices) % len(keys)]
    size = min(line.at_once, share)
    mesh = jax.make_mesh((devices,), ("seeds",), axis_types=(AxisType.Auto,), devices=jax.devices()[:devices])
    own, spec = lambda keys: jax.lax.map(one, keys, batch_size=size if size > 1 else None), PartitionSpec("seeds")
    whole = compiled(jax.shard_map(own, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False), filtered=False)
    return np.asarray(whole(padded))[: len(keys)]


def _finite(values: np.ndarray) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]


def _draw_panel(panel: Any, curves: dict[str, Any]) -> None:
    """Median and quartiles of the explored share by episode; oracles dashed, in the colour of what they limit."""
    import matplotlib.pyplot as plt

    oracles = [label for label in curves if label.startswith("oracle")]
    others = [label for label in curves if label not in oracles]
    many = len(others) > 8
    shades = plt.get_cmap("viridis" if many else "tab10")
    colors = {label: shades(i / len(others)) if many else shades(i) for i, label in enumerate(others)}
    paired = len(oracles) == len(others)
    colors |= {label: colors[others[i]] if paired else "black" for i, label in enumerate(oracles)}
    for label in (*others, *oracles):
        curve, oracle = curves[label], label in oracles
        # Of many oracles, one for each line, one name is enough.
        name = ("oracle" if label == oracles[0] else None) if oracle and paired else label
        style, width = ("--", 1.1) if oracle else ("-", 1.6)
        panel.plot(curve["x"], curve["median"], style, color=colors[label], label=name, linewidth=width)
        if not many and not oracle:
            panel.fill_between(curve["x"], curve["p25"], curve["p75"], color=colors[label], alpha=0.18, linewidth=0)
    panel.axvline(3, color="grey", linestyle=":", linewidth=1)
    panel.legend(frameon=False, fontsize=8, ncols=2 if many else 1, loc="lower right")
