"""The speed of the core: gradient step, imagined step and divergence, as shares of this machine's matrix-multiply rate.

    python benchmarks/core.py [--seconds 120] [--out results/benchmarks/core.json]

Everything is timed in turns in one process, so that a busy moment hits all alike, and every rate is the median over
the turns. The machine's rate is that of a large square product, by NumPy's BLAS or by XLA, whichever is faster.
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
from maxplore.history import member_bags
from maxplore.models.adam import Moments
from maxplore.models.fit import train
from maxplore.models.gaussian import PAPER
from maxplore.utilities import JensenRenyi

STATE, ACTION, BATCH, ACTORS = 19, 6, 256, 128
SIZES = {"paper": PAPER, "small": maxplore.GaussianConfig(members=5, depth=2, width=200)}
KINDS = ("gradient", "imagined")
RESULT = Path("results/benchmarks/core.json")
"""Where the published result stands; a run that writes there also writes the table of docs/choosing.md."""
STEPS = {"paper": (16, 10), "small": (20, 50)}
"""Gradient steps and imagined steps in one timed call."""


def multiplications(config: maxplore.GaussianConfig) -> int:
    """Multiply-adds of one member's forward pass on one row."""
    sizes = [STATE + ACTION, *[config.width] * config.depth, 2 * STATE]
    return sum(a * b for a, b in pairwise(sizes))


def knowing(config: maxplore.GaussianConfig) -> tuple[maxplore.GaussianEnsemble, maxplore.History]:
    """An ensemble that knows the statistics of D, and D, of random numbers."""
    numbers = np.random.default_rng(0)
    rows = [numbers.normal(size=(20_000, dims)).astype(np.float32) for dims in (STATE, ACTION, STATE)]
    history = maxplore.History.continuous(STATE, ACTION).append(*rows)
    return maxplore.GaussianEnsemble(STATE, ACTION, config, key=jax.random.key(0)).adapted(history), history


def learning(config: maxplore.GaussianConfig, steps: int) -> tuple[Callable[[], Any], float]:
    """A call of so many gradient steps of all members, and the floating-point operations of one."""
    ensemble, history = knowing(config)
    order, count = member_bags(history, ensemble.size, key=jax.random.key(1), chosen=history.filled, bootstrap=True)
    fit_config = maxplore.FitConfig(batch_size=BATCH)
    now: list[Any] = [jax.tree.map(jnp.copy, ensemble.members), Moments.zero(ensemble.members)]

    @eqx.filter_jit(donate="all-except-first")
    def learn(fixed: Any, members: Any, moments: Any) -> Any:
        ensemble, history, order, count = fixed
        return train(ensemble, history, fit_config, members, moments, order, count, jnp.int32(steps))

    def gradient() -> Any:
        now[:] = learn((ensemble, history, order, count), *now)
        return now

    return gradient, 3.0 * BATCH * 2 * config.members * multiplications(config)


def workloads(name: str) -> dict[str, tuple[Callable[[], Any], int, float]]:
    """For one size: what to time, how many steps a call takes, and the floating-point operations of a step."""
    config, (gradient_steps, imagined_steps) = SIZES[name], STEPS[name]
    gradient, gradient_operations = learning(config, gradient_steps)
    ensemble, history = knowing(config)
    mdp = maxplore.ExplorationMDP(ensemble, JensenRenyi(), history)
    start, key = mdp.start(jnp.zeros(STATE), ACTORS), jax.random.key(2)

    def policy(states: Any, key: Any) -> Any:
        return jax.random.uniform(key, (states.shape[0], ACTION), minval=-1.0)

    imagine = eqx.filter_jit(lambda mdp, start, key: mdp.rollout(policy, start, imagined_steps, key=key).reward)
    forecast = ensemble.forecast(start, jnp.zeros((ACTORS, ACTION)))
    outcome = maxplore.utilities.Outcome(ensemble, start, jnp.zeros((ACTORS, ACTION)), start, forecast)

    @eqx.filter_jit
    def divergence(outcome: Any) -> Any:
        def once(k: Any, total: Any) -> Any:  # each with other numbers, so that none is skipped
            moved = eqx.tree_at(lambda o: o.forecast.mean, outcome, outcome.forecast.mean * (1.0 + 0.01 * k))
            return total + JensenRenyi()(moved)

        return jax.lax.fori_loop(0, imagined_steps, once, jnp.zeros(ACTORS))

    operations = 2.0 * ACTORS * config.members * multiplications(config)
    return {
        "gradient": (gradient, gradient_steps, gradient_operations),
        "imagined": (lambda: imagine(mdp, start, key), imagined_steps, operations),
        "divergence": (lambda: divergence(outcome), imagined_steps, 0.0),
    }


def reference() -> dict[str, Callable[[], float]]:
    """Functions that measure the machine's float32 matrix-multiply rate, in operations a second."""
    large = np.random.default_rng(0).normal(size=(2048, 2048)).astype(np.float32)
    out, device = np.empty_like(large), jnp.asarray(large)
    product = jax.jit(lambda x: x @ x)
    jax.block_until_ready(product(device))
    return {
        "numpy": lambda: 2 * 2048**3 / seconds(lambda: np.matmul(large, large, out=out)),
        "xla": lambda: 2 * 2048**3 / seconds(lambda: product(device)),
    }


def seconds(function: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    jax.block_until_ready(function())
    return time.perf_counter() - begin


def measure(limit: float) -> dict[str, Any]:
    work = {(size, kind): what for size in SIZES for kind, what in workloads(size).items()}
    for function, _, _ in work.values():
        jax.block_until_ready(function())  # compiles
    references = reference()
    rates: dict[str, list[float]] = {name: [] for name in references}
    times: dict[tuple[str, str], list[float]] = {name: [] for name in work}
    end = time.monotonic() + limit
    while time.monotonic() < end:
        for name, (function, steps, _) in work.items():
            for reference_name, rate in references.items():
                rates[reference_name].append(rate())
            times[name].append(seconds(function) / steps)
    machine = max(float(np.median(each)) for each in rates.values())
    result: dict[str, Any] = {
        "command": "make bench",
        "cores": len(os.sched_getaffinity(0)),
        "processor": platform.machine(),
        "jax": jax.__version__,
        "turns": len(rates["xla"]) // len(work),
        "what": f"{STATE} + {ACTION} inputs, batch {BATCH}, {ACTORS} actors; medians over the turns, 10% to 90% beside",
        "matrix_multiply_gflops": {
            name: {"median": float(np.median(each)) / 1e9, "spread": spread(np.array(each) / 1e9)}
            for name, each in rates.items()
        },
    }
    for size, config in SIZES.items():
        entry: dict[str, Any] = {"ensemble": f"{config.members} members of {config.depth} x {config.width}"}
        for kind in KINDS:
            taken, operations = np.array(times[size, kind]), work[size, kind][2]
            entry[f"{kind}_step_ms"] = {"median": float(np.median(taken)) * 1e3, "spread": spread(taken * 1e3)}
            entry[f"{kind}_step_share_of_machine"] = operations / float(np.median(taken)) / machine
        share = np.median(times[size, "divergence"]) / np.median(times[size, "imagined"])
        entry["divergence_share_of_imagined_step"] = float(share)
        result[size] = entry
    return result


def table(result: dict[str, Any]) -> str:
    """The result as a table."""
    rows = ["| ensemble | gradient step | imagined step | divergence |", "|---|---|---|---|"]
    for size in SIZES:
        entry = result[size]
        cells = [
            f"{entry[f'{kind}_step_ms']['median']:.3g} ms, {entry[f'{kind}_step_share_of_machine']:.0%}"
            for kind in KINDS
        ]
        share = f"{entry['divergence_share_of_imagined_step']:.1%} of the imagined step"
        rows.append(f"| {entry['ensemble']} | {cells[0]} | {cells[1]} | {share} |")
    rate = max(each["median"] for each in result["matrix_multiply_gflops"].values())
    rows.append(
        f"\nShares are of {rate:.0f} GFLOP/s, the median of {result['turns']} turns on {result['cores']} shared cores."
    )
    return "\n".join(rows)


def update_page(result: dict[str, Any]) -> None:
    """Put the table between its markers."""
    path = Path("docs/choosing.md")
    before, rest = path.read_text().split("<!-- bench -->\n")
    after = rest.split("<!-- /bench -->")[1]
    path.write_text(f"{before}<!-- bench -->\n{table(result)}\n<!-- /bench -->{after}")


def spread(values: np.ndarray) -> list[float]:
    return [float(np.quantile(values, q)) for q in (0.1, 0.9)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120.0, help="how long to measure, after compiling")
    parser.add_argument("--out", type=Path, default=RESULT)
    arguments = parser.parse_args()
    result = measure(arguments.seconds)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))
    if arguments.out == RESULT:
        update_page(result)
    print(f"written to {arguments.out}")


if __name__ == "__main__":
    main()
