"""A run goes on where it was stopped, as if it had never been; and says so when it cannot."""

import itertools
import math
import os
import platform
import time
from typing import Any, cast

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import maxplore
from maxplore import InputError
from maxplore.explorer import SAVED
from maxplore.runs import run as running
from maxplore.runs.directory import Folder
from maxplore.runs.export import arrays
from maxplore.runs.record import Record
from maxplore.runs.watchdog import Watchdog

FEW: dict[str, Any] = {"method": "random", "checkpoint_every": 7, "seed": 5}


class Awkward(gym.Env):
    """A walk on a line that can be told to misbehave, until it is mended."""

    mended = False

    def __init__(self, fault: str = "", at: int = 6, random: bool = False, parts: bool = False) -> None:
        box = spaces.Box(-10.0, 10.0, (2,), np.float32)
        many = spaces.Dict([("side", spaces.Discrete(2)), ("here", box)])  # not in the order of the alphabet
        self.observation_space = many if parts else box
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.fault, self.at, self.random, self.parts = fault, at, random, parts

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.place = 0, self.np_random.uniform(-1, 1, 2)
        if self.fault == "exception at reset":
            raise OSError("no robot here")
        return self.seen(), {}

    def step(self, action):
        self.steps += 1
        if self.random:
            self.place = self.place + np.random.default_rng().normal(size=2) / 100
        self.place = np.clip(self.place + 0.1 * float(action[0]), -10, 10)
        action[:] = 0.0  # some environments do that
        seen: Any = self.seen()
        if self.steps == self.at and not self.mended:
            match self.fault:
                case "exception":
                    raise ZeroDivisionError("division by zero")
                case "nan":
                    seen[1] = np.nan
                case "shape":
                    seen = np.zeros(3, np.float32)
                case "huge":
                    seen[0] = 1e10
                case "words":
                    seen = "left"
                case "hang":
                    time.sleep(60)
                case "stuck":  # beyond Python's reach: its lock is held, and no signal is looked at
                    sum(itertools.repeat(0))
                case "exit":
                    raise SystemExit(0)
                case "no reward":
                    return seen, cast(float, "much"), False, False, {}
                case "no flag":
                    return seen, 0.0, cast(bool, "no"), False, {}
                case "four values":
                    return cast(Any, (seen, 0.0, False, {"TimeLimit.truncated": True}))
                case "nan reward":
                    return seen, math.nan, False, False, {}
                case _:
                    pass
        return seen, 0.0, self.fault == "ends at once", self.steps >= 20, {}

    def seen(self):
        place = self.place.astype(np.float32)
        return {"here": place, "side": int(place[0] > 0)} if self.parts else place


gym.register("maxplore-test/Awkward-v0", f"{__name__}:Awkward")
AWKWARD = "maxplore-test/Awkward-v0"


def whole(path, steps, **kwargs):
    with running.new(path, AWKWARD, env_kwargs=kwargs, **FEW) as run:
        run.explore(steps)


def rows(path):
    """All that a record says, but for when and how often it was resumed."""
    with Record.read(path / "run.sqlite") as record:
        own = list(record.transitions()), list(record.episodes()), [str(row) for row in record.metrics()]
        return *own, record.told, record.surveyed


def last_checkpoint(path):
    with np.load(Folder(path).all_checkpoints()[0][1]) as file:
        return {name: file[name].tobytes() for name in file.files}


@pytest.mark.parametrize("stops", [(1,), (20,), (7, 21), (5, 6, 33)])
def test_stopped_and_resumed_is_the_same_as_never_stopped(stops, tmp_path):
    whole(tmp_path / "never", 45)
    with running.new(tmp_path / "stopped", AWKWARD, **FEW) as run:
        assert not run.explore(45, stop=lambda: run.steps == stops[0])
    for stop in (*stops[1:], None):
        with running.resumed(tmp_path / "stopped") as run:
            assert run.explore(45, stop=lambda run=run, stop=stop: run.steps == stop) == (stop is None)
    assert rows(tmp_path / "never") == rows(tmp_path / "stopped")
    assert last_checkpoint(tmp_path / "never") == last_checkpoint(tmp_path / "stopped")


def test_steps_after_the_last_checkpoint_are_lived_through_again(tmp_path):
    """As after a kill: the record has 45 steps, and the newest checkpoint 42."""
    whole(tmp_path / "r", 45)
    Folder(tmp_path / "r").checkpoint(45).unlink()
    whole(tmp_path / "never", 60)
    explorer = maxplore.load(tmp_path / "r")
    assert explorer.steps == 45
    with running.resumed(tmp_path / "r") as run:
        assert run.steps == 45
        run.explore(60)
    assert rows(tmp_path / "never") == rows(tmp_path / "r")
    assert last_checkpoint(tmp_path / "never") == last_checkpoint(tmp_path / "r")


def test_observations_of_many_parts_are_kept_to_the_last_bit(tmp_path):
    whole(tmp_path / "never", 30, parts=True)
    with running.new(tmp_path / "r", AWKWARD, env_kwargs={"parts": True}, **FEW) as run:
        run.explore(11)
    with running.resumed(tmp_path / "r") as run:
        run.explore(30)
        assert not [event for event in run.record.events() if event.kind == "diverged"]
    assert rows(tmp_path / "never") == rows(tmp_path / "r")


def test_an_environment_that_cannot_be_replayed_begins_another_episode(tmp_path):
    with running.new(tmp_path / "r", AWKWARD, env_kwargs={"random": True}, **FEW) as run:
        run.explore(25)
    with running.resumed(tmp_path / "r") as run:
        run.explore(30)
        kinds = [event.kind for event in run.record.events()]
        episodes = [(own.episode, own.first_step) for own in run.record.episodes()]
    assert kinds == ["diverged", "resumed"]
    assert episodes == [(0, 0), (1, 20), (2, 25)]


FAULTS = {
    "exception": "ZeroDivisionError: division by zero",
    "nan": "observation[1] is nan",
    "shape": "observation has shape (3,), expected (2,)",
    "huge": "observation[0] is 10000000000.0, expected a finite number of at most 1e+09",
    "words": "observation is 'left'",
    "no flag": "terminated is 'no', expected True or False",
    "four values": "the environment's step returns 4 values, expected observation, reward, terminated, truncated, info",
    "hang": "0.2 seconds",
    "exit": "SystemExit",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_environment_that_misbehaves_ends_the_run_and_nothing_is_lost(fault, tmp_path, monkeypatch):
    whole(tmp_path / "well", 12)
    limit = 0.2 if fault == "hang" else None
    with (
        running.new(tmp_path / "r", AWKWARD, env_kwargs={"fault": fault}, step_limit=limit, **FEW) as run,
        pytest.raises(running.MisbehavedError) as error,
    ):
        run.explore(12)
    for part in (FAULTS[fault], "step 5", "episode 0", f"maxplore resume {tmp_path / 'r'}"):
        assert part in str(error.value)
    transitions, *_ = rows(tmp_path / "r")
    assert transitions == rows(tmp_path / "well")[0][:5]
    monkeypatch.setattr(Awkward, "mended", True)
    with running.resumed(tmp_path / "r") as run:
        run.explore(12)
    assert rows(tmp_path / "r")[0] == rows(tmp_path / "well")[0]


def test_an_environment_that_cannot_even_begin(tmp_path):
    with (
        running.new(tmp_path / "r", AWKWARD, env_kwargs={"fault": "exception at reset"}, **FEW) as run,
        pytest.raises(running.MisbehavedError, match="at step 0, in episode 0: its reset failed: OSError: no robot"),
    ):
        run.explore(3)


def test_an_environment_that_always_ends_at_once(tmp_path):
    with (
        running.new(tmp_path / "r", AWKWARD, env_kwargs={"fault": "ends at once"}, **FEW) as run,
        pytest.raises(running.MisbehavedError, match="ended at their first step"),
    ):
        run.explore(1000)
    assert len(rows(tmp_path / "r")[0]) == running.AT_ONCE


def test_who_writes_while_another_reads(tmp_path):
    with running.new(tmp_path / "r", AWKWARD, **FEW) as run:
        run.explore(3)
        with Record.read(tmp_path / "r" / "run.sqlite") as reader:
            assert reader.steps == 3
            run.explore(5)
            assert reader.steps == 5


def test_a_time_limit_is_over_when_the_block_is():
    watchdog = Watchdog(0.05)
    try:
        with watchdog.limited("nothing"):
            pass
        time.sleep(0.1)
        with pytest.raises(TimeoutError, match=r"0\.05 seconds"), watchdog.limited("sleep"):
            time.sleep(5)
    finally:
        watchdog.close()
    with Watchdog(None).limited("anything"):
        pass


def test_a_checkpoint_from_the_future_is_left_alone(tmp_path):
    """The record may be an older one, as after a power cut on a disk that does not keep its word."""
    whole(tmp_path / "r", 18)
    older = (tmp_path / "r" / "run.sqlite").read_bytes()
    with running.resumed(tmp_path / "r") as run:
        run.explore(21)
    (tmp_path / "r" / "run.sqlite").write_bytes(older)
    with pytest.warns(UserWarning, match="the record ends at 18"):
        run = running.resumed(tmp_path / "r")
    with run:
        assert run.steps == 18
        run.explore(21)
    whole(tmp_path / "never", 21)
    assert rows(tmp_path / "never") == rows(tmp_path / "r")


def test_only_the_newest_checkpoints_are_kept(tmp_path):
    whole(tmp_path / "r", 45)
    assert [step for step, _ in Folder(tmp_path / "r").all_checkpoints()] == [45, 42, 35]


def test_a_checkpoint_does_not_grow_with_d(tmp_path):
    """D is in the record; a checkpoint of a longer run has a few more digits, and that is all."""
    with running.new(tmp_path / "run", AWKWARD, **FEW) as run:
        run.explore(10)
        early = Folder(tmp_path / "run").all_checkpoints()[0][1].stat().st_size
        run.explore(300)
    step, file = Folder(tmp_path / "run").all_checkpoints()[0]
    assert step == 300
    assert file.stat().st_size < early + 64
    with np.load(file) as kept:
        assert not any(name.startswith("history") for name in kept.files)
    loaded = maxplore.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.history.transitions.state, run.explorer.history.transitions.state)
    np.testing.assert_array_equal(loaded.history.transitions.truncated, run.explorer.history.transitions.truncated)


def test_a_new_run_needs_a_place_of_its_own(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="something else in it"):
        running.new(tmp_path, AWKWARD, **FEW)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_nothing_is_saved_where_a_run_is(tmp_path):
    """`load` goes by the run's record, so that what was saved beside it would be lost."""
    whole(tmp_path / "r", 12)
    explorer = maxplore.load(tmp_path / "r")
    with pytest.raises(InputError, match="is the directory of a run, expected another one"):
        explorer.save(tmp_path / "r")
    assert not (tmp_path / "r" / SAVED).exists()
    explorer.save(tmp_path / "elsewhere")
    assert maxplore.load(tmp_path / "elsewhere").steps == 12


def test_parts_keep_their_names_whatever_their_order(tmp_path):
    """`here` has two numbers in [-10, 10], `side` is 0 or 1."""
    whole(tmp_path / "r", 12, parts=True)
    folder = Folder(tmp_path / "r")
    with Record.read(folder.record) as record:
        data = arrays(record, *folder.spaces(folder.read_config()))
    assert data["observations/here"].shape == (12, 2)
    np.testing.assert_array_equal(data["observations/side"], data["observations/here"][:, 0] > 0)


def test_a_reward_that_is_no_number_ends_the_run_of_a_method_that_learns_from_it(tmp_path):
    class Corridor(gym.Env):
        observation_space, action_space = spaces.Discrete(3), spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return 0, {}

        def step(self, action):
            return 1, math.nan, False, False, {}

    gym.register("maxplore-test/Corridor-v0", lambda **_: Corridor(), disable_env_checker=True)
    try:
        for method, number in (("eb-dqn", 0), ("random", 5)):
            with running.new(tmp_path / method, "maxplore-test/Corridor-v0", method=method, preset="smoke") as run:
                if method == "random":
                    run.explore(5)
                else:
                    with pytest.raises(running.MisbehavedError, match="reward is nan"):
                        run.explore(5)
            assert len(rows(tmp_path / method)[0]) == number
            running.resumed(tmp_path / method).close()
    finally:
        del gym.registry["maxplore-test/Corridor-v0"]


def test_a_damaged_checkpoint_is_replaced(tmp_path):
    whole(tmp_path / "r", 21)
    file = Folder(tmp_path / "r").checkpoint(21)
    good = file.read_bytes()
    file.write_bytes(good[:100])
    with pytest.warns(UserWarning, match="0000000021"):
        run = running.resumed(tmp_path / "r")
    with run:
        run.explore(21)
    assert file.read_bytes() == good


def flags(data, change):
    """A zip file whose directory says something else about its first part."""
    at = data.index(b"PK\x01\x02") + 8
    return data[:at] + bytes([data[at] ^ change]) + data[at + 1 :]


@pytest.mark.parametrize(
    "spoil",
    [lambda data: flags(data, 1), lambda data: data.replace(b"next/0", b"nexu/0"), lambda _: b"", lambda d: d[:-40]],
    ids=["encrypted", "renamed", "empty", "cut"],
)
def test_whatever_is_wrong_with_a_checkpoint_the_one_before_is_taken(spoil, tmp_path):
    whole(tmp_path / "r", 21)
    file = Folder(tmp_path / "r").checkpoint(21)
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.warns(UserWarning, match="the checkpoint before is taken"):
        assert maxplore.load(tmp_path / "r").steps == 21


def test_what_a_run_does_not_own_it_does_not_touch(tmp_path):
    path, mine = tmp_path / "r", tmp_path / "precious"
    whole(path, 5)
    for name in (".pre-commit-config.yaml", ".env.local", ".1234.data.npz"):
        (path / name).write_text("mine")
    (path / ".venv3.11").mkdir()
    (path / ".config.json.99").write_text("half")
    running.resumed(path).close()
    assert {file.name for file in path.glob(".*")} == {
        ".pre-commit-config.yaml",
        ".env.local",
        ".1234.data.npz",
        ".venv3.11",
    }
    mine.write_text("precious")
    (path / "lock").unlink()
    (path / "lock").symlink_to(mine)
    with pytest.raises(InputError, match="lock is a symbolic link, expected a file"):
        running.resumed(path)
    assert mine.read_text() == "precious"


@pytest.mark.filterwarnings("ignore:os.fork")  # JAX's; the child does nothing
def test_a_child_of_the_environment_holds_no_lock(tmp_path):
    folder, (ready, there), (go, here) = Folder(tmp_path), os.pipe(), os.pipe()
    with folder.locked():
        child = os.fork()
        if child == 0:  # lives on when its parent has let go
            os.close(here)
            os.write(there, b".")
            os.read(go, 1)
            os._exit(0)
        os.read(ready, 1)
    try:
        with folder.locked():
            assert folder.lock.read_text() == f"{os.getpid()} on {platform.node()}\n"
    finally:
        os.close(here)
        os.waitpid(child, 0)
        for descriptor in (ready, there, go):
            os.close(descriptor)


def test_who_reads_does_not_make_the_run_wait(tmp_path):
    """A reader in the middle of a table, while checkpoints are made."""
    with running.new(tmp_path / "r", AWKWARD, **FEW) as run:
        run.explore(3)
        with Record.read(tmp_path / "r" / "run.sqlite") as reader:
            cursor = reader._connection.execute("SELECT * FROM transitions")
            cursor.fetchone()
            run.record._connection.execute("PRAGMA busy_timeout = 0")  # to wait would be an error
            run.explore(30)
            assert Folder(tmp_path / "r").all_checkpoints()[0][0] == 30
            cursor.close()
