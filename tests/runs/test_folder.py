"""The folder of a run: one process writes there, nothing in it leads out of it, and who loses it says so."""

import os
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import maxplore
from maxplore import InputError
from maxplore.exploit import TaskPolicy
from maxplore.explorer import SAVED, Explorer
from maxplore.runs import run as running
from maxplore.runs.directory import DIRECTORIES, Folder, LostError
from maxplore.runs.record import Record
from maxplore.sweep import run_all
from tests.runs.test_live import pushing
from tests.runs.test_run import AWKWARD, FEW, Awkward, whole
from tests.test_cli import RANDOM, contents, refused, typed


class Eventful(Awkward):
    """A walk in whose sixth step something happens that is not the environment's matter."""

    def step(self, action):
        told = super().step(action)
        EVENTS.get(self.steps, int)()
        return told


EVENTS: dict[int, Callable[[], Any]] = {}
"""What happens, by the step in which it does."""


gym.register("maxplore-test/Eventful-v0", f"{__name__}:Eventful")
EVENTFUL = ["maxplore-test/Eventful-v0", "--method", "random", "--checkpoint-every", "4", "--progress", "quiet"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of 30 random steps on a chain of 5."""
    path = tmp_path_factory.mktemp("folder") / "run"
    assert typed("explore", *RANDOM, "--steps", "30", "--checkpoint-every", "10", "--out", path) == 0
    return path


@pytest.fixture
def run(finished, tmp_path):
    """The same, to be spoiled."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def steps_of(path):
    with Record.read(path / "run.sqlite") as record:
        return record.steps


# Two that begin ----------------------------------------------------------------------------------

POINTS: dict[str, tuple[Any, str]] = {
    "before the environment is made": (running, "made"),
    "before the lock": (Folder, "locked"),
    "before what is left is cleared": (Folder, "clear_unborn"),
    "before the record": (Record, "create"),
    "before the checkpoint": (Explorer, "save_file"),
    "before the config": (Folder, "write_config"),
}


@pytest.mark.parametrize("point", POINTS)
def test_of_two_that_begin_in_one_folder_one_goes_on_and_the_other_says_so(point, tmp_path, monkeypatch, capsys):
    """The second comes when the first is at this point."""
    (place, name), path = POINTS[point], tmp_path / "r"
    whole, statuses = getattr(place, name), list[Any]()

    def between(*given, **named):
        monkeypatch.setattr(place, name, whole)
        statuses.append(typed("explore", *RANDOM, "--steps", "9", "--out", path))
        return whole(*given, **named)

    monkeypatch.setattr(place, name, between)
    statuses.append(typed("explore", *RANDOM, "--steps", "7", "--out", path))
    assert statuses == ([0, 2] if name in ("made", "locked") else [2, 0])
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert ("a run already" if statuses[1] else "being written by process") in said[0]
    assert steps_of(path) == (9 if statuses[1] else 7)
    assert typed("resume", path, "--steps", "12") == 0
    assert steps_of(path) == 12


def test_who_does_not_have_the_lock_touches_nothing(run, capsys):
    (run / "config.json").unlink()  # as long as it is not there, another may be about to begin
    for part in ("run.sqlite", "figures", "tensorboard", "checkpoints"):
        shutil.rmtree(run / part, ignore_errors=True)
    with Folder(run).locked():
        (run / "run.sqlite").write_text("half")
        before = {file: (file.lstat().st_ino, file.read_bytes()) for file in run.iterdir()}
        refused(["explore", *RANDOM, "--out", str(run)], "being written by process", capsys)
        assert {file: (file.lstat().st_ino, file.read_bytes()) for file in run.iterdir()} == before


class Killed(BaseException):
    """No more is done, and nothing is tidied up."""


@pytest.mark.parametrize("name", ["create", "save_file", "write_config"])
@pytest.mark.parametrize("after", [False, True])
def test_a_run_that_died_before_it_began_is_in_nobodys_way(name, after, tmp_path, monkeypatch):
    place = next(place for place, own in POINTS.values() if own == name)
    original = getattr(place, name)

    def dies(*given, **named):
        if after and name != "write_config":
            original(*given, **named)
        if name == "write_config":
            (tmp_path / "r" / ".config.json.99").write_text("{")
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(place, name, dies)
        with pytest.raises(Killed):
            whole(tmp_path / "r", 5)
    whole(tmp_path / "r", 3)
    assert steps_of(tmp_path / "r") == 3
    assert not list((tmp_path / "r").glob(".*"))


@pytest.mark.parametrize("few", [False, True])
def test_steps_without_a_config_are_left_alone(few, tmp_path, capsys):
    path = tmp_path / "r"
    with running.new(path, AWKWARD, **FEW) as run:
        run.explore(5)
        if few:
            run.folder.checkpoint(5).unlink()
    (path / "config.json").unlink()
    before = contents(path)
    refused(["explore", *RANDOM, "--out", str(path)], "5 steps" if few else "something else", capsys)
    assert contents(path) == before


def test_a_directory_that_is_called_checkpoints_may_be_somebodys(tmp_path, capsys):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "mine.pt").write_text("precious")
    refused(["explore", *RANDOM, "--out", str(tmp_path)], "something else in it", capsys)
    assert (tmp_path / "checkpoints" / "mine.pt").read_text() == "precious"


# A folder that is lost ---------------------------------------------------------------------------


def replace(path):
    """Another folder in its place."""
    path.rename(path.with_name("moved"))
    path.mkdir()


def copy(file):
    """The same file, and yet another one."""
    shutil.copy(file, file.with_name("copy"))
    file.with_name("copy").replace(file)


MOVED, KEPT = "all 6 steps are safe there: maxplore resume", "the 6 steps of the run are on record"
GONE = "run.sqlite was deleted, moved or replaced"
LOSSES: dict[str, tuple[Callable[[Path], Any], str, str | None]] = {
    "moved": (lambda path: path.rename(path.with_name("moved")), MOVED, "moved/run.sqlite"),
    "replaced": (replace, MOVED, "moved/run.sqlite"),
    "deleted": (shutil.rmtree, "none of its 6 steps is left", None),
    "record deleted": (lambda path: (path / "run.sqlite").unlink(), GONE, None),
    "record moved": (lambda path: (path / "run.sqlite").rename(path / "mine"), "kept only if it was moved", "run/mine"),
    "record replaced": (lambda path: copy(path / "run.sqlite"), GONE, None),
    "log deleted": (lambda path: (path / "run.sqlite-wal").unlink(), KEPT, "run/run.sqlite"),
    "lock deleted": (lambda path: (path / "lock").unlink(), KEPT, "run/run.sqlite"),
}


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_run_that_lost_its_folder_ends_in_one_line_that_tells_where_the_steps_are(
    loss, last, tmp_path, monkeypatch, capsys
):
    lose, named, record = LOSSES[loss]
    path = tmp_path / "run"
    monkeypatch.setitem(EVENTS, 6, lambda: lose(path))
    words = ["explore", *EVENTFUL, "--steps", "6" if last else "40", "--out", str(path)]
    assert typed(*words) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert named in said[0]
    if loss in ("moved", "deleted"):
        assert not path.exists(), "nothing is written where it was"
    if loss == "replaced":
        assert not list(path.iterdir())
    if record is not None:
        with Record.read(tmp_path / record) as kept:
            assert kept.steps == 6
    if loss == "moved":
        assert said[0].endswith(f"maxplore resume {tmp_path / 'moved'}")
        monkeypatch.delitem(EVENTS, 6)
        assert typed("resume", tmp_path / "moved", "--steps", "9") == 0
        assert steps_of(tmp_path / "moved") == 9


def test_no_checkpoint_is_written_where_the_folder_was(tmp_path, monkeypatch, capsys):
    """It is moved after a step is on record, and before the checkpoint is."""
    path = tmp_path / "run"

    def survey(self):
        path.rename(tmp_path / "moved")
        return {}

    monkeypatch.setattr(Explorer, "survey", survey)
    refused(["explore", *RANDOM, "--checkpoint-every", "5", "--out", str(path)], "all 5 steps are safe there", capsys)
    assert not path.exists()


def test_an_episode_of_a_policy_notices_that_the_folder_is_gone(tmp_path, monkeypatch):
    path = tmp_path / "run"
    monkeypatch.setitem(EVENTS, 6, lambda: path.rename(tmp_path / "moved"))
    with running.new(path, EVENTFUL[0], **FEW) as run:
        run.explore(3)
        with pytest.raises(LostError, match="all 9 steps are safe there"):
            run.live(pushing(run), seed=7)
    assert steps_of(tmp_path / "moved") == 9


@pytest.mark.parametrize("another", [False, True])
def test_what_came_of_a_task_is_not_kept_in_another_run(another, run, monkeypatch, capsys):
    def go(self, *given, **named):
        run.rename(run.with_name("moved"))
        if another:
            shutil.copytree(run.with_name("moved"), run)
        return 1.0

    monkeypatch.setattr(TaskPolicy, "run", go)
    assert typed("exploit", run, "--task", "chain", "--episodes", "1") == 2
    assert "all 30 steps are safe there" in capsys.readouterr().err
    assert run.exists() == another
    if another:
        with Record.read(run / "run.sqlite") as record:
            assert not list(record.tasks())


def test_an_environment_may_change_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(EVENTS, 6, lambda: os.chdir(tmp_path / "elsewhere"))
    assert typed("explore", *EVENTFUL, "--steps", "10", "--out", "run") == 0
    assert not list((tmp_path / "elsewhere").iterdir())
    assert Folder(tmp_path / "run").all_checkpoints()[0][0] == 10
    assert (tmp_path / "run" / "figures" / "learning.png").exists()


# Nothing leads out of a folder -------------------------------------------------------------------


@pytest.mark.parametrize("name", DIRECTORIES)
def test_a_folder_in_a_run_that_is_a_link_is_not_followed(name, run, tmp_path, capsys):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for mine in ("0000000010.npz", "0000000099.npz", ".0000000010.npz.7", "learning.png"):
        (elsewhere / mine).write_text("precious")
    shutil.rmtree(run / name, ignore_errors=True)
    (run / name).symlink_to(elsewhere)
    before = contents(run), contents(elsewhere)
    for words in (["resume", run, "--steps", "45"], ["report", run], ["exploit", run, "--task", "chain"]):
        refused(words, f"{name} is a symbolic link, expected a directory", capsys)
    with pytest.raises(InputError, match="is a symbolic link"):
        maxplore.load(run)
    assert (contents(run), contents(elsewhere)) == before


def endless(path):
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [os.mkfifo, endless], ids=["pipe", "endless"])
@pytest.mark.parametrize("name", ["config.json", "run.sqlite", "run.sqlite-wal", "checkpoints/0000000030.npz"])
def test_what_is_no_plain_file_is_refused_at_once(name, make, run, capsys):
    (run / name).unlink(missing_ok=True)
    make(run / name)
    for words in (["resume", str(run)], ["report", str(run)], ["export", str(run), "--to", "npz"]):
        refused(words, f"{name} is a ", capsys)
    with pytest.raises(InputError, match=f"{name} is a .*, expected a file"):
        maxplore.load(run)


@pytest.mark.parametrize("make", [os.mkfifo, endless], ids=["pipe", "endless"])
def test_a_saved_explorer_that_is_no_plain_file_is_refused_at_once(make, tmp_path):
    make(tmp_path / SAVED)
    with pytest.raises(InputError, match="expected a file"):
        maxplore.load(tmp_path)
    env = gym.make(AWKWARD)
    with pytest.raises(InputError, match="expected a file"):
        Explorer(env.observation_space, env.action_space, method="random").save(tmp_path)
    assert not (tmp_path / SAVED).is_file()


def test_a_run_is_good_where_a_link_of_ones_own_leads(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "disk")
    path = tmp_path / "runs" / "run"
    assert typed("explore", *RANDOM, "--steps", "5", "--out", path) == 0
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "run")
    for words in (["resume", "--steps", "8"], ["report"], ["export", "--to", "npz"]):
        assert typed(words[0], tmp_path / "link", *words[1:]) == 0
    assert maxplore.load(path).steps == 8
    assert (tmp_path / "disk" / "run" / "report.html").is_file()


def test_a_draft_is_never_written_through_a_link(run, tmp_path):
    (tmp_path / "mine").write_text("precious")
    (run / f".report.html.{os.getpid()}").symlink_to(tmp_path / "mine")
    assert typed("report", run) == 0
    assert (tmp_path / "mine").read_text() == "precious"
    assert (run / "report.html").is_file()


def test_the_journal_of_a_sweep_is_a_plain_file(tmp_path):
    (tmp_path / "trials").mkdir()
    os.mkfifo(tmp_path / "trials" / "journal.jsonl")
    with pytest.raises(InputError, match=r"journal\.jsonl is a pipe"):
        run_all({}, tmp_path, say=print)


# Where to ----------------------------------------------------------------------------------------

OWN = {
    "config": ["report", "{run}", "--out", "{run}/config.json"],
    "config, otherwise spelled": ["report", "{run}", "--out", "{run}/figures/../Config.JSON"],
    "config, by a link": ["report", "{run}", "--out", "{link}/config.json"],
    "config of another run": ["report", "{run}", "--out", "{other}/config.json"],
    "record": ["report", "{run}", "--out", "{run}/run.sqlite"],
    "log": ["report", "{run}", "--out", "{run}/run.sqlite-wal"],
    "lock": ["report", "{run}", "--out", "{run}/lock"],
    "checkpoint": ["report", "{run}", "--out", "{run}/checkpoints/0000000030.npz"],
    "another file among checkpoints": ["export", "{run}", "--to", "npz", "--out", "{run}/checkpoints/0000000040.npz"],
    "saved explorer": ["export", "{run}", "--to", "npz", "--out", "{run}/explorer.npz"],
    "data sets": ["export", "{run}", "--to", "minari", "--out", "{run}/checkpoints"],
    "data set": ["export", "{run}", "--to", "minari", "--out", "{run}", "--name", "checkpoints/x-v0"],
    "run": ["explore", *RANDOM, "--out", "{run}/landscapes"],
    "figure": ["reproduce", "chain", "--preset", "smoke", "--out", "{run}/videos"],
    "sweep": ["sweep", "half-cheetah", "--preset", "smoke", "--out", "{run}/videos/x"],
}


@pytest.mark.parametrize("case", OWN)
def test_no_command_writes_over_a_runs_own_files(case, run, tmp_path, capsys):
    shutil.copytree(run, tmp_path / "other")
    (tmp_path / "link").symlink_to(run)
    before = contents(tmp_path)
    named = {"run": run, "link": tmp_path / "link", "other": tmp_path / "other"}
    refused([word.format(**named) for word in OWN[case]], "a part of the run in", capsys)
    assert contents(tmp_path) == before


def listening(path):
    with socket.socket(socket.AF_UNIX) as own:
        own.bind(str(path))


def device(path):
    """What /dev/null is; never that one itself, which a mistake would replace."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root may make a device")


KINDS: dict[str, Callable[[Path], Any]] = {
    "a device": device,
    "a pipe": os.mkfifo,
    "a socket": listening,
    "a directory": Path.mkdir,
    "a symbolic link": lambda path: path.symlink_to(path.with_name("mine")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_out_that_is_no_plain_file_is_left_alone(kind, run, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    (tmp_path / "mine").write_text("precious")
    KINDS[kind](Path("out"))
    before = Path("out").lstat()
    refused(["report", str(run), "--out", "out"], f"out is {kind}, expected a file", capsys)
    refused(["export", str(run), "--to", "npz", "--out", "out"], "out exists already", capsys)
    if kind != "a directory":
        refused(["explore", *RANDOM, "--out", "out"], "out ", capsys)
    assert Path("out").lstat() == before
    assert (tmp_path / "mine").read_text() == "precious"
