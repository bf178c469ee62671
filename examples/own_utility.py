"""A utility of your own: MAX on a leash, which is paid for novelty but pays for every unit beyond a limit.

python examples/own_utility.py
"""

from typing import Any

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import maxplore
from maxplore.utilities import JensenRenyi, Outcome, Utility


class Leashed(Utility):
    """`utility`, minus `price` for every unit by which one dimension of the next state goes beyond `limit`."""

    utility: Utility = JensenRenyi()
    dimension: int = 0
    limit: float = 1.0
    price: float = 10.0

    def __call__(self, outcome: Outcome) -> Float[Array, " batch"]:
        beyond = jnp.maximum(jnp.abs(outcome.next_state[:, self.dimension]) - self.limit, 0.0)
        return self.utility(outcome) - self.price * beyond

    def divergence(self, outcome: Outcome) -> Float[Array, " batch"] | None:
        """What of it saturates at ln N, for the figures."""
        return self.utility.divergence(outcome)


def explored(utility: Utility, steps: int, **settings: Any) -> np.ndarray:
    """Angular velocities of a pendulum that was explored for this utility's sake."""
    env = gym.make("Pendulum-v1")
    explorer = maxplore.Explorer(env.observation_space, env.action_space, utility=utility, **settings)
    explorer.explore(env, steps)
    return np.asarray(explorer.history.transitions.next_state)[:steps, 2]


def main() -> None:
    limit = 4.0  # radians a second; a pendulum can do 8
    for name, utility in (("MAX", JensenRenyi()), ("on a leash", Leashed(dimension=2, limit=limit))):
        speeds = np.abs(explored(utility, 300)[50:])  # after the warm-up
        print(f"{name}: {np.mean(speeds > limit):.0%} of all steps beyond {limit:g} rad/s, {speeds.max():.1f} at most")


if __name__ == "__main__":
    main()
