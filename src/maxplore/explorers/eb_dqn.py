"""Exploration-bonus DQN (appendix C.3): a DQN whose reward has a bonus for pairs never tried before."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from maxplore.explorers.base import Finite, FiniteExplorer
from maxplore.explorers.dqn import Learner, Replay
from maxplore.explorers.memory import Memory
from maxplore.explorers.oracle import choose
from maxplore.history import Transition
from maxplore.models.mlp import MLP


@dataclass(frozen=True)
class EbDqnConfig:
    """The paper's choice from its grid of 4,300."""

    bonus: float = 0.1
    replay: int = 256
    depth: int = 3
    width: int = 64
    learning_rate: float = 1e-2
    batch_size: int = 32
    discount: float = 0.975
    target_every: int = 256
    warm_up: int = 3
    """Episodes of random actions at the beginning."""


class EbDqnMind(eqx.Module):
    memory: Memory
    learner: Learner
    replay: Replay


class EbDqnExplorer(FiniteExplorer):
    """The bonus comes from an oracle, a look-up table of transitions: the best case for the method."""

    config: EbDqnConfig = eqx.field(static=True, default=EbDqnConfig())

    def init(self, world: Finite, *, key: PRNGKeyArray) -> EbDqnMind:
        c = self.config
        network = MLP(world.states, world.actions, depth=c.depth, width=c.width, activation="tanh", key=key)
        return EbDqnMind(Memory.empty(world), Learner.create(network, c.learning_rate), Replay.empty(c.replay))

    def act(self, world: Finite, mind: EbDqnMind, state: Int[Array, ""], *, key: PRNGKeyArray) -> Int[Array, ""]:
        values = mind.learner.network(jax.nn.one_hot(state, world.states))
        return choose(world, values, mind.memory.total < self.config.warm_up * world.horizon, key=key)

    def observe(
        self, world: Finite, mind: EbDqnMind, transition: Transition, reward: Float[Array, ""], *, key: PRNGKeyArray
    ) -> EbDqnMind:
        c = self.config
        new = mind.memory.counts[transition.state, transition.action, transition.next_state] == 0
        replay = mind.replay.add(transition, reward + c.bonus * new)
        batch, rewards = replay.sample(c.batch_size, key=key)
        learner = mind.learner.update(
            jnp.eye(world.states),
            batch,
            rewards,
            learning_rate=c.learning_rate,
            discount=c.discount,
            target_every=c.target_every,
        )
        return EbDqnMind(mind.memory.add(transition), learner, replay)
