"""Which trial gets another worker and which is given up, how all of them are doing, and what came of them."""

import csv
import json
import os
import platform
import signal
import socketserver
import sys
import threading
from collections import defaultdict
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from maxplore import InputError
from maxplore.runs.directory import Folder
from maxplore.runs.interrupt import INTERRUPTED
from maxplore.runs.record import Record, Step
from maxplore.stalls import STUCK
from maxplore.sweep import Ended, Trial, done, journal, run_all, running, status
from maxplore.sweep.engine import BUSY, FAILED
from maxplore.sweep.gather import gather
from maxplore.sweep.trial import NOTHING
from maxplore.sweep.work import work
from maxplore_cli import main
from tests.rewriting import rewritten

TRIAL = Trial("maxplore/Chain-v0", "random", 0, 20, env_kwargs={"length": 5})
LOST = Ended(None, loss="its machine is gone")


class Here:
    """An engine that runs every trial in this process, at once."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    def room(self) -> int:
        return 2

    def start(self, order: Path, run: Path) -> Ended:
        self.begun.append(run.name)
        try:
            return Ended(0 if work(Trial.read(order), run) else INTERRUPTED)
        except InputError as error:
            order.with_suffix(".log").write_text(f"{error}\n")
            return Ended(FAILED)

    def ended(self, worker: Ended) -> Ended | None:
        return worker

    def stop(self, workers: Any) -> None:
        raise AssertionError("nobody runs here for long")


class Scripted(Here):
    """An engine whose attempts end as it is told, each some steps further."""

    def __init__(self, **script: list[tuple[Ended, int]]) -> None:
        super().__init__()
        self.script, self.steps = script, defaultdict[str, int](int)

    def start(self, order: Path, run: Path) -> Ended:
        self.begun.append(run.name)
        ended, further = self.script[run.name].pop(0)
        self.steps[run.name] += further
        return ended

    def done(self, trial: Trial, run: Path) -> Any:
        return NOTHING._replace(steps=self.steps[run.name])


def swept(engine: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, running.Outcome]:
    monkeypatch.setattr(running, "PAUSES", (0.0, 0.0, 0.0))
    monkeypatch.setattr(running, "LOOK", 0.0)
    monkeypatch.setattr(running, "done", engine.done)
    trials = dict.fromkeys(engine.script, TRIAL)
    return {outcome.name: outcome for outcome in run_all(trials, tmp_path, engine=engine, say=lambda _: None)}


@pytest.mark.parametrize(
    ("ended", "tried"),
    [
        (LOST, 2),
        (Ended(-signal.SIGKILL), 2),  # the kernel's answer to too little memory
        (Ended(-signal.SIGSEGV), 2),
        (Ended(INTERRUPTED), 2),
        (Ended(BUSY), 2),
        (Ended(STUCK), 2),
        (Ended(FAILED), 1),
        (Ended(1), 1),  # an exception
    ],
)
def test_only_what_was_ended_from_outside_is_tried_again(ended, tried, tmp_path, monkeypatch):
    engine = Scripted(other=[(Ended(0), 20)], one=[(ended, 5), (Ended(0), 15)])
    outcomes = swept(engine, tmp_path, monkeypatch)
    assert engine.begun == ["other", *["one"] * tried]
    assert outcomes["other"].ended
    assert outcomes["one"].ended == (tried == 2)
    past = journal.read(tmp_path / "trials")["one"]
    assert past.resumed == tried - 1
    assert past.event == ("ended" if tried == 2 else "failed")


def test_one_that_gets_no_further_is_given_up_and_one_that_does_is_not(tmp_path, monkeypatch):
    engine = Scripted(
        stuck=[(LOST, 3), *[(LOST, 0)] * 3],
        slow=[*[(LOST, 1), (Ended(BUSY), 0), (LOST, 0)] * 5, (Ended(0), 15)],
    )
    outcomes = swept(engine, tmp_path, monkeypatch)
    assert not engine.script["stuck"]
    assert outcomes["stuck"].reason == "its machine is gone: given up, 3 attempts in a row got no further"
    assert outcomes["slow"].ended
    assert len(engine.begun) == 4 + 16


def test_a_run_of_something_else_refuses_all_and_a_damaged_one_stops_no_other(tmp_path):
    engine, two = Here(), {"one": TRIAL, "two": replace(TRIAL, seed=1)}
    run_all({"one": TRIAL}, tmp_path, engine=engine, say=lambda _: None)
    with pytest.raises(InputError, match=r"one has a run with seed 0, expected 5: give another --out"):
        run_all({**two, "one": replace(TRIAL, seed=5)}, tmp_path, engine=engine, say=lambda _: None)
    assert not (tmp_path / "runs" / "two").exists()
    (tmp_path / "runs" / "one" / "config.json").write_text("{")
    one, other = run_all(two, tmp_path, engine=engine, say=lambda _: None)
    assert "is no config of a run, or damaged" in one.reason
    assert other.ended
    assert engine.begun == ["one", "two"]


def test_how_it_is_doing_is_read_off_the_folder(tmp_path):
    trials = {name: replace(TRIAL, seed=seed) for seed, name in enumerate(("ready", "half", "bad", "begun", "new"))}
    run_all({name: trials[name] for name in ("ready",)}, tmp_path, engine=Here(), say=lambda _: None)
    run_all({"half": replace(trials["half"], steps=10)}, tmp_path, engine=Here(), say=lambda _: None)
    notes = journal.Journal(tmp_path / "trials")
    notes.note("half", journal.BEGAN, share=0.25)
    notes.note("half", journal.LOST, reason="gone", seconds=60.0, gained=0.25)
    notes.note("half", journal.BEGAN, share=0.5)
    notes.note("bad", journal.FAILED, reason="it fell")
    notes.note("begun", journal.BEGAN, share=0.0)
    with notes.path.open("a") as file:
        file.write('{"trial": "new", "ev')  # and then the power went

    def told() -> dict[str, tuple[str, ...]]:
        return {row.name: row.cells[1:5] for row in status.read(trials, tmp_path).rows}

    now = told()
    assert now["ready"] == ("done", "20/20", "", "")
    assert now["half"] == ("waiting", "10/20", "", "2"), "whoever was at it is gone"
    assert (now["bad"][0], now["begun"][0], now["new"][0]) == ("failed", "waiting", "waiting")
    with Folder(tmp_path / "trials").locked():
        assert told()["half"][0] == told()["begun"][0] == "running"
        found = status.read(trials, tmp_path)
    assert found.summary.startswith("5 trials: 1 done, 2 running, 1 failed, 1 waiting; 1 resumed; about ")
    lines = list(found.lines())
    assert lines[0].split() == ["trial", "state", "steps", "resumed", "took", "reason"]
    assert lines[3].split(maxsplit=3) == ["bad", "failed", "0/20", "it fell"]
    assert list(journal.read(tmp_path / "trials")) == ["ready", "half", "bad", "begun"]
    journal.Journal(tmp_path / "trials").note("new", journal.BEGAN, share=0.0)
    assert journal.read(tmp_path / "trials")["new"].event == "began", "the torn line spoils no other"


class Watched(Here):
    """Somebody looks at the table from another terminal whenever a worker is begun."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[list[str]] = []

    def room(self) -> int:
        return 1

    def start(self, order: Path, run: Path) -> Ended:
        trials = {name: replace(TRIAL, seed=seed) for seed, name in enumerate(("one", "two"))}
        self.seen.append([row.state for row in status.read(trials, run.parents[1]).rows])
        return super().start(order, run)


def test_what_a_killed_sweep_had_begun_waits_in_the_next(tmp_path):
    trials = {name: replace(TRIAL, seed=seed) for seed, name in enumerate(("one", "two"))}
    (tmp_path / "trials").mkdir()
    notes = journal.Journal(tmp_path / "trials")
    for name in trials:
        notes.note(name, journal.BEGAN, share=0.0)
    engine = Watched()
    assert all(each.ended for each in run_all(trials, tmp_path, engine=engine, say=lambda _: None))
    assert engine.seen == [["running", "waiting"], ["done", "running"]]


def test_a_record_that_another_machine_writes_is_not_opened(tmp_path, monkeypatch):
    run, longer = tmp_path / "runs" / "one", replace(TRIAL, steps=22)
    work(TRIAL, run)
    with Record.open(Folder(run).record) as record:
        record.write(Step(20, 0, b"", b"", 0.0, False, False))
    assert Folder(run).writer is None
    with Folder(run).locked():
        assert Folder(run).writer == f"{os.getpid()} on {platform.node()}"
        assert done(longer, run).steps == 21
        monkeypatch.setattr("platform.node", lambda: "venus")
        monkeypatch.setattr(Record, "peek", None)
        assert done(longer, run).steps == 20, "that of its newest checkpoint"
        assert "one,waiting," in gather(status.read({"one": longer}, tmp_path), tmp_path).read_text()


def test_a_run_that_is_longer_than_asked_is_done_and_no_more():
    longer = NOTHING._replace(steps=2 * TRIAL.steps)
    assert status.Row("a", "done", TRIAL, longer).cells[2] == f"{TRIAL.steps}/{TRIAL.steps}"


def test_the_time_that_is_left_is_that_of_trials_of_the_kind():
    past = journal.Past(event="ended", seconds=100.0, gained=1.0)
    slow = replace(TRIAL, method="max")
    rows = [
        status.Row("a", "done", TRIAL, NOTHING, past),
        status.Row("b", "done", slow, NOTHING, past._replace(seconds=600.0)),
        status.Row("c", "waiting", TRIAL, NOTHING),
        status.Row("d", "waiting", slow, NOTHING._replace(steps=10), past._replace(seconds=300.0, gained=0.5)),
    ]
    assert status.Status(rows, 1).left == pytest.approx(100 + 300)
    assert status.Status(rows, 4).left == pytest.approx(300), "no trial is quicker for there being more workers"
    assert status.Status([*rows[2:3]], 1).left is None
    assert status.Status(rows[:2], 1).left == 0.0


def test_a_study_is_swept_looked_at_and_gathered(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("maxplore.commands.sweeping.Local", Here)
    monkeypatch.chdir(tmp_path)
    text = """
        steps = 20
        methods = ["random"]
        environments = ["ENV"]
        variations = [{ name = "usual" }, { name = "late", settings = { warm_up = 9 } }]
    """
    Path("mine.toml").write_text(text.replace("ENV", "maxplore/Chain-v0"))
    assert main(["sweep", "mine.toml"]) == 2, "the random explorer of a chain has no warm-up"
    assert "Chain-v0-random-late-0: there is no setting 'warm_up'" in capsys.readouterr().err
    assert not Path("runs").exists()
    Path("mine.toml").write_text(text.replace("ENV", "maxplore/MountainCar-v0"))
    assert main(["sweep", "mine.toml"]) == 0
    assert (
        "2 trials: 2 done, 0 running, 0 failed, 0 waiting; 0 resumed; gathered in runs/mine" in capsys.readouterr().out
    )
    rows = list(csv.DictReader(Path("runs/mine/results.csv").read_text().splitlines()))
    assert [row["trial"] for row in rows] == ["MountainCar-v0-random-usual-0", "MountainCar-v0-random-late-0"]
    assert [(row["state"], row["steps"], row["settings.warm_up"]) for row in rows] == [
        ("done", "20", ""),
        ("done", "20", "9"),
    ]
    before = Path("runs/mine/trials/journal.jsonl").read_text()
    assert main(["sweep", "mine.toml"]) == 0
    assert Path("runs/mine/trials/journal.jsonl").read_text() == before, "what is done is not run again"
    capsys.readouterr()
    assert main(["sweep", "mine.toml", "--status"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["MountainCar-v0-random-usual-0", "done", "20/20"]


def test_results_have_metrics_and_returns_as_far_as_the_trial_goes(tmp_path):
    trial = replace(TRIAL, tasks=("chain",), after=(10, 20), episodes=2, settings={}, env_kwargs={"length": 5})
    run = tmp_path / "runs" / "one"
    work(replace(trial, tasks=(), after=(), steps=30), run)
    rewritten(run, metrics={5: {"error": 3.0}, 15: {"error": 2.0, "nll": float("nan")}, 25: {"error": 1.0}})
    with Record.open(Folder(run).record) as record:
        for step in (10, 20):
            record.solved("chain", seed=0, settings={}, report={}, returns=[1.0, float(step)], step=step)
    file = gather(status.read({"one": trial, "none": replace(trial, seed=1)}, tmp_path), tmp_path)
    one, none = csv.DictReader(file.read_text().splitlines())
    assert (one["state"], one["steps"], one["env.length"]) == ("done", "20", "5")
    assert (one["error"], one["chain@10"], one["chain@20"]) == ("2.0", "5.5", "10.5")
    assert "nll" not in one
    assert (none["state"], none["steps"], none["error"]) == ("waiting", "0", "")


def test_a_figure_is_swept_where_reproducing_it_finds_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("maxplore.commands.sweeping.Local", Here)
    monkeypatch.chdir(tmp_path)
    size = ["--preset", "smoke", "--steps", "5", "--methods", "random", "--seeds", "2"]
    assert main(["sweep", "ant-maze", *size]) == 0
    before = (tmp_path / "runs/ant-maze-smoke/trials/journal.jsonl").read_text()
    assert {json.loads(line)["trial"] for line in before.splitlines()} == {"random-1000", "random-1001"}
    assert main(["reproduce", "ant-maze", *size]) == 0
    assert "2 of 2 runs are there already" in capsys.readouterr().out
    assert (tmp_path / "runs/ant-maze-smoke/trials/journal.jsonl").read_text() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mine.toml", "--seeds", "3"], "--seeds is given, expected none with a file: say it in mine.toml"),
        (["other.toml"], "other.toml cannot be read (No such file or directory): expected a study in TOML"),
        (["chain"], "chain is not made of runs, expected one of mountain-car, half-cheetah, ant-maze"),
        (["mine"], "study is 'mine', expected a file whose name ends in .toml, or a figure"),
        (["mine.toml", "--workers", "0"], "workers is 0, expected a whole number of at least 1"),
        (["mine.toml", "--address", "x:1"], "address is 'x:1' with the engine local, expected --engine ray"),
        (["mine.toml", "--engine", "slurm"], "invalid choice"),
        (["mine.toml", "--out", "file"], "file/runs cannot be made a directory"),
        (["mine.toml", "--out", "file", "--status"], "journal.jsonl cannot be read (Not a directory): expected"),
        (["mine.toml", "--engine", "ray", "--address", "nowhere"], "address is 'nowhere', expected HOST:PORT"),
        (["mine.toml", "--engine", "ray", "--address", "127.0.0.1:1"], "nobody answers there"),
    ],
)
def test_bad_sweeps_are_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("maxplore.commands.sweeping.Local", Here)
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text('steps = 5\nenvironments = ["maxplore/MountainCar-v0"]\n')
    Path("file").touch()
    assert main(["sweep", *arguments]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "mine.toml"]


def test_without_ray_or_with_its_door_open_there_is_no_cluster(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text('steps = 5\nenvironments = ["maxplore/MountainCar-v0"]\n')
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert main(["sweep", "mine.toml", "--engine", "ray"]) == 2
    assert "RAY_AUTH_MODE is disabled, expected token" in capsys.readouterr().err
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["sweep", "mine.toml", "--engine", "ray"]) == 2
    assert "pip install maxplore[ray]" in capsys.readouterr().err
    assert main(["reproduce", "chain", "--engine", "ray"]) == 2
    assert "chain is not made of runs" in capsys.readouterr().err


def test_who_is_no_ray_is_found_out_at_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text('steps = 5\nenvironments = ["maxplore/MountainCar-v0"]\n')
    with socketserver.TCPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        address = f"127.0.0.1:{server.server_address[1]}"
        assert main(["sweep", "mine.toml", "--engine", "ray", "--address", address]) == 2
    assert "it is no Ray that answers there" in capsys.readouterr().err
