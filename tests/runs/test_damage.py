"""A run that is not as it was written: it is found by all who open it, named in one line, and what is sound is kept."""

import json
import math
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import maxplore
from maxplore import InputError
from maxplore.runs import checkpoint
from maxplore.runs import run as running
from maxplore.runs.directory import Folder
from maxplore.runs.record import DamagedError, Record
from tests.runs.test_run import AWKWARD, FEW
from tests.test_cli import contents, edit_config, refused, sql, typed

STEPS = 45
SWAPPED = "UPDATE transitions SET step = CASE step WHEN 30 THEN -31 WHEN 31 THEN -30 END WHERE step IN (30, 31)"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of 45 random steps, in episodes of 20; its metrics are of steps 0."""
    path = tmp_path_factory.mktemp("damage") / "run"
    with running.new(path, AWKWARD, steps=STEPS, **FEW) as run:
        run.explore(STEPS)
        run.record.note("note", "all is well")
        run.record.solved("standing", seed=0, settings={}, report={}, returns=[1.0])
    return path


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def commands(run, out):
    (run / "home.py").write_text("def home(state, action, next_state):\n    return -(next_state**2).sum()\n")
    yield ["report", run, "--out", out / "page.html"]
    yield ["export", run, "--to", "npz", "--out", out / "data.npz"]
    yield ["resume", run, "--steps", "60"]
    yield ["exploit", run, "--reward", f"{run / 'home.py'}:home"]
    yield ["rehearse", run]


DAMAGE = {
    "a row in the middle deleted": (
        ["DELETE FROM transitions WHERE step = 30"],
        30,
        "row 30 of transitions is missing",
    ),
    "the first row deleted": (["DELETE FROM transitions WHERE step = 0"], 0, "row 0 of transitions is missing"),
    "the last rows deleted": (["DELETE FROM transitions WHERE step >= 41"], 41, "row 41 of transitions is missing"),
    "all rows deleted": (["DELETE FROM transitions", "DELETE FROM episodes"], 0, "row 0 of transitions is missing"),
    "two rows swapped": ([SWAPPED, "UPDATE transitions SET step = -step WHERE step < 0"], 30, "row 30 of transitions"),
    "a row repeated in the place of the next": (
        [
            "DELETE FROM transitions WHERE step = 31",
            "INSERT INTO transitions SELECT 31, episode, action, next_observation, 0, 0, 0, digest FROM transitions "
            "WHERE step = 30",
        ],
        31,
        "row 31 of transitions",
    ),
    "a row before the first": (
        [
            "INSERT INTO transitions SELECT -1, episode, action, next_observation, 0, 0, 0, digest FROM transitions "
            "WHERE step = 0"
        ],
        0,
        "row -1 of transitions is too many",
    ),
    "a row after the last": (
        [
            "INSERT INTO transitions SELECT 45, episode, action, next_observation, 0, 0, 0, digest FROM transitions "
            "WHERE step = 44"
        ],
        45,
        "row 45 of transitions was changed",
    ),
    "rows moved up where one was deleted": (
        ["DELETE FROM transitions WHERE step = 7", "UPDATE transitions SET step = step - 1 WHERE step > 7"],
        7,
        "row 7 of transitions was changed",
    ),
    "another state": (["UPDATE transitions SET next_observation = zeroblob(8) WHERE step = 30"], 30, "row 30"),
    "another reward": (["UPDATE transitions SET reward = 1e-9 WHERE step = 12"], 12, "row 12"),
    "words for an action": (["UPDATE transitions SET action = 'left' WHERE step = 12"], 12, "row 12"),
    "an episode deleted": (["DELETE FROM episodes WHERE episode = 1"], 20, "row 20 of transitions"),
    "an episode more": (
        ["INSERT INTO episodes SELECT 3, 30, seed, observation, 0 FROM episodes WHERE episode = 0"],
        30,
        "30",
    ),
    "an episode of no step": (
        ["INSERT INTO episodes SELECT 3, 45, seed, observation, 0 FROM episodes WHERE episode = 0"],
        45,
        "an episode has no row",
    ),
    "an episode of another seed": (["UPDATE episodes SET seed = seed + 1 WHERE episode = 2"], 40, "row 40"),
    "an episode that begins elsewhere": (
        ["UPDATE episodes SET observation = zeroblob(8) WHERE episode = 2"],
        40,
        "row 40",
    ),
    "an episode told of": (["UPDATE episodes SET told = 1 WHERE episode = 1"], 20, "row 20"),
    "a metric deleted": (["DELETE FROM metrics WHERE name = 'coverage'"], 45, "row 0 of metrics is missing"),
    "a metric changed": (["UPDATE metrics SET value = value + 1"], 45, "row 0 of metrics was changed"),
    "a metric of no step": (
        ["INSERT INTO metrics VALUES (1, 99, 'coverage', 1.0, x'00')"],
        45,
        "row 1 of metrics was changed",
    ),
    "an event deleted": (["DELETE FROM events WHERE kind = 'note'"], 45, "row 0 of events is missing"),
    "an event changed": (["UPDATE events SET text = 'all is lost'"], 45, "row 0 of events was changed"),
    "an event that is no text": (["UPDATE events SET text = CAST(x'ff' AS TEXT)"], 45, "row 0 of events was changed"),
    "a word for the number of rows": (
        ["UPDATE sqlite_sequence SET seq = 'x' WHERE name = 'transitions'"],
        45,
        "row 45 of transitions is missing",
    ),
    "a table of another form": (
        ["DROP TABLE tasks", "CREATE TABLE tasks (digest BLOB)", "INSERT INTO tasks VALUES (x'00')"],
        45,
        "row 0 of tasks is missing",
    ),
    "a task changed": (["UPDATE tasks SET returns = '[2.0]'"], 45, "row 0 of tasks was changed"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_found_by_all_named_and_what_is_sound_is_exported(case, run, finished, tmp_path, capsys):
    changes, sound, named = DAMAGE[case]
    for change in changes:
        sql(run, change)
    (tmp_path / "out").mkdir()
    given = [*commands(run, tmp_path / "out")]
    before = contents(run)
    for words in given:
        refused(
            words, "run.sqlite is damaged", capsys, named, f"its first {sound} steps are" if sound else "no step is"
        )
    with pytest.raises(DamagedError, match=r"run\.sqlite is damaged") as error:
        maxplore.load(run)
    assert error.value.steps == sound
    assert contents(run) == before
    left = [path.name for path in (tmp_path / "out").iterdir()]
    assert left == (["data.npz"] if sound else [])
    if not sound:
        return
    assert typed("export", finished, "--to", "npz", "--out", tmp_path / "whole.npz") == 0
    with np.load(tmp_path / "out" / "data.npz") as own, np.load(tmp_path / "whole.npz") as whole:
        assert own.files == whole.files
        for name in own.files:
            np.testing.assert_array_equal(own[name], whole[name][:sound], strict=True)


@pytest.mark.parametrize(
    "statements",
    [
        "CREATE TRIGGER strange AFTER INSERT ON transitions BEGIN DELETE FROM transitions WHERE step = 3; END",
        """ALTER TABLE transitions RENAME TO rest; CREATE VIEW transitions AS WITH RECURSIVE strange(x) AS
        (VALUES (0) UNION ALL SELECT x + 1 FROM strange) SELECT rest.* FROM strange, rest""",
    ],
    ids=["trigger", "a view without an end"],
)
def test_a_record_with_a_program_in_it_is_refused_at_once(statements, run, tmp_path, capsys):
    with closing(sqlite3.connect(run / "run.sqlite")) as connection:
        connection.executescript(statements)
    for words in commands(run, tmp_path):
        refused(words, "run.sqlite has", capsys, "a program that changes or makes up rows")


def test_what_is_sound_goes_to_minari_too_and_over_nothing(run, tmp_path, capsys):
    sql(run, "DELETE FROM transitions WHERE step = 30")
    minari = pytest.importorskip("minari")
    words = ["export", run, "--to", "minari", "--out", tmp_path / "shelf", "--name", "sound-v0"]
    refused(words, "its first 30 steps are sound", capsys, "sound-v0 is written to")
    pages = minari.dataset.minari_dataset.MinariDataset(tmp_path / "shelf" / "sound-v0" / "data")
    assert pages.total_steps == 30
    (tmp_path / "mine.npz").write_text("mine")
    refused(["export", run, "--to", "npz", "--out", tmp_path / "mine.npz"], "exists already", capsys)
    assert (tmp_path / "mine.npz").read_text() == "mine"


def test_a_file_that_is_half_gone_keeps_what_can_be_read(run, tmp_path, capsys):
    """Of the table of transitions, whose rows are in the file in their order, all pages from some on are zeros."""
    with sqlite3.connect(run / "run.sqlite") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    connection.close()
    data = (run / "run.sqlite").read_bytes()
    with Record.read(run / "run.sqlite") as record:
        last = list(record.transitions())[-1]
    page = data.rindex(last.next_observation) // size
    (run / "run.sqlite").write_bytes(data[: page * size] + bytes(size) + data[(page + 1) * size :])
    refused(["report", run], "run.sqlite is damaged", capsys)


def test_a_row_that_goes_while_the_run_goes_on_ends_it(tmp_path):
    with running.new(tmp_path / "r", AWKWARD, **FEW) as run:
        run.explore(10)
        sql(tmp_path / "r", "DELETE FROM transitions WHERE step = 9")
        with pytest.raises(DamagedError, match=r"row 9 of transitions is missing.*its first 9 steps are sound"):
            run.explore(20)


def test_numbers_that_sqlite_keeps_otherwise_are_no_damage(tmp_path):
    with running.new(tmp_path / "r", AWKWARD, **FEW) as run:
        run.explore(1)
        last = next(run.record.transitions())
        for number, reward in enumerate((math.nan, -0.0, math.inf, 1.0, 1e-320, 0.1), 1):
            run.record.write(last._replace(step=number, reward=reward), metrics={"a": -0.0, "é": reward})
        run.record.note("é\0", "\N{SNOWMAN} \u0378")
    with Record.read(tmp_path / "r" / "run.sqlite") as record:
        assert record.steps == 7


EDITS = {
    "seed": ({"seed": 6}, "seed is 6, expected 5"),
    "method": ({"method": "max"}, "method is 'max', expected 'random'"),
    "setting": ({"settings": {"warm_up": 3}}, "settings is {'warm_up': 3}, expected {}"),
    "environment": ({"env": "maxplore/Chain-v0"}, "env is 'maxplore/Chain-v0', expected"),
}


@pytest.mark.parametrize("case", EDITS)
def test_an_edited_config_is_found_by_all(case, run, tmp_path, capsys):
    edit_config(run, **EDITS[case][0])
    given = [*commands(run, tmp_path)]
    before = contents(run)
    for words in given:
        refused(words, "config.json was changed", capsys, EDITS[case][1], "put that back")
    with pytest.raises(InputError, match=r"config\.json was changed"):
        maxplore.load(run)
    assert contents(run) == before


def test_what_decides_about_no_number_may_be_edited(run):
    edit_config(run, step_limit=9.5)
    with running.resumed(run) as again:
        assert again.config.step_limit == 9.5
        assert again.explore(50)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A run with models: checkpoints at steps 0, 20 and 40."""
    path = tmp_path_factory.mktemp("learned") / "run"
    few = {"members": 2, "plan_every": 20, "warm_up": 10}
    with running.new(path, AWKWARD, preset="smoke", checkpoint_every=20, steps=40, settings=few) as run:
        run.explore(40)
    return path


def rewritten(file, change, *, knowing):
    """Put other arrays into a checkpoint, with or without a digest that fits them."""
    with np.load(file) as old:
        arrays = {name: np.array(old[name]) for name in old.files}
    change(arrays)
    if knowing:
        arrays["digest"] = checkpoint.digest(arrays)
    np.savez(file, allow_pickle=False, **arrays)


def without_numbers(arrays):
    for name, own in arrays.items():
        if name.startswith("ensemble") and own.dtype.kind == "f":
            own.fill(np.nan)


def other_numbers(arrays):
    name = next(name for name, own in arrays.items() if name.startswith("ensemble") and own.dtype.kind == "f")
    arrays[name] = arrays[name] + np.float32(1e-3)


@pytest.mark.parametrize(
    ("change", "knowing", "named"),
    [
        (without_numbers, False, "digest"),
        (without_numbers, True, "has NaN in it"),
        (other_numbers, False, "digest"),
    ],
)
def test_a_model_that_was_changed_gives_way_to_the_one_before(change, knowing, named, learned, tmp_path, capsys):
    path = shutil.copytree(learned, tmp_path / "run")
    rewritten(Folder(path).checkpoint(40), change, knowing=knowing)
    with pytest.warns(UserWarning, match=f"0000000040.npz .*{named}.*the checkpoint before is taken"):
        explorer = maxplore.load(path)
    states, actions = np.zeros((3, 2)), np.zeros((3, 1))
    np.testing.assert_array_equal(
        explorer.utility(states, actions), maxplore.load(learned).utility(states, actions), "as replayed from D"
    )
    for step in (0, 20):
        rewritten(Folder(path).checkpoint(step), change, knowing=knowing)
    refused(["resume", path], "no checkpoint that can be read", capsys, "its 40 steps are sound, maxplore export")


@pytest.mark.parametrize("other", [{"seed": 8}, {"env_kwargs": {"at": 7}}, {"horizon": 9}])
def test_a_checkpoint_of_another_run_is_not_taken(other, finished, run, tmp_path):
    with running.new(tmp_path / "other", AWKWARD, steps=STEPS, **FEW | other) as foreign:
        foreign.explore(STEPS)
    shutil.copy(Folder(tmp_path / "other").checkpoint(STEPS), Folder(run).checkpoint(STEPS))
    with pytest.warns(UserWarning, match=r"0000000045\.npz .*it is of another run, or of other steps"):
        assert maxplore.load(run).steps == STEPS


def test_a_byte_that_flipped_in_a_checkpoint_is_found_or_changes_nothing(learned, tmp_path):
    """Any of the file's: what the archive only notes (a date) may be anything."""
    path = tmp_path / "flipped.npz"
    data = Folder(learned).checkpoint(40).read_bytes()
    whole = checkpoint.Checkpoint(Folder(learned).checkpoint(40))
    found = 0
    for at in np.random.default_rng(0).integers(len(data), size=100):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << int(at) % 8]) + data[at + 1 :])
        try:
            own = checkpoint.Checkpoint(path)
        except InputError as error:
            found += "damaged" in str(error) or "another version" in str(error)
        else:
            assert own.about == whole.about
            assert own._arrays.keys() == whole._arrays.keys()
            assert all(own._arrays[name].tobytes() == whole._arrays[name].tobytes() for name in own._arrays)
    assert found > 60


def test_what_an_earlier_version_has_written_is_refused_in_one_line(run, capsys):
    sql(run, "UPDATE about SET value = '1' WHERE name = 'format'")
    refused(["resume", run], "has format 1, expected 2: it is from another version of maxplore", capsys)


def test_the_record_has_the_whole_config(run):
    with Record.read(run / "run.sqlite") as record:
        assert json.loads(record.config) == json.loads((run / "config.json").read_text())
