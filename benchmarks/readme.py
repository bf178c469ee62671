"""Does the README's example reach its goal? Run as printed, once for each seed, each time in a process of its own.

    python benchmarks/readme.py [--seeds 10]

Seed 0 is the one that is printed. Writes results/benchmarks/readme.json; exits with 1 if a seed missed the goal.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RATED = "\nimport json\nprint(json.dumps(policy.evaluate(env, episodes=1, seed=1).tolist()))\n"
TEST_OPTIONS = ("XLA_FLAGS", "JAX_DISABLE_MOST_OPTIMIZATIONS")
"""The environment of tests changes how programs are compiled; a user has no such variables."""


def example() -> str:
    """Return the first block of Python in the README."""
    found = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def run(seed: int) -> dict[str, Any]:
    """Run the example with this seed, and evaluate its policy in the real environment."""
    code, begin = example(), time.perf_counter()
    assert code.count("seed=0") == 1
    environment = {name: value for name, value in os.environ.items() if name not in TEST_OPTIONS}
    command = [sys.executable, "-c", code.replace("seed=0", f"seed={seed}") + RATED]
    printed = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    (arrived,) = json.loads(printed.splitlines()[-1])
    return {"seed": seed, "arrived": arrived == 1.0, "seconds": round(time.perf_counter() - begin, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "benchmarks")
    asked = parser.parse_args()
    rows = list[dict[str, Any]]()
    for seed in range(asked.seeds):
        rows.append(run(seed))
        print(rows[-1], flush=True)
    arrived = sum(row["arrived"] for row in rows)
    result = {"command": "python benchmarks/readme.py", "arrived": f"{arrived} of {len(rows)}", "runs": rows}
    (asked.out / "readme.json").write_text(json.dumps(result, indent=1) + "\n")
    return 0 if arrived == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
