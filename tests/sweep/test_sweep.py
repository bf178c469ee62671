"""Trials come to their end once, whatever happened to them, and do not stand in each other's way."""

import json
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
from maxplore.sweep.trial import returns_of
from maxplore.sweep.work import GRID, keep_landscape, work
from tests.sweep import gate

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
    assert done(CAR, tmp_path / "runs" / "good").ends(CAR)
    assert not np.array_equal(data(tmp_path / "runs" / "good")["actions"], data(tmp_path / "runs" / "other")["actions"])

    files = [
        file for file in (tmp_path / "runs" / "good").rglob("*") if file.is_file() and file.suffix != ".sqlite-shm"
    ]
    before = {file: file.stat().st_mtime_ns for file in files}  # those that reading leaves alone
    del trials["bad"]
    longer = {**trials, "other": replace(trials["other"], steps=50)}
    assert all(outcome.ended for outcome in run_all(longer, tmp_path, say=lines.append))
    assert {file: file.stat().st_mtime_ns for file in before} == before, "what is done is not touched"
    assert len(data(tmp_path / "runs" / "other")["actions"]) == 50
    assert "resumed" in said(tmp_path / "runs" / "other")


def test_a_trial_whose_worker_was_killed_goes_on(tmp_path):
    at_gate = Trial(gate.ID, "random", 3, 30, env_kwargs={"gate": str(tmp_path / "gate"), "fatal": True})
    (killed,) = run_all({"killed": at_gate}, tmp_path, say=(lines := []).append)
    assert "killed: its worker was killed by SIGKILL" in lines[0]
    assert "another goes on at step 11" in lines[0]
    assert said(tmp_path / "runs" / "killed") == ["resumed"]
    (whole,) = run_all({"whole": at_gate}, tmp_path, say=lambda _: None)
    assert killed.ended
    assert whole.ended
    assert said(tmp_path / "runs" / "whole") == []
    killed, whole = data(tmp_path / "runs" / "killed"), data(tmp_path / "runs" / "whole")
    for name, values in whole.items():
        np.testing.assert_array_equal(killed[name], values)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_end_in_good_order_however_their_parent_ends(tmp_path, how):
    program = (
        "from maxplore.sweep import Trial, run_all; from pathlib import Path\n"
        "trial = Trial('maxplore/MountainCar-v0', 'random', 3, 10**6)\n"
        f"run_all({{'long': trial}}, Path({str(tmp_path)!r}), say=print)"
    )
    deaf = f"import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {{2}} if {how == signal.SIGKILL} else {{}})\n"
    deaf += "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # tests in the background inherit none
    parent = subprocess.Popen([sys.executable, "-c", deaf + program], stderr=subprocess.DEVNULL)  # as Ray's tasks are
    trial, path = replace(CAR, steps=10**6), tmp_path / "runs" / "long"
    while done(trial, path).steps < 10:
        assert parent.poll() is None
        time.sleep(0.01)
    if how == signal.SIGINT:
        with pytest.raises(InputError, match="is being written by process"):
            run_all({"long": trial}, tmp_path, say=lambda _: None)
    parent.send_signal(how)
    parent.wait()
    owner = int((path / "lock").read_text().split()[0])
    while Path(f"/proc/{owner}").exists() and "Z" not in Path(f"/proc/{owner}/stat").read_text().split()[2]:
        time.sleep(0.01)
    steps = done(trial, path).steps
    assert Folder(path).all_checkpoints()[0][0] == steps, "it left a checkpoint of its last step"


def test_the_folder_of_another_run_is_refused(tmp_path):
    mine = Folder(tmp_path / "runs" / "mine")
    assert work(CAR, mine.path)
    with pytest.raises(InputError, match=r"has a run with seed 3, expected 5: give another --out"):
        done(replace(CAR, seed=5), mine.path)
    with pytest.raises(InputError, match="is past step 20, and its landscape then was not kept"):
        done(replace(CAR, landscapes=(20,)), mine.path)
    assert not done(replace(CAR, landscapes=(40,)), mine.path).ends(replace(CAR, landscapes=(40,))), (
        "it can be made yet"
    )
    knowing = told(mine, Record.read(mine.record), 7)
    assert knowing.steps == 7
    np.testing.assert_array_equal(
        np.asarray(knowing.history.transitions.next_state)[:7],
        data(tmp_path / "runs" / "mine")["next_observations"][:7],
    )
    with pytest.raises(InputError, match="expected 1 to 40"):
        told(mine, Record.read(mine.record), 41)


def test_what_somebody_else_solved_in_the_run_is_not_the_trials(tmp_path):
    trial = replace(CAR, tasks=("capture-flag",), after=(40,), solving={"members": 2})
    mine = Folder(tmp_path / "runs" / "mine")
    assert work(CAR, mine.path)
    with Record.open(mine.record) as record:
        for settings, seed, returns in (
            ({}, 0, [1.0, 2.0, 3.0]),
            ({"members": 2}, 1, [1.0, 2.0, 3.0]),
            ({"members": 2}, 0, [1.0]),
        ):
            record.solved("capture-flag", seed=seed, settings=settings, report={}, returns=returns)
        assert returns_of(trial, record) == {}
        assert not done(trial, mine.path).ends(trial)
        record.solved("capture-flag", seed=0, settings={"members": 2}, report={}, returns=[4.0, 5.0, 6.0])
        record.solved("capture-flag", seed=0, settings={}, report={}, returns=[7.0, 8.0, 9.0])
        assert returns_of(trial, record) == {("capture-flag", 40): [4.0, 5.0, 6.0]}
    assert done(trial, mine.path).ends(trial)


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
