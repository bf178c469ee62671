"""What the two MuJoCo environments share: actions, resets, noise in what is observed, pictures without a screen."""

import ctypes.util
import os
import sys
from abc import abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from importlib import resources
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
from jaxtyping import Float, UInt8

from maxplore.envs.box import actions, check_options, clipped

FRAME_SKIP, TIMESTEP = 5, 0.01
SECONDS = FRAME_SKIP * TIMESTEP
"""Simulated time of one step."""
NOISE = 0.02
RESET_POSITION, RESET_VELOCITY = 0.1, 0.1


class MujocoEnv(gym.Env[np.ndarray, np.ndarray]):
    """A body in MuJoCo that nobody rewards. Observations are noisy; the simulator never sees the noise."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": round(1 / SECONDS)}  # noqa: RUF012

    def __init__(
        self,
        spec: mujoco.MjSpec,
        dims: int,
        noise: float,
        render_mode: str | None,
        *,
        camera: str,
        size: tuple[int, int],
    ) -> None:
        check_options(self, noise, render_mode)
        self.noise, self.render_mode = noise, render_mode
        self.model = compiled(spec, size)
        self.data = mujoco.MjData(self.model)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (dims,), np.float32)
        self.action_space = actions(self.model.nu)
        self._camera, self._size = camera, size
        self._renderer: Any = None  # made at the first picture

    @abstractmethod
    def state(self, velocity: Float[np.ndarray, "2"]) -> Float[np.ndarray, " dims"]:
        """What is observed, without noise; `velocity` is that of the first two positions, averaged over the step."""

    def info(self) -> dict[str, Any]:
        """What is reported beside the observation."""
        return {}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos += self.np_random.uniform(-RESET_POSITION, RESET_POSITION, self.model.nq)
        self.data.qvel += RESET_VELOCITY * self.np_random.standard_normal(self.model.nv)
        mujoco.mj_normalizeQuat(self.model, self.data.qpos)
        mujoco.mj_forward(self.model, self.data)
        return self._observation(np.zeros(2)), self.info()

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.data.ctrl[:] = clipped(action, self.action_space.shape)
        before = self.data.qpos[:2].copy()
        with warnings_of_mujoco() as warnings:
            mujoco.mj_step(self.model, self.data, FRAME_SKIP)
        if warnings:
            raise RuntimeError(f"the simulation broke down and must be reset: {warnings[0].strip()}")
        return self._observation((self.data.qpos[:2] - before) / SECONDS), 0.0, False, False, self.info()

    def render(self) -> UInt8[np.ndarray, "height width 3"] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self.render_mode is None:
            return None
        if self._renderer is None:
            self._renderer = headless_renderer(self.model, *self._size)
        self._renderer.update_scene(self.data, camera=self._camera)
        return self._renderer.render()

    def close(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def _observation(self, velocity: Float[np.ndarray, "2"]) -> Float[np.ndarray, " dims"]:
        state = self.state(velocity)
        # Drawn even where it is scaled to 0, so that the noise never decides where an episode starts.
        noise = self.noise * self.np_random.standard_normal(state.shape)
        return (state + noise).astype(np.float32)


def shipped(name: str) -> mujoco.MjSpec:
    """A model that ships with Gymnasium, ready to be edited."""
    asset = resources.files("gymnasium") / "envs" / "mujoco" / "assets" / name
    return mujoco.MjSpec.from_string(asset.read_text())


def compiled(spec: mujoco.MjSpec, size: tuple[int, int]) -> mujoco.MjModel:
    """The model, with our timestep and the settings with which a processor alone draws it five times as fast."""
    spec.option.timestep = TIMESTEP
    spec.visual.quality.shadowsize = 0
    spec.visual.quality.offsamples = 0
    spec.visual.global_.offheight, spec.visual.global_.offwidth = size
    return spec.compile()


@contextmanager
def warnings_of_mujoco() -> Generator[list[str]]:
    """Gathers MuJoCo's warnings, which else go to stderr and to a MUJOCO_LOG.TXT in the working directory."""
    gathered: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(gathered.append)
    try:
        yield gathered
    finally:
        mujoco.set_mju_user_warning(before)


def headless_renderer(model: mujoco.MjModel, height: int, width: int) -> mujoco.Renderer:
    """MuJoCo's renderer on whatever OpenGL can draw without a screen; one clear error where there is none."""
    from mujoco.rendering.classic import gl_context

    try:
        if "MUJOCO_GL" not in os.environ and sys.platform == "linux":
            # MuJoCo settles for a window system's OpenGL when it is imported, too early to know of any other.
            if ctypes.util.find_library("EGL"):
                from mujoco.egl import GLContext
            elif ctypes.util.find_library("OSMesa"):
                from mujoco.osmesa import GLContext
            else:
                raise ImportError("neither libEGL nor libOSMesa is there")
            gl_context.GLContext = GLContext
        return mujoco.Renderer(model, height, width)
    except (ImportError, AttributeError, OSError, RuntimeError, mujoco.FatalError) as error:
        reason = str(error).partition("\n")[0]
        raise gym.error.DependencyNotInstalled(
            f"no OpenGL to draw pictures with ({reason}): install libegl1 and libgl1, or libosmesa6 (Debian's names), "
            "and leave MUJOCO_GL unset; everything but pictures works without"
        ) from error
