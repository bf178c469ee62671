"""What D of Half Cheetah are made of: torques that are all or nothing, steps on its back, somersaults, the speed of its
fastest episode, and how much was new in its second half.

    python benchmarks/torques.py runs/benchmarks/half-cheetah-20000-*.npz

The files are those of `exploration.py half-cheetah --steps 20000`, or of `exploitation.py`. Seconds. Writes
results/benchmarks/torques.json; rows there of D that are not given now stay.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
from exploration import half_cheetah_bins

FULL = 0.95
"""A torque beyond this share of the greatest is all or nothing."""

EPISODE = 100
"""Steps of an episode."""

NAME = re.compile(r"half-cheetah-(?P<steps>\d+)-(?P<changed>(?:\w+=[^-]+-)*)(?P<method>\w+)-(?P<seed>\d+)\.npz")
"""A file says where its D comes from."""


def somersaults(states: np.ndarray) -> int:
    """Episodes in which Half Cheetah turns right round."""
    pitch = np.arctan2(states[:, 2], states[:, 3])
    episodes = np.unwrap(pitch[: len(pitch) // EPISODE * EPISODE].reshape(-1, EPISODE), axis=1)
    return int(np.sum(np.ptp(episodes, axis=1) > 2 * np.pi))


def seen(states: np.ndarray) -> int:
    """Bins that `exploration.py` counts."""
    return len(np.unique(half_cheetah_bins(states), axis=0))


def about(path: Path, told: dict[str, str]) -> dict[str, Any]:
    """One D in numbers, with what its name has `told`."""
    steps = int(told["steps"])
    with np.load(path, allow_pickle=False) as held:
        states, torques = held["next_state"][:steps], held["action"][:steps]
    return {
        "method": told["method"],
        "seed": int(told["seed"]),
        "explored_with": [each for each in told["changed"].split("-") if each],
        "steps": steps,
        "all_or_nothing": round(float((np.abs(torques) > FULL).mean()), 3),
        "on_its_back": round(float((states[:, 3] < 0).mean()), 3),
        "somersaults": somersaults(states),
        "bins": [seen(states[: steps // 2]), seen(states)],
        "fastest": round(float(states[: steps // EPISODE * EPISODE, 0].reshape(-1, EPISODE).mean(axis=1).max()), 2),
    }


def whose(row: dict[str, Any]) -> tuple[Any, ...]:
    """What makes a row."""
    return row["method"], row["explored_with"], row["seed"], row["steps"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    asked = parser.parse_args()
    rows = list[dict[str, Any]]()
    for path in asked.files:
        if not (told := NAME.fullmatch(path.name)) or not path.is_file():
            parser.error(f"{path} is no D, expected a file half-cheetah-STEPS[-SETTING=VALUE]-METHOD-SEED.npz")
        rows.append(about(path, told.groupdict()))
    asked.out.mkdir(parents=True, exist_ok=True)
    file, fresh = asked.out / "torques.json", [whose(row) for row in rows]
    before = json.loads(file.read_text()) if file.exists() else {"runs": []}
    rows += [row for row in before["runs"] if whose(row) not in fresh]
    result = {
        "what": f"D of Half Cheetah: share of torques beyond {FULL} of the greatest, share of steps on its back, "
        "episodes with a whole turn, bins that were seen after half of the steps and after all of them, and the most "
        "that x velocity is in the mean of an episode (m/s)",
        "command": f"python benchmarks/torques.py {' '.join(sys.argv[1:])}",
        **({"note": before["note"]} if "note" in before else {}),
        "runs": sorted(rows, key=whose),
    }
    file.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
