"""What was tried on Half Cheetah before the preset `fast` was settled: 2,000 steps, seeds that are not reported.

    python benchmarks/tuning.py [--seeds 2]

Settings are told as changes to what `fast` is now. Goes on where it was stopped, as `exploration.py` does, whose runs
these are; writes results/benchmarks/tuning.json.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from exploration import all_runs, compact, finished

STEPS, FIRST_SEED = 2000, 1
SLOW = ("batch_size=256", "learning_rate=0.001")
NARROW = "log_variance=-10.0,-1.0"
TRIALS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("max", (*SLOW, NARROW, "fresh_every=4")),
    ("max", (*SLOW, NARROW)),
    ("max", (*SLOW, "log_variance=-10.0,-3.0")),
    ("max", (*SLOW, NARROW, "iterations=80")),
    ("max", ("learning_rate=0.001", NARROW, "iterations=80", "actors=16")),
    ("disagreement", (*SLOW, NARROW)),
    ("max", (NARROW,)),
    ("max", ("log_variance=-10.0,-2.0",)),
    ("max", ()),
)
"""Method and settings, in the order in which they were tried."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    parser.add_argument("--runs", type=Path, default=Path("runs/benchmarks"))
    parser.add_argument("--collect", action="store_true", help="write down what is finished, and run nothing")
    asked = parser.parse_args()
    rows = asked.runs / "tuning.jsonl"
    asked.runs.mkdir(parents=True, exist_ok=True)
    asked.out.mkdir(parents=True, exist_ok=True)
    trials: list[dict[str, Any]] = []
    for method, settings in TRIALS:
        wanted = [(method, FIRST_SEED + k) for k in range(asked.seeds)]
        if not asked.collect:
            done = finished(rows, list(settings))
            todo = [run for run in wanted if run not in done]
            all_runs("half-cheetah", rows, todo, STEPS, list(settings), asked.cores)
        done = finished(rows, list(settings))
        trials.append({"method": method, "settings": settings, "runs": [done[run] for run in wanted if run in done]})
    result = {
        "what": f"maxplore/HalfCheetah-v0, {STEPS} steps, preset fast with these settings changed",
        "command": "python benchmarks/tuning.py",
        "trials": trials,
    }
    (asked.out / "tuning.json").write_text(compact(json.dumps(result, indent=1)) + "\n")


if __name__ == "__main__":
    main()
