"""What is asked of both MuJoCo environments."""

import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import maxplore
from maxplore import InputError

assert maxplore.__version__  # importing maxplore registers its environments

HORIZON = {"maxplore/HalfCheetah-v0": 100, "maxplore/AntMaze-v0": 300}
both = pytest.mark.parametrize("name", HORIZON)


def walk(name, seed, steps=30, **kwargs):
    """Observations, and the simulator's own states, under the same actions."""
    env: Any = gym.make(name, **kwargs).unwrapped
    observations, states = [env.reset(seed=seed)[0]], [env.data.qpos.copy()]
    for action in np.random.default_rng(0).uniform(-1, 1, (steps, *env.action_space.shape)).astype(np.float32):
        observations.append(env.step(action)[0])
        states.append(np.concatenate([env.data.qpos, env.data.qvel]))
    return np.array(observations), np.concatenate(states)


@both
@pytest.mark.filterwarnings("ignore:.*A Box observation space m.* value is -?infinity")
def test_it_passes_gymnasiums_own_check(name):
    check_env(gym.make(name).unwrapped, skip_render_check=True)


@both
def test_an_episode_ends_by_the_clock_alone_and_pays_nothing(name):
    env: Any = gym.make(name)
    env.reset(seed=0)
    env.action_space.seed(0)
    outcomes = [env.step(env.action_space.sample())[1:4] for _ in range(HORIZON[name])]
    assert outcomes == [(0.0, False, False)] * (HORIZON[name] - 1) + [(0.0, False, True)]
    assert env.spec.max_episode_steps == HORIZON[name]


@both
def test_the_seed_decides_everything(name):
    np.testing.assert_array_equal(walk(name, 1)[0], walk(name, 1)[0])
    assert not np.any(walk(name, 1)[0] == walk(name, 2)[0])


@both
def test_noise_is_in_what_is_seen_and_never_in_the_simulator(name):
    seen, states = walk(name, 3, steps=60)
    clean, clean_states = walk(name, 3, steps=60, noise=0.0)
    np.testing.assert_array_equal(states, clean_states)
    noise = seen - clean
    np.testing.assert_allclose(noise.std(), 0.02, rtol=0.05)
    np.testing.assert_allclose(noise.std(axis=0), 0.02, rtol=0.5)
    np.testing.assert_allclose(noise.mean(), 0.0, atol=0.002)


@both
def test_noise_does_not_decide_where_the_next_episode_starts(name):
    starts = []
    for noise in (0.0, 0.5):
        env: Any = gym.make(name, noise=noise).unwrapped
        env.reset(seed=0)
        env.step(np.zeros(env.action_space.shape, np.float32))
        env.reset()
        starts.append(env.data.qpos.copy())
    np.testing.assert_array_equal(*starts)


@both
def test_resets_are_near_the_pose_of_the_model(name):
    env: Any = gym.make(name).unwrapped
    offsets, speeds = [], []
    for seed in range(200):
        env.reset(seed=seed)
        joints = slice(-env.model.nu, None)  # a quaternion is normalised, joints are as drawn
        offsets.append((env.data.qpos - env.model.qpos0)[joints])
        speeds.append(env.data.qvel.copy())
    assert 0.099 < np.abs(offsets).max() <= 0.1
    np.testing.assert_allclose(np.std(offsets), 0.2 / np.sqrt(12), rtol=0.05)
    np.testing.assert_allclose(np.std(speeds), 0.1, rtol=0.05)


@both
def test_actions_beyond_1_are_clipped(name):
    ends = []
    for size in (1.0, 7.0):
        env: Any = gym.make(name).unwrapped
        env.reset(seed=0)
        ends.append(env.step(np.full(env.action_space.shape, size, np.float32))[0])
    np.testing.assert_array_equal(*ends)


@both
def test_what_cannot_be_is_refused_in_one_line(name):
    env: Any = gym.make(name).unwrapped
    env.reset(seed=0)
    action = np.zeros(env.action_space.shape, np.float32)
    action[2] = np.nan
    with pytest.raises(InputError, match=r"^action\[2\] is nan, expected a finite number$"):
        env.step(action)
    with pytest.raises(InputError, match=r"^action has shape \(3,\), expected \([68],\)$"):
        env.step(np.zeros(3, np.float32))
    for noise in (-0.1, np.nan, np.inf):
        with pytest.raises(InputError, match=r"^noise is \S+, expected a standard deviation: a finite number"):
            gym.make(name, noise=noise)
    with pytest.raises(InputError, match="render_mode is 'ansi', expected None or 'rgb_array'"):
        type(env)(render_mode="ansi")
    with pytest.raises(TypeError, match="unexpected keyword argument 'nosie'"):
        gym.make(name, nosie=0.0)


@both
def test_a_simulation_that_breaks_down_says_so_and_leaves_no_litter(name, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    env: Any = gym.make(name).unwrapped
    env.reset(seed=0)
    env.data.qvel[:] = 1e12
    with pytest.raises(RuntimeError, match=r"the simulation broke down and must be reset: .*unstable"):
        env.step(np.zeros(env.action_space.shape, np.float32))
    observation, _ = env.reset(seed=0)
    assert np.all(np.abs(observation) < 2)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


@both
def test_it_draws_itself_without_a_screen(name, opengl):
    env: Any = gym.make(name, render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture.dtype == np.uint8
    assert picture.shape == (*env.unwrapped._size, 3)
    assert picture.std() > 10
    for _ in range(5):
        env.step(np.ones(env.action_space.shape, np.float32))
    assert np.any(env.render() != picture)
    env.close()
    assert gym.make(name).unwrapped.render() is None


def test_without_opengl_only_pictures_are_missing(monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr("ctypes.util.find_library", lambda name: None)
    env: Any = gym.make("maxplore/HalfCheetah-v0", render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    env.step(np.zeros(6, np.float32))
    with pytest.raises(gym.error.DependencyNotInstalled, match=r"^no OpenGL .* install libegl1 and libgl1.*$"):
        env.render()


def test_importing_maxplore_does_not_import_mujoco():
    asked = [sys.executable, "-c", "import sys, maxplore; print('mujoco' in sys.modules)"]
    assert subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip() == "False"
