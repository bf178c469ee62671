"""MAX for numbered states and actions: a categorical ensemble, its divergence, a planner on the tabulated MDP."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from maxplore import checks
from maxplore.explorers.base import Finite, FiniteExplorer
from maxplore.explorers.memory import Memory
from maxplore.explorers.oracle import choose
from maxplore.explorers.training import Learned, Minibatches, Training, UntilFitted
from maxplore.history import Transition
from maxplore.models.adam import Moments
from maxplore.models.categorical import PAPER, CategoricalEnsemble
from maxplore.models.ensemble import MemberConfig
from maxplore.solvers.mcts import Search
from maxplore.solvers.value_iteration import Planner, Table, ValueIteration
from maxplore.utilities import jensen_shannon

SMALL = MemberConfig(members=5, depth=2, width=64, activation="tanh", first_gain=6.0)


@dataclass(frozen=True)
class FiniteMaxConfig:
    """MAX for finite environments. The defaults learn faster than the paper's, which is what matters most here."""

    model: MemberConfig = SMALL
    """The ensemble."""
    warm_up: int = 3
    """Episodes of random actions at the beginning, as in the paper."""
    training: Training = UntilFitted()
    """How the ensemble learns after a transition."""
    planner: Planner = ValueIteration()
    """How the exploration MDP is solved."""

    def __post_init__(self) -> None:
        checks.at_least(0, self, "warm_up")


PAPER_MAX = FiniteMaxConfig(PAPER, training=Minibatches(), planner=Search())
"""The paper's: its ensemble, its training, its tree search."""


class MaxMind(eqx.Module):
    """What MAX knows: its memory, and the ensemble trained on it."""

    memory: Memory
    ensemble: CategoricalEnsemble
    moments: Moments
    external: Float[Array, "states actions states"] | None = None
    """What every transition pays besides its utility; None is pure exploration."""


class MaxExplorer(FiniteExplorer):
    """Algorithm 1 with the exploration MDP tabulated once a step, so that planning is look-ups."""

    config: FiniteMaxConfig = eqx.field(static=True, default=FiniteMaxConfig())

    def init(self, world: Finite, *, key: PRNGKeyArray) -> MaxMind:
        ensemble = CategoricalEnsemble(world.states, world.actions, self.config.model, key=key)
        return MaxMind(Memory.empty(world), ensemble, Moments.zero(ensemble.members))

    def act(self, world: Finite, mind: MaxMind, state: Int[Array, ""], *, key: PRNGKeyArray) -> Int[Array, ""]:
        at_random = self.warming_up(world, mind)
        key_plan, key_choose = jax.random.split(key)
        values = jax.lax.cond(
            at_random,
            lambda: jnp.zeros(world.actions),
            lambda: self.values(world, mind, state, key=key_plan),
        )
        return choose(world, values, at_random, key=key_choose)

    def warming_up(self, world: Finite, mind: MaxMind) -> Bool[Array, ""]:
        """Whether it still acts at random, its models untrained."""
        return mind.memory.total < self.config.warm_up * world.horizon

    def observe(
        self, world: Finite, mind: MaxMind, transition: Transition, reward: Float[Array, ""], *, key: PRNGKeyArray
    ) -> MaxMind:
        memory = mind.memory.add(transition)
        # Nothing is asked of the models before the warm-up is over.
        warm_up = self.config.warm_up * world.horizon
        learned = jax.lax.cond(
            memory.total >= warm_up,
            lambda: self.config.training.learn(
                world, memory, mind.ensemble, mind.moments, memory.total == max(warm_up, 1), key=key
            ),
            lambda: Learned(mind.ensemble.members, mind.moments),
        )
        ensemble = eqx.tree_at(lambda e: e.members, mind.ensemble, learned.members)
        return MaxMind(memory, ensemble, learned.moments, mind.external)

    def values(
        self, world: Finite, mind: MaxMind, state: Int[Array, ""], *, key: PRNGKeyArray
    ) -> Float[Array, " actions"]:
        """What each action promises until the end of the episode."""
        remaining = world.remaining(mind.memory.step)
        return self.config.planner.values(tabulate(mind), state, remaining, world.horizon, key=key)


def tabulate(mind: MaxMind) -> Table:
    """The exploration MDP written out: one forward pass of all pairs."""
    probabilities = jax.nn.softmax(mind.ensemble.table())
    transition, pays = jnp.mean(probabilities, axis=0), jensen_shannon(probabilities)
    if mind.external is not None:
        pays = pays + jnp.sum(transition * mind.external, axis=-1)
    return Table(transition, pays, 1.0 - mind.memory.terminal)
