"""Trials come to their end once, whatever happened to them, and do not stand in each other's way."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from maxplore import Explorer, InputError
from maxplore.runs.directory import Folder
from maxplore.runs.export import arrays
from maxplore.runs.record import Record
from maxplore.runs.reliving import told
from maxplore.sweep import Trial, done, run_all
from maxplore.sweep.work import GRID, keep_landscape

CAR = Trial("maxplore/MountainCar-v0", "random", 3, 40)


def data(path: Path) -> dict[str, np.ndarray]:
    folder = Folder(path)
    with Record.read(folder.record) as record:
        return arrays(record, *folder.spaces(folder.read_config()))


def said(path: Path) -> list[str]:
    with Record.read(Folder(path).record) as record:
        return [event.kind for event in record.events()]


def test_trials_end_and_one_that_fails_stops_no_other(tmp_path):
    trials = {
        "good": CAR,
        "bad": replace(CAR, env_kwargs={"noise": -1.0}),
        "other": replace(CAR, seed=4),
    }
    lines: list[str] = []
    outcomes = {outcome.name: outcome for outcome in run_all(trials, tmp_path, workers=2, say=lines.append)}
    assert [name for name, outcome in outcomes.items() if outcome.ended] == ["good", "other"]
    assert "noise is -1.0" in outcomes["bad"].reason
    assert any("bad: FAILED" in line for line in lines)
    assert done(CAR, tmp_path / "good").ends(CAR)
    assert not np.array_equal(data(tmp_path / "good")["actions"], data(tmp_path / "other")["actions"])

    files = [file for file in (tmp_path / "good").rglob("*") if file.is_file() and file.suffix != ".sqlite-shm"]
    before = {file: file.stat().st_mtime_ns for file in files}  # those that reading leaves alone
    del trials["bad"]
    longer = {**trials, "other": replace(trials["other"], steps=50)}
    assert all(outcome.ended for outcome in run_all(longer, tmp_path, say=lines.append))
    assert {file: file.stat().st_mtime_ns for file in before} == before, "what is done is not touched"
    assert len(data(tmp_path / "other")["actions"]) == 50
    assert "resumed" in said(tmp_path / "other")


def test_a_trial_whose_worker_was_killed_goes_on(tmp_path):
    trial = replace(CAR, steps=600)
    trial.write(tmp_path / "killed.json")
    worker = subprocess.Popen([sys.executable, "-m", "maxplore.sweep.work", str(tmp_path / "killed.json")])
    while done(trial, tmp_path / "killed").steps < 10:
        assert worker.poll() is None
        time.sleep(0.01)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    assert not done(trial, tmp_path / "killed").ends(trial)
    outcomes = run_all({"killed": trial, "whole": trial}, tmp_path, workers=2, say=lambda _: None)
    assert all(outcome.ended for outcome in outcomes)
    killed, whole = data(tmp_path / "killed"), data(tmp_path / "whole")
    for name, values in whole.items():
        np.testing.assert_array_equal(killed[name], values)


def test_an_interrupt_ends_the_workers_in_good_order(tmp_path):
    program = (
        "from maxplore.sweep import Trial, run_all; from pathlib import Path; import sys\n"
        f"trial = Trial('maxplore/MountainCar-v0', 'random', 3, 10**6)\n"
        f"run_all({{'long': trial}}, Path({str(tmp_path)!r}), say=print)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    trial = replace(CAR, steps=10**6)
    while done(trial, tmp_path / "long").steps < 10:
        assert parent.poll() is None
        time.sleep(0.01)
    parent.send_signal(signal.SIGINT)
    parent.wait()
    owner = int((tmp_path / "long" / "lock").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(owner, 0)
    steps = done(trial, tmp_path / "long").steps
    assert Folder(tmp_path / "long").all_checkpoints()[0][0] == steps, "it left a checkpoint of its last step"


def test_the_folder_of_another_run_is_refused(tmp_path):
    run_all({"mine": CAR}, tmp_path, say=lambda _: None)
    with pytest.raises(InputError, match=r"has a run with seed 3, expected 5: give another --out"):
        done(replace(CAR, seed=5), tmp_path / "mine")
    knowing = told(Folder(tmp_path / "mine"), Record.read(Folder(tmp_path / "mine").record), 7)
    assert knowing.steps == 7
    np.testing.assert_array_equal(
        np.asarray(knowing.history.transitions.next_state)[:7], data(tmp_path / "mine")["next_observations"][:7]
    )
    with pytest.raises(InputError, match="expected 1 to 40"):
        told(Folder(tmp_path / "mine"), Record.read(Folder(tmp_path / "mine").record), 41)


def test_a_trial_is_data(tmp_path):
    trial = replace(CAR, tasks=("capture-flag",), after=(10, 40, 100), landscapes=(20,), settings={"members": 3})
    trial.write(tmp_path / "trial.json")
    assert Trial.read(tmp_path / "trial.json") == trial
    assert trial.asked == [("capture-flag", 10), ("capture-flag", 40)]
    (tmp_path / "trial.json").write_text(json.dumps({"env": "x"}))
    with pytest.raises(InputError, match="is no trial, or damaged"):
        Trial.read(tmp_path / "trial.json")


def test_a_landscape_is_the_mean_utility_over_actions(tmp_path):
    env = gym.make("maxplore/MountainCar-v0")
    explorer = Explorer(env.observation_space, env.action_space, preset="smoke", seed=0)
    seen, _ = env.reset(seed=0)
    for _ in range(12):
        action = env.action_space.sample()
        following, *_ = env.step(action)
        explorer.tell(seen, action, following)
        seen = following
    keep_landscape(explorer, tmp_path / "landscape.npz")
    kept = np.load(tmp_path / "landscape.npz", allow_pickle=False)
    assert kept["utility"].shape == (GRID, GRID)
    state = np.array([[kept["first"][3], kept["second"][30]]], np.float32)
    each = [explorer.utility(state, np.full((1, 1), a, np.float32))[0] for a in (-1.0, -0.5, 0.0, 0.5, 1.0)]
    np.testing.assert_allclose(kept["utility"][3, 30], np.mean(each), rtol=1e-4)
    wide = gym.make("maxplore/MountainCar-v0", noise=0.1)
    with pytest.raises(InputError, match="expected two bounded dimensions"):
        keep_landscape(Explorer(wide.observation_space, wide.action_space), tmp_path / "none.npz")
