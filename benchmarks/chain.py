"""How long 100 seeds of MAX take on the Chain, compilation included, and how seeds are best run side by side.

Run as `python benchmarks/chain.py`; writes results/benchmarks/chain.json.
"""

import json
import os
import time
from pathlib import Path

import jax
import numpy as np

jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)

from maxplore.experiments.exploration import Line, explored_shares  # noqa: E402  (devices first)
from maxplore.experiments.spec import episodes_needed  # noqa: E402
from maxplore.explorers import MaxExplorer  # noqa: E402

OUT = Path(__file__).parent.parent / "results" / "benchmarks" / "chain.json"
FEW, EPISODES = 8, 12


def timed(line: Line, seeds: int, episodes: int) -> tuple[float, np.ndarray]:
    """Seconds of wall time, compilation included, and the shares."""
    start = time.perf_counter()
    shares = explored_shares(line, seeds, episodes)
    return time.perf_counter() - start, shares


def main() -> None:
    load = os.getloadavg()
    whole, shares = timed(Line(MaxExplorer()), 100, 60)
    needed = episodes_needed(shares)
    one_by_one, _ = timed(Line(MaxExplorer()), FEW, EPISODES)
    together, _ = timed(Line(MaxExplorer(), at_once=FEW), FEW, EPISODES)
    result = {
        "what": "100 seeds of MAX's default on the Chain of 50 states, to 100%, compilation included",
        "seconds": round(whole, 1),
        "target_seconds": 180,
        "median_episodes": float(np.median(needed)),
        "most_episodes": float(needed.max()) if np.isfinite(needed.max()) else None,
        "vmap_over_map": round(together / one_by_one, 2),
        "vmap_over_map_is": f"time of {FEW} seeds vmapped on each device over that of lax.map, compilation included",
        "devices": jax.device_count(),
        "cores": os.cpu_count(),
        "load_before": [round(x, 2) for x in load],
    }
    OUT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
