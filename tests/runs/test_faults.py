"""Killed at any moment, a run goes on as if nothing had happened: the real command, real signals, a real full disk."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import maxplore
from maxplore.runs.directory import Folder
from maxplore.runs.record import Record

HALVES = {
    "discrete": ["maxplore/Chain-v0", "--env-kwarg", "length=8", "--members", "2", "--iterations", "3"],
    "continuous": ["maxplore/MountainCar-v0", "--members", "2"],
}
KILLS = {"discrete": 14, "continuous": 6}
"""Twenty together; most where a process starts soonest."""
STEPS = 240
PATIENCE = 300.0
"""Seconds after which something must be wrong."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """What one process compiles serves all that come after it."""
    return tmp_path_factory.mktemp("compiled")


def command(words, compiled):
    """The installed command in a process of its own."""
    program = Path(sys.executable).parent / "maxplore"
    own = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(compiled), "PYTHONWARNINGS": "default"}
    own |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
    return subprocess.Popen(
        [program, *map(str, words)], env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finished(words, compiled):
    process = command(words, compiled)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def begun(half, path):
    asked = ["--preset", "smoke", "--seed", "11", "--checkpoint-every", "25", "--progress", "quiet"]
    return ["explore", *HALVES[half], *asked, "--steps", STEPS, "--out", path]


def steps_of(path):
    if not (path / "config.json").exists():
        return -1
    with Record.read(path / "run.sqlite") as record:
        return record.steps


def killed(process, path, at, wait):
    """Kill the process a moment after the run has so many steps."""
    end = time.monotonic() + PATIENCE
    while steps_of(path) < at:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, f"no {at} steps in {PATIENCE} s"
        time.sleep(0.002)
    time.sleep(wait)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "it was killed, and did not come to its end"


@pytest.mark.parametrize("half", HALVES)
def test_a_run_that_is_killed_again_and_again_ends_as_one_that_never_was(half, tmp_path, compiled):
    calm, hunted, draw = tmp_path / "calm", tmp_path / "hunted", random.Random(7)
    status, _, err = finished(begun(half, calm), compiled)
    assert status == 0, err
    words, reached = begun(half, hunted), 0
    for number in range(KILLS[half]):
        # Each has a little more to do than the one before; most of the time is left for the last.
        at = max(reached, 15 * number + draw.randrange(15))
        killed(command(words, compiled), hunted, at, draw.random() * 0.02)
        reached, words = steps_of(hunted), ["resume", hunted, "--progress", "quiet"]
        assert reached < STEPS
    status, out, err = finished(words, compiled)
    assert status == 0, err
    assert f"{STEPS} steps" in out
    with Record.read(calm / "run.sqlite") as one, Record.read(hunted / "run.sqlite") as two:
        assert [step.step for step in two.transitions()] == list(range(STEPS)), "none lost, none doubled"
        assert list(one.transitions()) == list(two.transitions())
        assert list(one.episodes()) == list(two.episodes())
        assert [str(row) for row in one.metrics()] == [str(row) for row in two.metrics()]
        assert one.surveyed == two.surveyed == [*range(one.surveyed[0], STEPS, 25), STEPS]
        for step in one.surveyed:
            left, right = one.landscapes(step), two.landscapes(step)
            assert {name: left[name].tobytes() for name in left} == {name: right[name].tobytes() for name in right}
        assert not [event for event in two.events() if event.kind in ("differs", "diverged", "damaged")]
    (step, left), (same, right) = (Folder(path).all_checkpoints()[0] for path in (calm, hunted))
    assert step == same == STEPS
    with np.load(left) as a, np.load(right) as b:
        assert a.files == b.files
        assert all(a[name].tobytes() == b[name].tobytes() for name in a.files), "to the last bit"


def test_what_a_new_user_would_type(tmp_path, compiled):
    """Explore, kill, resume, exploit, export, report, each by the installed command."""
    path = tmp_path / "run"
    killed(command(begun("discrete", path), compiled), path, 30, 0.0)
    for words, said in (
        (["resume", path, "--steps", "60"], "60 steps"),
        (["exploit", path, "--task", "chain", "--episodes", "1", "--progress", "quiet"], "expects"),
        (["export", path, "--to", "npz"], "data.npz"),
        (["export", path, "--to", "minari", "--name", "chain/killed-v0"], "chain/killed-v0"),
        (["report", path], "report.html"),
    ):
        status, out, err = finished(words, compiled)
        assert (status, err) == (0, ""), words
        assert said in out
    assert maxplore.load(path).steps == 60
    with np.load(path / "data.npz") as data:
        assert data["observations"].shape == (60,)
    assert "chain" in (path / "report.html").read_text()


@pytest.mark.parametrize("again", [False, True])
def test_ctrl_c_ends_in_good_order(again, tmp_path, compiled):
    path = tmp_path / "run"
    process = command(["explore", *HALVES["discrete"], "--steps", 10**6, "--out", path, "--progress", "json"], compiled)
    end = time.monotonic() + PATIENCE
    while steps_of(path) < 3:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    if again:
        process.send_signal(signal.SIGINT)  # may come before or after the first has been noticed
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    steps = steps_of(path)
    assert steps >= 3
    if not again:
        assert f"maxplore resume {path}" in err
        assert Folder(path).all_checkpoints()[0][0] == steps
    assert finished(["resume", path, "--steps", steps + 2], compiled)[0] == 0
    assert steps_of(path) == steps + 2


def test_what_is_stuck_beyond_pythons_reach_is_killed_and_named(tmp_path, compiled, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    env = "tests.runs.test_run:maxplore-test/Awkward-v0"
    asked = ["--env-kwarg", "fault=stuck", "--method", "random", "--step-limit", "0.5", "--out", tmp_path / "run"]
    status, _, err = finished(["explore", env, *asked], compiled)
    assert status == -signal.SIGKILL
    assert "at step 5, in episode 0: its step is stuck" in err
    assert f"maxplore resume {tmp_path / 'run'}" in err
    assert steps_of(tmp_path / "run") == 5


def room():
    """A place of its own to fill up: a small file system in memory. Only root may make one."""
    if os.name != "posix" or os.geteuid() != 0 or shutil.which("mount") is None:
        return None
    return True


def test_a_full_disk_is_told_and_the_run_goes_on_once_there_is_room(tmp_path, compiled):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = room() and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "maxplore-test", disk], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("no small file system can be mounted here: it takes root, and mount")
    try:
        path = disk / "run"
        words = ["explore", "maxplore/Chain-v0", "--method", "random", "--checkpoint-every", "50", "--out", path]
        status, _, err = finished([*words, "--steps", "20", "--progress", "quiet"], compiled)
        assert status == 0, err
        ballast = disk / "ballast"
        with ballast.open("wb") as file:
            while os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize > 70_000:
                file.write(bytes(4096))
                file.flush()
        status, _, err = finished(["resume", path, "--steps", "2000"], compiled)
        assert status != 0
        assert "Traceback" not in err
        last = err.splitlines()[-1]
        assert "cannot be written" in last
        assert "room" in last or "No space left" in last
        ballast.unlink()
        before = steps_of(path)
        status, _, err = finished(["resume", path, "--steps", before + 10], compiled)
        assert status == 0, err
        with Record.read(path / "run.sqlite") as record:
            assert [step.step for step in record.transitions()] == list(range(before + 10))
    finally:
        subprocess.run(["umount", disk], check=False)
