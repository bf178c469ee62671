"""The installed command in a process of its own: signals, pipes, exits and terminals as they are."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import maxplore_cli
from maxplore.runs.record import Record

CHAIN = ["explore", "maxplore/Chain-v0", "--method", "random", "--steps", "300"]

SIGNALLED = """
import signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                pass  # as some imports do

sys.meta_path.insert(0, Finder())
from maxplore_start import main
sys.exit(main())
"""

WORLD = """
import signal
from gymnasium.envs.classic_control import CartPoleEnv

class Deaf(CartPoleEnv):
    def __init__(self):
        super().__init__()
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            pass

class Stopped(CartPoleEnv):
    def step(self, action):
        signal.raise_signal(signal.SIGINT)
        return super().step(action)

import gymnasium as gym
gym.register("Deaf-v0", Deaf)
gym.register("Stopped-v0", Stopped)

def deaf(state, action, next_state):
    Deaf()
    return 1.0
"""


def ran(program, *words, **own):
    """What came of it."""
    return subprocess.run(
        [*program, *map(os.fspath, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, **own},
    )


COMMAND = [Path(sys.executable).parent / "maxplore"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A module with an environment, and a reward, that swallow a Ctrl-C; and a run."""
    path = tmp_path_factory.mktemp("command")
    (path / "world.py").write_text(WORLD)
    assert maxplore_cli.main([*CHAIN[:-1], "30", "--out", str(path / "run")]) == 0
    return path


@pytest.mark.parametrize("module", ["tyro", "numpy.linalg", "maxplore.commands"])
def test_ctrl_c_inside_any_import_ends_the_command(module, tmp_path):
    code = SIGNALLED.format(module=module)
    ended = ran([sys.executable, "-c", code], *CHAIN, "--out", tmp_path / "run")
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")
    assert not (tmp_path / "run").exists()


def test_ctrl_c_that_the_users_code_swallows_is_obeyed_all_the_same(world, tmp_path):
    ended = ran(COMMAND, "explore", "world:Deaf-v0", *CHAIN[2:], "--out", tmp_path / "run", PYTHONPATH=str(world))
    assert ended.returncode == 130
    assert f"maxplore resume {tmp_path / 'run'}" in ended.stderr
    with Record.read(tmp_path / "run" / "run.sqlite") as record:
        assert record.steps == 0
    assert ran(COMMAND, "exploit", world / "run", "--reward", f"{world / 'world.py'}:deaf").returncode == 130


def unread(*words):
    """The same, with a pipe for its output that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return subprocess.run(
            [*COMMAND, *map(str, words)], stdout=writing, stderr=subprocess.PIPE, text=True, check=False, timeout=300
        )
    finally:
        os.close(writing)


def test_a_run_whose_output_nobody_reads_ends_in_good_order(tmp_path):
    ended = unread(*CHAIN, "--progress", "json", "--out", tmp_path / "run")
    assert ended.returncode == 141
    (line,) = ended.stderr.splitlines()
    assert f"maxplore resume {tmp_path / 'run'}" in line
    assert maxplore_cli.main(["resume", str(tmp_path / "run")]) == 0


@pytest.mark.parametrize("words", [["list"], ["explore", "--help"]])
def test_other_commands_end_without_a_word(words):
    ended = unread(*words)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_ctrl_c_is_heard_where_nobody_reads_that_it_was(world, tmp_path):
    """As in `maxplore explore ... 2>&1 | tee log`, where `tee` ends by the same Ctrl-C."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [*COMMAND, "explore", "world:Stopped-v0", *CHAIN[2:], "--out", str(tmp_path / "run")]
    own = {**os.environ, "PYTHONPATH": str(world)}
    try:
        ended = subprocess.run(command, stdout=writing, stderr=writing, env=own, check=False, timeout=300)
    finally:
        os.close(writing)
    assert ended.returncode == 130
    with Record.read(tmp_path / "run" / "run.sqlite") as record:
        assert record.steps == 1
        assert not [event for event in record.events() if event.kind == "misbehaved"]
    assert (tmp_path / "run" / "checkpoints" / "0000000001.npz").exists()


def test_a_command_does_without_streams_that_are_closed(tmp_path):
    script = '"$@" <&- >&- 2>&-'
    for words, status in ((["list"], 0), (CHAIN, 0), (["report", "nowhere"], 2)):
        given = [*words, "--out", str(tmp_path / "run")] if words is CHAIN else words
        ended = subprocess.run(["sh", "-c", script, "sh", *COMMAND, *given], check=False, timeout=300)
        assert ended.returncode == status


def test_a_backend_of_matplotlib_that_does_not_exist_is_named_in_one_line():
    ended = ran(COMMAND, "list", MPLBACKEND="nonsense")
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert "nonsense" in line


def test_a_folder_may_have_any_name(world, tmp_path):
    """Also where neither the terminal nor the system has the letters."""
    run = shutil.copytree(world / "run", tmp_path / "r\u00e9\udcff")
    ended = ran(COMMAND, "report", os.fsencode(run), LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "<!doctype html>" in (run / "report.html").read_text(encoding="utf-8")
