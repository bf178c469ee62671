"""How MAX's ensemble learns after a transition, in a finite environment: counts are all there is to know about D."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from maxplore.errors import InputError
from maxplore.explorers.base import Finite
from maxplore.explorers.memory import Memory
from maxplore.models.adam import Moments, adam
from maxplore.models.categorical import CategoricalEnsemble
from maxplore.models.ensemble import Member

FEW = 256
"""Below so many pairs it is not worth while to leave out those never visited."""


class Learned(NamedTuple):
    """An ensemble's members, and the optimiser's memory of them."""

    members: Member
    moments: Moments


class Unfinished(NamedTuple):
    """Training under way."""

    learned: Learned
    worst: Float[Array, ""]
    """How far off the worst visited pair is, in nats."""
    iterations: Int[Array, ""]


@runtime_checkable
class Training(Protocol):
    """One way to train after a transition."""

    def learn(
        self,
        world: Finite,
        memory: Memory,
        ensemble: CategoricalEnsemble,
        moments: Moments,
        first: Array,
        *,
        key: PRNGKeyArray,
    ) -> Learned:
        """The members after training; `first` says that this is the first time, when the warm-up is over."""
        ...


@dataclass(frozen=True)
class UntilFitted:
    """Train on all visited pairs alike, until the worst of them is fitted by every member."""

    learning_rate: float = 3e-3
    """Adam's."""
    weight_decay: float = 0.0
    """L2; it shrinks the weights of states never visited, and with them the disagreement: none by default."""
    tolerance: float = 0.02
    """Enough, once the worst visited pair is this near to its observed frequencies (nats)."""
    iterations: int = 60
    """Gradient steps after a transition, at the most."""
    doubt: float = 1.0
    """How many transitions each member makes up for every pair, where chance is at work: to a state of its own choice,
    and so in disagreement with the others until the pair was tried often. It counts as far as more than a tenth of the
    pairs that were tried again did surprise; in a world without chance, or with a single trap, not at all."""

    def __post_init__(self) -> None:
        _check(self, {"learning_rate": 0, "weight_decay": 0, "tolerance": 0, "iterations": 0, "doubt": 0})

    def learn(
        self,
        world: Finite,
        memory: Memory,
        ensemble: CategoricalEnsemble,
        moments: Moments,
        first: Array,
        *,
        key: PRNGKeyArray,
    ) -> Learned:
        return self.go_on(world, memory, ensemble, self.begun(ensemble, moments), self.iterations).learned

    def begun(self, ensemble: CategoricalEnsemble, moments: Moments) -> Unfinished:
        """Training before its first step."""
        return Unfinished(Learned(ensemble.members, moments), jnp.asarray(jnp.inf), jnp.zeros((), jnp.int32))

    def go_on(
        self,
        world: Finite,
        memory: Memory,
        ensemble: CategoricalEnsemble,
        now: Unfinished,
        until: int | Int[Array, ""],
    ) -> Unfinished:
        """Training after so many iterations in all, or fewer if that is enough."""
        pairs = world.states * world.actions
        sizes = [*(size for size in (FEW * 4**k for k in range(8)) if size < pairs), pairs]
        enough = jnp.sum(jnp.array(sizes) < jnp.sum(memory.visited))
        branches = [lambda size=size: self._learn_pairs(size, memory, ensemble, now, until) for size in sizes]
        return jax.lax.switch(enough, branches)

    def _learn_pairs(
        self, size: int, memory: Memory, ensemble: CategoricalEnsemble, now: Unfinished, until: int | Int[Array, ""]
    ) -> Unfinished:
        """Train on the visited pairs, of which there are at most `size`."""
        visited = memory.visited.reshape(-1)
        (rows,) = jnp.nonzero(visited, size=size, fill_value=0)
        weight = (jnp.arange(size) < jnp.sum(visited)) * 1.0
        states, actions = jnp.divmod(rows, memory.visited.shape[1])
        observed = believed(memory, states, actions, ensemble.size, self.doubt)
        entropy = -jnp.sum(observed * jnp.log(jnp.where(observed > 0, observed, 1.0)), axis=-1)

        def loss(members: Member) -> tuple[Float[Array, ""], Float[Array, ""]]:
            logits = ensemble.logits(members, states, actions)
            cross = -jnp.sum(observed * jax.nn.log_softmax(logits), axis=-1)
            divergence = weight[None] * (cross - entropy)  # KL(observed || predicted)
            return jnp.sum(divergence) / jnp.sum(weight), jnp.max(divergence)

        def step(now: Unfinished) -> Unfinished:
            gradient, worst = jax.grad(loss, has_aux=True)(now.learned.members)
            return Unfinished(_updated(self, now.learned, gradient), worst, now.iterations + 1)

        return jax.lax.while_loop(lambda now: self.unfitted(now) & (now.iterations < until), step, now)

    def unfitted(self, now: Unfinished) -> Bool[Array, ""]:
        """Whether the worst pair is not yet fitted, and may go on to be."""
        return (now.worst > self.tolerance) & (now.iterations < self.iterations)


LOCAL = 0.1
"""Share of pairs that may surprise without the rest of the world being doubted: chance can be a matter of one place."""


def believed(
    memory: Memory, states: Int[Array, " pairs"], actions: Int[Array, " pairs"], members: int, doubt: float
) -> Float[Array, "members pairs states"]:
    """Frequencies of next states after these pairs, all of them tried, as each member counts them: what was seen, and
    what it makes up in its `doubt`."""
    if doubt == 0:
        return memory.frequencies[states, actions][None]  # the same for all
    again = jnp.sum(memory.counts, axis=-1) >= 2
    surprised = again & (jnp.sum(memory.counts > 0, axis=-1) >= 2)
    share = jnp.sum(surprised) / jnp.maximum(jnp.sum(again), 1)
    chance = jnp.maximum(share - LOCAL, 0.0) / (1 - LOCAL)
    kinds = memory.counts.shape[-1]
    places = jax.random.randint(jax.random.key(0), (members, *memory.visited.shape), 0, kinds)
    counts = memory.counts[states, actions][None] + doubt * chance * jax.nn.one_hot(places[:, states, actions], kinds)
    return counts / jnp.maximum(jnp.sum(counts, axis=-1, keepdims=True), 1.0)


@dataclass(frozen=True)
class Minibatches:
    """The paper's training (appendix C.2): so many minibatches of D, whatever the fit."""

    learning_rate: float = 1e-3
    weight_decay: float = 1e-6
    batch_size: int = 256
    first: int = 150
    """Gradient steps when the warm-up ends."""
    per_episode: int = 64
    """Gradient steps an episode, spread evenly over its transitions."""

    def __post_init__(self) -> None:
        _check(self, {"learning_rate": 0, "weight_decay": 0, "batch_size": 1, "first": 0, "per_episode": 0})

    def learn(
        self,
        world: Finite,
        memory: Memory,
        ensemble: CategoricalEnsemble,
        moments: Moments,
        first: Array,
        *,
        key: PRNGKeyArray,
    ) -> Learned:
        # The step counter has moved on already; at the end of an episode it is 0.
        done = jnp.where(memory.step == 0, world.horizon, memory.step)
        share = (done * self.per_episode) // world.horizon - ((done - 1) * self.per_episode) // world.horizon
        cumulative = jnp.cumsum(memory.counts.reshape(-1))

        def loss(members: Member, batch: Float[Array, "states actions states"]) -> Float[Array, ""]:
            logits = eqx.tree_at(lambda e: e.members, ensemble, members).table()
            return -jnp.sum(batch[None] * jax.nn.log_softmax(logits))  # a member's gradient is its own

        def step(number: Int[Array, ""], learned: Learned) -> Learned:
            # Transitions drawn from D with replacement, as the share of the batch that each of them is.
            draws = jax.random.uniform(jax.random.fold_in(key, number), (self.batch_size,)) * cumulative[-1]
            rows = jnp.searchsorted(cumulative, draws, side="right")
            batch = jnp.zeros_like(cumulative).at[rows].add(1.0 / self.batch_size)
            gradient = jax.grad(loss)(learned.members, batch.reshape(memory.counts.shape))
            return _updated(self, learned, gradient)

        iterations = jnp.where(first, self.first, share)
        return jax.lax.fori_loop(0, iterations, step, Learned(ensemble.members, moments))


def _updated(training: UntilFitted | Minibatches, learned: Learned, gradient: Member) -> Learned:
    rate, decay = training.learning_rate, training.weight_decay
    return Learned(*adam(learned.members, gradient, learned.moments, learning_rate=rate, weight_decay=decay))


def _check(training: UntilFitted | Minibatches, least: dict[str, int]) -> None:
    for name, bound in least.items():
        if not bound <= getattr(training, name) < math.inf:
            raise InputError(f"{name} is {getattr(training, name)}, expected a finite number of at least {bound}")
