"""Continuous Mountain Car (section 4.2): a car too weak for its hill, which has to swing to get up.

`MountainCar` is the functional core, `MountainCarEnv` its Gymnasium shell; both take the same steps.
"""

from typing import Any

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray, UInt8

from maxplore.compiling import compiled
from maxplore.envs.box import actions, check_options, clipped

# The constants of Gymnasium's MountainCarContinuous-v0.
LEFT, RIGHT, FLAG = -1.2, 0.6, 0.45
MAX_SPEED, POWER, GRAVITY = 0.07, 0.0015, 0.0025
START = (-0.6, -0.4)


class MountainCar(eqx.Module):
    """A state is (position, velocity), the action a push in [-1, 1]; nothing is rewarded and nothing ends early.

    >>> car = MountainCar()
    >>> state, reward = car.step(jnp.array([-0.5, 0.0]), jnp.array([1.0]))
    >>> [round(float(entry), 4) for entry in state]
    [-0.4987, 0.0013]
    """

    horizon: int = eqx.field(static=True, default=500)
    """Steps of an episode."""

    @property
    def observation_space(self) -> gym.spaces.Box:
        """Where the car can be, and how fast."""
        return gym.spaces.Box(np.array([LEFT, -MAX_SPEED], np.float32), np.array([RIGHT, MAX_SPEED], np.float32))

    @property
    def action_space(self) -> gym.spaces.Box:
        """The push."""
        return actions(1)

    def reset(self, *, key: PRNGKeyArray) -> Float[Array, "2"]:
        """At rest, somewhere at the bottom of the valley."""
        return jnp.stack([jax.random.uniform(key, minval=START[0], maxval=START[1]), jnp.zeros(())])

    def step(
        self, state: Float[Array, "2"], action: Float[Array, "1"], *, key: PRNGKeyArray | None = None
    ) -> tuple[Float[Array, "2"], Float[Array, ""]]:
        """The next state and the reward, which is 0; nothing is drawn, so no key is needed."""
        position, velocity = state
        push = POWER * jnp.clip(action[0], -1.0, 1.0)
        velocity = jnp.clip(velocity + push - GRAVITY * jnp.cos(3 * position), -MAX_SPEED, MAX_SPEED)
        position = jnp.clip(position + velocity, LEFT, RIGHT)
        # The left end is a wall that stops the car; the right end only holds it.
        velocity = jnp.where(position <= LEFT, jnp.maximum(velocity, 0.0), velocity)
        return jnp.stack([position, velocity]), jnp.zeros(())


class MountainCarEnv(gym.Env[np.ndarray, np.ndarray]):
    """`maxplore/MountainCar-v0`: Mountain Car for Gymnasium, 500 steps an episode.

    | observation | what |
    |---|---|
    | 0 | position, -1.2 to 0.6; the flag is at 0.45 |
    | 1 | velocity, -0.07 to 0.07 a step |

    The one action, in [-1, 1], pushes the car; more is clipped. `noise` is the standard deviation of what is added to
    observations, and never to the car.

    >>> env = gym.make("maxplore/MountainCar-v0")
    >>> env.observation_space.shape, env.action_space.shape, env.spec.max_episode_steps
    ((2,), (1,), 500)
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012

    def __init__(self, noise: float = 0.0, render_mode: str | None = None) -> None:
        check_options(self, noise, render_mode)
        self.noise, self.render_mode = noise, render_mode
        unbounded, core = np.full(2, np.inf, np.float32), MountainCar()
        self.observation_space = gym.spaces.Box(-unbounded, unbounded) if noise else core.observation_space
        self.action_space = core.action_space
        self._state = np.zeros(2, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        key = jax.random.key(int(self.np_random.integers(2**31)))
        self._state = np.asarray(_reset(key), np.float32)
        return self._observation(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        push = clipped(action, self.action_space.shape).astype(np.float32)
        self._state = np.asarray(_step(self._state, push), np.float32)
        return self._observation(), 0.0, False, False, {}

    def render(self) -> UInt8[np.ndarray, "400 600 3"] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return None if self.render_mode is None else _picture(float(self._state[0]))

    def _observation(self) -> Float[np.ndarray, "2"]:
        return (self._state + self.noise * self.np_random.standard_normal(2)).astype(np.float32)


@compiled(filtered=False)
def _reset(key: PRNGKeyArray) -> Array:
    return MountainCar().reset(key=key)


@compiled(filtered=False)
def _step(state: ArrayLike, action: ArrayLike) -> Array:
    return MountainCar().step(jnp.asarray(state), jnp.asarray(action))[0]


def _picture(position: float) -> UInt8[np.ndarray, "400 600 3"]:
    """The hill, the flag and the car."""
    x, y = np.linspace(LEFT, RIGHT, 600)[None, :], np.linspace(1.2, 0.0, 400)[:, None]

    def hill(x: Any) -> Any:
        return 0.45 * np.sin(3 * x) + 0.55

    picture = np.full((400, 600, 3), 255, np.uint8)
    picture[y < hill(x)] = 200, 200, 190
    picture[(np.abs(x - FLAG) < 0.004) & (y > hill(FLAG)) & (y < hill(FLAG) + 0.15)] = 60, 60, 60
    picture[(x > FLAG) & (x < FLAG + 0.08) & (np.abs(y - hill(FLAG) - 0.12) < 0.03)] = 220, 60, 50
    picture[np.hypot(x - position, y - hill(position) - 0.035) < 0.035] = 40, 90, 170
    return picture
