"""How much of an environment each method sees, what it costs, and how well its model then predicts.

    python benchmarks/exploration.py half-cheetah [--methods max random] [--seeds 3] [--steps 3000]

Every run is a process of its own on one core, as many side by side as there are cores. One that is finished is written
down in runs/benchmarks/, with D beside it, and never run again: the command goes on where it was stopped (delete the
files there to begin anew). Writes results/benchmarks/NAME.json. Any setting can be changed: `--set members=7`; with
`--set rehearse=4` the last of all steps are four rounds of `maxplore.rehearse`.
"""

import argparse
import ast
import json
import math
import os
import platform
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
FIRST_SEED = 1000
"""Seeds that are reported; what was tuned was tuned on others."""
MARKS = 24
"""Points of a coverage curve."""
WISHES, TRIES = 3, 5
"""Of a round of rehearsals: wishes, and real episodes of each."""


class Study(NamedTuple):
    """An environment, how long it is explored, and what counts as having seen something of it."""

    env: str
    steps: int
    methods: tuple[str, ...]
    bins: Callable[[Any], Any]
    """The bins, as whole numbers `[steps, axes]`, that observations fall into."""
    measured_in: str


def mountain_car_bins(rows: Any) -> Any:
    """A 40 x 40 grid over all positions and velocities."""
    import numpy as np

    low, high = np.array([-1.2, -0.07]), np.array([0.6, 0.07])
    return np.clip((40 * (rows - low) / (high - low)).astype(int), 0, 39)


def half_cheetah_bins(rows: Any) -> Any:
    """z by 0.15, pitch by 30 degrees, x velocity by 1, pitch velocity by 2."""
    import numpy as np

    pitch = np.degrees(np.arctan2(rows[:, 2], rows[:, 3]))
    return np.floor(np.stack([rows[:, 1] / 0.15, pitch / 30, rows[:, 0], rows[:, 12] / 2], axis=1)).astype(int)


def ant_maze_bins(rows: Any) -> Any:
    """The seven cells; a place in a wall, which only noise can tell of, belongs to no cell and is that of the start."""
    import numpy as np

    from maxplore.envs.maze import cell_at

    return np.array([[cell_at(float(x), float(y)) or 0] for x, y in rows[:, 2:4]])


REAL = ("max", "tvax", "jdrx", "perx", "random")
STUDIES = {
    "mountain-car": Study(
        "maxplore/MountainCar-v0", 2000, ("max", "random"), mountain_car_bins, "cells of a 40 x 40 grid"
    ),
    "half-cheetah": Study(
        "maxplore/HalfCheetah-v0", 3000, REAL, half_cheetah_bins, "bins of z, pitch, x velocity, pitch velocity"
    ),
    "ant-maze": Study("maxplore/AntMaze-v0", 12_000, REAL, ant_maze_bins, "cells of the U"),
}


def explored(study: Study, method: str, seed: int, steps: int, settings: list[str], rows: Path) -> dict[str, Any]:
    """One run, in this process; D is kept beside the file of `rows`."""
    start, code = time.perf_counter(), commit()
    import gymnasium as gym
    import jax.numpy as jnp
    import numpy as np
    from torques import somersaults

    import maxplore  # noqa: F401  # pyright: ignore[reportUnusedImport]  # it brings its environments along

    env = gym.make(study.env)
    explorer, tried, before = lived(env, method, seed, steps, settings, rows.parent)
    seconds = time.perf_counter() - start
    seen = explorer.history[jnp.arange(steps)]
    kept = {name: np.asarray(value) for name, value in vars(seen).items()}
    np.savez_compressed(rows.with_name(f"{rows.stem}-{method}-{seed}.npz"), allow_pickle=False, **kept)
    bins = study.bins(np.asarray(seen.next_state))
    _, firsts = np.unique(bins, axis=0, return_index=True)
    marks = np.unique(np.linspace(0, steps, MARKS + 1).astype(int)[1:])
    used = resource.getrusage(resource.RUSAGE_SELF)
    row: dict[str, Any] = {
        "method": method,
        "seed": seed,
        "steps": steps,
        "settings": settings,
        "commit": code,
        **before,
        "coverage": len(firsts),
        "curve": [[int(mark), int(np.sum(firsts < mark))] for mark in marks],
        "seconds": round(seconds, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "gigabytes": round(used.ru_maxrss / 2**20, 2),
        "load": [round(x, 2) for x in os.getloadavg()],
    }
    if study.env == "maxplore/MountainCar-v0":
        at_flag = np.asarray(seen.next_state)[:, 0] >= 0.45
        row["flag_at"] = int(np.argmax(at_flag)) + 1 if at_flag.any() else None
    if study.env == "maxplore/HalfCheetah-v0":
        row["flips"] = somersaults(np.asarray(seen.next_state))
    if study.env == "maxplore/AntMaze-v0" and not before:  # the environment remembers what it has seen itself
        row["visited"] = int(np.sum(env.unwrapped.info()["visited"]))  # pyright: ignore[reportAttributeAccessIssue]
    if tried:
        row["rehearsed"] = tried
    figures = explorer.figures
    if figures:
        row["figures"] = {
            name: [known(figure[name]) for figure in (*figures[: -1 : max(1, len(figures) // MARKS)], figures[-1])]
            for name in ("step", "utility", "saturation", "nll", "error", "calibration", "clipped")
        }
    return row


def lived(
    env: Any, method: str, seed: int, steps: int, typed: Sequence[str], runs: Path
) -> tuple[Any, list[dict[str, Any]], dict[str, Any]]:
    """An explorer after so many steps, what came of its wishes, and what was spent before this process. With
    `rehearse=4` among the settings that were typed, the last of these steps are four rounds of `maxplore.rehearse`;
    what went before them is kept in `runs`."""
    import maxplore

    given = settings_of(typed)
    rounds = given.pop("rehearse", 0)
    first = steps - rounds * WISHES * TRIES * (env.spec.max_episode_steps if rounds else 0)
    if rounds < 0 or first < 1:
        sys.exit(
            f"rehearse is {rounds}, expected a number of rounds that leaves some of {steps} steps to explore before"
        )
    explorer, before = begun(env, method, seed, first, given, runs if rounds else None)
    tried = list[dict[str, Any]]()
    if rounds:
        own: dict[str, Any] = {"rounds": rounds, "wishes": WISHES, "episodes": TRIES, "seed": 1_000_000 + 1000 * seed}
        for wish, policy, paid, _ in maxplore.rehearse(explorer, env, **own):
            tried.append(
                {
                    "number": wish.place,
                    "sign": wish.sign,
                    "promised": round(wish.number(wish.promise), 3),
                    "record": round(wish.number(wish.record), 3),
                    "imagined": round(wish.number(policy.report.imagined / policy.report.steps), 3),
                    "real": [round(wish.number(float(each)), 3) for each in paid],
                }
            )
            print(method, seed, tried[-1], flush=True)
    if explorer.steps < steps:  # there were fewer wishes, or episodes that ended early
        explorer.explore(env, steps - explorer.steps)
    return explorer, tried, before


def begun(
    env: Any, method: str, seed: int, steps: int, given: dict[str, Any], runs: Path | None
) -> tuple[Any, dict[str, Any]]:
    """An explorer after so many steps; kept in `runs`, and taken from there: what follows can be tried again. If it is,
    what it cost, and which code it was."""
    import maxplore

    named = [env.spec.id.replace("/", "-"), str(steps), *(f"{name}={value}" for name, value in given.items())]
    kept = None if runs is None else runs / "-".join(["begun", *named, method, str(seed)])
    if kept is not None and (kept / "spent.json").exists():
        env.reset(seed=seed)
        return maxplore.load(kept), json.loads((kept / "spent.json").read_text())
    start, used, code = time.perf_counter(), time.process_time(), commit()
    explorer = maxplore.Explorer(env.observation_space, env.action_space, method=method, seed=seed, **given)
    explorer.explore(env, steps)
    if kept is not None:
        explorer.save(kept)
        spent = {
            "begun_seconds": round(time.perf_counter() - start, 1),
            "begun_cpu_seconds": round(time.process_time() - used, 1),
            "begun_commit": code,
        }
        (kept / "spent.json").write_text(json.dumps(spent))
    return explorer, {}


def known(number: float) -> float | None:
    """A figure for JSON, which knows no NaN."""
    return round(number, 4) if math.isfinite(number) else None


def commit() -> str:
    """Which code this is."""
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() or "unknown"


def all_runs(name: str, rows: Path, todo: list[tuple[str, int]], steps: int, settings: list[str], cores: int) -> None:
    """Every run in a process of its own, each on its own core."""
    free: SimpleQueue[int] = SimpleQueue()
    for core in sorted(os.sched_getaffinity(0))[:cores]:
        free.put(core)

    def one(run: tuple[str, int]) -> None:
        core = free.get()
        method, seed = run
        command = [sys.executable, __file__, name, "--one", method, str(seed), "--steps", str(steps)]
        command += ["--rows", str(rows), "--set", *settings]
        environment = os.environ | {"XLA_FLAGS": ONE_THREAD, "OMP_NUM_THREADS": "1"}
        try:
            subprocess.run(["taskset", "-c", str(core), *command], env=environment, check=True)
        finally:
            free.put(core)

    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(one, todo))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    parser.add_argument("--runs", type=Path, default=Path("runs/benchmarks"))
    parser.add_argument("--one", nargs=2, metavar=("METHOD", "SEED"), help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    study = STUDIES[asked.study]
    steps = asked.steps or study.steps
    if asked.one:
        row = explored(study, asked.one[0], int(asked.one[1]), steps, asked.set, asked.rows)
        with asked.rows.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row["method"], row["seed"], "coverage", row["coverage"], "in", row["seconds"], "s", flush=True)
        return
    name = "-".join([asked.study, *([str(steps)] if steps != study.steps else []), *asked.set])
    rows = asked.runs / f"{name}.jsonl"
    asked.runs.mkdir(parents=True, exist_ok=True)
    asked.out.mkdir(parents=True, exist_ok=True)
    wanted = [(m, asked.first_seed + k) for k in range(asked.seeds) for m in asked.methods or study.methods]
    done = finished(rows, asked.set)
    all_runs(asked.study, rows, [run for run in wanted if run not in done], steps, asked.set, asked.cores)
    done = finished(rows, asked.set)
    result = {
        "what": f"{study.env}, {steps} steps without reward, preset fast; coverage counts {study.measured_in}",
        "command": f"python benchmarks/exploration.py {' '.join(sys.argv[1:])}",
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "cores_per_run": 1},
        "runs": [done[run] for run in wanted],
    }
    (asked.out / f"{name}.json").write_text(compact(json.dumps(result, indent=1)) + "\n")


def finished(rows: Path, settings: list[str]) -> dict[tuple[str, int], dict[str, Any]]:
    """All finished runs with these settings, by method and seed."""
    found = [json.loads(line) for line in rows.read_text().splitlines()] if rows.exists() else []
    return {(row["method"], row["seed"]): row for row in found if row["settings"] == settings}


def compact(text: str) -> str:
    """JSON with every innermost list on one line."""
    return re.sub(r"\[[^\[\]{}]*\]", lambda found: re.sub(r"\s+", " ", found.group()), text)


def settings_of(typed: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE, as they were typed, by name."""
    return {name: value_of(text) for name, _, text in (each.partition("=") for each in typed)}


def value_of(text: str) -> Any:
    """A setting as it was typed: a literal of Python, or a word."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


if __name__ == "__main__":
    main()
