"""Where the time of a `fast` Half Cheetah run goes: compiled computation, the simulator, and what is neither.

    python benchmarks/profiling.py [--methods max jdrx] [--steps 500] [--before COMMIT]

An ordinary run, recorded and checkpointed, on one core; the first steps, where things are compiled, count for nobody.
Compiled computation is what JAX's own profiler saw in execution, on any thread; the simulator is `step` and `reset` of
the environment; the rest is Python, copies, dispatch and the disk. With `--before` the same run is made with the code
of that commit, too, turn by turn beside this one, and the ratio of what their turns take is told. Writes
results/benchmarks/profile.json.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
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
        tempfile.TemporaryDirectory() as folder,
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


def turns() -> None:
    """Explore so many steps for every line that is read, and say how long that took."""
    method, steps = input().split()
    with (
        tempfile.TemporaryDirectory() as folder,
        running.new(Path(folder) / "run", ENV, method=method, seed=1000) as run,
    ):
        run.explore(WARM)
        print("ready", flush=True)
        for _ in sys.stdin:
            begin = time.perf_counter()
            run.explore(run.steps + int(steps))
            print(time.perf_counter() - begin, flush=True)


class Other:
    """A process that explores with the code in some folder, a turn at a time."""

    def __init__(self, source: Path, method: str) -> None:
        command = [sys.executable, "-c", "import runpy; runpy.run_path('benchmarks/profiling.py')['turns']()"]
        path = os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
        )
        self.say(f"{method} {TURN}")

    def say(self, line: str) -> str:
        """What it answers."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        if not (answer := self.process.stdout.readline()):
            raise RuntimeError("the process of a turn has ended")
        return answer

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


TURN, TURNS = 50, 12
"""Steps of a turn, and turns of each."""


def compared(before: str, method: str) -> dict[str, Any]:
    """What a turn takes with the code of that commit, over what it takes with this one's; turns alternate."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), before], check=True)
        try:
            both = Other(tree / "src", method), Other(Path("src").resolve(), method)
            seconds = np.array([[float(each.say("go")) for each in both] for _ in range(TURNS)])
            for each in both:
                each.end()
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], check=True)
    ratios = np.sort(seconds[:, 0] / seconds[:, 1])
    return {
        "method": method,
        "before": before,
        "seconds_of_a_turn": np.median(seconds, axis=0).round(3).tolist(),
        "ratio": round(float(np.median(ratios)), 3),
        "ratio_quartiles": np.quantile(ratios, [0.25, 0.75]).round(3).tolist(),
        "turns": TURNS,
        "steps_of_a_turn": TURN,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["max", "jdrx"])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--before", metavar="COMMIT")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks/profile.json"))
    asked = parser.parse_args()
    use_compilation_cache()
    rows: list[dict[str, Any]] = []
    for method in asked.methods:
        rows.append(profiled(method, asked.steps))
        print(json.dumps(rows[-1]), flush=True)
    ratios: list[dict[str, Any]] = []
    for method in asked.methods if asked.before else ():
        ratios.append(compared(asked.before, method))
        print(json.dumps(ratios[-1]), flush=True)
    given = f" --before {asked.before}" if asked.before else ""
    result = {
        "what": "shares of a fast run's time; ask and tell contain compiled computation; outside is neither that "
        "nor the simulator",
        "command": f"python benchmarks/profiling.py --methods {' '.join(asked.methods)} --steps {asked.steps}{given}",
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "load": round(os.getloadavg()[0], 2)},
        "runs": rows,
        "compared": ratios,
    }
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
