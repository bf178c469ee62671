"""MAX for numbered states and actions: a categorical ensemble, its divergence, exact planning."""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from maxplore.explorers.base import Finite, FiniteExplorer
from maxplore.explorers.memory import Memory
from maxplore.explorers.oracle import choose
from maxplore.history import Transition
from maxplore.models.adam import Moments, adam
from maxplore.models.categorical import CategoricalEnsemble
from maxplore.models.ensemble import Member, MemberConfig
from maxplore.solvers.mcts import Search, mcts
from maxplore.solvers.value_iteration import Table, value_iteration
from maxplore.utilities import jensen_shannon

SMALL = MemberConfig(members=5, depth=2, width=64, activation="tanh")


@dataclass(frozen=True)
class FiniteMaxConfig:
    """MAX for finite environments. The defaults learn faster than the paper's, which is what matters most here."""

    model: MemberConfig = SMALL
    """The ensemble."""
    warm_up: int = 3
    """Episodes of random actions at the beginning, as in the paper."""
    learning_rate: float = 3e-3
    """Adam's."""
    weight_decay: float = 0.0
    """L2; it shrinks the weights of states never visited, and with them the disagreement: none by default."""
    tolerance: float = 0.02
    """Training after a transition ends once the worst visited pair is this near to its observed frequencies (nats)."""
    iterations: int = 60
    """Gradient steps after a transition, at the most."""
    discount: float = 0.95
    """Of utilities in planning: among equally novel things, the nearer first."""
    search: Search | None = None
    """The paper's tree search in place of value iteration."""


class MaxMind(eqx.Module):
    """What MAX knows: its memory, and the ensemble trained on it."""

    memory: Memory
    ensemble: CategoricalEnsemble
    moments: Moments


class Learning(NamedTuple):
    members: Member
    moments: Moments
    worst: Float[Array, ""]
    iterations: Int[Array, ""]


class MaxExplorer(FiniteExplorer):
    """Algorithm 1 with the exploration MDP tabulated once a step and solved by value iteration."""

    config: FiniteMaxConfig = eqx.field(static=True, default=FiniteMaxConfig())

    def init(self, world: Finite, *, key: PRNGKeyArray) -> MaxMind:
        ensemble = CategoricalEnsemble(world.states, world.actions, self.config.model, key=key)
        return MaxMind(Memory.empty(world), ensemble, Moments.zero(ensemble.members))

    def act(self, world: Finite, mind: MaxMind, state: Int[Array, ""], *, key: PRNGKeyArray) -> Int[Array, ""]:
        at_random = mind.memory.total < self.config.warm_up * world.horizon
        key_plan, key_choose = jax.random.split(key)

        def plan() -> Float[Array, " actions"]:
            return self.values(world, mind, state, key=key_plan)

        values = jax.lax.cond(at_random, lambda: jnp.zeros(world.actions), plan)
        return choose(world, values, at_random, key=key_choose)

    def observe(
        self, world: Finite, mind: MaxMind, transition: Transition, reward: Float[Array, ""], *, key: PRNGKeyArray
    ) -> MaxMind:
        memory = mind.memory.add(transition)
        # Nothing is asked of the models before the warm-up is over.
        needed = memory.total >= self.config.warm_up * world.horizon
        learned = jax.lax.cond(
            needed,
            lambda: self.learn(world, memory, mind.ensemble, mind.moments),
            lambda: (mind.ensemble.members, mind.moments),
        )
        ensemble = eqx.tree_at(lambda e: e.members, mind.ensemble, learned[0])
        return MaxMind(memory, ensemble, learned[1])

    def values(
        self, world: Finite, mind: MaxMind, state: Int[Array, ""], *, key: PRNGKeyArray
    ) -> Float[Array, " actions"]:
        """What each action promises until the end of the episode."""
        table, remaining = tabulate(world, mind), world.horizon - mind.memory.step
        if self.config.search is not None:
            return mcts(table, state, remaining, world.horizon, self.config.search, key=key)
        return value_iteration(table, remaining, world.horizon, discount=self.config.discount)[state]

    def learn(
        self, world: Finite, memory: Memory, ensemble: CategoricalEnsemble, moments: Moments
    ) -> tuple[Member, Moments]:
        """Train on all visited pairs alike, until the worst of them is fitted by every member."""
        states, actions = pairs(world)
        visited = memory.visited.reshape(-1)
        observed = memory.frequencies.reshape(-1, world.states)
        entropy = -jnp.sum(observed * jnp.log(jnp.where(observed > 0, observed, 1.0)), axis=-1)

        def loss(members: Member) -> tuple[Float[Array, ""], Float[Array, ""]]:
            logits = eqx.tree_at(lambda e: e.members, ensemble, members).forecast(states, actions)
            cross = -jnp.sum(observed[None] * jax.nn.log_softmax(logits), axis=-1)
            divergence = jnp.where(visited[None], cross - entropy[None], 0.0)  # KL(observed || predicted)
            return jnp.sum(divergence) / jnp.sum(visited), jnp.max(divergence)

        def step(now: Learning) -> Learning:
            gradient, worst = jax.grad(loss, has_aux=True)(now.members)
            members, moments = adam(
                now.members,
                gradient,
                now.moments,
                learning_rate=self.config.learning_rate,
                weight_decay=self.config.weight_decay,
            )
            return Learning(members, moments, worst, now.iterations + 1)

        def unfitted(now: Learning) -> Array:
            return (now.worst > self.config.tolerance) & (now.iterations < self.config.iterations)

        start = Learning(ensemble.members, moments, jnp.asarray(jnp.inf), jnp.zeros((), jnp.int32))
        end = jax.lax.while_loop(unfitted, step, start)
        return end.members, end.moments


def pairs(world: Finite) -> tuple[Int[Array, " pairs"], Int[Array, " pairs"]]:
    """Every state with every action."""
    states, actions = jnp.meshgrid(jnp.arange(world.states), jnp.arange(world.actions), indexing="ij")
    return states.reshape(-1), actions.reshape(-1)


def tabulate(world: Finite, mind: MaxMind) -> Table:
    """The exploration MDP written out: one forward pass of all pairs, after which planning is look-ups."""
    probabilities = mind.ensemble.predict(*pairs(world))
    shape = (world.states, world.actions)
    return Table(
        jnp.mean(probabilities, axis=0).reshape(*shape, world.states),
        jensen_shannon(probabilities).reshape(shape),
        1.0 - mind.memory.terminal,
    )
