"""What a task pays to SAC in the real environment with the real reward: the dashed line of the paper's figure 4.

    python benchmarks/oracle.py running [--steps 200000] [--seed 1000]

Writes results/benchmarks/oracle-TASK.json, anew at every rating: what was reached is never lost.
"""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

import gymnasium as gym

from maxplore.exploit import oracle
from maxplore.tasks import TASKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=[name for name, task in TASKS.items() if "Chain" not in task.env])
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    path, begin, rows = asked.out / f"oracle-{asked.task}.json", time.perf_counter(), []
    for rated in oracle(gym.make(TASKS[asked.task].env), asked.task, asked.steps, seed=asked.seed):
        used = round(time.process_time(), 1)
        row = {"steps": rated.steps, "returns": [round(float(x), 2) for x in rated.returns], "cpu_seconds": used}
        rows.append(row)
        print(json.dumps(row), flush=True)
        result = {
            "what": f"SAC on the real reward of {asked.task} in {TASKS[asked.task].env}, 3 real episodes a rating",
            "command": f"python benchmarks/oracle.py {' '.join(sys.argv[1:])}",
            "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
            "seconds": round(time.perf_counter() - begin, 1),
            "runs": rows,
        }
        path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
