"""Ant Maze (section 4.2): a four-legged ant at one end of a U of seven cells."""

from typing import Any

import mujoco
import numpy as np
from jaxtyping import Float

from maxplore.envs.maze import CELL, CELLS, WALLS, cell_at
from maxplore.envs.mujoco import NOISE, MujocoEnv, shipped

WALL_HEIGHT, GEAR = 6.0, 150.0


class AntMazeEnv(MujocoEnv):
    """`maxplore/AntMaze-v0`: the ant in its maze without reward, 300 steps of 0.05 s an episode.

    | observation | what |
    |---|---|
    | 0, 1 | x and y velocity, averaged over the step; 0 at a reset |
    | 2, 3, 4 | position x, y, z of the torso |
    | 5 to 8 | orientation of the torso, a quaternion (w, x, y, z) |
    | 9 to 16 | joint angles: hip and ankle of the front left, front right, back left, back right leg |
    | 17 to 19 | velocities of x, y, z |
    | 20 to 22 | angular velocities of the torso about its own axes |
    | 23 to 30 | velocities of the joints, in the order of 9 to 16 |

    The eight actions, in [-1, 1], are torques of hip and ankle of the back right, front left, front right, back left
    leg; more is clipped. `noise` is the standard deviation of what is added to every observation.

    `info` has the `position` (x, y) without noise, the `cell` that it is in (None in a wall) and `visited`: for each of
    the seven cells, whether the ant has been there in any episode since the environment was made.

    >>> import gymnasium as gym
    >>> env = gym.make("maxplore/AntMaze-v0")
    >>> env.observation_space.shape, env.action_space.shape, env.spec.max_episode_steps
    ((31,), (8,), 300)
    >>> [int(been) for been in env.reset(seed=0)[1]["visited"]]
    [1, 0, 0, 0, 0, 0, 0]
    """

    def __init__(self, noise: float = NOISE, render_mode: str | None = None) -> None:
        super().__init__(_maze(), 31, noise, render_mode, camera="above", size=(480, 480))
        self._visited = np.zeros(len(CELLS), bool)

    def state(self, velocity: Float[np.ndarray, "2"]) -> Float[np.ndarray, "31"]:
        return np.concatenate([velocity, self.data.qpos, self.data.qvel])

    def info(self) -> dict[str, Any]:
        position = self.data.qpos[:2].copy()
        cell = cell_at(*position.tolist())
        if cell is not None:
            self._visited[cell] = True
        return {"position": position, "cell": cell, "visited": self._visited.copy()}


def _maze() -> mujoco.MjSpec:
    """Gymnasium's ant between walls, and a camera that sees all of it from above."""
    spec = shipped("ant.xml")
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
    for motor in spec.actuators:
        motor.gear[0] = GEAR
    floor = spec.geom("floor")
    floor.material, floor.rgba = "", [0.55, 0.55, 0.52, 1.0]
    for x, y in WALLS:
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX,
            pos=[CELL * x, CELL * y, WALL_HEIGHT / 2],
            size=[CELL / 2, CELL / 2, WALL_HEIGHT / 2],
            rgba=[0.15, 0.2, 0.3, 1.0],
            contype=1,
            conaffinity=1,  # the ant's default is 0, and it would walk through
        )
    # Parallel rays, so that the high walls hide nothing; `fovy` is then the height of the picture in metres.
    spec.worldbody.add_camera(
        name="above", pos=[CELL, CELL, 3 * WALL_HEIGHT], proj=mujoco.mjtProjection.mjPROJ_ORTHOGRAPHIC, fovy=5 * CELL
    )
    return spec
