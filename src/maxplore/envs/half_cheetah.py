"""Half Cheetah (section 4.2): a flat runner with six joints, watched without its whereabouts."""

import mujoco
import numpy as np
from jaxtyping import Float

from maxplore.envs.mujoco import NOISE, MujocoEnv, shipped

MASS = 14.0


class HalfCheetahEnv(MujocoEnv):
    """`maxplore/HalfCheetah-v0`: Half Cheetah without reward, 100 steps of 0.05 s an episode.

    | observation | what |
    |---|---|
    | 0 | x velocity, averaged over the step; 0 at a reset |
    | 1 | height z |
    | 2, 3 | sine and cosine of the pitch |
    | 4 to 9 | joint angles: back thigh, shin, foot; front thigh, shin, foot |
    | 10, 11, 12 | velocities of x, of z, of the pitch |
    | 13 to 18 | velocities of the joints, in the order of 4 to 9 |

    The six actions, in [-1, 1], are torques of the joints in that order; more is clipped. `noise` is the standard
    deviation of what is added to every observation.

    >>> import gymnasium as gym
    >>> env = gym.make("maxplore/HalfCheetah-v0")
    >>> env.observation_space.shape, env.action_space.shape, env.spec.max_episode_steps
    ((19,), (6,), 100)
    """

    def __init__(self, noise: float = NOISE, render_mode: str | None = None) -> None:
        super().__init__(_cheetah(), 19, noise, render_mode, camera="track", size=(320, 480))

    def state(self, velocity: Float[np.ndarray, "2"]) -> Float[np.ndarray, "19"]:
        _, z, pitch, *joints = self.data.qpos
        return np.array([velocity[0], z, np.sin(pitch), np.cos(pitch), *joints, *self.data.qvel])


def _cheetah() -> mujoco.MjSpec:
    """Gymnasium's cheetah. Its densities give it its mass: the `settotalmass` that its file asks for is deprecated."""
    spec = shipped("half_cheetah.xml")
    spec.compiler.settotalmass = -1
    scale = MASS / spec.compile().body_subtreemass[0]
    for geom in spec.geoms:
        geom.density *= scale
    return spec
