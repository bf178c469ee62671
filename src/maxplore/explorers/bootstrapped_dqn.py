"""Bootstrapped DQN (appendix C.3; Osband et al., 2016): ten heads on one network, one of which acts for an episode."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from maxplore.explorers.base import Finite, FiniteExplorer
from maxplore.explorers.dqn import Learner, Replay, thermometer
from maxplore.explorers.memory import Memory
from maxplore.explorers.oracle import choose
from maxplore.history import Transition
from maxplore.models.mlp import MLP


@dataclass(frozen=True)
class BootstrappedDqnConfig:
    """The paper's choice from its grid of 2,100."""

    heads: int = 10
    depth: int = 1
    width: int = 32
    learning_rate: float = 1e-4
    batch_size: int = 32
    iterations: int = 64
    """Updates of every head after an episode."""
    discount: float = 0.95
    target_every: int = 16
    replay: int = 2**14
    """Transitions kept: all of a run of the paper's length."""
    warm_up: int = 3
    """Episodes of random actions at the beginning."""


class BootstrappedDqnMind(eqx.Module):
    memory: Memory
    learner: Learner
    replay: Replay
    head: Int[Array, ""]
    """The head that acts in this episode."""


class BootstrappedDqnExplorer(FiniteExplorer):
    """Heads differ by their initialisation alone; all learn from all transitions, after each episode.

    They share the hidden layers, as in Osband et al.
    """

    config: BootstrappedDqnConfig = eqx.field(static=True, default=BootstrappedDqnConfig())

    def init(self, world: Finite, *, key: PRNGKeyArray) -> BootstrappedDqnMind:
        c = self.config
        key_network, key_head = jax.random.split(key)
        outputs = c.heads * world.actions
        network = MLP(world.states, outputs, depth=c.depth, width=c.width, activation="tanh", key=key_network)
        learner = Learner.create(network, c.learning_rate)
        return BootstrappedDqnMind(Memory.empty(world), learner, Replay.empty(c.replay), self._pick(key_head))

    def act(
        self, world: Finite, mind: BootstrappedDqnMind, state: Int[Array, ""], *, key: PRNGKeyArray
    ) -> Int[Array, ""]:
        values = mind.learner.network(thermometer(world.states)[state]).reshape(self.config.heads, world.actions)
        return choose(world, values[mind.head], mind.memory.total < self.config.warm_up * world.horizon, key=key)

    def observe(
        self,
        world: Finite,
        mind: BootstrappedDqnMind,
        transition: Transition,
        reward: Float[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> BootstrappedDqnMind:
        key_learn, key_head = jax.random.split(key)
        replay = mind.replay.add(transition, reward)
        over = transition.terminated | transition.truncated
        learner = jax.lax.cond(
            over, lambda: self._learn(world, mind.learner, replay, key=key_learn), lambda: mind.learner
        )
        head = jnp.where(over, self._pick(key_head), mind.head)
        return BootstrappedDqnMind(mind.memory.add(transition), learner, replay, head)

    def _pick(self, key: PRNGKeyArray) -> Int[Array, ""]:
        return jax.random.randint(key, (), 0, self.config.heads)

    def _learn(self, world: Finite, learner: Learner, replay: Replay, *, key: PRNGKeyArray) -> Learner:
        c, encoding = self.config, thermometer(world.states)

        def update(learner: Learner, key: PRNGKeyArray) -> tuple[Learner, None]:
            batch, reward = replay.sample(c.batch_size, key=key)
            learned = learner.update(
                encoding,
                batch,
                reward,
                learning_rate=c.learning_rate,
                discount=c.discount,
                target_every=c.target_every,
                heads=c.heads,
            )
            return learned, None

        return jax.lax.scan(update, learner, jax.random.split(key, c.iterations))[0]
