"""The paper's environments, registered with Gymnasium under `maxplore/`."""

import gymnasium as gym

from maxplore.envs.chain import Chain, ChainEnv

gym.register(id="maxplore/Chain-v0", entry_point="maxplore.envs.chain:ChainEnv")

__all__ = ["Chain", "ChainEnv"]
