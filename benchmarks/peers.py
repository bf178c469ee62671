"""maxplore beside Stable-Baselines3, mbrl-lib and plain PyTorch: the same work on the same cores, as ratios.

    python -m venv PEERS
    PEERS/bin/pip install torch==2.13.0  # the build for CPUs
    PEERS/bin/pip install stable-baselines3==2.9.2
    python -m venv MBRL
    MBRL/bin/pip install torch==2.13.0
    MBRL/bin/pip install mbrl==0.2.0
    MBRL/bin/pip install hydra-core==1.3.2 omegaconf==2.3.0  # those it asks for do not run on Python 3.11
    python benchmarks/peers.py --peers PEERS/bin/python --mbrl MBRL/bin/python [--turns 7] [--only mbrl]

The peers have environments of their own: torch comes first, so that nothing for GPUs comes along, and mbrl-lib wants an
older Gymnasium than Stable-Baselines3 bears. All sides are processes that this one asks in turn (`peers_maxplore.py`,
`peers_torch.py`, `peers_mbrl.py`; one line of JSON each way), so that a busy moment hits both alike and only one of
them works at a time. A ratio is maxplore's rate over the peer's within a turn; above 1 maxplore is faster.

`sac_small` is SAC with batches of 256 against Stable-Baselines3, on one core with one thread and then on all cores with
the threads that each takes by itself; `paper_phase` is the work of the paper's sizes against PyTorch, on all cores;
`mbrl` is the training of ensembles, and planning in one for a task's reward, against mbrl-lib, on one core with one
thread, as the trials of a sweep run: with more threads on a busy machine PyTorch's wait for each other, and a ratio
says little.

The load of the machine stands in the result: what was not this run's own work disturbed it. Where both have one thread
there is a second ratio, by the processor's clock, which is disturbed less. `--only` measures one group anew and leaves
the rest of the file as it is; what has no interpreter is left out.
"""

import argparse
import json
import math
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

STATE, ACTION, ROWS = 19, 6, 20_000
"""Half Cheetah's dimensions, and transitions in the replay or in D."""
BATCH = 256
"""Transitions that a member learns from in a step."""
ENSEMBLES = {"ensemble_5x2": (5, 2, 200), "ensemble_7x4": (7, 4, 200)}
"""Members, hidden layers and their units: those of `fast`, and those of mbrl-lib's examples."""
PLAN = {"horizon": 30, "rounds": 5, "elites": 35, "particles": 5, "momentum": 0.1, "beta": 2.0}
"""As mbrl-lib has it for Half Cheetah, with fewer particles; in the smaller ensemble."""
CEM = {"rated": 350}
"""Plans in a round."""
ICEM = {"drawn": 350, "kept": 11, "drawn_here": 347}
"""Plans that mbrl-lib draws in a round. It adds 11 elites, in the last round its mean instead; maxplore adds elites and
mean in every round, and draws fewer: in all both rate equally many, which is checked."""
ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
PAUSE = 0.1
"""Seconds until the threads of the side that was just at work have gone to sleep."""


class Item(NamedTuple):
    """One thing to compare."""

    group: str
    side: str
    """Which peer."""
    peer: str
    """What it calls it."""
    units: int
    """Updates or steps in one timed call."""
    target: float
    """The ratio to reach."""


ITEMS = {
    "sac_small": Item("sac_small", "torch", "sb3_fixed", 50, 2.5),
    "sac_small_twin_targets": Item("sac_small", "torch", "sb3_fixed", 50, 2.5),
    "sac_small_automatic": Item("sac_small", "torch", "sb3_automatic", 50, 2.5),
    "gradient": Item("paper_phase", "torch", "gradient", 16, 1.0),
    "imagined": Item("paper_phase", "torch", "imagined", 10, 1.0),
    "sac_paper": Item("paper_phase", "torch", "sac_paper", 5, 1.0),
    "ensemble_5x2": Item("mbrl", "mbrl", "ensemble_5x2", 20, 1.0),
    "ensemble_7x4": Item("mbrl", "mbrl", "ensemble_7x4", 10, 1.0),
    "cem": Item("mbrl", "mbrl", "cem", 1, 1.0),
    "icem": Item("mbrl", "mbrl", "icem", 1, 1.0),
}
SETTINGS = {
    "one_core": ("sac_small",),
    "all_cores": ("sac_small", "paper_phase"),
    "mbrl_one_core": ("mbrl",),
}
"""Which groups run where."""


class Side:
    """A process that does the work of one side when asked."""

    def __init__(self, worker: str, python: str, threads: int | None) -> None:
        command = [python, str(Path(__file__).with_name(f"peers_{worker}.py"))]
        environment = os.environ | ({} if threads is None else ONE_THREAD | {"PEER_THREADS": str(threads)})
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
            )
        except OSError as reason:
            sys.exit(f"{python} cannot be started ({reason.strerror}), expected a Python interpreter: see --help")
        self.python = python
        self.about = self._answer()

    def ask(self, **question: Any) -> dict[str, Any]:
        """The answer to one question."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def seconds(self, work: str, units: int) -> tuple[float, float]:
        """How long so many units of some work take, on the wall and of the processor; nobody else of us is at work."""
        taken = self.ask(work=work, units=units)
        time.sleep(PAUSE)
        return taken["seconds"], taken["cpu_seconds"]

    def stop(self) -> None:
        """End the process."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        try:
            answer = json.loads(line)
        except json.JSONDecodeError:
            sys.exit(f"{self.python} answered {line!r}, expected a line of JSON: is it a Python interpreter?")
        if "error" in answer:
            sys.exit(f"{self.python} {answer['error']}")
        return answer


def serve(
    about: dict[str, Any], work: dict[str, Callable[[int], Any]], divergence: Callable[[Any, Any], Any] | None = None
) -> None:
    """A side's whole life: say what it is, then time what it is asked for until nobody asks any more."""

    def answer(question: dict[str, Any]) -> dict[str, Any]:
        if question["work"] == "divergence" and divergence is not None:
            return {"values": divergence(question["mean"], question["variance"])}
        begin, used = time.perf_counter(), time.process_time()
        work[question["work"]](question["units"])
        return {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - used}

    print(json.dumps(about), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


def check_same(sides: dict[str, Side]) -> float:
    """The largest difference of the two divergences on random Gaussians; too large a one ends the run."""
    draw = random.Random(0)

    def numbers(low: float, high: float) -> list[list[list[float]]]:
        return [[[draw.uniform(low, high) for _ in range(STATE)] for _ in range(16)] for _ in range(32)]

    question = {"work": "divergence", "mean": numbers(-0.5, 0.5), "variance": numbers(0.1, 0.4)}
    one, two = (sides[worker].ask(**question)["values"] for worker in ("maxplore", "torch"))
    off = max(abs(a - b) for a, b in zip(one, two, strict=True))
    if not (off < 1e-4 and min(one) > 0.1 and max(one) < 0.99 * math.log(32)):
        sys.exit(f"the divergences differ by {off} on values {min(one)} to {max(one)}, expected less than 1e-4")
    return off


def check_sizes(sides: dict[str, Side], names: list[str]) -> None:
    """End the run where the two sides do not learn equally many parameters and do not say why, or imagine unequally."""
    for name in names:
        one, two = sides["maxplore"].about["work"][name], sides[ITEMS[name].side].about["work"][ITEMS[name].peer]
        extra = one.get("extra_parameters", 0)
        if one["parameters"] - extra != two["parameters"]:
            sys.exit(f"{name}: {one['parameters']} - {extra} parameters here, {two['parameters']} there")
        if one.get("imagined_steps") != two.get("imagined_steps"):
            sys.exit(f"{name}: {one.get('imagined_steps')} imagined steps here, {two.get('imagined_steps')} there")


Taken = dict[tuple[str, str], list[tuple[float, float]]]
"""Seconds of each turn, on the wall and of the processor, by worker and work."""


def turns(sides: dict[str, Side], names: list[str], count: int) -> Taken:
    """All turns; who begins changes from one to the next."""
    taken: Taken = {}
    for turn in range(-1, count):  # the first compiles and counts for nothing
        for name in names:
            item = ITEMS[name]
            order = ("maxplore", item.side) if turn % 2 == 0 else (item.side, "maxplore")
            for worker in order:
                work = name if worker == "maxplore" else item.peer
                taken.setdefault((worker, name), []).append(sides[worker].seconds(work, item.units))
            for worker in order:
                for product in sides[worker].about["products"]:
                    taken.setdefault((worker, product), []).append(sides[worker].seconds(product, 1))
    return {which: each[1 if which[1] in names else len(names) :] for which, each in taken.items()}


def spread(values: list[float]) -> dict[str, float]:
    """Median, quartiles and extremes."""
    low, median, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return {
        "median": median,
        "quartile_1": low,
        "quartile_3": high,
        "lowest": min(values),
        "highest": max(values),
    }


def compared(name: str, sides: dict[str, Side], taken: Taken, machine: float) -> dict[str, Any]:
    """One item of the result."""
    item, operations = ITEMS[name], sides["maxplore"].about["work"][name]["operations"]
    workers = ("maxplore", item.side)
    rates = {worker: [item.units / wall for wall, _ in taken[worker, name]] for worker in workers}
    ratio = spread([mine / other for mine, other in zip(*rates.values(), strict=True)])
    entry: dict[str, Any] = {"ratio": ratio, "target": item.target, "reached": ratio["median"] >= item.target}
    if all(sides[worker].about["threads"] == 1 for worker in workers):  # which others at work disturb less
        used = ([cpu for _, cpu in taken[worker, name]] for worker in workers)
        entry["ratio_by_processor_time"] = spread([other / mine for mine, other in zip(*used, strict=True)])
    entry["operations_per_unit"] = operations
    for worker, label in zip(workers, ("maxplore", "peer"), strict=True):
        about = sides[worker].about["work"][name if worker == "maxplore" else item.peer]
        per_second = spread(rates[worker])
        entry[label] = {
            "does": about["does"],
            "parameters": about["parameters"],
            "optimiser": about["optimiser"],
            "per_s": per_second,
            "ms": 1e3 / per_second["median"],
            "share_of_machine": operations * per_second["median"] / machine,
        }
    return entry


def measure_setting(setting: str, pythons: dict[str, str], names: list[str], count: int) -> dict[str, Any]:
    """All ratios of one setting of cores and threads."""
    cores, one = sorted(os.sched_getaffinity(0)), setting.endswith("one_core")
    workers = dict.fromkeys([*(ITEMS[name].side for name in names), "maxplore"])
    load = os.getloadavg()
    os.sched_setaffinity(0, cores[:1] if one else cores)  # all sides inherit it
    sides: dict[str, Side] = {}
    try:
        for worker in workers:
            sides[worker] = Side(worker, pythons[worker], 1 if one else None)
        off = check_same(sides) if "torch" in sides else None
        check_sizes(sides, names)
        taken = turns(sides, names, count)
    finally:
        os.sched_setaffinity(0, cores)
        for side in sides.values():
            side.stop()
    products = {which: each for which, each in taken.items() if which[1] not in names}
    gflops = {
        f"{worker}_{name}": spread([2 * 2048**3 / wall / 1e9 for wall, _ in each])
        for (worker, name), each in products.items()
    }
    machine = 1e9 * max(each["median"] for each in gflops.values())
    result: dict[str, Any] = {
        "turns": count,
        "load": {"before": load, "after": os.getloadavg()},
        "cores": 1 if one else len(cores),
        "threads": {worker: side.about["threads"] for worker, side in sides.items()},
        "versions": {name: version for side in sides.values() for name, version in side.about["versions"].items()},
        "matrix_multiply_gflops": gflops,
    }
    if off is not None:
        result["divergences_differ_by"] = off
    for group in SETTINGS[setting]:
        own = [name for name in names if ITEMS[name].group == group]
        result |= {group: {name: compared(name, sides, taken, machine) for name in own}} if own else {}
    return result


def measure(pythons: dict[str, str], count: int, groups: list[str]) -> dict[str, Any]:
    """Everything that is asked for and has an interpreter, by setting."""
    result: dict[str, Any] = {}
    for setting, all_groups in SETTINGS.items():
        chosen = {group for group in all_groups if group in groups}
        names = [name for name, item in ITEMS.items() if item.group in chosen and item.side in pythons]
        if names:
            result[setting] = measure_setting(setting, pythons, names, count)
    return result


def table(result: dict[str, Any]) -> str:
    """The ratios, for people."""
    rows = [f"{'':34}{'ratio':>8}{'target':>8}{'maxplore':>16}{'peer':>16}"]
    for setting, groups in SETTINGS.items():
        for group in groups:
            for name, item in result.get(setting, {}).get(group, {}).items():
                ms, share = ([item[side][kind] for side in ("maxplore", "peer")] for kind in ("ms", "share_of_machine"))
                cells = "".join(f"{f'{a:.1f} ms {b:.0%}':>16}" for a, b in zip(ms, share, strict=True))
                rows.append(f"{setting + ' ' + name:34}{item['ratio']['median']:8.2f}{item['target']:8.1f}{cells}")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    groups = sorted({item.group for item in ITEMS.values()})
    parser.add_argument("--peers", metavar="PYTHON", help="the interpreter with torch and Stable-Baselines3")
    parser.add_argument("--mbrl", metavar="PYTHON", help="the interpreter with mbrl-lib")
    parser.add_argument("--turns", type=int, default=7, help="timed turns of each item, after one to compile")
    parser.add_argument("--only", choices=groups, help="one group of items")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks/peers.json"))
    asked = parser.parse_args()
    if asked.turns < 1:
        parser.error(f"--turns is {asked.turns}, expected at least 1")
    given = {"maxplore": sys.executable, "torch": asked.peers, "mbrl": asked.mbrl}
    pythons = {side: python for side, python in given.items() if python is not None}
    found = measure(pythons, asked.turns, [asked.only] if asked.only else groups)
    if not found:
        parser.error("there is nothing to measure: give --peers, --mbrl or both")
    before: dict[str, Any] = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    result = {
        "command": "python benchmarks/peers.py --peers PYTHON --mbrl PYTHON",
        "processor": platform.machine(),
        "what": f"{STATE} + {ACTION} dimensions, {ROWS} transitions; a ratio is maxplore's rate over the peer's",
    }
    result |= {setting: found.get(setting, before.get(setting, {})) for setting in SETTINGS}
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(result, indent=2) + "\n")
    print(table(found))
    print(f"written to {asked.out}")


if __name__ == "__main__":
    main()
