"""SAC in the real environment, for the dashed line of figure 4: `python -m maxplore.experiments.oracle running`."""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium as gym

from maxplore.cache import use_compilation_cache
from maxplore.errors import InputError
from maxplore.exploit import oracle
from maxplore.runs.files import read, write_text
from maxplore.tasks import TASKS

STEPS, SEED = 200_000, 1000
FIGURE, OUT, OTHERS = "maxplore/HalfCheetah-v0", Path("results/half-cheetah"), Path("results/benchmarks")
"""The environment whose figure shows oracles, where these are, and where others are."""


def learn(task: str, steps: int, seed: int, file: Path) -> None:
    """Learn a task, and write down what it pays: at every rating to a draft, in the end in place of what was there."""
    draft = file.with_suffix(".part")
    begin, rows = time.perf_counter(), list[dict[str, Any]]()
    for rated in oracle(gym.make(TASKS[task].env), task, steps, seed=seed):
        used = round(time.process_time(), 1)
        returns = [round(float(x), 2) for x in rated.returns]
        rows.append({"steps": rated.steps, "returns": returns, "cpu_seconds": used})
        told = {
            "what": f"SAC on the real reward of {task} in {TASKS[task].env}, {len(returns)} real episodes a rating",
            "command": f"python -m maxplore.experiments.oracle {task} --steps {steps} --seed {seed}",
            "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
            "seconds": round(time.perf_counter() - begin, 1),
            "runs": rows,
        }
        write_text(draft, json.dumps(told, indent=1) + "\n")
    draft.replace(file)


def oracle_file(folder: Path, task: str, steps: int, seed: int = SEED) -> Path:
    """Where what was learned is kept; and where the figure looks for it."""
    return folder / f"oracle-{task}-{steps}-{seed}.json"


def final(file: Path, steps: int) -> list[float] | None:
    """What was paid after so many steps; None if it never came so far."""
    if not file.exists():
        return None
    try:
        return {row["steps"]: row["returns"] for row in json.loads(read(file))["runs"]}.get(steps)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} is damaged ({type(error).__name__}: {error}): remove it to make it anew") from None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=[name for name, task in TASKS.items() if "Chain" not in task.env])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    use_compilation_cache()
    try:
        usual = oracle_file(OUT if TASKS[asked.task].env == FIGURE else OTHERS, asked.task, asked.steps, asked.seed)
        learn(asked.task, asked.steps, asked.seed, asked.out or usual)
    except InputError as error:
        sys.stderr.write(f"maxplore: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
