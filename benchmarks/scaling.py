"""How cost grows with members, dimensions, D, actors and seeds: time and memory, with fitted exponents.

    python benchmarks/scaling.py [--turns 3] [--only history] [--out results/benchmarks]

Every measurement is a process of its own with one thread, so that its peak of memory is its own (Linux tells); all take
turns, in another order each turn, so that a busy moment hits all alike. A figure is the median over the turns. What
computes is timed by the processor's clock, which other work on the machine disturbs little; what writes, and may have
to wait for the disk, by the clock on the wall. `--only` measures one axis anew and leaves the others as they are.

Writes scaling.json, and scaling.png and scaling.svg, one panel of time and one of memory for each axis. Exponents are
fitted over all points, and at the end over the last two. What they should be is the `theory` of an axis; one that is
above it at the end stands in the table as a bend. Memory is that of the whole process, a runtime that is there at any
size included: what counts is by how much it grew.
"""

import argparse
import json
import math
import multiprocessing
import os
import platform
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
LEAST, MOST = 0.2, 15
"""Seconds that are timed of each measurement, at least, unless it was called so many times."""
SLACK = 0.25
"""How far an exponent may be above its theory before it counts as a bend."""
NOTICED = 20.0
"""Megabytes that memory must have grown by before an exponent says anything: a process of the same kind differs by as
much from turn to turn."""


@dataclass(frozen=True)
class Size:
    """What an operation works on: Half Cheetah in `fast`, one thing changed at a time."""

    members: int = 5
    dimensions: int = 19
    history: int = 4096
    actors: int = 128
    seeds: int = 1


class Operation(NamedTuple):
    """Something that is timed."""

    said: str
    make: Callable[[Size], tuple[Callable[[], Any], int]]
    """What to call, and how many units one call is. Files go to the working directory."""
    writes: bool = False


class Axis(NamedTuple):
    """What grows."""

    said: str
    values: tuple[int, ...]
    theory: dict[str, float]
    """The exponent of each operation in the long run, by counting what it must do."""


ACTION, BATCH, WARM = 6, 128, 60


def rows(size: Size) -> list[Any]:
    """As much as there is in D, of random numbers."""
    import numpy as np

    numbers = np.random.default_rng(0)
    return [
        numbers.standard_normal((size.history, dims), np.float32).clip(-1, 1)
        for dims in (size.dimensions, ACTION, size.dimensions)
    ]


def world(size: Size) -> tuple[Any, Any]:
    """D, and the exploration MDP over it."""
    import jax

    import maxplore
    from maxplore.utilities import JensenRenyi

    config = maxplore.GaussianConfig(members=size.members, depth=2, width=200, log_variance=(-10.0, 0.5))
    history = maxplore.History.continuous(size.dimensions, ACTION).append(*rows(size))
    ensemble = maxplore.GaussianEnsemble(size.dimensions, ACTION, config, key=jax.random.key(0)).adapted(history)
    return history, maxplore.ExplorationMDP(ensemble, JensenRenyi(), history)


def waited(function: Callable[[], Any]) -> Callable[[], Any]:
    """A call that is over when its numbers are there."""
    import jax

    return lambda: jax.block_until_ready(function())


def gradient(size: Size) -> tuple[Callable[[], Any], int]:
    """Steps of Adam of all members, nothing else of a fit."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    from maxplore.history import member_bags
    from maxplore.models import FitConfig
    from maxplore.models.adam import Moments
    from maxplore.models.fit import train

    steps = 10
    history, mdp = world(size)
    config, members = FitConfig(batch_size=BATCH), mdp.ensemble.members
    order, count = member_bags(history, size.members, key=jax.random.key(1), chosen=history.filled, bootstrap=True)
    learn = eqx.filter_jit(
        lambda members, moments: train(mdp.ensemble, history, config, members, moments, order, count, jnp.int32(steps))
    )
    moments = Moments.zero(members)
    return waited(lambda: learn(members, moments)), steps


def fitting(size: Size, *, sorting: bool = False) -> tuple[Callable[[], Any], int]:
    """A whole fit of 120 gradient steps, as `fast` has it, whatever there is in D.

    With `sorting`, all of D is sorted where its first rows would do, as it once was.
    """
    import jax
    import jax.numpy as jnp

    from maxplore.models import FitConfig, fit

    if sorting:  # this process measures nothing else
        history_module: Any = import_module("maxplore.history")
        whole = history_module.shuffled
        history_module._first = lambda chosen: jnp.argsort(~chosen, stable=True).astype(jnp.int32)
        fit_module: Any = import_module("maxplore.models.fit")  # `maxplore.models.fit` is the function of that name
        fit_module.shuffled = lambda bags, count, *, key, **_: whole(bags, count, key=key)
    history, mdp = world(size)
    config = FitConfig(steps=120, batch_size=BATCH, held_out=0.1)
    return waited(lambda: fit(mdp.ensemble, history, config, key=jax.random.key(1)).report), 1


def imagined(size: Size) -> tuple[Callable[[], Any], int]:
    """Imagined steps of all actors, each paying the divergence."""
    import equinox as eqx
    import jax

    steps = 10
    _, mdp = world(size)
    start = mdp.start([0.0] * size.dimensions, size.actors)

    def policy(states: Any, key: Any) -> Any:
        return jax.random.uniform(key, (states.shape[0], ACTION), minval=-1.0)

    imagine = eqx.filter_jit(lambda mdp, key: mdp.rollout(policy, start, steps, key=key).reward)
    return waited(lambda: imagine(mdp, jax.random.key(1))), steps


def planning(size: Size) -> tuple[Callable[[], Any], int]:
    """The exploration MDP made from D and solved, as in one round; windows of the gradient are counted."""
    import jax
    import numpy as np

    from maxplore.mdp import ExplorationMDP
    from maxplore.solvers import Gradient, GradientConfig

    windows = 5
    history, mdp = world(size)
    solver = Gradient(GradientConfig(iterations=windows))
    memory = solver.solve(mdp, np.zeros(size.dimensions), history, key=jax.random.key(1)).memory

    def solve() -> Any:
        new = ExplorationMDP(mdp.ensemble, mdp.utility, history)
        return solver.solve(new, np.zeros(size.dimensions), history, memory, key=jax.random.key(2)).info

    return waited(solve), windows


def explorer(size: Size) -> Any:
    """One that was told all of D, and has a model and a policy."""
    import gymnasium as gym
    import jax
    import numpy as np

    import maxplore

    spaces = (gym.spaces.Box(-1.0, 1.0, (dims,), np.float32) for dims in (size.dimensions, ACTION))
    own = maxplore.Explorer(*spaces, method="max", preset="fast", plan_every=10**9)
    columns = rows(size)
    for row in zip(*(column[:WARM] for column in columns), strict=True):
        own.tell(*row)
    own.ask(columns[-1][WARM - 1])
    agent = own._agent  # pyright: ignore[reportPrivateUsage]
    agent.history = agent.history.append(*(column[WARM:] for column in columns))  # as if told one by one
    jax.block_until_ready(agent.history.size)
    return own


def telling(size: Size, *, looking: bool = False) -> tuple[Callable[[], Any], int]:
    """A step of a robot between two plans: ask, tell. D has room for what is told, as it mostly has.

    With `looking`, D is asked for after each: its arrays are then made anew every time, as `tell` once did.
    """
    import jax

    own, (states, actions, following) = explorer(replace(size, history=size.history - 500)), rows(size)
    count, turn = 25, [0]

    def steps() -> Any:
        for k in range(turn[0], turn[0] + count):
            own.ask(states[k])
            own.tell(states[k], actions[k], following[k])
            if looking:
                jax.block_until_ready(own.history.size)
        turn[0] += count

    return steps, count


def checkpoint(size: Size) -> tuple[Callable[[], Any], int]:
    """The checkpoint of a run, on the disk when it is over."""
    own = explorer(size)
    return lambda: own.save_file(Path("checkpoint.npz"), known=""), 1


def saved(size: Size) -> tuple[Callable[[], Any], int]:
    """All of an explorer, D too: what every checkpoint of a run once was."""
    own = explorer(size)
    return lambda: own.save_file(Path("explorer.npz")), 1


def record(size: Size) -> tuple[Callable[[], Any], int]:
    """A step in the record, as durable as a run has it."""
    from maxplore.runs.record import Episode, Record, Step

    written, steps = Record.create(Path("record.sqlite")), 50
    blobs = (bytes(4 * ACTION), bytes(4 * size.dimensions))
    for k in range(size.history):
        begun = Episode(0, 0, 0, blobs[1]) if k == 0 else None
        written.write(Step(k, 0, *blobs, 0.0, False, False), episode=begun)
    written.settle()
    turn = [size.history]

    def write() -> None:
        for k in range(turn[0], turn[0] + steps):
            written.write(Step(k, 0, *blobs, 0.0, False, False))
        turn[0] += steps

    return write, steps


def coverage(size: Size) -> tuple[Callable[[], Any], int]:
    """The share that was seen, which every round reports."""
    own = explorer(size)
    return lambda: own.coverage, 1


def seeds_of_chain(size: Size, *, at_once: bool = False, fixed: bool = False) -> tuple[Callable[[], Any], int]:
    """An episode of MAX on a short Chain for each seed: one after the other, as `maxplore reproduce` has it, or all at
    once by `vmap`; with training until all is fitted, or of fixed length."""
    import jax

    from maxplore.envs.chain import Chain
    from maxplore.explorers import FiniteMaxConfig, MaxExplorer, Minibatches
    from maxplore.explorers.loop import run

    usual = FiniteMaxConfig(warm_up=0)
    own = MaxExplorer(replace(usual, training=Minibatches(per_episode=64)) if fixed else usual)
    chain = Chain.random(10, key=jax.random.key(1))

    def one(key: Any) -> Any:
        return run(own, chain, 1, key=key)

    every = jax.jit(jax.vmap(one) if at_once else lambda keys: jax.lax.map(one, keys))
    keys = jax.random.split(jax.random.key(0), size.seeds)
    return waited(lambda: every(keys)), 1


OPERATIONS = {
    "gradient": Operation("gradient step", gradient),
    "fit": Operation("fit of 120 steps", fitting),
    "fit_sorting": Operation("the same, all of D sorted", partial(fitting, sorting=True)),
    "imagined": Operation("imagined step with its utility", imagined),
    "plan": Operation("window of planning", planning),
    "tell": Operation("ask and tell", telling),
    "tell_looking": Operation("ask, tell, look at D", partial(telling, looking=True)),
    "coverage": Operation("coverage", coverage),
    "checkpoint": Operation("checkpoint of a run", checkpoint, writes=True),
    "save": Operation("save, with D", saved, writes=True),
    "record": Operation("step in the record", record, writes=True),
    "chain": Operation("Chain, seed after seed", seeds_of_chain),
    "chain_at_once": Operation("Chain, seeds at once", partial(seeds_of_chain, at_once=True)),
    "chain_fixed": Operation("Chain, at once, fixed training", partial(seeds_of_chain, at_once=True, fixed=True)),
}

AXES = {
    # Every pair of members meets in the divergence.
    "members": Axis("members", (1, 4, 16, 64), {"gradient": 1, "imagined": 2, "plan": 2}),
    "dimensions": Axis("dimensions of the state", (2, 20, 100, 500), {"gradient": 1, "imagined": 1}),
    # A fit reads D once for its statistics and deals it out; the rest of it has nothing to do with its size.
    "history": Axis(
        "transitions in D",
        (2**10, 2**14, 2**17, 2**20),
        {
            "fit": 1,
            "fit_sorting": 1,
            "coverage": 1,
            "tell": 0,
            "tell_looking": 1,
            "checkpoint": 0,
            "save": 1,
            "record": 0,
        },
    ),
    "actors": Axis("actors", (16, 128, 1024, 4096), {"imagined": 1}),
    "seeds": Axis("seeds", (1, 4, 16, 64), {"chain": 1, "chain_at_once": 1, "chain_fixed": 1}),
}
"""A new kind of seeds, or of anything else, is one more operation and its name in the `theory` of an axis."""


def measured(operation: str, size: Size) -> dict[str, float]:
    """Seconds of a unit, and the megabytes at the peak beyond those of what was imported; in this process."""
    import jax

    from maxplore.cache import use_compilation_cache

    use_compilation_cache()
    jax.block_until_ready(jax.numpy.zeros(1) + 1)
    before, own = peak(), OPERATIONS[operation]
    clock = time.perf_counter if own.writes else time.process_time
    with tempfile.TemporaryDirectory(dir=".") as folder:
        os.chdir(folder)
        call, units = own.make(size)
        call()  # compiles
        forget_peak()
        taken: list[float] = []
        while len(taken) < 3 or (sum(taken) < LEAST and len(taken) < MOST):
            begin = clock()
            call()
            taken.append(clock() - begin)
        on_disk = sum(file.stat().st_size for file in Path().iterdir())
        os.chdir("..")
    # The median: a call that was disturbed is no usual one.
    found = {"seconds": statistics.median(taken) / units, "megabytes": peak() - before}
    return found | ({"megabytes_on_disk": on_disk / 2**20} if own.writes else {})


def peak() -> float:
    """The most memory that this process had so far, in megabytes."""
    told = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(told["VmHWM"].split()[0]) / 2**10


def forget_peak() -> None:
    """From here on, `peak` is that of what follows: to build what is measured takes more than to work with it."""
    Path("/proc/self/clear_refs").write_text("5")


def measure(axes: list[str], turns: int) -> dict[str, Any]:
    """All points of these axes, by axis, operation and value."""
    points = [(a, op, value) for a in axes for op in AXES[a].theory for value in AXES[a].values]
    found: dict[tuple[str, str, int], list[dict[str, float]]] = {point: [] for point in points}
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["maxplore.runs.run", "maxplore.solvers"])
    draw = random.Random(0)
    with context.Pool(1, maxtasksperchild=1) as pool:
        for turn in range(turns):
            for axis, operation, value in draw.sample(points, len(points)):
                size = replace(Size(), **{axis: value})
                found[axis, operation, value].append(pool.apply(measured, (operation, size)))
                last = found[axis, operation, value][-1]
                print(f"turn {turn}: {axis} {value} {operation}: {last}", flush=True)
    return {
        axis: {
            operation: [summary(value, found[axis, operation, value]) for value in AXES[axis].values]
            for operation in AXES[axis].theory
        }
        for axis in axes
    }


def summary(value: int, turns: list[dict[str, float]]) -> dict[str, Any]:
    """The median time over the turns and its extremes; the least memory, since compiling leaves some behind that a turn
    with a filled cache does without."""
    seconds = [turn["seconds"] for turn in turns]
    least = {name: min(turn[name] for turn in turns) for name in turns[0] if name != "seconds"}
    times = {"seconds": statistics.median(seconds), "lowest": min(seconds), "highest": max(seconds)}
    return {"at": value, **times, **least}


def slope(points: list[tuple[float, float]]) -> float:
    """The exponent of a power law through these points, by least squares of logarithms."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mean_x, mean_y = (statistics.mean(each) for each in zip(*logs, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def fitted(points: list[dict[str, Any]], theory: float) -> dict[str, Any]:
    """The exponent of time over all points and at the end, whether it is too large there; and how memory grew."""
    pairs = [(point["at"], point["seconds"]) for point in points]
    last = slope(pairs[-2:])
    grown = [(point["at"], point["megabytes"] - points[0]["megabytes"]) for point in points[-2:]]
    return {
        "exponent": slope(pairs),
        "last": last,
        "theory": theory,
        "bends": last > theory + SLACK,
        "memory_grown": grown[-1][1],
        "memory_last": slope(grown) if min(more for _, more in grown) > NOTICED else None,
    }


def with_exponents(curves: dict[str, Any]) -> dict[str, Any]:
    """What was measured, with what was fitted to it."""
    return {
        axis: {
            operation: {"points": points, **fitted(points, AXES[axis].theory[operation])}
            for operation, points in operations.items()
        }
        for axis, operations in curves.items()
    }


def drawn(result: dict[str, Any], file: Path) -> None:
    """Time on the left, memory on the right, a row for each axis; PNG and SVG."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    curves: dict[str, Any] = result["curves"]
    figure, panels = plt.subplots(len(curves), 2, figsize=(12.5, 3.1 * len(curves)), squeeze=False)
    for (axis, operations), (times, memory) in zip(curves.items(), panels, strict=True):
        for k, (name, own) in enumerate(operations.items()):
            at = [point["at"] for point in own["points"]]
            style = {"color": f"C{k}", "marker": "o", "markersize": 3.5, "linewidth": 1.3}
            times.plot(at, [1e3 * point["seconds"] for point in own["points"]], **style)
            low, high = ([1e3 * point[end] for point in own["points"]] for end in ("lowest", "highest"))
            times.fill_between(at, low, high, color=f"C{k}", alpha=0.15, linewidth=0)
            more = "" if own["memory_last"] is None else f", end {own['memory_last']:.2f}"
            said = f"{OPERATIONS[name].said}\n  time {own['exponent']:.2f}, end {own['last']:.2f}"
            label = f"{said}; memory {own['memory_grown']:+.0f} MB{more}"
            memory.plot(at, [point["megabytes"] for point in own["points"]], label=label, **style)
        for panel, what in ((times, "ms"), (memory, "MB beyond what is imported")):
            panel.set(xscale="log", yscale="log", xlabel=AXES[axis].said, ylabel=what)
            low, high = panel.get_ylim()
            panel.set_ylim(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high)))
            panel.grid(alpha=0.25, linewidth=0.5)
            panel.spines[["top", "right"]].set_visible(False)
        memory.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.tight_layout()
    for suffix in ("png", "svg"):
        figure.savefig(file.with_suffix(f".{suffix}"), dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", choices=AXES, help="one axis")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    asked = parser.parse_args()
    if asked.turns < 1:
        parser.error(f"--turns is {asked.turns}, expected at least 1")
    os.environ |= {"XLA_FLAGS": ONE_THREAD, "OMP_NUM_THREADS": "1"}  # all processes inherit it
    file, axes = asked.out / "scaling.json", [asked.only] if asked.only else list(AXES)
    before: dict[str, Any] = json.loads(file.read_text())["curves"] if asked.only and file.exists() else {}
    load = os.getloadavg()
    found = with_exponents(measure(axes, asked.turns))
    result = {
        "what": "one thread; Half Cheetah's sizes in fast, one thing changed at a time; medians over the turns",
        "command": "python benchmarks/scaling.py",
        "machine": {"processor": platform.machine(), "python": platform.python_version(), "cache": caches()},
        "turns": asked.turns,
        "load": {"before": load, "after": os.getloadavg()},
        "sizes": asdict(Size()),
        "curves": {axis: found.get(axis, before.get(axis)) for axis in AXES if axis in found or axis in before},
    }
    asked.out.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(result, indent=1) + "\n")
    drawn(result, file)
    print(f"written to {file}")


def caches() -> dict[str, str]:
    """The sizes of the first core's caches, where the system tells them."""
    folders = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"))
    told = [[(folder / name).read_text().strip() for name in ("level", "type", "size")] for folder in folders]
    return {f"L{level}": size for level, kind, size in told if kind != "Instruction"}


if __name__ == "__main__":
    main()
