"""The speed of the solvers on one core, at the sizes of Half Cheetah.

    taskset -c 0 python benchmarks/solvers.py [--turns 7] [--out results/benchmarks/solvers.json]

Without `taskset` all cores are used, and the result says how many. Everything is timed in turns in one process, so
that a busy moment hits all alike; the result has the median, and the fastest and slowest turn beside it. The load of
the machine at the end stands there too: above the number of cores, somebody else was at work.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import maxplore
from maxplore.solvers import Gradient, Icem, Sac, SacConfig
from maxplore.utilities import JensenRenyi

STATE, ACTION, ROWS = 19, 6, 20_000
MODEL = maxplore.GaussianConfig(members=5, depth=2, width=200)
SAC = {
    "sac_small": SacConfig(batch_size=256),
    "sac_small_twin_targets": SacConfig(batch_size=256, twin_targets=True),
    "sac_paper": SacConfig(),
}
UPDATES = {"sac_small": 50, "sac_small_twin_targets": 50, "sac_paper": 5}
"""SAC updates in one timed call."""


def setting() -> tuple[maxplore.ExplorationMDP, maxplore.History]:
    """An exploration MDP over random numbers, as large as that of Half Cheetah."""
    numbers = np.random.default_rng(0)
    rows = [numbers.normal(size=(ROWS, dims)).astype(np.float32) for dims in (STATE, ACTION, STATE)]
    history = maxplore.History.continuous(STATE, ACTION).append(*rows)
    ensemble = maxplore.GaussianEnsemble(STATE, ACTION, MODEL, key=jax.random.key(0)).adapted(history)
    return maxplore.ExplorationMDP(ensemble, JensenRenyi(), history), history


def workloads() -> dict[str, tuple[Callable[[], Any], int]]:
    """What to time, and how many of its units one call is."""
    mdp, history = setting()
    work: dict[str, tuple[Callable[[], Any], int]] = {}
    for name, solver in {"gradient": Gradient(), "icem": Icem()}.items():
        memory = solver.solve(mdp, np.zeros(STATE), history, key=jax.random.key(1)).memory

        def solve(solver: Any = solver, memory: Any = memory) -> Any:
            return solver.solve(mdp, np.zeros(STATE), history, memory, key=jax.random.key(2))

        work[name] = (solve, 1)
    for name, config in SAC.items():
        work[name] = (sac_updates(mdp, config, UPDATES[name]), UPDATES[name])
    return work


def sac_updates(mdp: maxplore.ExplorationMDP, config: SacConfig, updates: int) -> Callable[[], Any]:
    """A call that makes so many SAC updates, batches drawn from a replay of random rows included."""
    sac, replay = Sac(config), 0.1 * jax.random.normal(jax.random.key(3), (ROWS, 2 * STATE + ACTION + 2))
    agent = eqx.filter_jit(sac.init)(mdp, key=jax.random.key(4))
    learn = eqx.filter_jit(lambda agent: sac.learn(agent, replay, jnp.int32(ROWS), updates, key=jax.random.key(5)))
    return lambda: learn(agent)


def update_operations(config: SacConfig) -> float:
    """Floating-point operations of the matrix products of one SAC update, by the passes that it cannot do without."""

    def forward(inputs: int, outputs: int) -> int:
        sizes = [inputs, *[config.width] * config.depth, outputs]
        return 2 * config.batch_size * sum(a * b for a, b in pairwise(sizes))

    critic, actor, value = forward(STATE + ACTION, 1), forward(STATE, 2 * ACTION), forward(STATE, 1)
    # Twice the critics: learning, three passes; for the policy, forward and back to the action.
    passes = 2 * (3 + 2) * critic + 3 * actor
    return float(passes + (2 * critic + actor if config.twin_targets else 4 * value))


def seconds(function: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    jax.block_until_ready(function())
    return time.perf_counter() - begin


def measure(turns: int) -> dict[str, Any]:
    work = workloads()
    for function, _ in work.values():
        jax.block_until_ready(function())  # compiles
    large = jax.random.normal(jax.random.key(6), (2048, 2048))
    product = jax.jit(lambda x: x @ x)
    jax.block_until_ready(product(large))
    times: dict[str, list[float]] = {name: [] for name in work}
    rates: list[float] = []
    for _ in range(turns):
        for name, (function, units) in work.items():
            times[name].append(seconds(function) / units)
            rates.append(2 * 2048**3 / seconds(lambda: product(large)))
    machine = float(np.median(rates))
    result: dict[str, Any] = {
        "command": "taskset -c 0 python benchmarks/solvers.py",
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "processor": platform.machine(),
        "jax": jax.__version__,
        "turns": turns,
        "what": f"{STATE} + {ACTION} dimensions, {MODEL.members} members of {MODEL.depth} x {MODEL.width}",
        "matrix_multiply_gflops": machine / 1e9,
    }
    for name, taken in times.items():
        entry: dict[str, Any] = {}
        figures = {"median": np.median(taken), "fastest": np.min(taken), "slowest": np.max(taken)}
        if name in SAC:
            entry["updates_per_s"] = {kind: float(1 / value) for kind, value in figures.items()}
            entry["share_of_machine"] = update_operations(SAC[name]) / float(figures["median"]) / machine
        else:
            entry["solve_s"] = {kind: float(value) for kind, value in figures.items()}
        result[name] = entry
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks/solvers.json"))
    arguments = parser.parse_args()
    result = measure(arguments.turns)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))
    print(f"written to {arguments.out}")


if __name__ == "__main__":
    main()
