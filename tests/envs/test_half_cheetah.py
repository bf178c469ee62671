"""What the cheetah shows, entry by entry, against the simulator's own numbers."""

from importlib import resources
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
import pytest

import maxplore

assert maxplore.__version__


@pytest.fixture
def cheetah():
    env: Any = gym.make("maxplore/HalfCheetah-v0", noise=0.0).unwrapped
    env.reset(seed=0)
    return env


def test_the_19_observations_are_what_the_docstring_says(cheetah):
    for action in np.random.default_rng(0).uniform(-1, 1, (20, 6)).astype(np.float32):
        x = cheetah.data.qpos[0]
        seen = cheetah.step(action)[0]
        qpos, qvel = cheetah.data.qpos, cheetah.data.qvel
        assert seen.shape == (19,)
        assert seen[0] == pytest.approx((qpos[0] - x) / 0.05, abs=1e-5)
        assert seen[1] == pytest.approx(qpos[1], abs=1e-6)
        assert seen[2] == pytest.approx(np.sin(qpos[2]), abs=1e-6)
        assert seen[3] == pytest.approx(np.cos(qpos[2]), abs=1e-6)
        np.testing.assert_allclose(seen[4:10], qpos[3:], atol=1e-6)
        np.testing.assert_allclose(seen[10:], qvel, rtol=1e-6)


def test_entry_0_and_12_are_what_tasks_are_written_with(cheetah):
    """Thrown through the air at 2 m/s and turning at 3 rad/s, it does just that for a step."""
    cheetah.data.qpos[:] = 0
    cheetah.data.qpos[1] = 5
    cheetah.data.qvel[:] = 0
    cheetah.data.qvel[[0, 2]] = 2, 3
    seen = cheetah.step(np.zeros(6, np.float32))[0]
    assert seen[0] == pytest.approx(2, abs=0.1)
    assert seen[12] == pytest.approx(3, abs=0.5)
    assert seen[1] == pytest.approx(5 - 9.81 * 0.05**2 / 2, abs=0.05)
    assert np.arctan2(seen[2], seen[3]) == pytest.approx(3 * 0.05, abs=0.03)


def test_nothing_moved_before_the_first_step(cheetah):
    assert cheetah.reset(seed=1)[0][0] == 0


def test_it_is_gymnasiums_cheetah(cheetah):
    """The file as it is, deprecated mass and all, moves alike."""
    asset = resources.files("gymnasium") / "envs" / "mujoco" / "assets" / "half_cheetah.xml"
    with pytest.warns(UserWarning, match="settotalmass"):
        model = mujoco.MjSpec.from_string(asset.read_text()).compile()
    assert cheetah.model.body_subtreemass[0] == pytest.approx(14)
    np.testing.assert_allclose(cheetah.model.body_mass, model.body_mass, rtol=1e-12)
    np.testing.assert_allclose(cheetah.model.body_inertia, model.body_inertia, rtol=1e-12)
    data = mujoco.MjData(model)
    data.qpos, data.qvel = cheetah.data.qpos, cheetah.data.qvel
    for action in np.random.default_rng(0).uniform(-1, 1, (10, 6)).astype(np.float32):
        cheetah.step(action)
        data.ctrl = action
        for _ in range(5):
            mujoco.mj_step(model, data)
        np.testing.assert_allclose(cheetah.data.qpos, data.qpos, atol=1e-6)
