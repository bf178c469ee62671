"""What it costs that no program runs under XLA's concurrency-optimised scheduler: fit, imagine, solve, explore.

    python benchmarks/schedulers.py [--times 9] [--rounds 3] [--out results/benchmarks/schedulers.json]

The first three are compiled both ways in one process and called in turns, at the sizes of `fast` for Half Cheetah;
exploration is 300 steps of it in processes of their own, in turns. A ratio above 1 is what maxplore's choice costs.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from maxplore import ExplorationMDP, GaussianEnsemble, History
from maxplore.compiling import OPTIONS
from maxplore.entry import Entry
from maxplore.methods import model_based
from maxplore.models.fit import _fit  # pyright: ignore[reportPrivateUsage]

ROWS = 1000

EXPLORE = """
import sys, time
import gymnasium as gym
import maxplore
from maxplore import compiling

if sys.argv[1] == "usual":
    compiling.compiler_options = lambda: {}
env = gym.make("maxplore/HalfCheetah-v0")
explorer = maxplore.Explorer(env.observation_space, env.action_space, seed=1)
explorer.explore(env, 100, progress=False)
begin = time.perf_counter(), time.process_time()
explorer.explore(env, 300, progress=False)
print(time.perf_counter() - begin[0], time.process_time() - begin[1])
"""


def programs() -> dict[str, Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]]:
    """Functions and what they are called with."""
    rng = np.random.default_rng(0)
    states = np.cumsum(rng.normal(size=(ROWS + 1, 19)), axis=0).astype(np.float32) / 30
    history = History.continuous(19, 6).append(states[:-1], rng.uniform(-1, 1, (ROWS, 6)), states[1:])
    config = model_based("max", "fast", {}, Entry((19,)), Entry((6,)))
    ensemble = GaussianEnsemble(19, 6, config.model, key=jax.random.key(0)).adapted(history)
    assert config.utility is not None
    mdp = ExplorationMDP(ensemble, config.utility, history)
    state, solver, key = jnp.asarray(states[-1]), config.solver, jax.random.key(1)
    actions = jnp.asarray(rng.uniform(-1, 1, (25, 128, 6)), jnp.float32)

    def fit() -> Any:
        return _fit.__wrapped__, (ensemble, history, config.fit, key, None)  # pyright: ignore

    def imagine() -> Any:
        return lambda mdp, actions, key: mdp.follow(actions, mdp.start(state, 128), key=key), (mdp, actions, key)

    def solve() -> Any:
        known = history if solver.uses_history else None
        return lambda mdp, memory, key: solver.run(mdp, state, known, memory, key=key), (
            mdp,
            eqx.filter_jit(solver.init)(mdp, key=key),
            key,
        )

    return {"fit": fit, "imagine": imagine, "solve": solve}


Spent = dict[str, list[tuple[float, float]]]
"""Seconds on the clock, and of processors, both ways."""


def compared(function: Callable[..., Any], given: tuple[Any, ...], times: int) -> dict[str, float]:
    """Seconds of a call both ways, in turns."""
    ways = {"usual": eqx.filter_jit(function), "ours": eqx.filter_jit(function, compiler_options=OPTIONS)}  # pyright: ignore[reportCallIssue]
    spent: Spent = {name: [] for name in ways}
    for number in range(times + 1):
        for name, way in ways.items():
            begin = time.perf_counter(), time.process_time()
            jax.block_until_ready(way(*given))
            if number:  # the first compiles
                spent[name].append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    return rated(spent)


def rated(spent: Spent) -> dict[str, float]:
    """Medians on the clock; and the median of the ratios of neighbours, on the clock and of processors."""
    medians = {name: round(statistics.median(wall for wall, _ in own), 5) for name, own in spent.items()}
    neighbours = list(zip(spent["ours"], spent["usual"], strict=True))
    wall, cpu = (statistics.median(ours[i] / usual[i] for ours, usual in neighbours) for i in (0, 1))
    return {**medians, "ratio": round(wall, 4), "processor_ratio": round(cpu, 4)}


def explored(rounds: int) -> dict[str, float]:
    """Seconds of 300 steps both ways, in turns."""
    spent: Spent = {"usual": [], "ours": []}
    for _ in range(rounds):
        for name, own in spent.items():
            code = [sys.executable, "-c", EXPLORE, name]
            told = subprocess.run(code, capture_output=True, text=True, check=True, timeout=1200)
            wall, cpu = map(float, told.stdout.split())
            own.append((wall, cpu))
    return rated(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=9)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks/schedulers.json"))
    asked = parser.parse_args()
    found: dict[str, Any] = {}
    for name, program in programs().items():
        found[name] = compared(*program(), asked.times)
        print(name, found[name], flush=True)
    found["explore"] = explored(asked.rounds)
    print("explore", found["explore"], flush=True)
    result = {
        "what": "seconds under XLA's usual scheduler and under the one that maxplore chooses; ratio: ours / usual",
        "command": f"python benchmarks/schedulers.py {' '.join(sys.argv[1:])}".strip(),
        "machine": {
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "jaxlib": version("jaxlib"),
            "load": round(os.getloadavg()[0], 2),
        },
        **found,
    }
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
