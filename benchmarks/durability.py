"""What it costs that a run survives anything: recording a step, and checkpoints, beside a `fast` Half Cheetah run.

    python benchmarks/durability.py [--steps 2000] [--out results/benchmarks/durability.json]

The run is an ordinary one, with MAX; the time inside `Record.write`, inside the checkpoints, inside the event files and
in looking whether the folder is still in its place (`Folder.check`) is taken while it goes on, so that all have the
same machine around them. The first steps, where things are compiled, count for nobody. The digests, by which damage is
found, are a part of record and checkpoints, and taken by themselves as well. What it costs to check them is the
processor time to open a record of 20,000 steps of the size of Half Cheetah's, less that to open it unchecked, in
alternating turns.
"""

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from maxplore.runs import checkpoint, record
from maxplore.runs import run as running
from maxplore.runs.directory import Folder
from maxplore.runs.record import Episode, Record, Step
from maxplore.runs.tensorboard import Scalars

WARM = 200
"""Steps that are not counted."""

LONG, EPISODE, ROUND = 20_000, 1_000, 25
"""Steps of a run that is opened, of its episodes, and between two rounds, of which it has metrics."""

ROUNDS: tuple[str, ...] = (
    "calibration",
    "clipped",
    "coverage",
    "error",
    "nll",
    "nonfinite",
    "saturation",
    "skipped",
    "utility",
)


def opening(folder: Path) -> float:
    """Seconds of processor time to check a long record."""
    draw, path = np.random.default_rng(0), folder / "run.sqlite"
    with Record.create(path) as own:
        for k in range(LONG):
            row = Step(k, k // EPISODE, draw.bytes(6 * 4), draw.bytes(19 * 8), draw.normal(), False, False)
            begun = Episode(k // EPISODE, k, k, draw.bytes(19 * 8)) if k % EPISODE == 0 else None
            metrics = dict(zip(ROUNDS, draw.normal(size=len(ROUNDS)).tolist(), strict=True)) if k % ROUND == 0 else None
            own.write(row, episode=begun, metrics=metrics)
    spent: dict[Any, list[float]] = {Record.read: [], Record.peek: []}
    for _ in range(9):
        for opened, times in spent.items():
            begin = time.process_time()
            with opened(path) as own:
                assert own.steps == LONG
            times.append(time.process_time() - begin)
    return statistics.median(spent[Record.read]) - statistics.median(spent[Record.peek])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks/durability.json"))
    asked = parser.parse_args()
    spent: defaultdict[str, list[float]] = defaultdict(list)

    def timed(name: str, do: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*given: Any, **named: Any) -> Any:
            begin = time.perf_counter()
            try:
                return do(*given, **named)
            finally:
                spent[name].append(time.perf_counter() - begin)

        return inner

    Record.write, Scalars.write = timed("record", Record.write), timed("events", Scalars.write)
    Folder.check = timed("place", Folder.check)
    running.Run.checkpoint = timed("checkpoint", running.Run.checkpoint)
    for module, name in ((record, "_digest"), (checkpoint, "digest"), (running, "known")):
        setattr(module, name, timed("digests", getattr(module, name)))
    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        running.new(Path(folder) / "run", "maxplore/HalfCheetah-v0", seed=1000) as run,
    ):
        run.sinks.append(Scalars(run.folder.tensorboard))
        run.explore(WARM)
        spent.clear()
        begin = time.perf_counter()
        run.explore(WARM + asked.steps)
        whole = time.perf_counter() - begin
    total = {name: sum(own) for name, own in spent.items()}
    digests = total.pop("digests")  # which the others have in them
    with tempfile.TemporaryDirectory(dir=".") as folder:
        check = opening(Path(folder))
    result = {
        "what": f"a fast Half Cheetah run of {asked.steps} steps after {WARM}: time inside durability's own code",
        "command": f"python benchmarks/durability.py --steps {asked.steps}",
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "load": round(os.getloadavg()[0], 2)},
        "seconds": round(whole, 2),
        "record_ms_median": round(1000 * statistics.median(spent["record"]), 4),
        "record_ms_p99": round(1000 * statistics.quantiles(spent["record"], n=100)[-1], 4),
        "checkpoint_ms_median": round(1000 * statistics.median(spent["checkpoint"]), 1),
        "share": {name: round(own / whole, 5) for name, own in sorted(total.items())},
        "share_of_all": round(sum(total.values()) / whole, 5),
        "share_of_digests": round(digests / whole, 5),
        "opening_s": round(check, 3),
    }
    print(json.dumps(result, indent=1))
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
