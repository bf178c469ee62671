"""On a real cluster of two nodes, one of which dies in the middle, all trials end as they do on one machine."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from maxplore.sweep import run_all
from tests.sweep.test_sweep import data, said

ROOT = Path(__file__).parents[2]
MOST = 600
"""Seconds that it may take; it takes less than one of ten."""

APART = ["--net", "--pid", "--fork", "--mount-proc", "--kill-child", *([] if os.getuid() == 0 else ["--map-root-user"])]


def test_a_node_that_dies_costs_nothing(tmp_path):
    pytest.importorskip("ray", reason="no ray; pip install maxplore[ray]")
    from tests.sweep.two_nodes import AT, trials

    if not shutil.which("unshare") or subprocess.run(["unshare", *APART, "true"], capture_output=True).returncode:
        pytest.skip("no network of its own can be made here: Ray would listen on this machine's address")
    outside = os.readlink("/proc/self/ns/net")
    with tempfile.TemporaryDirectory(prefix="ray-") as short:
        script = [sys.executable, "-m", "tests.sweep.two_nodes", str(tmp_path), short, outside]
        ran = subprocess.run(["unshare", *APART, *script], cwd=ROOT, timeout=MOST, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    seen = json.loads((tmp_path / "seen.json").read_text())

    assert seen["networks"] == [seen["network"]], "all of the cluster is in one network"
    assert seen["network"] != outside
    assert {address.rpartition(":")[2] for address in seen["listening"]} == {"127.0.0.1"}
    assert seen["killed"] > 3, "Ray's own processes, its task and the worker"

    own = trials(tmp_path / "gate")
    assert [tuple(outcome) for outcome in seen["outcomes"]] == [(name, True, "") for name in own]
    resumed = [name for name in own if "resumed" in said(tmp_path / "runs" / name)]
    assert len(resumed) == 1, "one trial lost its node, and went on; the other was left alone"
    assert any(f"{resumed[0]}: its worker was lost" in line for line in seen["lines"])
    assert any(f"another goes on at step {AT - 1}" in line for line in seen["lines"])

    run_all(own, tmp_path / "local", say=lambda _: None)
    for name in own:
        here, there = data(tmp_path / "local" / "runs" / name), data(tmp_path / "runs" / name)
        for what, values in here.items():
            np.testing.assert_array_equal(there[what], values)
        assert metrics(tmp_path / "local" / "runs" / name) == metrics(tmp_path / "runs" / name)


def metrics(path: Path) -> list[tuple[int, str, float]]:
    from maxplore.runs.directory import Folder
    from maxplore.runs.record import Record

    with Record.read(Folder(path).record) as record:
        return list(record.metrics())
