"""What people type: the right thing done, and one clear line for everything else."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import maxplore
import maxplore_cli
from maxplore.runs.directory import Folder
from maxplore.runs.record import Record


class Camera(gym.Env):
    """Sees pictures."""

    observation_space = gym.spaces.Box(0, 255, (8, 8, 3), np.uint8)
    action_space = gym.spaces.Discrete(2)


gym.register("maxplore-test/Camera-v0", f"{__name__}:Camera")

CHAIN = ["maxplore/Chain-v0", "--env-kwarg", "length=5"]
RANDOM = [*CHAIN, "--method", "random", "--progress", "quiet"]


def typed(*words):
    """Type this; the exit status."""
    try:
        return maxplore_cli.main([str(word) for word in words])
    except SystemExit as ended:  # --help
        return ended.code or 0


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of 30 random steps on a chain of 5."""
    path = tmp_path_factory.mktemp("cli") / "run"
    assert typed("explore", *RANDOM, "--steps", "30", "--checkpoint-every", "10", "--out", path) == 0
    return path


@pytest.fixture
def run(finished, tmp_path):
    """The same, to be spoiled."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def test_a_run_is_a_folder_that_tells_all(finished):
    config = json.loads((finished / "config.json").read_text())
    assert config["env"] == "maxplore/Chain-v0"
    assert config["env_kwargs"] == {"length": 5}
    assert config["method"] == "random"
    assert set(config["versions"]) >= {"maxplore", "jax", "gymnasium"}
    with Record.read(finished / "run.sqlite") as record:
        assert record.steps == 30
        assert [step.step for step in record.transitions()] == list(range(30))
    assert [step for step, _ in Folder(finished).all_checkpoints()] == [30, 20, 10]
    assert any((finished / "tensorboard").iterdir())
    assert (finished / "figures" / "learning.png").read_bytes().startswith(b"\x89PNG")


def test_other_tools_can_read_it_while_it_is_there(finished):
    with sqlite3.connect(f"file:{finished / 'run.sqlite'}?mode=ro", uri=True) as connection:
        assert connection.execute("SELECT COUNT(*) FROM transitions").fetchone() == (30,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_finished_run_can_be_extended(run, capsys):
    assert typed("resume", run, "--steps", "45") == 0
    assert "45 steps (15 of them now)" in capsys.readouterr().out
    assert maxplore.load(run).steps == 45


def test_resuming_what_is_finished_changes_nothing(run, capsys):
    before = [tuple(step) for step in Record.read(run / "run.sqlite").transitions()]
    assert typed("resume", run) == 0
    assert "30 steps (0 of them now)" in capsys.readouterr().out
    assert [tuple(step) for step in Record.read(run / "run.sqlite").transitions()] == before


def test_json_lines_are_json(tmp_path, capsys):
    assert (
        typed("explore", *CHAIN, "--method", "random", "--steps", 5, "--out", tmp_path / "r", "--progress", "json") == 0
    )
    *_, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert last["event"] == "done"
    assert last["steps"] == 5


def test_without_out_runs_get_names_of_their_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("Chain-v0-random-0", "Chain-v0-random-0-2"):
        assert typed("explore", *RANDOM, "--steps", "2") == 0
        assert (tmp_path / "runs" / name / "config.json").exists()


def test_the_chains_task_from_the_command_line(run, capsys):
    assert typed("exploit", run, "--task", "chain", "--episodes", "2") == 0
    said = capsys.readouterr().out
    assert "expects" in said
    assert "mean" in said
    with Record.read(run / "run.sqlite") as record:
        (kept,) = record.tasks()
    assert kept["task"] == "chain"
    assert len(kept["returns"]) == 2


def test_json_lines_tell_how_far_a_task_is(run, capsys):
    assert typed("exploit", run, "--task", "chain", "--episodes", "1", "--progress", "json") == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["event"] for row in told[:-1]} == {"progress"}
    assert list(dict.fromkeys(row["doing"] for row in told[:-1])) == ["load", "fit", "solve", "forecast", "try"]
    assert all(row["done"] <= row["of"] for row in told[:-1])
    with Record.read(run / "run.sqlite") as record:
        (kept,) = record.tasks()
    assert told[-1]["event"] == "done"
    assert told[-1]["returns"] == kept["returns"]


def test_what_is_interrupted_before_a_task_is_tried_says_so(run, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(maxplore.TaskPolicy, "run", interrupted)
    assert typed("exploit", run, "--task", "chain") == 130
    (line,) = capsys.readouterr().err.splitlines()
    assert "the same command begins anew" in line


def test_a_reward_of_ones_own(run, tmp_path, capsys):
    (tmp_path / "mine.py").write_text("def home(state, action, next_state):\n    return 1.0 * (next_state == 0)\n")
    assert (
        typed("exploit", run, "--reward", f"{tmp_path / 'mine.py'}:home", "--episodes", "1", "--discount", "0.9") == 0
    )
    assert "home" in capsys.readouterr().out


def test_a_page_about_runs(run, capsys):
    folder = Folder(run)
    with folder.locked(), Record.open(folder.record) as record:
        record.note("note", "<script>alert(1)</script>")
    assert typed("report", run) == 0
    page = (run / "report.html").read_text()
    assert "maxplore/Chain-v0" in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "src=" not in page
    assert "@import" not in page
    assert all(place == "data:," for place in re.findall(r'(?:href="|url\()([^")]*)', page))  # nothing is fetched


def test_a_page_about_what_is_not_finite_and_about_two_of_one_name(run, tmp_path, capsys):
    (tmp_path / "vast.py").write_text("def vast(state, action, next_state):\n    return 3e38 * (action + 1.0)\n")
    assert typed("exploit", run, "--reward", f"{tmp_path / 'vast.py'}:vast", "--episodes", "1") in (0, 2)
    other = shutil.copytree(run, tmp_path / "other" / "run")
    assert typed("report", run, other, "--out", tmp_path / "page.html") == 0
    page = (tmp_path / "page.html").read_text()
    assert str(run) in page
    assert str(other) in page


def test_minari_in_the_usual_place(run, monkeypatch, capsys):
    monkeypatch.chdir(run.parent)
    assert typed("export", "run", "--to", "minari") == 0
    assert (run / "minari" / "maxplore" / "run-v0" / "data" / "main_data.hdf5").exists()


def test_data_as_arrays(run, tmp_path):
    assert typed("export", run, "--to", "npz", "--out", tmp_path / "d.npz") == 0
    with np.load(tmp_path / "d.npz", allow_pickle=False) as data:
        assert data["observations"].shape == (30,)
        assert data["actions"].dtype == np.int64


@pytest.mark.parametrize("words", [("--help",), ("explore", "--help"), ("exploit", "--help"), ()])
def test_help_shows_the_defaults_and_is_no_error(words, capsys):
    assert typed(*words) == 0
    assert "usage: maxplore" in capsys.readouterr().out


@pytest.mark.parametrize("columns", [1, 5, 20])
def test_help_ends_on_the_narrowest_terminal(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert typed("explore", "--help") == 0
    assert "--progress" in capsys.readouterr().out
    assert os.environ["COLUMNS"] == str(columns)


def test_list_names_everything(capsys):
    assert typed("list") == 0
    said = capsys.readouterr().out
    for name in ("maxplore/AntMaze-v0", "max", "bootstrapped-dqn", "smoke", "capture-flag", "chain-trap"):
        assert name in said


def test_help_imports_nothing_heavy():
    """The command's own imports are what `--help` waits for."""
    code = (
        "import sys, maxplore_cli; sys.exit(any(m in sys.modules for m in ('jax', 'gymnasium', 'numpy', 'maxplore')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def put(path, text):
    path.write_text(text)


def change_config(run, **changes):
    """On record, too, as if the run had begun so."""
    edit_config(run, **changes)
    sql(run, "UPDATE about SET value = ? WHERE name = 'config'", (run / "config.json").read_text())


def edit_config(run, **changes):
    plain = json.loads((run / "config.json").read_text())
    put(run / "config.json", json.dumps({**plain, **changes}))


def sql(run, text, *given):
    with sqlite3.connect(run / "run.sqlite") as connection:
        connection.execute(text, given)
    connection.close()


def hostile(path):
    """A checkpoint with a pickled object in it, which would run code if it were loaded."""
    np.savez(path, about=np.array([Path("x")], dtype=object), allow_pickle=True)


def newest(run):
    return Folder(run).all_checkpoints()[0][1]


def spoil_all(run):
    for _, file in Folder(run).all_checkpoints():
        file.write_bytes(b"PK\x03\x04 nothing")


def other_spaces(run):
    change_config(run, env_kwargs={"length": 6})


EXPLORE: dict[str, tuple[list[str], str]] = {
    "no command": (["wander"], "Expected one of"),
    "no environment": (["explore"], "Missing"),
    "unknown environment": (["explore", "maxplore/Chian-v0"], "maxplore/Chain-v0"),
    "environment of no form": (["explore", "a b c"], "cannot be made"),
    "module that is not there": (["explore", "nowhere_at_all:Env-v0"], "cannot be made"),
    "images": (["explore", "maxplore-test/Camera-v0"], "image"),
    "unknown method": (["explore", *CHAIN, "--method", "mini"], "method is 'mini'"),
    "unknown preset": (["explore", *CHAIN, "--preset", "slow"], "preset is 'slow'"),
    "unknown setting": (["explore", *CHAIN, "--membres", "3"], "members"),
    "setting of the wrong type": (["explore", *CHAIN, "--members", "many"], "members is 'many'"),
    "setting out of range": (["explore", *CHAIN, "--members", "0"], "members"),
    "setting given twice": (["explore", *CHAIN, "--members", "3", "--members", "4"], "twice"),
    "stray word": (["explore", *CHAIN, "quickly"], "quickly"),
    "negative steps": (["explore", *CHAIN, "--steps", "-1"], "steps is -1"),
    "steps in words": (["explore", *CHAIN, "--steps", "ten"], "--steps"),
    "steps with a fraction": (["explore", *CHAIN, "--steps", "1.5"], "--steps"),
    "negative seed": (["explore", *CHAIN, "--seed", "-4"], "seed is -4"),
    "seed too large": (["explore", *CHAIN, "--seed", str(2**40)], "seed is"),
    "no horizon": (["explore", *CHAIN, "--horizon", "0"], "horizon is 0"),
    "kwarg without value": (["explore", "maxplore/Chain-v0", "--env-kwarg", "length"], "name=value"),
    "kwarg of a kind that is not kept": (["explore", "maxplore/Chain-v0", "--env-kwarg", "length={1}"], "env-kwarg is"),
    "kwarg the environment does not know": (
        ["explore", "maxplore/Chain-v0", "--env-kwarg", "width=3"],
        "cannot be made",
    ),
    "kwarg the environment refuses": (["explore", "maxplore/Chain-v0", "--env-kwarg", "length=-3"], "cannot be made"),
    "utility above 1": (["explore", *CHAIN, "--until-utility", "2"], "until_utility is 2"),
    "utility without plans": (["explore", *RANDOM, "--until-utility", "0.5"], "promise nothing"),
    "no checkpoints": (["explore", *RANDOM, "--checkpoint-every", "0"], "checkpoint_every is 0"),
    "no time": (["explore", *RANDOM, "--step-limit", "0"], "step_limit is 0"),
    "unknown progress": (["explore", *RANDOM, "--progress", "loud"], "--progress"),
    "wandb that is not there": (["explore", *RANDOM, "--steps", "1", "--wandb", "x"], "maxplore[wandb]"),
    "a parameter that is no setting": (["explore", *CHAIN, "--self", "3"], "no setting 'self'"),
    "a space for a setting": (["explore", *CHAIN, "--observation-space", "3"], "no setting"),
    "a horizon beyond reason": (["explore", *CHAIN, "--horizon", str(10**12)], "at most"),
    "time without end": (["explore", *RANDOM, "--step-limit", "inf"], "step_limit is inf"),
    "a film of what cannot be drawn": (["explore", *RANDOM, "--video"], "render_mode"),
    "unknown figure": (["reproduce", "chian"], "chain"),
    "no seeds": (["reproduce", "chain", "--seeds", "0"], "seeds"),
}


@pytest.mark.parametrize("case", EXPLORE)
def test_what_cannot_be_begun_is_refused_in_one_line_and_leaves_nothing(case, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, named = EXPLORE[case]
    refused(words, named, capsys)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


DIRECTORY = {
    "out is a file": (lambda run: put(run / "x", ""), ["explore", *RANDOM, "--out", "{run}/x"], "x has"),
    "out is in use": (lambda run: None, ["explore", *RANDOM, "--out", "{run}"], "a run already"),
    "out has a file for a parent": (lambda run: put(run / "x", ""), ["explore", *RANDOM, "--out", "{run}/x/y"], ""),
    "no directory": (lambda run: None, ["resume", "{run}/nowhere"], "no directory"),
    "a file": (lambda run: None, ["resume", "{run}/config.json"], "no directory"),
    "an empty directory": (lambda run: (run / "new").mkdir(), ["resume", "{run}/new"], "config.json"),
    "an option too many": (lambda run: None, ["resume", "{run}", "--members", "3"], "--members"),
    "fewer steps than there are": (lambda run: None, ["resume", "{run}", "--steps", "3"], "at least 30"),
    "truncated config": (
        lambda run: put(run / "config.json", '{"format": 1, "env'),
        ["resume", "{run}"],
        "config.json",
    ),
    "config of another form": (lambda run: put(run / "config.json", "[1]"), ["resume", "{run}"], "config.json"),
    "config of a newer format": (lambda run: change_config(run, format=9), ["resume", "{run}"], "format 9"),
    "config of wrong types": (lambda run: change_config(run, seed="x"), ["resume", "{run}"], "seed is 'x'"),
    "config with more in it": (lambda run: change_config(run, extra=1), ["resume", "{run}"], "extra"),
    "spaces of no kind": (lambda run: change_config(run, action_space={"kind": "os"}), ["resume", "{run}"], "spaces"),
    "environment that is gone": (lambda run: change_config(run, env="Gone-v0"), ["resume", "{run}"], "Gone-v0"),
    "environment that has changed": (other_spaces, ["resume", "{run}"], "observation_space"),
    "no record": (lambda run: (run / "run.sqlite").unlink(), ["resume", "{run}"], "run.sqlite"),
    "a record of garbage": (lambda run: put(run / "run.sqlite", "garbage" * 999), ["resume", "{run}"], "run.sqlite"),
    "an empty record": (lambda run: put(run / "run.sqlite", ""), ["resume", "{run}"], "run.sqlite"),
    "a record of a newer format": (
        lambda run: sql(run, "UPDATE about SET value = '9' WHERE name = 'format'"),
        ["resume", "{run}"],
        "format 9",
    ),
    "a record with a table missing": (
        lambda run: sql(run, "DROP TABLE transitions"),
        ["resume", "{run}"],
        "transitions",
    ),
    "a config deep as a well": (
        lambda run: put(run / "config.json", "[" * 200_000),
        ["export", "{run}", "--to", "npz"],
        "config.json",
    ),
    "checkpoints never": (lambda run: change_config(run, checkpoint_every=0), ["resume", "{run}"], "checkpoint_every"),
    "spaces without end": (
        lambda run: change_config(
            run, observation_space={"kind": "Discrete", "n": 10**30, "start": 0, "dtype": "int64"}
        ),
        ["export", "{run}", "--to", "npz"],
        "spaces",
    ),
    "numbers that are words": (
        lambda run: sql(run, "UPDATE transitions SET action = 7 WHERE step = 3"),
        ["report", "{run}"],
        "damaged",
    ),
    "a task of no form": (
        lambda run: sql(run, "INSERT INTO tasks VALUES (0, 1, 't', 'x', 0, '{{', '[', '[', x'00')"),
        ["report", "{run}"],
        "damaged",
    ),
    "no checkpoint that can be read": (spoil_all, ["resume", "{run}"], "no checkpoint"),
    "load of no run": (lambda run: None, ["exploit", "{run}/nowhere", "--task", "chain"], "no directory"),
    "no task": (lambda run: None, ["exploit", "{run}"], "--task"),
    "a task and a reward": (lambda run: None, ["exploit", "{run}", "--task", "chain", "--reward", "a:b"], "either"),
    "unknown task": (lambda run: None, ["exploit", "{run}", "--task", "sleeping"], "sleeping"),
    "a task of other spaces": (lambda run: None, ["exploit", "{run}", "--task", "running"], "HalfCheetah"),
    "a reward of no form": (lambda run: None, ["exploit", "{run}", "--reward", "home"], "module:function"),
    "a reward's module missing": (lambda run: None, ["exploit", "{run}", "--reward", "nowhere:home"], "nowhere"),
    "a reward missing": (lambda run: None, ["exploit", "{run}", "--reward", "math:home"], "home"),
    "a reward that is no function": (lambda run: None, ["exploit", "{run}", "--reward", "math:pi"], "pi"),
    "a reward's file that leaves": (
        lambda run: put(run / "bad.py", "raise SystemExit(0)"),
        ["exploit", "{run}", "--reward", "{run}/bad.py:home"],
        "SystemExit",
    ),
    "no setting of a task": (lambda run: None, ["exploit", "{run}", "--task", "chain", "--self", "1"], "no setting"),
    "a reward's file broken": (
        lambda run: put(run / "bad.py", "1 / 0"),
        ["exploit", "{run}", "--reward", "{run}/bad.py:home"],
        "ZeroDivisionError",
    ),
    "a reward that cannot be traced": (
        lambda run: put(run / "bad.py", "def home(s, a, s2):\n    return 1.0 if s > 0 else 0.0\n"),
        ["exploit", "{run}", "--reward", "{run}/bad.py:home"],
        "reward",
    ),
    "a reward that leaves": (
        lambda run: put(run / "bad.py", "def home(s, a, s2):\n    raise SystemExit(0)\n"),
        ["exploit", "{run}", "--reward", "{run}/bad.py:home"],
        "SystemExit",
    ),
    "unknown setting of a task": (lambda run: None, ["exploit", "{run}", "--task", "chain", "--gamma", "1"], "gamma"),
    "negative episodes": (lambda run: None, ["exploit", "{run}", "--task", "chain", "--episodes", "-1"], "episodes"),
    "a film of nothing": (
        lambda run: None,
        ["exploit", "{run}", "--task", "chain", "--episodes", "0", "--video"],
        "video",
    ),
    "export to nobody": (lambda run: None, ["export", "{run}", "--to", "csv"], "--to"),
    "export without a kind": (lambda run: None, ["export", "{run}"], "Missing"),
    "export over a file": (
        lambda run: put(run / "data.npz", "mine"),
        ["export", "{run}", "--to", "npz"],
        "data.npz",
    ),
    "a data set of no name": (
        lambda run: None,
        ["export", "{run}", "--to", "minari", "--name", "x y", "--out", "{run}/m"],
        "x y",
    ),
    "a page about nothing": (lambda run: None, ["report"], ""),
    "a page about no run": (lambda run: None, ["report", "{run}/nowhere"], "no directory"),
    "a page in the place of a directory": (lambda run: None, ["report", "{run}", "--out", "{run}"], "directory"),
}


@pytest.mark.parametrize("case", DIRECTORY)
def test_what_cannot_be_read_is_refused_in_one_line_and_nothing_changes(case, run, capsys):
    spoil, words, named = DIRECTORY[case]
    spoil(run)
    before = contents(run)
    refused([word.format(run=run) for word in words], named, capsys)
    assert contents(run) == before


def contents(run):
    """Every file of a run that says anything, and what it says."""
    passing = ("run.sqlite-shm", "run.sqlite-wal", "lock")  # come and go with whoever looks at a record
    files = {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name not in passing}
    files = {path: data for path, data in files.items() if path.parent.name != "__pycache__"}  # Python's own
    return {path.relative_to(run): data for path, data in files.items()}


def refused(words, named, capsys, *more):
    status = typed(*words)
    said = capsys.readouterr()
    assert status not in (0, None), said
    assert "Traceback" not in said.err
    lines = said.err.splitlines()
    assert len(lines) == 1, said.err
    assert lines[0].startswith("maxplore: ")
    assert all(part in lines[0] for part in (named, *more)), lines[0]


def test_a_damaged_checkpoint_gives_way_to_the_one_before_and_is_named(run, capsys):
    damaged = newest(run)
    hostile(damaged)
    assert typed("resume", run, "--steps", "33") == 0
    said = capsys.readouterr().err
    assert damaged.name in said
    assert "the checkpoint before is taken" in said
    assert maxplore.load(run).steps == 33


def test_two_processes_cannot_write_one_run(run, capsys):
    with Folder(run).locked():
        refused(["resume", str(run), "--steps", "40"], "being written by process", capsys)
    assert typed("resume", run, "--steps", "31") == 0  # whoever is gone holds nothing
