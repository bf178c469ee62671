"""Where the time of a `fast` Half Cheetah run goes: compiled computation, the simulator, and what is neither.

    python benchmarks/profile.py [--methods max jdrx] [--steps 500]

An ordinary run, recorded and checkpointed, on one core; the first steps, where things are compiled, count for nobody.
Compiled computation is what JAX's own profiler saw in execution, on any thread; the simulator is `step` and `reset` of
the environment; the rest is Python, copies, dispatch and the disk. Writes results/benchmarks/profile.json.
"""

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from maxplore.cache import use_compilation_cache
from maxplore.runs import run as running

ENV = "maxplore/HalfCheetah-v0"
WARM = 210
"""Steps that are not counted."""
EXECUTION = "ThunkExecutor::Execute"
"""What the profiler calls the execution of a compiled program."""


def executed(folder: Path) -> Iterator[tuple[float, float]]:
    """When compiled programs were running: beginnings and ends in nanoseconds."""
    (file,) = folder.rglob("*.xplane.pb")
    for plane in jax.profiler.ProfileData.from_file(str(file)).planes:
        for line in plane.lines:
            for event in line.events:
                if event.name.startswith(EXECUTION):
                    yield event.start_ns, event.start_ns + event.duration_ns


def union(intervals: Iterator[tuple[float, float]]) -> float:
    """How much time all intervals cover together, in seconds.

    >>> union(iter([(0, 2e9), (1e9, 3e9), (5e9, 6e9)]))
    4.0
    """
    total, end = 0.0, -np.inf
    for low, high in sorted(intervals):
        total += max(0.0, high - max(low, end))
        end = max(end, high)
    return total / 1e9


def profiled(method: str, steps: int) -> dict[str, Any]:
    """One run's seconds, and the shares of them."""
    spent: dict[str, float] = dict.fromkeys(("simulator", "record", "checkpoint", "ask", "tell"), 0.0)

    def timed(name: str, do: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*given: Any, **named: Any) -> Any:
            begin = time.perf_counter()
            try:
                return do(*given, **named)
            finally:
                spent[name] += time.perf_counter() - begin

        return inner

    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        running.new(Path(folder) / "run", ENV, method=method, seed=1000) as run,
    ):
        run.explore(WARM)
        run.env.step = timed("simulator", run.env.step)
        run.env.reset = timed("simulator", run.env.reset)
        run.record.write = timed("record", run.record.write)
        run.checkpoint = timed("checkpoint", run.checkpoint)
        run.explorer.ask = timed("ask", run.explorer.ask)
        run.explorer.tell = timed("tell", run.explorer.tell)
        with jax.profiler.trace(folder, profiler_options=options):
            begin = time.perf_counter()
            run.explore(WARM + steps)
            whole = time.perf_counter() - begin
        compiled = union(executed(Path(folder) / "plugins"))
    outside = whole - compiled - spent["simulator"]
    shares = {"compiled": compiled, **spent, "outside": outside}
    return {
        "method": method,
        "steps": steps,
        "seconds": round(whole, 2),
        "shares": {name: round(own / whole, 4) for name, own in shares.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["max", "jdrx"])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks/profile.json"))
    asked = parser.parse_args()
    use_compilation_cache()
    rows: list[dict[str, Any]] = []
    for method in asked.methods:
        rows.append(profiled(method, asked.steps))
        print(json.dumps(rows[-1]), flush=True)
    result = {
        "what": "shares of a fast run's time; ask and tell contain compiled computation; outside is neither that "
        "nor the simulator",
        "command": f"python benchmarks/profile.py --methods {' '.join(asked.methods)} --steps {asked.steps}",
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "load": round(os.getloadavg()[0], 2)},
        "runs": rows,
    }
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
