"""Is each default the best choice? Tasks solved from what default exploration has seen, by every solver that applies.

    python benchmarks/defaults.py [ENV ...] [--seeds 5] [--first-seed 2000] [--set solver=sac temperature=0.2]

A score is (return - random's) / (reference's - random's), over the same first states for all; the reference plans on
the true dynamics (`references.py`). Every job is a process on one core. Its row is kept in
results/benchmarks/defaults/, and D in runs/benchmarks/defaults/: the command goes on where it was stopped. Writes
results/benchmarks/defaults.json, unless `--set` asks for a trial; with `--collect` it does nothing else.
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from exploration import ONE_THREAD, commit, settings_of

FIRST_SEED = 2000
"""Seeds that are reported; what was tuned was tuned on others."""
SCHEDULER = "--xla_cpu_enable_concurrency_optimized_scheduler=false"
GOOD, CLOSE = 0.9, 0.1
"""A default is called in question below this score, or so far behind another solver."""


class Study(NamedTuple):
    """An environment, how long it is explored, and the task that its own reward stands for."""

    env: str
    steps: int
    horizon: int
    episodes: int
    solvers: tuple[str, ...] = ()
    """Beside the default, `sac` where actions are real; none where there is only one way."""


REAL = ("icem", "gradient")
STUDIES: Mapping[str, Study] = {
    "pendulum": Study("Pendulum-v1", 1500, 200, 20, REAL),
    "mountain-car-continuous": Study("maxplore/MountainCar-v0", 800, 500, 3, REAL),
    "reacher": Study("Reacher-v5", 1000, 50, 10, REAL),
    "hopper": Study("Hopper-v5", 2000, 100, 3, REAL),
    "cartpole": Study("CartPole-v1", 500, 500, 3),
    "acrobot": Study("Acrobot-v1", 1000, 500, 5),
    "mountain-car": Study("MountainCar-v0", 1000, 200, 5),
    "frozen-lake": Study("FrozenLake-v1", 8000, 100, 500),
    "taxi": Study("Taxi-v4", 3000, 200, 50),
    "chain": Study("maxplore/Chain-v0", 8 * 59, 59, 3),
}


def task(name: str) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    """The reward of an environment as a function of one transition, and where its own rule ends an episode."""
    import jax.numpy as jnp

    from maxplore import tasks

    def pendulum(s: Any, a: Any, _: Any) -> Any:
        return -(jnp.arctan2(s[1], s[0]) ** 2 + 0.1 * s[2] ** 2 + 0.001 * a[0] ** 2)

    def reacher(_: Any, a: Any, s2: Any) -> Any:
        return -jnp.sqrt(s2[8] ** 2 + s2[9] ** 2 + 1e-12) - jnp.sum(a**2)

    def hopper(_: Any, a: Any, s2: Any) -> Any:
        return s2[5] + 1.0 - 0.001 * jnp.sum(a**2)

    def fallen(_s: Any, _a: Any, s2: Any) -> Any:
        return (s2[0] <= 0.7) | (jnp.abs(s2[1]) >= 0.2)

    def tipped(_s: Any, _a: Any, s2: Any) -> Any:
        return (jnp.abs(s2[0]) > 2.4) | (jnp.abs(s2[2]) > 0.2095)

    def swung(_s: Any, _a: Any, s2: Any) -> Any:
        return -s2[0] - (s2[0] * s2[2] - s2[1] * s2[3]) > 1.0

    def ashore(s: Any, _: Any, s2: Any) -> Any:
        return jnp.where((s2 == 15) & (s != 15), 1.0, 0.0)

    def delivered(s: Any, a: Any, s2: Any) -> Any:
        return (a == 5) & ((s // 4) % 5 == 4) & ((s2 // 4) % 5 == s2 % 4)

    def taxi(s: Any, a: Any, s2: Any) -> Any:
        refused = ((a == 4) | (a == 5)) & (s2 == s)
        return jnp.where(delivered(s, a, s2), 20.0, jnp.where(refused, -10.0, -1.0))

    def one(_s: Any, _a: Any, _s2: Any) -> Any:
        return jnp.ones(())

    def minus_one(_s: Any, _a: Any, _s2: Any) -> Any:
        return -jnp.ones(())

    def at_flag(_s: Any, _a: Any, s2: Any) -> Any:
        return s2[0] >= 0.5

    return {
        "pendulum": (pendulum, None),
        "mountain-car-continuous": (tasks.capture_flag, None),
        "reacher": (reacher, None),
        "hopper": (hopper, fallen),
        "cartpole": (one, tipped),
        "acrobot": (minus_one, swung),
        "mountain-car": (minus_one, at_flag),
        "frozen-lake": (ashore, None),
        "taxi": (taxi, delivered),
        "chain": (tasks.chain(), None),
    }[name]


def reference(name: str, episodes: int) -> list[float]:
    """The best returns there are, as far as planning on the true dynamics finds them."""
    import references

    match name:
        case "cartpole":
            return [500.0]
        case "chain":
            return [59.0 - 48.0]
        case "frozen-lake" | "taxi":
            return [references.table(STUDIES[name].env, STUDIES[name].horizon)]
        case _:
            return getattr(references, name.replace("-", "_"))(episodes)


def explored(folder: Path, name: str, seed: int) -> Path:
    """Where the explorer of this seed is kept."""
    return folder / f"{name}-{STUDIES[name].steps}-{seed}"


def job(name: str, what: str, seed: int, folder: Path, changed: list[str]) -> dict[str, Any]:
    """Do one job, in this process: `reference`, `explore`, or the name of a solver."""
    import gymnasium as gym
    import numpy as np
    import references

    import maxplore

    study, (reward, terminated) = STUDIES[name], task(name)
    env = gym.make(study.env)
    if what == "reference":
        best = reference(name, study.episodes)
        found = references.random_returns(env, reward, study.horizon, max(20, study.episodes))
        return {"best": [round(x, 3) for x in best], "random": [round(x, 3) for x in found]}
    path = explored(folder, name, seed)
    if what == "explore":
        explorer = maxplore.Explorer(env.observation_space, env.action_space, seed=seed)
        explorer.explore(env, study.steps, progress=False)
        explorer.save(path)
        return {"coverage": explorer.coverage, "cpu_seconds": round(time.process_time(), 1)}
    settings: dict[str, Any] = settings_of(changed) | ({} if what == "default" else {"solver": what})
    explorer = maxplore.load(path)
    begin = time.process_time()
    policy = explorer.exploit(reward, terminated, horizon=study.horizon, **settings)
    solving = time.process_time() - begin
    returns = policy.evaluate(env, study.episodes, seed=references.FIRST_EPISODE)
    acting = (time.process_time() - begin - solving) / study.episodes
    return {
        "returns": [round(float(x), 3) for x in returns[:20]],
        "mean": round(float(np.mean(returns)), 3),
        "imagined": round(policy.report.imagined, 3),
        "solve_cpu_seconds": round(solving, 1),
        "episode_cpu_seconds": round(acting, 2),
    }


def done(folder: Path, name: str) -> dict[tuple[str, int, tuple[str, ...]], dict[str, Any]]:
    """Jobs of a study that have ended, by what they were."""
    path = folder / f"{name}.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {(row["job"], row["seed"], tuple(row["changed"])): row for row in rows}


def table(folder: Path, names: list[str], seeds: range) -> dict[str, Any]:
    """Scores of every default and of each solver beside it, and what calls a default in question."""
    import numpy as np

    studies: dict[str, Any] = {}
    for name in names:
        rows, study = done(folder, name), STUDIES[name]
        known = rows.get(("reference", 0, ()))
        if known is None:
            continue
        best, least = float(np.mean(known["best"])), float(np.mean(known["random"]))
        own: dict[str, Any] = {**study._asdict(), "reference": round(best, 3), "random": round(least, 3), "scores": {}}
        for what in ("default", *study.solvers):
            found = [rows[key] for seed in seeds if (key := (what, seed, ())) in rows]
            if found:
                means = [row["mean"] for row in found]
                own["scores"][what] = {
                    "score": round((float(np.mean(means)) - least) / (best - least), 3),
                    "worst": round((min(means) - least) / (best - least), 3),
                    "means": means,
                    "imagined": [row["imagined"] for row in found],
                    "solve_cpu_seconds": round(float(np.median([row["solve_cpu_seconds"] for row in found])), 1),
                    "episode_cpu_seconds": round(float(np.median([row["episode_cpu_seconds"] for row in found])), 2),
                }
        scores = {what: row["score"] for what, row in own["scores"].items()}
        usual = scores.get("default", math.nan)
        own["questions"] = [f"the default scores {usual}"] if not usual >= GOOD else []
        own["questions"] += [f"{what} scores {score}" for what, score in scores.items() if score > usual + CLOSE]
        studies[name] = own
    return studies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", metavar="ENV", help=", ".join(STUDIES))
    parser.add_argument("--solvers", nargs="+", help="some of the study's own, or default; by default all of them")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    parser.add_argument("--runs", type=Path, default=Path("runs/benchmarks/defaults"))
    parser.add_argument("--collect", action="store_true", help="write down what is finished, and run nothing")
    parser.add_argument("--one", nargs=3, metavar=("ENV", "JOB", "SEED"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if strange := set(asked.studies) - set(STUDIES):
        parser.error(f"ENV is {', '.join(sorted(strange))}, expected some of {', '.join(STUDIES)}")
    rows = asked.out / "defaults"
    rows.mkdir(parents=True, exist_ok=True)
    if asked.one:
        name, what, seed = asked.one[0], asked.one[1], int(asked.one[2])
        row = {"job": what, "seed": seed, "changed": asked.set, "commit": commit()}
        row |= job(name, what, seed, asked.runs, asked.set)
        with (rows / f"{name}.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(name, json.dumps(row), flush=True)
        return
    names, seeds = asked.studies or list(STUDIES), range(asked.first_seed, asked.first_seed + asked.seeds)

    def one(name: str, changed: list[str], job: tuple[str, int]) -> None:
        command = [sys.executable, __file__, "--one", name, job[0], str(job[1])]
        command += ["--runs", str(asked.runs), "--out", str(asked.out), "--set", *changed]
        environment = os.environ | {"XLA_FLAGS": f"{ONE_THREAD} {SCHEDULER}", "OMP_NUM_THREADS": "1"}
        subprocess.run(command, env=environment, check=True)

    for name in [] if asked.collect else names:
        known = done(rows, name)
        wanted = asked.solvers or (("default",) if asked.set else ("default", *STUDIES[name].solvers))
        todo = [(what, seed) for seed in seeds for what in wanted if (what, seed, tuple(asked.set)) not in known]
        first = [] if ("reference", 0, ()) in known else [("reference", 0)]
        first += [("explore", seed) for seed in seeds if any(own == seed for _, own in todo)]
        first = [
            (what, seed) for what, seed in first if what != "explore" or not explored(asked.runs, name, seed).exists()
        ]
        with ThreadPoolExecutor(asked.cores) as pool:
            list(pool.map(partial(one, name, []), first))
            list(pool.map(partial(one, name, asked.set), todo))
    if asked.set:
        return
    result = {
        "what": "score = (return - random) / (reference - random), the same first states for all",
        "command": "python benchmarks/defaults.py",
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "cores_per_job": 1},
        "seeds": list(seeds),
        "commit": commit(),
        "studies": table(rows, names, seeds),
    }
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "defaults.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
