"""The scripts in benchmarks/ can be run as they are."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def test_no_benchmark_has_the_name_of_a_standard_module():
    """A script's folder is the first that its process looks in: `profile.py` kept PyTorch from being imported there."""
    names = {file.stem for file in BENCHMARKS.glob("*.py")}
    assert len(names) > 10
    assert not names & sys.stdlib_module_names


def test_what_a_d_is_made_of(tmp_path):
    """Three episodes: it stands, it turns right round, it lies on its back; a quarter of the torques are full."""
    angle = np.concatenate([np.zeros(100), np.linspace(0, 2.1 * np.pi, 100), np.full(100, np.pi)])
    states, torques = np.zeros((300, 19), np.float32), np.zeros((300, 6), np.float32)
    states[:, 2], states[:, 3] = np.sin(angle), np.cos(angle)
    torques[::4] = -1.0
    states[100:250, 0] = 2.0  # all of the second episode, half of the third
    file = tmp_path / "half-cheetah-300-dither=0.25-max-1014.npz"
    np.savez(file, next_state=states, action=torques)
    subprocess.run([sys.executable, BENCHMARKS / "torques.py", file, "--out", tmp_path], check=True, timeout=60)
    (row,) = json.loads((tmp_path / "torques.json").read_text())["runs"]
    assert (row["method"], row["seed"], row["explored_with"], row["steps"]) == ("max", 1014, ["dither=0.25"], 300)
    assert (row["all_or_nothing"], row["somersaults"], row["fastest"]) == (0.25, 1, 2.0)
    # It stands; it turns, through 7 parts of 30 degrees and then the other 5; it lies at the edge of one, fast and not.
    assert row["bins"] == [1 + 7, 1 + 12 + 2]
    np.testing.assert_allclose(row["on_its_back"], (100 + 100 / 2.1) / 300, atol=0.02)
    other = tmp_path / "cheetah.npz"
    file.rename(other)
    told = subprocess.run(
        [sys.executable, BENCHMARKS / "torques.py", other], capture_output=True, text=True, check=False
    )
    assert told.returncode == 2
    assert told.stderr.splitlines()[-1].endswith("expected a file half-cheetah-STEPS[-SETTING=VALUE]-METHOD-SEED.npz")


def test_an_exploration_is_run_written_down_and_kept(tmp_path):
    """In a process of its own, where nobody has imported maxplore before it makes an environment."""
    rows = tmp_path / "rows.jsonl"
    command = ["mountain-car", "--one", "random", "7", "--steps", "30", "--rows", str(rows)]
    subprocess.run([sys.executable, BENCHMARKS / "exploration.py", *command], check=True, timeout=120)
    row = json.loads(rows.read_text())
    assert (row["method"], row["seed"], row["steps"], row["curve"][-1]) == ("random", 7, 30, [30, row["coverage"]])
    with np.load(tmp_path / "rows-random-7.npz") as kept:
        assert kept["state"].shape == (30, 2)
