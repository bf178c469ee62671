"""The paper's environments, registered with Gymnasium under `maxplore/`."""

import gymnasium as gym

from maxplore.envs.chain import Chain, ChainEnv
from maxplore.envs.mountain_car import MountainCar, MountainCarEnv

gym.register(id="maxplore/Chain-v0", entry_point="maxplore.envs.chain:ChainEnv")
gym.register(
    id="maxplore/MountainCar-v0", entry_point="maxplore.envs.mountain_car:MountainCarEnv", max_episode_steps=500
)
# MuJoCo is imported only when one of these two is made.
gym.register(
    id="maxplore/HalfCheetah-v0", entry_point="maxplore.envs.half_cheetah:HalfCheetahEnv", max_episode_steps=100
)
gym.register(id="maxplore/AntMaze-v0", entry_point="maxplore.envs.ant_maze:AntMazeEnv", max_episode_steps=300)

__all__ = ["Chain", "ChainEnv", "MountainCar", "MountainCarEnv"]
