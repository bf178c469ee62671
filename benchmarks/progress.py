"""What it costs to tell how far a task is: the fit and the solve in pieces, with a bar, beside the same in one call.

    python benchmarks/progress.py

CPU time of turns that alternate, after one that compiles; ratios are medians over turns.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp

from maxplore import ExplorationMDP, Explorer, GaussianEnsemble, fit
from maxplore.exploit.real import LEARNED, SOLVERS, ExploitConfig
from maxplore.pieces import Tell
from maxplore.progress import solving
from maxplore.solvers import Sac
from maxplore.utilities import Task

TURNS = 5


def upright(state: Any, action: Any, next_state: Any) -> Any:  # noqa: ARG001
    """Height of the pendulum's end."""
    return next_state[0]


def main() -> None:
    env = gym.make("Pendulum-v1")
    explorer = Explorer(env.observation_space, env.action_space, method="random")
    explorer.explore(env, 1000, progress=False)
    history, key = explorer.history, jax.random.key(0)
    config = ExploitConfig()
    ensemble = GaussianEnsemble(3, 1, config.model, key=key)
    mdp = ExplorationMDP(ensemble, Task(upright), history)
    start = history[jnp.arange(32)].state
    sac = Sac(replace(LEARNED.config, episodes=60, random_episodes=3))

    def fitted(tell: Tell | None) -> Any:
        return fit(ensemble, history, replace(config.fit, most_steps=3000), key=key, tell=tell)

    def solved(solver: Any) -> Callable[[Tell | None], Any]:
        def solve(tell: Tell | None) -> Any:
            told = None if tell is None else lambda done, utility: tell("solve", done, solver.rounds, utility)
            return solver.solve(mdp, start, history, key=key, tell=told)

        return solve

    for name, work in (("fit", fitted), ("sac", solved(sac)), ("gradient", solved(SOLVERS["gradient"]))):
        for told in (True, False):
            spent(work, told=told)  # compiles
        turns = [(spent(work, told=True), spent(work, told=False)) for _ in range(TURNS)]
        ratio = statistics.median(told / quiet for told, quiet in turns)
        print(f"{name:10s} {statistics.median(quiet for _, quiet in turns):6.1f} s, told {ratio:.3f} of it")


def spent(work: Callable[[Tell | None], Any], *, told: bool) -> float:
    """Seconds of CPU time."""
    begun = time.process_time()
    if told:
        with solving(wanted=True, watch=None) as tell:
            jax.block_until_ready(jax.tree.leaves(work(tell))[0])
    else:
        jax.block_until_ready(jax.tree.leaves(work(None))[0])
    return time.process_time() - begun


if __name__ == "__main__":
    main()
