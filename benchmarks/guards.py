"""Guards against living off a model's errors, compared by what policies are really paid on Half Cheetah.

    python benchmarks/guards.py [--seeds 3] [--first-seed 1000] [--method max] [--explore dither=0.25]
        [--guards "as usual" "noise left in D"]

Every guard gets the same D (that of `exploration.py half-cheetah --steps 20000`, or made as `exploitation.py` makes
it), the same seeds, the same solver's budget, and is rated in three real episodes, and in the same ones without looking
ahead. Guards that ask for the same model share it. One process, one core. A row that is finished is kept in
runs/benchmarks/ and never made again. Writes results/benchmarks/guards.json.
"""

import argparse
import json
import os
import platform
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from exploitation import STUDIES, explored
from exploration import FIRST_SEED, commit

BUDGET: dict[str, Any] = {"horizon": 100, "solver_episodes": 300}
"""Half of the usual, for time."""

GUARDS: dict[str, dict[str, Any]] = {
    "as usual": {},
    "any member, not the worst": {"pessimistic": False},
    "no price on disagreement": {"penalty": 0.0},
    "any member, no price": {"pessimistic": False, "penalty": 0.0},
    "entropy, paper's weight (0.4)": {"temperature": 0.4},
    "short walks from D": {"from_history": 1.0, "solver_steps": 8, "actors": 400},
    "noise left in D": {"smoothing": False},
    "own parts of D, ten members": {"own_share": 0.25, "members": 10, "most_steps": 5000},
}
"""What is usual, and the same with one guard left out or added; ten members are trained for as many steps in all. Where
noise is left in D, the model is trained two thirds as long, too: what is usual trains on with D as it is without."""

KEY = ("guard", "task", "method", "seed", "explored_with", "settings")
"""What makes a row: one that has these is not made again."""


def words(guard: str) -> list[str]:
    """All that it was solved with, as it would be typed."""
    return [f"{key}={value}" for key, value in {**BUDGET, **GUARDS[guard]}.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="max")
    parser.add_argument("--guards", nargs="+", default=list(GUARDS), choices=GUARDS, metavar="GUARD")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--explore", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    parser.add_argument("--runs", type=Path, default=Path("runs/benchmarks"))
    asked, code = parser.parse_args(), commit()
    for folder in (asked.runs, asked.out):
        folder.mkdir(parents=True, exist_ok=True)
    path, study = asked.runs / "guards.jsonl", STUDIES["half-cheetah"]
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = [tuple(row[key] for key in KEY) for row in rows]
    for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
        todo = [
            (guard, task)
            for guard in asked.guards
            for task in study.tasks
            if (guard, task, asked.method, seed, asked.explore, words(guard)) not in done
        ]
        if not todo:
            continue
        explorer = explored("half-cheetah", study, asked.method, seed, asked.runs, asked.explore)
        env = gym.make(study.env)
        for guard, task in todo:
            used = time.process_time()
            policy = explorer.exploit(task, **{**BUDGET, **GUARDS[guard]})
            cost = time.process_time() - used
            returns, forecast = policy.evaluate(env, study.episodes, seed=10_000), policy.report.forecast
            as_learned = policy.as_learned().evaluate(env, study.episodes, seed=10_000)
            row = {
                "guard": guard,
                "task": task,
                "method": asked.method,
                "seed": seed,
                "explored_with": asked.explore,
                "settings": words(guard),
                "commit": code,
                "returns": [round(float(each), 2) for each in returns],
                "as_learned": [round(float(each), 2) for each in as_learned],
                "imagined": round(policy.report.imagined, 2),
                "forecast": [round(forecast.low, 2), round(forecast.high, 2)],
                "inside": round(float(np.mean((returns >= forecast.low) & (returns <= forecast.high))), 3),
                "unknown": round(policy.report.unknown, 3),
                "cpu_seconds": round(cost, 1),
            }
            rows.append(row)
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)
    result = {
        "what": "Half Cheetah, 20000 steps without reward; tasks from D alone, each guard with the same budget: "
        f"{BUDGET}; three real episodes a row",
        "command": f"python benchmarks/guards.py {shlex.join(sys.argv[1:])}".strip(),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
        "runs": rows,
    }
    (asked.out / "guards.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
