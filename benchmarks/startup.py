"""What a trial of a sweep costs before its first step, with a cold and a warm cache, and what it leaves on the disk.

    python benchmarks/startup.py [--turns 3] [--steps 1000] [--out results/benchmarks/startup.json]

A start is a process that makes a `fast` Half Cheetah run with MAX and takes it to its first planned step: imports,
environment, the first fit and the first plan. It is cold with an empty compilation cache, warm with a filled one; they
take turns. Then one run of so many steps is made, and its files are weighed.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
FIRST = 60
"""Steps until there was a plan."""


def explored(path: Path, steps: int) -> None:
    """In this process: a run of so many steps."""
    from maxplore.cache import use_compilation_cache
    from maxplore.runs import run as running

    use_compilation_cache()
    with running.new(path, "maxplore/HalfCheetah-v0", seed=1000, steps=steps) as run:
        run.explore(steps)


def started(cache: Path, steps: int, run: Path) -> dict[str, float]:
    """Seconds of a new process that makes such a run: of the processor, and on the wall."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment |= {"XDG_CACHE_HOME": str(cache), "XLA_FLAGS": ONE_THREAD, "OMP_NUM_THREADS": "1"}
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, __file__, "--one", str(run), "--steps", str(steps)], env=environment)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"a start ended with status {status}, expected 0")
    return {"cpu_seconds": used.ru_utime + used.ru_stime, "seconds": time.perf_counter() - begin}


def weight(folder: Path) -> int:
    """Bytes of all files under it."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def spread(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}


def measure(turns: int, steps: int) -> dict[str, Any]:
    """Starts in turn, then the run."""
    taken: dict[str, list[dict[str, float]]] = {"cold": [], "warm": []}
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name).absolute()
        caches = [folder / f"cache-{turn}" for turn in range(turns)]
        for turn, cache in enumerate(caches):
            for kind in ("cold", "warm"):
                taken[kind].append(started(cache, FIRST, folder / f"{kind}-{turn}"))
        compiled, files = weight(caches[0]), sum(file.is_file() for file in caches[0].rglob("*"))
        short, long = folder / "warm-0", folder / "long"
        whole = started(caches[0], steps, long)
        kept = sorted((long / "checkpoints").iterdir())
        record = [(path / "run.sqlite").stat().st_size for path in (short, long)]
        result = {
            "bytes": {
                "run": weight(long),
                "record": record[1],
                "record_per_step": (record[1] - record[0]) / (steps - FIRST),
                "checkpoint": kept[-1].stat().st_size,
                "checkpoints_kept": len(kept),
                "cache": compiled,
                "cache_files": files,
            },
            "run": {"steps": steps, **whole},
        }
    return {
        "what": f"a fast Half Cheetah run with MAX: {FIRST} steps, cold and warm; {steps} steps for its files",
        "command": "python benchmarks/startup.py",
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()},
        "turns": turns,
        **{
            kind: {clock: spread([own[clock] for own in each]) for clock in ("cpu_seconds", "seconds")}
            for kind, each in taken.items()
        },
        **result,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks/startup.json"))
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one is not None:
        explored(asked.one, asked.steps)
        return
    if asked.turns < 1 or asked.steps <= FIRST:
        parser.error(f"--turns is {asked.turns} and --steps {asked.steps}, expected at least 1 and more than {FIRST}")
    result = measure(asked.turns, asked.steps)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
