"""Draws the two pictures of docs/how-it-works.md: `python -m tools.pictures`."""

import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np

import maxplore
from maxplore.utilities import JensenRenyi, jensen_renyi

mpl.use("Agg")
import matplotlib.pyplot as plt

IMAGES = Path(__file__).parent.parent / "docs" / "images"
MEMBERS = 5
DOUBT, CHANCE = "#1f8a7d", "#c8553d"


def world(numbers: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """States and their changes: a quiet part, a gap that nobody has seen, and a part that is mostly noise."""
    x = np.concatenate([numbers.uniform(-3, -1, 150), numbers.uniform(1, 3, 250)])
    return x, 0.8 * np.sin(3 * x) + numbers.normal(size=x.shape) * np.where(x < 0, 0.03, 0.5)


def disagreement(path: Path) -> None:
    """An ensemble that was fitted to that world, and what each place in it would teach."""
    x, change = world(np.random.default_rng(0))
    still = np.zeros((len(x), 1))
    history = maxplore.History.continuous(1, 1).append(x[:, None], still, (x + change)[:, None])
    config = maxplore.GaussianConfig(members=MEMBERS, depth=3, width=64, first_gain=10.0, log_variance=(-10.0, -1.0))
    fresh = maxplore.GaussianEnsemble(1, 1, config, key=jax.random.key(0))
    training = maxplore.FitConfig(epochs=400, most_steps=1500, batch_size=64, learning_rate=5e-3, cooling=1.0)
    ensemble = maxplore.fit(fresh, history, training, key=jax.random.key(1)).ensemble
    places = np.linspace(-3, 3, 121, dtype=np.float32)[:, None]
    mean, variance = map(np.asarray, ensemble.predict(places, np.zeros_like(places)))
    mdp = maxplore.ExplorationMDP(ensemble, JensenRenyi())
    worth = np.asarray(mdp.worth(jnp.asarray(places), jnp.zeros_like(places), jnp.asarray(places)))

    figure, (above, below) = panels(2, (8.2, 5.0), sharex=True, height_ratios=(1.5, 1))
    above.plot(x, change, ".", color="0.6", markersize=4, label="what was seen")
    for member in range(MEMBERS):
        line, spread = mean[member, :, 0] - places[:, 0], np.sqrt(variance[member, :, 0])
        above.fill_between(places[:, 0], line - spread, line + spread, color=f"C{member}", alpha=0.12, linewidth=0)
        above.plot(places[:, 0], line, color=f"C{member}", linewidth=1.5)
    above.set(ylabel="change of state", ylim=(-2.4, 2.4))
    for left, right, text in ((-3, -1, "known"), (-1, 1, "never seen"), (1, 3, "noise")):
        above.text((left + right) / 2, 2.0, text, ha="center", color="0.25")
        for panel in (above, below):
            panel.axvline(right, color="0.85", linewidth=0.8)
    chance = np.sqrt(variance[:, :, 0]).mean(axis=0)
    below.plot(places[:, 0], chance, color=CHANCE, label="chance: the members' own spread")
    below.plot(places[:, 0], worth, color=DOUBT, label="doubt: utility, in nats")
    below.axhline(math.log(MEMBERS), color="0.5", linestyle=":", linewidth=1)
    below.text(-2.97, math.log(MEMBERS) - 0.06, f"ln {MEMBERS}", va="top", color="0.4")
    below.set(xlabel="state", xlim=(-3, 3), ylim=(-0.08, 1.75))
    below.legend(frameon=False, loc="upper right", fontsize=9)
    save(figure, path)


def ceiling(path: Path) -> None:
    """The divergence of members whose means lie evenly spread, ever farther apart."""
    apart = np.linspace(0, 6, 61)
    figure, (panel,) = panels(1, (8.2, 2.9))
    for members, color in ((32, "#31326f"), (5, DOUBT), (2, CHANCE)):
        mean = np.arange(members)[:, None, None] * apart[None, :, None]
        panel.plot(apart, np.asarray(jensen_renyi(mean, np.ones_like(mean))), color=color)
        panel.axhline(math.log(members), color=color, linestyle=":", linewidth=1)
        panel.text(6.05, math.log(members), f"ln {members}", va="center", color=color)
        panel.text(4.5, math.log(members) - 0.07, f"{members} members", va="top", ha="center", color=color)
    panel.set(xlabel="standard deviations between neighbours", ylabel="utility (nats)", xlim=(0, 6), ylim=(0, 3.7))
    save(figure, path)


def panels(count: int, size: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    """A figure of panels one above another, without frames."""
    ratios = {"height_ratios": options.pop("height_ratios")} if "height_ratios" in options else {}
    figure, found = plt.subplots(
        count, 1, figsize=size, layout="constrained", squeeze=False, gridspec_kw=ratios, **options
    )
    for panel in found[:, 0]:
        panel.spines[["top", "right"]].set_visible(False)
    return figure, found[:, 0]


def save(figure: Any, path: Path) -> None:
    """The same file for the same picture."""
    with mpl.rc_context({"svg.hashsalt": "maxplore", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    disagreement(IMAGES / "disagreement.svg")
    ceiling(IMAGES / "ceiling.svg")


if __name__ == "__main__":
    main()
