"""Tasks of your own: explore once, with no reward, and solve any number of tasks afterwards without another step.

python examples/own_reward.py
"""

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
from jax import Array

import maxplore
from maxplore.rewards import Reward

GOAL, CORNER = 47, 11
"""Cells of CliffWalking, 4 rows of 12: the goal, at the other end of the cliff, and the upper right corner."""


def hurry_to(place: int) -> tuple[Reward, Reward]:
    """100 for reaching a place, which ends the task; every step before costs 1."""

    def reward(state: Array, action: Array, next_state: Array) -> Array:
        return jnp.where(next_state == place, 100.0, -1.0)

    def terminated(state: Array, action: Array, next_state: Array) -> Array:
        return next_state == place

    return reward, terminated


def explored(steps: int, preset: str = "fast", seed: int = 0) -> tuple[gym.Env[np.int64, np.int64], maxplore.Explorer]:
    """CliffWalking, and an explorer that has seen so many steps of it. Whoever falls off the cliff begins anew."""
    env = gym.make("CliffWalking-v1", max_episode_steps=100)
    explorer = maxplore.Explorer(env.observation_space, env.action_space, preset=preset, seed=seed)
    explorer.explore(env, steps)
    return env, explorer


def main() -> None:
    env, explorer = explored(600)
    print(f"{explorer.steps} steps without reward: {explorer.coverage:.0%} of all pairs of state and action tried")
    for name, place in (("the goal", GOAL), ("the corner", CORNER)):
        policy = explorer.exploit(*hurry_to(place))
        print(f"{name}: {policy.report}; in the real environment {policy.evaluate(env, episodes=1)[0]:g}")


if __name__ == "__main__":
    main()
