"""Explore Mountain Car with no reward, and draw what is known of it and what is not.

python examples/mountain_car.py [--steps 400] [--seed 0] [--out runs/demo]
"""

import argparse
from pathlib import Path

import gymnasium as gym
import matplotlib as mpl
import numpy as np

import maxplore

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

FLAG, GRID = 0.45, 40
LOW, HIGH = np.array([-1.2, -0.07]), np.array([0.6, 0.07])


def explored(method: str, steps: int, seed: int) -> maxplore.Explorer:
    """An explorer that has seen so many steps of Mountain Car, and no reward."""
    env = gym.make("maxplore/MountainCar-v0")
    explorer = maxplore.Explorer(env.observation_space, env.action_space, method=method, seed=seed)
    explorer.explore(env, steps, watch=say)
    return explorer


def say(figures: dict[str, float]) -> None:
    """A line for every fourth round of fitting and planning."""
    if figures["step"] % 100 == 50:
        print(
            f"  step {figures['step']:4.0f}: utility ahead {figures['utility']:.2f} nats a step, "
            f"{figures['saturation']:.0%} of its ceiling; model error {figures['error']:.3f}"
        )


def places(explorer: maxplore.Explorer) -> np.ndarray:
    """Position and velocity after every step."""
    return np.asarray(explorer.history.transitions.next_state)[: explorer.steps]


def covered(states: np.ndarray) -> int:
    """Cells of a 40 x 40 grid of position and velocity that were visited."""
    cells = np.floor(GRID * (states - LOW) / (HIGH - LOW)).clip(0, GRID - 1).astype(int)
    return len(np.unique(cells, axis=0))


def draw(max_: maxplore.Explorer, random: maxplore.Explorer, path: Path) -> None:
    """What MAX and random actions have seen, on what the ensemble of MAX still disagrees about."""
    position, velocity = np.meshgrid(*(np.linspace(*ends, 60) for ends in zip(LOW, HIGH, strict=True)))
    states = np.stack([position.ravel(), velocity.ravel()], axis=1)
    unknown = np.mean([max_.utility(states, np.full((len(states), 1), a)) for a in (-1.0, 0.0, 1.0)], axis=0)
    scale = Normalize(0, unknown.max())
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", sharey=True)
    for panel, name, explorer in zip(panels, ("random", "MAX"), (random, max_), strict=True):
        panel.pcolormesh(position, velocity, unknown.reshape(position.shape), cmap="viridis", norm=scale)
        panel.plot(*places(explorer).T, ".", color="white", markersize=2)
        panel.axvline(FLAG, color="tab:red", linewidth=1, linestyle="--")
        panel.set(title=f"{name}: {covered(places(explorer))} cells in {explorer.steps} steps", xlabel="position")
    panels[0].set_ylabel("velocity")
    figure.colorbar(ScalarMappable(scale, "viridis"), ax=panels, label="what MAX has yet to learn (nats)")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/demo"))
    arguments = parser.parse_args()
    if arguments.steps <= 50:
        parser.error(f"--steps is {arguments.steps}, expected more than the 50 of the warm-up")
    found: dict[str, maxplore.Explorer] = {}
    for method in ("random", "max"):
        print(f"{method}: {arguments.steps} steps of Mountain Car, no reward")
        found[method] = explored(method, arguments.steps, arguments.seed)
        states = places(found[method])
        print(f"  {covered(states)} of {GRID * GRID} cells of the state space visited")
        if (states[:, 0] >= FLAG).any():
            print(
                f"  the car was at the flag after {np.argmax(states[:, 0] >= FLAG) + 1} steps, and nobody asked for it"
            )
    draw(found["max"], found["random"], arguments.out / "mountain_car.png")
    print(f"What is known and what is not: {arguments.out / 'mountain_car.png'}")


if __name__ == "__main__":
    main()
