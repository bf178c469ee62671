"""How the real return of a task grows when its policy may try 1, 5 and 20 real episodes, told and learned from.

    python benchmarks/refinement.py [--tasks running flipping] [--seeds 1] [--first-seed 1000] [--method max]
        [--explore dither=0.25] [--set solver_episodes=300]

On Half Cheetah, from the D of `exploration.py half-cheetah --steps 20000` (made if it is not there). Policies are rated
in three real episodes that nobody learns from. One process, one core. A row that is finished is kept in
runs/benchmarks/ and never made again. Writes results/benchmarks/refinement.json.
"""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
from exploitation import STUDIES, explored
from exploration import FIRST_SEED, commit, settings_of

import maxplore
from maxplore.tasks import TASKS

ROUNDS = (1, 4, 15)
"""Real episodes after the first, the second and the third solution."""

KEY = ("task", "method", "seed", "explored_with", "settings")
"""What makes a row: one that has these is not made again."""


def rate(policy: maxplore.TaskPolicy, env: gym.Env[Any, Any], told: int) -> dict[str, Any]:
    """What a policy is really paid, after so many real episodes were told."""
    returns, forecast = policy.evaluate(env, 3, seed=10_000), policy.report.forecast
    row = {
        "episodes": told,
        "returns": [round(float(x), 2) for x in returns],
        "mean": round(float(returns.mean()), 2),
        "forecast": [round(forecast.low, 2), round(forecast.high, 2)],
    }
    print(json.dumps(row), flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=["running", "flipping"], choices=TASKS)
    parser.add_argument("--method", default="max")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--explore", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    parser.add_argument("--runs", type=Path, default=Path("runs/benchmarks"))
    asked, code = parser.parse_args(), commit()
    for folder in (asked.runs, asked.out):
        folder.mkdir(parents=True, exist_ok=True)
    path, study = asked.runs / "refinement.jsonl", STUDIES["half-cheetah"]
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = [tuple(row[key] for key in KEY) for row in rows]
    env, given = gym.make(study.env), dict[str, Any](horizon=100) | settings_of(asked.set)
    for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
        for task in asked.tasks:
            about = {"task": task, "method": asked.method, "seed": seed}
            about |= {"explored_with": asked.explore, "settings": asked.set}
            if tuple(about[key] for key in KEY) in done:
                continue
            explorer = explored("half-cheetah", study, asked.method, seed, asked.runs, asked.explore)
            used = time.process_time()
            rated, told = [], 0
            for refined in maxplore.refine(explorer, env, task, episodes=ROUNDS, seed=20_000, **given):
                rated.append(rate(refined.policy, env, told))
                told += len(refined.returns)
            rated.append(rate(explorer.exploit(task, seed=len(ROUNDS), **given), env, told))
            row = {
                **about,
                "commit": code,
                "rated": rated,
                "cpu_seconds": round(time.process_time() - used, 1),
            }
            rows.append(row)
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
    result = {
        "what": "Half Cheetah, 20000 steps without reward; then the task's own policy in real episodes, told to the "
        "explorer, and the task solved again; three real episodes a rating",
        "command": f"python benchmarks/refinement.py {' '.join(sys.argv[1:])}".strip(),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
        "runs": rows,
    }
    (asked.out / "refinement.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
