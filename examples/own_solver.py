"""A solver of your own: random shooting. It draws plans, follows each in imagination, and begins the best of them.

python examples/own_solver.py
"""

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

import maxplore
from maxplore.history import History
from maxplore.solvers import Policy, Solution, SolveInfo, Solver


class Hold(Policy):
    """One action, whatever the state."""

    action: Array

    def __call__(self, state: Array, *, key: PRNGKeyArray | None = None) -> Array:
        return self.action


class Shooting(Solver):
    """Plans of random actions, each of them held for a few steps."""

    plans: int = eqx.field(static=True, default=256)
    """Drawn for every real step."""
    pushes: int = eqx.field(static=True, default=4)
    """Actions in a plan."""
    held: int = eqx.field(static=True, default=5)
    """Steps that each of them lasts."""

    @property
    def good_for(self) -> int:
        return 1

    def init(self, mdp: maxplore.ExplorationMDP, *, key: PRNGKeyArray) -> None:
        """It remembers nothing."""

    def run(
        self, mdp: maxplore.ExplorationMDP, state: Array, history: History | None, memory: None, *, key: PRNGKeyArray
    ) -> Solution:
        key_draw, key_walk = jax.random.split(key)
        shape = (self.pushes, self.plans, *mdp.ensemble.action_entry.shape)
        drawn = jax.random.uniform(key_draw, shape, minval=-1.0, maxval=1.0)  # real actions are in [-1, 1]
        steps = mdp.follow(jnp.repeat(drawn, self.held, axis=0), mdp.start(state, self.plans), key=key_walk)
        value = jnp.mean(steps.reward, axis=0)
        info = SolveInfo.blank()._replace(before=jnp.mean(value), after=jnp.max(value), steps=jnp.sum(steps.alive))
        return Solution(Hold(drawn[0, jnp.argmax(value)]), memory, info)


def main() -> None:
    env = gym.make("maxplore/MountainCar-v0")
    for name, solver in (("icem", "icem"), ("shooting", Shooting(pushes=10, held=10))):
        explorer = maxplore.Explorer(env.observation_space, env.action_space, solver=solver, seed=0)
        explorer.explore(env, steps=200)
        position = explorer.history.transitions.next_state[: explorer.steps, 0]
        print(f"{name}: positions from {position.min():.2f} to {position.max():.2f} in {explorer.steps} steps")


if __name__ == "__main__":
    main()
