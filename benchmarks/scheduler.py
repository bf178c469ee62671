"""The sweep's own loop at 10,000 trials, on nodes that fail: `maxplore.sweep.run_all`, a simulated engine and clock.

    python benchmarks/scheduler.py [--trials 10000] [--seeds 3] [--out results/benchmarks]

Which trial is next, and what becomes of one whose worker is gone, is decided by the code that decides it in a real
sweep; only workers, machines and time are imagined. Trials last as long as runs were measured to (processor time of
results/benchmarks/*.json, drawn with replacement), in the order of a study: seeds change slowest. Nodes have 16
workers. They fail at random, come back, and take their workers with them; one in twenty is half as fast; a few trials
fail on their own. A start costs what results/benchmarks/startup.json says. A trial that goes on lives through the steps
since its last checkpoint again; a lock that a dead node held is free after a while.

Of each seed: the time until all is done over the least possible (all work spread evenly, that of trials that will fail
counted in full, or the longest trial), how much of the time that workers were busy was spent on starts and on work done
twice, and the share of all time that they had nothing to do.
Writes scheduler.json, scheduler.png and scheduler.svg.
"""

import argparse
import heapq
import json
import math
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from maxplore.sweep import Trial, running
from maxplore.sweep.engine import BUSY, FAILED, Ended
from maxplore.sweep.trial import NOTHING, Done

CHECKPOINT = 500
"""Steps between two checkpoints of a run."""


SEED_BY_SEED, KIND_BY_KIND, LONGEST_FIRST = "seed by seed", "kind by kind", "longest first"
"""As a study has it; one environment and method after the other; by somebody who knows how long each will take."""


@dataclass(frozen=True)
class World:
    """Machines, and what may happen to them. Times are in seconds."""

    workers: int
    per_node: int = 16
    start: float = 0.0
    """From the start of a worker to its first step: imports, and compiled code from the cache."""
    mtbf: float = math.inf
    """Between two failures of one node, in the mean."""
    repair: float = 600.0
    """Until a node is back."""
    lease: float = 0.0
    """As long, a lock whose owner is gone keeps others out."""
    slow: float = 0.0
    """Share of nodes that are half as fast."""
    own_failures: float = 0.0
    """Share of trials that fail on their own, somewhere on the way."""
    resumes: bool = True
    """Or begins anew whatever lost its worker."""
    order: str = SEED_BY_SEED
    """Which trials are begun first."""
    tail: bool = True
    """Whether the last of them go by their length, as far as the sweep knows it by then."""


class Length(NamedTuple):
    """How long a trial takes."""

    seconds: float
    steps: int


class Imagined(Trial):
    """A trial that nobody reads."""

    def write(self, file: Path) -> None:
        """Nothing: no worker comes to look."""


@dataclass
class Node:
    """A machine."""

    slots: int
    pace: float
    """Seconds that a second of work takes."""
    fails: float
    """When it will."""
    back: float = 0.0
    """When it is there, again."""
    busy: int = 0


@dataclass
class Attempt:
    """A worker."""

    name: str
    node: Node
    begun: float
    over: float
    """When it ends, if its node lives to see it,"""
    lost: float
    """which is until then."""
    status: int


@dataclass
class Spent:
    """What became of the workers' time."""

    useful: float = 0.0
    starting: float = 0.0
    again: float = 0.0
    """On what had been done before, or had to be done once more."""
    losses: int = 0


class Simulated:
    """An engine without machines; and the clock that its sweep looks at."""

    def __init__(self, world: World, lengths: Mapping[str, Length], seed: int) -> None:
        self.world, self.lengths, self.spent = world, lengths, Spent()
        self.now, self.last, self.looks = 0.0, 0.0, 0
        self.draw = random.Random(seed)
        sizes = [min(world.per_node, left) for left in range(world.workers, 0, -world.per_node)]
        paces = [2.0 if self.draw.random() < world.slow else 1.0 for _ in sizes]
        self.nodes = [Node(slots, pace, self._life()) for slots, pace in zip(sizes, paces, strict=True)]
        self.doomed = {name: self.draw.random() for name in lengths if self.draw.random() < world.own_failures}
        """Trials that will fail on their own, and the share of them that is done by then."""
        self.recorded, self.kept, self.locked = (dict.fromkeys(lengths, 0.0) for _ in range(3))
        self.events: list[float] = []
        self._remind(*(node.fails for node in self.nodes))

    def _life(self) -> float:
        """How long a node lives."""
        return self.draw.expovariate(1 / self.world.mtbf) if self.world.mtbf < math.inf else math.inf

    # The clock.

    def monotonic(self) -> float:
        """What time it is."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Until something happens, and to the next look after it."""
        self.looks += 1
        while self.events and self.events[0] <= self.now:
            heapq.heappop(self.events)
        until = max(self.now + seconds, self.events[0] if self.events else 0.0)
        self.now = seconds * math.ceil(until / seconds)
        for node in self.nodes:
            if node.fails <= self.now:
                node.back = node.fails + self.world.repair
                node.fails = node.back + self._life()
                self._remind(node.back, node.fails)

    def _remind(self, *moments: float) -> None:
        for moment in moments:
            if moment < math.inf:
                heapq.heappush(self.events, moment)

    # The engine.

    def room(self) -> int:
        """How many may run now, those that do included."""
        return sum(node.slots for node in self.nodes if node.back <= self.now)

    def start(self, order: Path, run: Path) -> Attempt:
        """A worker on any node that has room."""
        name, world = run.name, self.world
        node = next(node for node in self.nodes if node.back <= self.now and node.busy < node.slots)
        node.busy += 1
        if not world.resumes:
            self.recorded[name] = self.kept[name] = 0.0
        work, status = self.lengths[name].seconds, 0
        if name in self.doomed:
            work, status = self.doomed[name] * work, FAILED
        takes = world.start + work - self.kept[name]
        if self.now < self.locked[name]:
            takes, status = world.start, BUSY
        attempt = Attempt(name, node, self.now, self.now + node.pace * takes, node.fails, status)
        self._remind(min(attempt.over, attempt.lost))
        return attempt

    def ended(self, worker: Attempt) -> Ended | None:
        """How it ended; None as long as it runs."""
        if min(worker.over, worker.lost) > self.now:
            return None
        worker.node.busy -= 1
        self.last = self.now
        came_to_end = worker.over <= worker.lost
        self._account(worker, (worker.over if came_to_end else worker.lost) - worker.begun, lost=not came_to_end)
        if came_to_end:
            status = worker.status
        else:
            status = None
            self.locked[worker.name] = worker.lost + self.world.lease
            self.spent.losses += 1
        if status is None or status == BUSY:
            self._remind(*(self.now + pause + running.LOOK for pause in running.PAUSES))
        return Ended(status, loss="its node is gone")

    def _account(self, worker: Attempt, seconds: float, *, lost: bool) -> None:
        """What its time went into, and how far its trial is now."""
        name, pace, length = worker.name, worker.node.pace, self.lengths[worker.name]
        starting = min(seconds, pace * self.world.start)
        worked = 0.0 if worker.status == BUSY else (seconds - starting) / pace
        again = min(worked, self.recorded[name] - self.kept[name])
        if lost and not self.world.resumes:
            again = worked
        reached = self.kept[name] + worked
        self.spent.starting += starting
        self.spent.again += pace * again
        self.spent.useful += pace * (worked - again)
        if reached > self.recorded[name]:
            every = length.seconds * CHECKPOINT / length.steps
            self.recorded[name], self.kept[name] = reached, every * math.floor(reached / every + 1e-9)

    def stop(self, workers: Sequence[Attempt]) -> None:
        """Nobody stops a simulation."""

    def done(self, trial: Trial, path: Path) -> Done:
        """How far a trial is, as its folder would tell."""
        length = self.lengths[path.name]
        steps = math.floor(length.steps * self.recorded[path.name] / length.seconds) if self.world.resumes else 0
        return NOTHING._replace(steps=min(steps, length.steps))


@contextmanager
def instead(engine: Simulated) -> Generator[None]:
    """The sweep's loop with this clock, and runs that are in no folder."""
    before = running.time, running.done, running.TAIL
    running.time, running.done = engine, engine.done  # pyright: ignore[reportAttributeAccessIssue]
    running.TAIL = running.TAIL if engine.world.tail else 0
    try:
        yield
    finally:
        running.time, running.done, running.TAIL = before


def simulated(world: World, lengths: Mapping[str, Length], seed: int) -> dict[str, float]:
    """One sweep from its beginning to its end, in figures."""
    order = list(lengths)
    if world.order != SEED_BY_SEED:
        order.sort(key=None if world.order == KIND_BY_KIND else lambda name: -lengths[name].seconds)
    trials = {name: Imagined(name.partition("-")[0], "max", 0, lengths[name].steps) for name in order}
    engine = Simulated(world, lengths, seed)
    begin = time.process_time()
    with tempfile.TemporaryDirectory() as folder, instead(engine):
        outcomes = running.run_all(trials, Path(folder), engine=engine, workers=None, say=lambda _: None)
    took, spent = time.process_time() - begin, engine.spent
    work = sum(own.seconds for own in lengths.values())
    least = max(work / world.workers, max(own.seconds for own in lengths.values()))
    busy = spent.useful + spent.starting + spent.again
    return {
        "hours": engine.last / 3600,
        "over_least": engine.last / least,
        "starting": spent.starting / busy,
        "again": spent.again / busy,
        "idle": 1 - busy / (world.workers * engine.last),
        "losses": spent.losses,
        "failed": sum(not outcome.ended for outcome in outcomes),
        "failed_by_themselves": len(engine.doomed),
        "given_up": sum(not outcome.ended and outcome.name not in engine.doomed for outcome in outcomes),
        "loop_ms": 1e3 * took / engine.looks,
    }


def measured(results: Path) -> list[list[Length]]:
    """How long runs took, by environment and method."""
    groups: dict[tuple[str, str], list[Length]] = {}
    for name in ("mountain-car", "half-cheetah", "ant-maze"):
        for run in json.loads((results / f"{name}.json").read_text())["runs"]:
            groups.setdefault((name, run["method"]), []).append(Length(run["cpu_seconds"], run["steps"]))
    return list(groups.values())


def drawn_lengths(groups: list[list[Length]], count: int, seed: int) -> dict[str, Length]:
    """So many trials, equally many of each group, seed by seed as in a study; names sort group by group."""
    draw = random.Random(seed)
    places = [divmod(k, len(groups)) for k in range(count)]
    return {f"{group:02d}-{number:05d}": draw.choice(groups[group]) for number, group in places}


HOUR = 3600.0
WORKERS = (1, 10, 100, 1000)
COMPARED = (100, 1000)
"""Numbers of workers that all policies are tried with."""


def cases(start: float) -> dict[str, dict[str, Any]]:
    """What is compared: policies and troubles, by name."""
    usual = {"start": start, "mtbf": 24 * HOUR, "lease": 90.0, "slow": 0.05, "own_failures": 0.005}
    often = usual | {"mtbf": 2 * HOUR}
    return {
        "as it is": usual,
        "in the study's order to the end": usual | {"tail": False},
        "kind by kind to the end": usual | {"order": KIND_BY_KIND, "tail": False},
        "longest first, known beforehand": usual | {"order": LONGEST_FIRST, "tail": False},
        "nothing fails, all nodes alike": {"start": start},
        "a node fails every 2 hours": often,
        "a node fails every 2 hours, lost trials begin anew": often | {"resumes": False},
    }


def measure(trials: int, seeds: int, results: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """All cases with all seeds."""
    groups = measured(results)
    start = json.loads((results / "startup.json").read_text())["warm"]["cpu_seconds"]["median"]
    rows: list[dict[str, Any]] = []
    for name, settings in cases(start).items():
        for workers in WORKERS if name == "as it is" else COMPARED:
            world = World(workers, **settings)
            found = [simulated(world, drawn_lengths(groups, trials, seed), seed) for seed in range(seeds)]
            rows.append({"case": name, "workers": workers, **{figure: spread(found, figure) for figure in found[0]}})
            say(f"{name}, {workers} workers: {rows[-1]['over_least']}")
    worlds = {
        name: {k: v for k, v in asdict(World(1, **own)).items() if k != "workers"} for name, own in cases(start).items()
    }
    for own in worlds.values():
        own["mtbf"] = own["mtbf"] if math.isfinite(own["mtbf"]) else None
    lengths = [own.seconds for group in groups for own in group]
    return {
        "what": f"{trials} trials of {min(lengths):.0f} to {max(lengths):.0f} seconds in the sweep's own loop; medians "
        "and extremes over seeds",
        "command": "python benchmarks/scheduler.py",
        "trials": trials,
        "seeds": seeds,
        "checkpoint_every": CHECKPOINT,
        "worlds": worlds,
        "rows": rows,
    }


def spread(found: list[dict[str, float]], figure: str) -> dict[str, float]:
    """Median and extremes over seeds."""
    values = [own[figure] for own in found]
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}


def drawn(result: dict[str, Any], file: Path) -> None:
    """How long it takes by the number of workers, and where their time goes; PNG and SVG."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.2), width_ratios=(1, 1.35))
    for k, case in enumerate(result["worlds"]):
        rows = [row for row in result["rows"] if row["case"] == case]
        at, over = [row["workers"] for row in rows], [row["over_least"] for row in rows]
        middle = [own["median"] for own in over]
        bars = [[m - own["lowest"] for m, own in zip(middle, over, strict=True)]]
        bars += [[own["highest"] - m for m, own in zip(middle, over, strict=True)]]
        left.errorbar(at, middle, bars, marker="o", markersize=4, linewidth=1.3, capsize=3, color=f"C{k}", label=case)
    left.set(xscale="log", xlabel="workers", ylabel="time over the least possible", ylim=(0.95, 2.1))
    left.legend(fontsize=7.5, frameon=False, loc="upper left")
    chosen = [row for row in result["rows"] if row["workers"] == COMPARED[-1]]
    begin = [0.0] * len(chosen)
    names = [row["case"].replace(", ", ",\n") for row in chosen]
    for k, (part, said) in enumerate(
        {"starting": "starts", "again": "work done again", "idle": "idle, or down"}.items()
    ):
        share = [100 * row[part]["median"] * (1 if part == "idle" else 1 - row["idle"]["median"]) for row in chosen]
        right.barh(names, share, left=begin, color=f"C{k + 5}", label=said, height=0.6)
        begin = [a + b for a, b in zip(begin, share, strict=True)]
    right.invert_yaxis()
    right.set(xlabel=f"% of the time of {COMPARED[-1]} workers")
    right.legend(fontsize=8, frameon=False)
    for panel in (left, right):
        panel.grid(alpha=0.25, linewidth=0.5)
        panel.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    for suffix in ("png", "svg"):
        figure.savefig(file.with_suffix(f".{suffix}"), dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    asked = parser.parse_args()
    if min(asked.trials, asked.seeds) < 1:
        parser.error(f"--trials is {asked.trials} and --seeds {asked.seeds}, expected at least 1")
    result = measure(asked.trials, asked.seeds, Path("results/benchmarks"), lambda text: print(text, flush=True))
    asked.out.mkdir(parents=True, exist_ok=True)
    file = asked.out / "scheduler.json"
    file.write_text(json.dumps(result, indent=1) + "\n")
    drawn(result, file)
    print(f"written to {file}")


if __name__ == "__main__":
    main()
