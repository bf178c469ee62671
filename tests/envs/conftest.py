"""Pictures are tested where there is something to draw them with."""

import gymnasium as gym
import mujoco
import pytest

from maxplore.envs.mujoco import headless_renderer


@pytest.fixture(scope="session")
def opengl() -> None:
    """Skips a test where nothing can draw without a screen."""
    try:
        headless_renderer(mujoco.MjSpec().compile(), 8, 8).close()
    except gym.error.DependencyNotInstalled as error:
        pytest.skip(str(error))
