"""What D of Half Cheetah are made of: how many torques are all or nothing, how often it is on its back, somersaults.

    python benchmarks/torques.py runs/benchmarks/half-cheetah-20000-*.npz

The files are those of `exploration.py half-cheetah --steps 20000`, or of `exploitation.py`. Seconds. Writes
results/benchmarks/torques.json.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

FULL = 0.95
"""A torque beyond this share of the greatest is all or nothing."""

EPISODE = 100


def about(path: Path) -> dict[str, Any]:
    """One D in numbers; its name says where it comes from."""
    name, steps, *changed, method, seed = path.stem.removeprefix("half-").split("-")
    assert name == "cheetah"
    with np.load(path, allow_pickle=False) as held:
        following, torques = held["next_state"][: int(steps)], held["action"][: int(steps)]
    turned = np.arctan2(following[:, 2], following[:, 3])
    episodes = np.unwrap(turned[: len(turned) // EPISODE * EPISODE].reshape(-1, EPISODE), axis=1)
    return {
        "method": method,
        "seed": int(seed),
        "explored_with": changed,
        "steps": int(steps),
        "all_or_nothing": round(float((np.abs(torques) > FULL).mean()), 3),
        "on_its_back": round(float((following[:, 3] < 0).mean()), 3),
        "somersaults": int(np.sum(np.ptp(episodes, axis=1) > 2 * np.pi)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    asked = parser.parse_args()
    rows = sorted(
        (about(path) for path in asked.files), key=lambda row: (row["method"], row["explored_with"], row["seed"])
    )
    asked.out.mkdir(parents=True, exist_ok=True)
    result = {
        "what": "D of Half Cheetah: share of torques beyond 0.95 of the greatest, share of steps on its back, and "
        "episodes with a whole turn",
        "command": "python benchmarks/torques.py runs/benchmarks/half-cheetah-20000-*.npz",
        "runs": rows,
    }
    (asked.out / "torques.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
