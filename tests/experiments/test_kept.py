"""What is kept of a trial stands for its run, and for no other trial."""

import csv
import json
import shutil
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxplore import Forecast, InputError
from maxplore.experiments import Asked, kept
from maxplore.experiments.ant_maze import AntMazeFigure
from maxplore.experiments.kept import Kept
from maxplore.experiments.reproduce import reproduce
from maxplore.runs.directory import Folder
from maxplore.runs.record import Record
from maxplore.sweep import Ended, Trial, run_all, status
from maxplore.sweep.trial import OtherRunError
from maxplore.sweep.work import work
from maxplore_cli import main
from tests.counting import compilations
from tests.sweep.test_running import Here

SIZE = Asked("smoke", seeds=2, steps=5, methods=("random",))
WORDS = ["ant-maze", "--preset", "smoke", "--steps", "5", "--methods", "random", "--seeds"]
FIGURE = AntMazeFigure()
TRIAL = Trial("maxplore/MountainCar-v0", "random", 3, 20, tasks=("capture-flag",), after=(10, 20), episodes=2)


def quiet(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A figure of two trials, and its summary."""
    folder = tmp_path_factory.mktemp("made")
    return folder, reproduce("ant-maze", folder, SIZE, say=quiet, engine=Here())


@pytest.fixture
def copied(made, tmp_path):
    """The same, to do with as one likes."""
    shutil.copytree(made[0], tmp_path / "figure")
    return tmp_path / "figure"


def run_of(folder: Path, trial: Trial) -> Kept:
    """A run of the trial whose tasks were solved by hand, and who keeps it."""
    path = folder / "runs" / "one"
    assert work(replace(trial, tasks=(), landscapes=()), path)
    with Record.open(Folder(path).record) as record:
        for steps in trial.after:
            report: Any = {"forecast": {"mean": 1.5, "low": 1.0, "high": steps}}
            told = report if steps == 10 else {"forecast": {"mean": None, "low": 1.0, "high": 2.0}}
            returns = [0.1, steps / 3]
            record.solved("capture-flag", seed=0, settings={}, report=told, returns=returns, step=steps)
    for at in trial.landscapes:
        Folder(path).landscape(at).parent.mkdir(exist_ok=True)
        np.savez(Folder(path).landscape(at), utility=np.full((2, 2), at, np.float32))
    return Kept(folder, (0, 1))


def test_a_figure_is_the_same_without_its_runs(made, copied):
    first, engine = made[1], Here()
    shutil.rmtree(copied / "runs")
    with compilations() as compiled:
        again = reproduce("ant-maze", copied, SIZE, say=quiet, engine=engine)
    assert again == first
    assert not compiled
    assert engine.begun == [], "no worker was started"
    assert json.loads((copied / "summary.json").read_text()) == first
    assert sum(first["made_by"].values()) == 2
    more = FIGURE.at(replace(SIZE, seeds=3)).run(copied, quiet, engine)
    assert engine.begun == ["random-1002"], "the one that is missing"
    assert more.extra["runs"] == {"random": 3}
    fewer = FIGURE.at(replace(SIZE, seeds=1, steps=3)).run(copied, quiet, engine)
    assert fewer.curves["random"]["x"] == [1, 2, 3]
    assert engine.begun == ["random-1002"]


def test_kept_trials_are_done_in_the_table(copied, capsys):
    shutil.rmtree(copied / "runs")
    assert main(["sweep", *WORDS, "3", "--out", str(copied), "--status"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in told[1:3]] == [["random-1000", "done", "5/5"], ["random-1001", "done", "5/5"]]
    assert told[-1] == "3 trials: 2 done, 0 running, 0 failed, 1 waiting; 0 resumed"
    assert main(["sweep", *WORDS, "2", "--out", str(copied)]) == 0
    rows = csv.DictReader((copied / "results.csv").read_text().splitlines())
    assert [(row["state"], row["steps"]) for row in rows] == [("done", "5"), ("done", "5")]
    assert list((copied / "runs").iterdir()) == []


def test_what_a_file_holds(tmp_path):
    trial = replace(TRIAL, landscapes=(10,))
    own = run_of(tmp_path, trial)
    seen = own.seen("one", trial)
    with np.load(tmp_path / "trials" / "one.npz", allow_pickle=False) as file:
        about = json.loads(str(file["about"]))
        assert {name: file[name].dtype for name in file.files if name != "about"} == {
            "states": np.float32,
            "episodes": np.int32,
            "landscapes/10": np.float32,
        }
        np.testing.assert_array_equal(file["states"], seen.states)
    assert Trial.of(about["trial"]) == trial
    assert (about["version"], about["commit"]) == (Folder(tmp_path / "runs/one").read_config().versions["maxplore"], "")
    shutil.rmtree(tmp_path / "runs")
    again = Kept(tmp_path, (0, 1)).seen("one", trial)
    assert again.states.shape == (20, 2)
    for one, other in zip(again, seen, strict=True):
        np.testing.assert_equal(one, other)
    assert again.tasks == {("capture-flag", 10): [0.1, 10 / 3], ("capture-flag", 20): [0.1, 20 / 3]}
    assert again.forecasts == {("capture-flag", 10): Forecast(1.5, 1.0, 10.0)}, "none that is not finite"


def test_more_serves_less_and_less_is_run_on(tmp_path):
    own = run_of(tmp_path, TRIAL)
    whole, shorter = own.seen("one", TRIAL), replace(TRIAL, steps=15, after=(10,))
    shutil.move(tmp_path / "runs", tmp_path / "away")
    own = Kept(tmp_path, (0, 1))
    cut = own.seen("one", shorter)
    np.testing.assert_array_equal(cut.states, whole.states[:15])
    assert list(cut.tasks) == [("capture-flag", 10)]
    assert own.has("one", TRIAL), "it is cut for who asks, not in the file"
    assert not own.has("one", replace(TRIAL, steps=21, after=(10,)))
    assert not own.has("one", replace(TRIAL, after=(5, 20)))
    with pytest.raises(OtherRunError, match=r"one.npz has 20 steps and no capture-flag from 5 steps, .*another --out"):
        own.has("one", replace(shorter, after=(5,)))  # else 15 steps would be run anew, and take the place of 20
    with pytest.raises(OtherRunError, match="no landscape 7"):
        own.has("one", replace(shorter, landscapes=(7,)))
    shutil.move(tmp_path / "away", tmp_path / "runs")
    assert not own.has("one", replace(shorter, after=(5,))), "its run has all 20 steps"
    longer, engine = {"one": replace(TRIAL, steps=30)}, Here()
    (outcome,) = run_all(longer, tmp_path, engine=engine, say=quiet, keeper=own)
    assert outcome.ended
    assert engine.begun == ["one"]
    shutil.rmtree(tmp_path / "runs")
    after = Kept(tmp_path, (0, 1)).seen("one", longer["one"])
    np.testing.assert_array_equal(after.states[:20], whole.states)
    assert len(after.states) == len(after.episodes) == 30


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"seed": 4}, "seed 3, expected 4"),
        ({"method": "max"}, "method 'random', expected 'max'"),
        ({"env_kwargs": {"noise": 0.1}}, "env_kwargs {}, expected {'noise': 0.1}"),
        ({"settings": {"warm_up": 3}}, "settings {}, expected {'warm_up': 3}"),
        ({"solving": {"members": 2}}, "solving {}, expected {'members': 2}"),
        ({"tasks": ("capture-flag", "x")}, "tasks ['capture-flag'], expected ['capture-flag', 'x']"),
        ({"episodes": 3}, "episodes 2, expected 3"),
        ({"preset": "paper"}, "preset 'fast', expected 'paper'"),
    ],
)
def test_another_trial_is_refused(other, message, tmp_path):
    file = tmp_path / "one.npz"
    kept.write(file, TRIAL, (0,), kept.Seen(np.zeros((0, 1), np.float32), np.zeros(0, np.int32)))
    with pytest.raises(OtherRunError) as refused:
        kept.read(file, replace(TRIAL, **other), (0,))
    assert str(refused.value) == f"{file} has a trial with {message}: give another --out, or remove the file"
    with pytest.raises(OtherRunError, match=r"with columns \[0\], expected \[1\]"):
        kept.read(file, TRIAL, (1,))


def test_another_trial_in_the_folder_is_one_line(copied, capsys):
    shutil.rmtree(copied / "runs")
    (copied / "trials" / "random-1000.npz").replace(copied / "trials" / "random-1001.npz")
    assert main(["reproduce", *WORDS, "2", "--out", str(copied)]) == 2
    told = capsys.readouterr().err
    assert "random-1001.npz has a trial with seed 1000, expected 1001" in told
    assert told.count("\n") == 1
    assert list((copied / "runs").iterdir()) == [], "before anything is run"


def pickled(file: Path) -> None:
    with file.open("wb") as out:
        np.savez(out, about=np.array([{}], object))


def shortened(file: Path) -> None:
    with np.load(file) as found:
        own = dict(found)
    with file.open("wb") as out:
        np.savez(out, **(own | {"states": own["states"][:-1]}))


def claiming(shape: str) -> Callable[[Path], None]:
    """States that say they are as large as that."""
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}".encode()

    def damage(file: Path) -> None:
        with zipfile.ZipFile(file, "w") as out:
            out.writestr("states.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)

    return damage


def flagged(place: int, bits: int) -> Callable[[Path], None]:
    """One byte of every entry in the list of contents is another."""

    def damage(file: Path) -> None:
        data, at = bytearray(file.read_bytes()), -1
        while (at := data.find(b"PK\x01\x02", at + 1)) >= 0:
            data[at + place] |= bits
        file.write_bytes(data)

    return damage


def telling(**changed: Any) -> Callable[[Path], None]:
    """Something else in `about`, or in place of an array."""

    def damage(file: Path) -> None:
        with np.load(file) as found:
            own: dict[str, Any] = dict(found)
        about = json.loads(str(own["about"]))
        about |= {name: value for name, value in changed.items() if name in about}
        own |= {name: value for name, value in changed.items() if name in own}
        own["about"] = np.array(json.dumps(about))
        with file.open("wb") as out:
            np.savez(out, **own)

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        claiming("(100000000000000, 2)"),
        claiming("(1" + 30 * "0" + ",)"),
        claiming("(5, 2"),
        flagged(10, 99),  # an unknown way to compress
        flagged(8, 1),  # encrypted
        telling(episodes=np.array(list("abcde"))),
        lambda file: file.write_bytes(file.read_bytes()[:-100]),
        lambda file: file.write_bytes(file.read_bytes().replace(b"\x00\x00", b"\x00\x01")),
        lambda file: file.write_bytes(b""),
        lambda file: file.write_text("version https://git-lfs.github.com/spec/v1\n"),
        pickled,
        shortened,
    ],
)
def test_a_damaged_file_is_one_line_and_nothing_is_lost(damage, copied):
    file, engine, lines = copied / "trials" / "random-1000.npz", Here(), []
    damage(file)
    found = file.read_bytes()
    trials, own = FIGURE.at(SIZE).trials, Kept(copied, (2, 3))
    bad, good = run_all(trials, copied, engine=engine, say=lines.append, keeper=own)
    assert good.ended
    assert not bad.ended
    assert str(file) in bad.reason
    assert "is no kept trial, or damaged" in bad.reason
    assert bad.reason.endswith("remove it, and the trial is taken from its run, or run again")
    assert "\n" not in bad.reason
    assert file.read_bytes() == found
    assert [row.state for row in status.read(trials, copied, Kept(copied, (2, 3))).rows] == ["failed", "done"]
    file.unlink()
    assert all(each.ended for each in run_all(trials, copied, engine=engine, say=quiet, keeper=own))
    assert own.has("random-1000", trials["random-1000"])
    assert engine.begun == []


@pytest.mark.parametrize(
    "row",
    [
        {"returns": [1.0, float("nan")]},
        {"returns": "12"},
        {"steps": float("inf")},
        {"forecast": {"mean": "x", "low": 0.0, "high": 1.0}},
        {"forecast": 3},
    ],
)
def test_tasks_that_are_none_are_damage_too(row, tmp_path):
    file = tmp_path / "one.npz"
    seen = kept.Seen(np.zeros((20, 1), np.float32), np.zeros(20, np.int32), {}, {}, {10: np.zeros((3, 3), np.float32)})
    kept.write(file, TRIAL, (0,), seen)
    telling(tasks=[{"task": "capture-flag", "steps": 10, "returns": [1.0, 2.0], **row}])(file)
    with pytest.raises(InputError, match=r"one.npz is no kept trial, or damaged"):
        kept.read(file, TRIAL, (0,))
    kept.write(file, TRIAL, (0,), seen._replace(landscapes={10: np.zeros(3, np.float32)}))
    with pytest.raises(InputError, match=r"landscape 10 is float32 of \(3,\), expected a plane"):
        kept.read(file, TRIAL, (0,))


def test_what_would_unfold_to_more_than_memory_is_not_unfolded(tmp_path, monkeypatch):
    file, seen = tmp_path / "one.npz", kept.Seen(np.zeros((20, 1), np.float32), np.zeros(20, np.int32))
    kept.write(file, TRIAL, (0,), seen)
    monkeypatch.setattr(kept, "MOST", 100)
    with pytest.raises(InputError, match=r"it unfolds to .* bytes, expected at most 100"):
        kept.read(file, TRIAL, (0,))


def test_a_file_of_another_version_is_not_called_damaged(tmp_path):
    """Or somebody would remove what took hours."""
    file = tmp_path / "one.npz"
    with file.open("wb") as out:
        np.savez(out, about=np.array(json.dumps({"format": 2, "rows": []})))
    with pytest.raises(OtherRunError, match=r"has format 2, expected 1: it is from another version of maxplore"):
        kept.read(file, TRIAL, (0,))


class Impatient(Here):
    """Somebody presses Ctrl-C, or something breaks, when a third trial begins."""

    def __init__(self, error: type[BaseException]) -> None:
        super().__init__()
        self.error = error

    def start(self, order: Path, run: Path) -> Ended:
        if len(self.begun) == 2:
            raise self.error("a worker cannot be started")
        return super().start(order, run)

    def room(self) -> int:
        return 3

    def stop(self, workers: Any) -> None:
        pass


@pytest.mark.parametrize("error", [KeyboardInterrupt, InputError])
def test_a_sweep_that_is_stopped_keeps_what_ended(error, tmp_path):
    figure, engine = FIGURE.at(replace(SIZE, seeds=3)), Here()
    with pytest.raises(error):
        figure.run(tmp_path, quiet, Impatient(error))
    shutil.rmtree(tmp_path / "runs")
    assert figure.run(tmp_path, quiet, engine).extra["runs"] == {"random": 3}
    assert engine.begun == ["random-1002"]


def test_what_cannot_be_kept_has_failed(tmp_path, monkeypatch):
    def full(*_: Any) -> None:
        raise InputError("one.npz cannot be written (No space left on device); nothing of it is left")

    own = run_of(tmp_path, TRIAL)
    monkeypatch.setattr(kept, "write", full)
    (outcome,) = run_all({"one": TRIAL}, tmp_path, engine=Here(), say=quiet, keeper=own)
    assert not outcome.ended
    assert "No space left" in outcome.reason


def test_another_version_is_said(copied):
    file, lines = copied / "trials" / "random-1000.npz", []
    trial = FIGURE.at(SIZE).trials["random-1000"]
    kept.write(file, trial, (2, 3), kept.read(file, trial, (2, 3))._replace(version="0.0.9", commit="abc1234"))
    measured = FIGURE.at(SIZE).run(copied, lines.append, Here())
    assert measured.extra["made_by"]["maxplore 0.0.9, commit abc1234"] == 1
    assert "1 of 2 trials are of another version of maxplore: made_by in summary.json has it" in lines


def test_there_need_be_no_git(monkeypatch):
    kept.commit.cache_clear()
    monkeypatch.setenv("PATH", "")
    assert kept.commit() == ""
    kept.commit.cache_clear()
