"""What was recorded comes out for other tools as it went in, to the last bit."""

import os
import sys
from types import SimpleNamespace

import gymnasium as gym
import minari
import minari.namespace
import numpy as np
import pytest
from gymnasium import spaces

from maxplore import InputError
from maxplore.runs import export
from maxplore.runs.coded import encoded
from maxplore.runs.record import Episode, Record, Step

NESTED = spaces.Dict(
    {
        "arm": spaces.Tuple((spaces.Discrete(5, start=-2), spaces.MultiBinary(3))),
        "camera": spaces.Box(0, 255, (32, 33, 3), np.uint8),
        "joints": spaces.Box(-1, 1, (2, 2), np.float64),
    }
)
SPACES = {
    "box": (spaces.Box(-np.inf, np.inf, (3,), np.float32), spaces.Box(-1, 1, (2,), np.float32)),
    "numbered": (spaces.Discrete(7), spaces.Discrete(2)),
    "nested": (NESTED, spaces.Tuple((spaces.MultiDiscrete([3, 4]), spaces.Box(0, 1, (1,), np.float64)))),
}
LENGTHS = 3, 1, 4
"""Of episodes: the first terminates, the second is truncated, the third goes on."""


def record_of(path, observation_space, action_space):
    """A record of random values, open, and what is in it: for each episode its observations, actions and rewards."""
    observation_space.seed(1)
    action_space.seed(2)
    record, told, count = Record.create(path), [], 0
    for number, length in enumerate(LENGTHS):
        seen = [observation_space.sample() for _ in range(length + 1)]
        acted = [action_space.sample() for _ in range(length)]
        rewards = [0.1 * (count + k) for k in range(length)]
        begun = Episode(number, count, 100 + number, encoded(observation_space, seen[0]))
        for k in range(length):
            ends = k == length - 1
            action, following = encoded(action_space, acted[k]), encoded(observation_space, seen[k + 1])
            step = Step(count, number, action, following, rewards[k], ends and number == 0, ends and number == 1)
            record.write(step, episode=begun if k == 0 else None)
            count += 1
        told.append((seen, acted, rewards))
    return record, told


@pytest.fixture(params=SPACES)
def recorded(request, tmp_path):
    own = SPACES[request.param]
    record, told = record_of(tmp_path / "record", *own)
    with record:
        yield record, own, told


@pytest.fixture
def small(tmp_path):
    with record_of(tmp_path / "record", *SPACES["box"])[0] as record:
        yield record


def assert_rows(stored, space, values):
    """Arrays, nested or not, hold these values of the space: shapes, types and bits."""
    if isinstance(space, spaces.Dict):
        assert set(stored) == set(space)
        for key in space:
            assert_rows(stored[key], space[key], [value[key] for value in values])
    elif isinstance(space, spaces.Tuple):
        assert len(stored) == len(space)
        for k, part in enumerate(space):
            assert_rows(stored[k], part, [value[k] for value in values])
    else:
        assert stored.shape == (len(values), *space.shape)
        assert stored.dtype == space.dtype
        assert stored.tobytes() == np.stack(values).tobytes()


def unnamed(arrays, name, space):
    """The arrays of a name, nested as their space is."""
    if isinstance(space, spaces.Dict):
        return {key: unnamed(arrays, f"{name}/{key}", part) for key, part in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(unnamed(arrays, f"{name}/{k}", part) for k, part in enumerate(space))
    return arrays.pop(name)


# Arrays ------------------------------------------------------------------------------------------


def test_arrays_hold_every_transition(recorded):
    record, (observations, actions), told = recorded
    arrays = export.arrays(record, observations, actions)
    assert_rows(
        unnamed(arrays, "observations", observations), observations, [x for seen, *_ in told for x in seen[:-1]]
    )
    assert_rows(unnamed(arrays, "actions", actions), actions, [x for _, acted, _ in told for x in acted])
    following = unnamed(arrays, "next_observations", observations)
    assert_rows(following, observations, [x for seen, *_ in told for x in seen[1:]])
    assert set(arrays) == {"rewards", "terminated", "truncated", "episodes"}
    np.testing.assert_array_equal(arrays["rewards"], [x for *_, rewards in told for x in rewards], strict=True)
    np.testing.assert_array_equal(np.flatnonzero(arrays["terminated"]), [2])
    np.testing.assert_array_equal(np.flatnonzero(arrays["truncated"]), [3])
    np.testing.assert_array_equal(arrays["episodes"], np.repeat([0, 1, 2], LENGTHS), strict=True)
    assert {name: array.dtype for name, array in arrays.items()} == {
        "rewards": np.float64,
        "terminated": np.bool,
        "truncated": np.bool,
        "episodes": np.int64,
    }


def test_a_part_has_its_path_for_a_name(tmp_path):
    with record_of(tmp_path / "record", *SPACES["nested"])[0] as record:
        names = export.arrays(record, *SPACES["nested"])
    assert {name for name in names if name.startswith(("observations", "actions"))} == {
        "observations/arm/0",
        "observations/arm/1",
        "observations/camera",
        "observations/joints",
        "actions/0",
        "actions/1",
    }


@pytest.mark.parametrize("own", SPACES.values(), ids=SPACES)
def test_before_the_first_step_there_are_no_rows(own, tmp_path):
    with Record.create(tmp_path / "record") as record:
        for array in export.arrays(record, *own).values():
            assert len(array) == 0
            assert array.dtype != object


def test_a_run_can_be_exported_while_it_goes_on(small):
    """A step that comes in meanwhile, the first of its episode, is there with its beginning."""
    observations, actions = SPACES["box"]
    with Record.read(small.path) as reader:
        rows = export._told(reader, observations, actions)
        next(rows)
        seen, action = encoded(observations, np.zeros(3)), encoded(actions, np.zeros(2))
        small.write(Step(8, 4, action, seen, 0.0, False, False), episode=Episode(4, 8, 0, seen))
        assert [begun.episode for begun, *_ in rows] == [1, 2, 4]
        assert len(export.arrays(reader, observations, actions)["rewards"]) == 9


def test_a_step_whose_episode_is_missing_is_told_as_damage(tmp_path):
    observations, actions = SPACES["numbered"]
    with Record.create(tmp_path / "record") as record:
        record.write(Step(0, 0, encoded(actions, 0), encoded(observations, 0), 0.0, False, False))
        with pytest.raises(InputError, match="does not tell how episode 0 began: the record is damaged"):
            export.arrays(record, observations, actions)


# NumPy -------------------------------------------------------------------------------------------


def test_the_file_holds_the_arrays(recorded, tmp_path):
    record, (observations, actions), _ = recorded
    path = tmp_path / "new" / "folder" / "d.npz"
    export.to_npz(record, observations, actions, path)
    with np.load(path, allow_pickle=False) as file:
        wanted = export.arrays(record, observations, actions)
        assert set(file.files) == set(wanted)
        for name, array in wanted.items():
            np.testing.assert_array_equal(file[name], array, strict=True)
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_exists_is_left_alone(small, tmp_path):
    path = tmp_path / "d.npz"
    path.write_text("mine")
    with pytest.raises(InputError, match="exists already: choose another name"):
        export.to_npz(small, *SPACES["box"], path)
    assert path.read_text() == "mine"


def full(*inputs, **named):
    raise OSError(28, "No space left on device")


def test_a_full_disk_leaves_no_file(small, tmp_path, monkeypatch):
    monkeypatch.setattr(export.np, "savez", full)
    with pytest.raises(InputError, match=r"d.npz cannot be written \(No space left on device\); nothing of it is left"):
        export.to_npz(small, *SPACES["box"], tmp_path / "new" / "d.npz")
    assert not list((tmp_path / "new").iterdir())


def test_a_parent_that_is_a_file_is_refused(small):
    with pytest.raises(InputError, match="cannot be made a directory"):
        export.to_npz(small, *SPACES["box"], small.path / "d.npz")


# Minari ------------------------------------------------------------------------------------------


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A folder where Minari's own functions look."""
    folder = tmp_path / "shelf"
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
    return folder


def test_minari_reads_what_was_recorded(recorded, shelf):
    record, (observations, actions), told = recorded
    export.to_minari(record, observations, actions, shelf, "maxplore/some-v0", env_id=None)
    read = minari.load_dataset("maxplore/some-v0")
    assert (read.observation_space, read.action_space) == (observations, actions)
    assert (read.total_episodes, read.total_steps, read.env_spec) == (len(LENGTHS), sum(LENGTHS), None)
    for k, (episode, (seen, acted, rewards)) in enumerate(zip(read, told, strict=True)):
        assert f"total_steps={LENGTHS[k]}" in repr(episode)
        assert_rows(episode.observations, observations, seen)
        assert_rows(episode.actions, actions, acted)
        np.testing.assert_array_equal(episode.rewards, rewards, strict=True)
        ending = [False] * (LENGTHS[k] - 1)
        np.testing.assert_array_equal(episode.terminations, [*ending, k == 0], strict=True)
        np.testing.assert_array_equal(episode.truncations, [*ending, k != 0], strict=True)
    assert [about["seed"] for about in read.storage.get_episode_metadata(range(3))] == [100, 101, 102]


@pytest.mark.parametrize(("env_id", "kwargs"), [("CartPole-v1", {}), ("maxplore/Chain-v0", {"length": 7})])
def test_a_whole_run_comes_back_with_its_environment(env_id, kwargs, shelf, tmp_path):
    env = gym.make(env_id, **kwargs)
    env.action_space.seed(0)
    record, number, rows = Record.create(tmp_path / "record"), -1, []
    begun, observation = None, None
    for count in range(60):
        if observation is None:
            number += 1
            observation = env.reset(seed=number)[0]
            begun = Episode(number, count, number, encoded(env.observation_space, observation))
        action = env.action_space.sample()
        following, reward, terminated, truncated, _ = env.step(action)
        rows.append((number, observation, action, following))
        told = encoded(env.action_space, action), encoded(env.observation_space, following)
        record.write(Step(count, number, *told, float(reward), terminated, truncated), episode=begun)
        observation, begun = (None if terminated or truncated else following), None
    with record:
        named = {"env_id": env_id, "env_kwargs": kwargs}
        export.to_minari(record, env.observation_space, env.action_space, shelf, "real-v3", **named)
    read = minari.load_dataset("real-v3")
    again = read.recover_environment()
    assert again.observation_space == env.observation_space
    following = [
        (k, own.observations[i], own.actions[i], own.observations[i + 1])
        for k, own in enumerate(read)
        for i in range(len(own))
    ]
    for row, wanted in zip(following, rows, strict=True):
        for one, two in zip(row, wanted, strict=True):
            np.testing.assert_array_equal(one, two)


def test_minari_lists_what_is_there(small, shelf):
    before = dict(os.environ)
    for name in ("plain-v0", "ab/other-v12", "ab/deep/thïrd-v0"):
        export.to_minari(small, *SPACES["box"], shelf, name, env_id=None)
    assert dict(os.environ) == before
    assert set(minari.list_local_datasets()) == {"plain-v0", "ab/other-v12", "ab/deep/thïrd-v0"}
    assert minari.namespace.list_local_namespaces() == ["ab", "ab/deep"]
    assert minari.namespace.get_namespace_metadata("ab/deep") == {}
    assert {path.name for path in shelf.iterdir()} == {"plain-v0", "ab"}
    minari.combine_datasets([minari.load_dataset("plain-v0"), minari.load_dataset("ab/other-v12")], "both-v0")
    assert minari.load_dataset("both-v0").total_steps == 2 * sum(LENGTHS)


@pytest.mark.parametrize(
    "name", ["", "x/name-v0", "ab/name", "ab/name-v", "/ab/name-v0", "ab//name-v0", "../name-v0", "data/a-v0", "a b-v0"]
)
def test_a_name_that_minari_cannot_use_is_refused_before_anything_is_written(name, small, shelf):
    with pytest.raises(InputError, match=r"name is '.*', expected the form namespace/name-v0"):
        export.to_minari(small, *SPACES["box"], shelf, name, env_id=None)
    assert not shelf.exists()


def test_a_data_set_that_exists_is_left_alone(small, shelf):
    export.to_minari(small, *SPACES["box"], shelf, "ab/name-v0", env_id=None)
    before = {path: path.stat().st_mtime_ns for path in shelf.rglob("*")}
    with pytest.raises(InputError, match="exists already: choose another name or version"):
        export.to_minari(small, *SPACES["box"], shelf, "ab/name-v0", env_id=None)
    assert {path: path.stat().st_mtime_ns for path in shelf.rglob("*")} == before


def test_a_failure_leaves_nothing_and_can_be_tried_again(small, shelf, monkeypatch):
    from minari.dataset._storages.hdf5_storage import HDF5Storage

    with monkeypatch.context() as patched:
        patched.setattr(HDF5Storage, "update_episodes", full)
        with pytest.raises(InputError, match=r"cannot be written \(OSError: .*No space left.*nothing of it is left"):
            export.to_minari(small, *SPACES["box"], shelf, "ab/name-v0", env_id=None)
    assert not list(shelf.iterdir())
    with pytest.raises(InputError, match="12 bytes are kept where a value of Discrete"):
        export.to_minari(small, *SPACES["numbered"], shelf, "ab/name-v0", env_id=None)
    assert not list(shelf.iterdir())
    export.to_minari(small, *SPACES["box"], shelf, "ab/name-v0", env_id=None)


def test_a_disk_that_may_be_too_small_is_refused_before_hdf5_can_crash_on_it(small, shelf, monkeypatch):
    monkeypatch.setattr(export.shutil, "disk_usage", lambda folder: SimpleNamespace(free=100_000))
    with pytest.raises(InputError, match=r"shelf has room for 100,000 bytes, expected \d+,\d+ to be safe: make room"):
        export.to_minari(small, *SPACES["box"], shelf, "ab/name-v0", env_id=None)
    assert not list(shelf.iterdir())


def test_without_a_transition_there_is_nothing_to_write(shelf, tmp_path):
    with Record.create(tmp_path / "empty") as record, pytest.raises(InputError, match="has no transition yet"):
        export.to_minari(record, *SPACES["box"], shelf, "ab/name-v0", env_id=None)
    assert not shelf.exists()


class Unmade(gym.Env):
    """An environment that must not be made, say because it is a robot."""

    def __init__(self, **named):
        pytest.fail("it was made")


def test_the_environment_is_described_but_not_made(small, shelf):
    for name, entry in (("Path", f"{__name__}:Unmade"), ("Class", Unmade)):
        gym.register(id=f"tests/{name}-v0", entry_point=entry)
        export.to_minari(small, *SPACES["box"], shelf, f"{name}-v0", env_id=f"tests/{name}-v0")
        gym.registry.pop(f"tests/{name}-v0")
    described = minari.load_dataset("Path-v0").env_spec
    assert described is not None
    assert described.id == "tests/Path-v0"
    assert minari.load_dataset("Class-v0").env_spec is None
    export.to_minari(small, *SPACES["box"], shelf, "gone-v0", env_id="tests/Path-v0")
    gone = minari.load_dataset("gone-v0")
    assert gone.env_spec is None
    assert gone.storage.metadata["description"] == "transitions of tests/Path-v0"


@pytest.mark.parametrize("missing", ["minari", "h5py"])
def test_without_minari_one_is_told_what_to_install(missing, small, shelf, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InputError, match=r"pip install maxplore\[minari\]") as caught:
        export.to_minari(small, *SPACES["box"], shelf, "ab/name-v0", env_id=None)
    assert "\n" not in str(caught.value)
    assert not shelf.exists()
