"""Explore Mountain Car with no reward: plan to reach what the ensemble disagrees about, and draw what it knows.

    python examples/mountain_car.py [--steps 600] [--seed 0] [--out runs/demo]

The planner is the smallest that works: the cross-entropy method on open-loop plans in the exploration MDP.
"""

import argparse
from pathlib import Path
from typing import Any

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

import maxplore
from maxplore.utilities import JensenRenyi, saturation

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

WARM_UP, REFIT_EVERY = 50, 20
HORIZON, PLANS, ELITE, ROUNDS, HOLD = 40, 96, 12, 4, 4
MODEL = maxplore.GaussianConfig(members=5, depth=2, width=64, log_variance=(-10.0, -1.0))
FIT = maxplore.FitConfig(epochs=100, batch_size=64)
FLAG = 0.45


@eqx.filter_jit
def plan(
    mdp: maxplore.ExplorationMDP, state: Float[Array, "2"], mean: Float[Array, " blocks"], *, key: PRNGKeyArray
) -> tuple[Float[Array, " blocks"], Float[Array, ""]]:
    """The best open-loop plan (each action held for HOLD steps) and the utility that it promises."""

    def value(plans: Float[Array, "plans blocks"], key: PRNGKeyArray) -> Float[Array, " plans"]:
        def advance(states: Array, now: tuple[Array, PRNGKeyArray]) -> tuple[Array, Array]:
            step = mdp.step(states, now[0][:, None], key=now[1])
            return step.next_state, step.reward

        actions = jnp.repeat(plans, HOLD, axis=1).T
        keys = jax.random.split(key, HORIZON)
        return jnp.sum(jax.lax.scan(advance, mdp.start(state, PLANS), (actions, keys))[1], axis=0)

    def improve(carry: tuple[Array, Array], key: PRNGKeyArray) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        mean, std = carry
        key_noise, key_value = jax.random.split(key)
        noise = jax.random.normal(key_noise, (PLANS, mean.size))
        plans = jnp.clip(mean[None] + std[None] * noise, -1.0, 1.0).at[0].set(mean)
        values = value(plans, key_value)
        elite = plans[jnp.argsort(-values)[:ELITE]]
        return (elite.mean(0), elite.std(0) + 0.05), (elite[0], values.max())

    start = (mean, jnp.ones_like(mean))
    _, (best, values) = jax.lax.scan(improve, start, jax.random.split(key, ROUNDS))
    return best[-1], values[-1] / HORIZON


def explore(steps: int, seed: int, *, active: bool) -> tuple[maxplore.History, maxplore.GaussianEnsemble]:
    """D and the ensemble after so many steps, of active exploration or of random actions."""
    env: gym.Env[Any, Any] = gym.make("MountainCarContinuous-v0").unwrapped  # unwrapped: no time limit
    numbers, (key, key_init) = np.random.default_rng(seed), jax.random.split(jax.random.key(seed))
    history = maxplore.History.continuous(state_dims=2, action_dims=1)
    ensemble = maxplore.GaussianEnsemble(2, 1, MODEL, key=key_init)
    state, _ = env.reset(seed=seed)
    action, ahead, mdp = np.zeros(1), jnp.zeros(HORIZON // HOLD), None
    for step in range(steps):
        key, key_fit, key_plan = jax.random.split(key, 3)
        if step >= WARM_UP and (step - WARM_UP) % REFIT_EVERY == 0 and active:
            ensemble = maxplore.fit(ensemble, history, FIT, key=key_fit).ensemble
            mdp = maxplore.ExplorationMDP(ensemble, JensenRenyi(), history)
        if mdp is None:
            action = numbers.uniform(-1, 1, size=1)
        elif step % HOLD == 0:
            ahead, promised = plan(mdp, jnp.asarray(state), ahead, key=key_plan)
            action, ahead = np.asarray(ahead[:1]), jnp.append(ahead[1:], 0.0)
            if step % 100 < HOLD:
                share = float(saturation(promised, MODEL.members))
                print(f"  step {step:4d}: utility ahead {float(promised):.3f} nats a step, {share:.0%} of ln N")
        following, _, terminated, _, _ = env.step(action.astype(np.float32))
        history = history.append(state, action, following, terminated)
        if following[0] >= FLAG > state[0]:
            print(f"  step {step:4d}: the car is at the flag, and nobody asked for it")
        state = env.reset()[0] if terminated else following
    return history, maxplore.fit(ensemble, history, FIT, key=key).ensemble


def covered(history: maxplore.History) -> int:
    """Cells of a 40 x 40 grid of position and velocity that were visited."""
    states = np.asarray(history.transitions.next_state)[: int(history.size)]
    cells = np.floor((states - [-1.2, -0.07]) / [1.8 / 40, 0.14 / 40]).clip(0, 39).astype(int)
    return len(np.unique(cells, axis=0))


def draw(found: dict[str, tuple[maxplore.History, maxplore.GaussianEnsemble]], path: Path) -> None:
    """What each way of exploring left unknown: utility over position and velocity, averaged over actions."""
    position, velocity = np.meshgrid(np.linspace(-1.2, 0.6, 60), np.linspace(-0.07, 0.07, 60))
    states = jnp.asarray(np.stack([position.ravel(), velocity.ravel()], axis=1), jnp.float32)
    actions = [jnp.full((len(states), 1), a) for a in (-1.0, 0.0, 1.0)]
    unknown = {
        name: np.mean([maxplore.ExplorationMDP(model, JensenRenyi()).worth(states, a, states) for a in actions], axis=0)
        for name, (_, model) in found.items()
    }
    scale = Normalize(0, max(values.max() for values in unknown.values()))
    figure, panels = plt.subplots(1, len(found), figsize=(5.5 * len(found), 4.2), layout="constrained", sharey=True)
    for panel, (name, (history, _)) in zip(panels, found.items(), strict=True):
        panel.pcolormesh(position, velocity, unknown[name].reshape(position.shape), cmap="viridis", norm=scale)
        visited = np.asarray(history.transitions.state)[: int(history.size)]
        panel.plot(*visited.T, ".", color="white", markersize=1.5)
        panel.axvline(FLAG, color="tab:red", linewidth=1, linestyle="--")
        panel.set(title=f"{name}: {covered(history)} cells in {int(history.size)} steps", xlabel="position")
    panels[0].set_ylabel("velocity")
    figure.colorbar(ScalarMappable(scale, "viridis"), ax=panels, label="disagreement of the ensemble (nats)")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/demo"))
    arguments = parser.parse_args()
    if arguments.steps <= WARM_UP:
        parser.error(f"--steps is {arguments.steps}, expected more than the {WARM_UP} of the warm-up")
    found: dict[str, tuple[maxplore.History, maxplore.GaussianEnsemble]] = {}
    for name, active in (("random", False), ("MAX", True)):
        print(f"{name}: {arguments.steps} steps of Mountain Car, no reward")
        found[name] = explore(arguments.steps, arguments.seed, active=active)
        print(f"  {covered(found[name][0])} of 1600 cells of the state space visited")
    draw(found, arguments.out / "mountain_car.png")
    print(f"What is known and what is not: {arguments.out / 'mountain_car.png'}")


if __name__ == "__main__":
    main()
