"""What devices are worth: members dealt out to two of them, and many seeds in one program, as ratios.

    python benchmarks/devices.py [--turns 3] [--out results/benchmarks/devices.json]

Both sides of a ratio are processes that stay, with everything compiled, and take turns: a busy moment hits both alike.
A ratio is that of one turn; the median over the turns is told, with the least and the most.

- members: one device with as many threads as there are cores, against two virtual devices with one thread each.
- seeds: one worker process a core, each exploring its share of the seeds one after another in the plain loop, against
  one process that explores all of them in one compiled program on as many virtual devices, seeds dealt out.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

CORES = len(os.sched_getaffinity(0))
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
SIZES = {"4 x 2 x 200": (4, 2, 200, 40), "32 x 4 x 512": (32, 4, 512, 2), "64 x 4 x 512": (64, 4, 512, 1)}
"""Members, hidden layers, width; steps in one timed call."""
BATCH, STATE, ACTION, ACTORS = 64, 19, 6, 32
SEEDS, STEPS = (8, 32), 60


class Worker:
    """A process that does one kind of work, again and again, when it is told to."""

    def __init__(self, what: list[Any], devices: int, flags: str) -> None:
        env = {**os.environ, "JAX_NUM_CPU_DEVICES": str(devices), "XLA_FLAGS": flags}
        command = [sys.executable, __file__, "--work", json.dumps(what)]
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def begin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def end(self) -> tuple[float, float]:
        """Seconds by the clock, and of processors."""
        assert self.process.stdout is not None
        wall, cpu = json.loads(self.process.stdout.readline())
        return wall, cpu

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def work(what: list[Any]) -> None:
    """Compile, then do it once for every line that comes in."""
    todo = {"members": members, "plain": plain, "together": together}[what[0]](*what[1:])
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        todo()
        print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]), flush=True)


def members(size: str, kind: str, devices: int) -> Callable[[], Any]:
    """Some gradient steps, or some imagined steps, of an ensemble on so many devices."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    import maxplore
    from maxplore.devices import row
    from maxplore.history import member_bags
    from maxplore.models.adam import Moments
    from maxplore.models.fit import train

    count, depth, width, steps = SIZES[size]
    config = maxplore.GaussianConfig(members=count, depth=depth, width=width)
    numbers = np.random.default_rng(0)
    data = [numbers.normal(size=(2048, dims)).astype(np.float32) for dims in (STATE, ACTION, STATE)]
    history = maxplore.History.continuous(STATE, ACTION).append(*data)
    key = jax.random.key(0)
    ensemble = maxplore.GaussianEnsemble(STATE, ACTION, config, mesh=row(devices, count), key=key)
    if kind == "gradient":
        order, rows = member_bags(history, count, key=key, chosen=history.filled, bootstrap=True)
        learn = eqx.filter_jit(
            lambda fixed, own: train(fixed[0], fixed[1], maxplore.FitConfig(batch_size=BATCH), *own, *fixed[2:])
        )
        fixed = (ensemble, history, order, rows, jnp.int32(steps))
        own = (ensemble.members, Moments.zero(ensemble.members))
        return lambda: jax.block_until_ready(learn(fixed, own))
    mdp = maxplore.ExplorationMDP(ensemble, maxplore.utilities.JensenRenyi(), history)
    act = lambda states, key: jax.random.uniform(key, (states.shape[0], ACTION), minval=-1.0)  # noqa: E731
    start = mdp.start(jnp.zeros(STATE), ACTORS)
    imagine = eqx.filter_jit(lambda mdp, start: mdp.rollout(act, start, 5 * steps, key=key).reward)
    return lambda: jax.block_until_ready(imagine(mdp, start))


def plain(seeds: list[int]) -> Callable[[], Any]:
    """These seeds of Mountain Car, one after another, as anybody would run them."""
    import gymnasium as gym

    import maxplore

    def explore() -> None:
        for seed in seeds:
            env = gym.make("maxplore/MountainCar-v0")
            explorer = maxplore.Explorer(env.observation_space, env.action_space, seed=seed)
            explorer.explore(env, STEPS, progress=False)

    return explore


def together(seeds: list[int], devices: int) -> Callable[[], Any]:
    """The same seeds in one program."""
    import maxplore

    return lambda: maxplore.explore_many(maxplore.envs.MountainCar(), STEPS, seeds=seeds, devices=devices)


def raced(ones: list[Worker], others: list[Worker], turns: int) -> dict[str, Any]:
    """Seconds of the ones over those of the others, turn by turn. Those on one side work at the same time."""
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(turns + 1):  # in the first, things are compiled
        sides: list[np.ndarray] = []
        for side in (ones, others):
            for worker in side:
                worker.begin()
            taken = np.array([worker.end() for worker in side])
            sides.append(np.array([taken[:, 0].max(), taken[:, 1].sum()]))
        found.append((sides[0], sides[1]))
    for worker in (*ones, *others):
        worker.close()
    one, other = (np.array([turn[k] for turn in found[1:]]) for k in (0, 1))
    ratio = one / other
    return {
        "ratio": {"median": float(np.median(ratio[:, 0])), "least": ratio[:, 0].min(), "most": ratio[:, 0].max()},
        "processor_ratio": {
            "median": float(np.median(ratio[:, 1])),
            "least": ratio[:, 1].min(),
            "most": ratio[:, 1].max(),
        },
        "seconds": [float(np.median(side[:, 0])) for side in (one, other)],
    }


def measured(turns: int, out: Path) -> dict[str, Any]:
    """All races; what is known is written after each."""
    result: dict[str, Any] = {
        "command": f"python benchmarks/devices.py --turns {turns}",
        "cores": CORES,
        "load": [round(x, 1) for x in os.getloadavg()],
        "turns": turns,
        "members_is": f"time on one device with {CORES} threads over that on 2 virtual devices with 1 thread each: "
        f"above 1, devices are faster; batches of {BATCH} for each member, {ACTORS} imagined actors",
        "seeds_is": f"time of {CORES} processes, each with its share of the seeds in the plain loop, over that of one "
        f"program on {CORES} virtual devices: above 1, one program is faster; Mountain Car, fast, {STEPS} steps, all "
        "compiled before",
        "members": {},
        "seeds": {},
    }
    for size, kind in itertools.product(SIZES, ("gradient", "imagined")):
        one, two = (["members", size, kind, count] for count in (1, 2))
        found = raced([Worker(one, 1, "")], [Worker(two, 2, ONE_THREAD)], turns)
        result["members"][f"{size}, {kind} step"] = found
        written(result, out)
    for count in SEEDS:
        shares = [list(range(core, count, CORES)) for core in range(CORES)]
        apart = [Worker(["plain", share], 1, ONE_THREAD) for share in shares]
        found = raced(apart, [Worker(["together", list(range(count)), CORES], CORES, ONE_THREAD)], turns)
        result["seeds"][str(count)] = found
        written(result, out)
    return result


def written(result: dict[str, Any], out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks/devices.json"))
    parser.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work is not None:
        work(arguments.work)
        return
    print(json.dumps(measured(arguments.turns, arguments.out), indent=1))


if __name__ == "__main__":
    main()
