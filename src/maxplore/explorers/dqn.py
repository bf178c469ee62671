"""What the two DQN baselines share: a replay, a Q-network with its target, one temporal-difference update."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from maxplore.history import Transition
from maxplore.models.mlp import MLP


class Replay(eqx.Module):
    """The latest transitions with their rewards, in a ring."""

    transitions: Transition
    reward: Float[Array, " capacity"]
    added: Int[Array, ""]

    @classmethod
    def empty(cls, capacity: int) -> "Replay":
        numbers, flags = jnp.zeros(capacity, jnp.int32), jnp.zeros(capacity, bool)
        return cls(Transition(numbers, numbers, numbers, flags, flags), jnp.zeros(capacity), jnp.zeros((), jnp.int32))

    def add(self, transition: Transition, reward: Float[Array, ""]) -> "Replay":
        place = self.added % self.reward.shape[0]
        transitions = jax.tree.map(lambda rows, row: rows.at[place].set(row), self.transitions, transition)
        return Replay(transitions, self.reward.at[place].set(reward), self.added + 1)

    def sample(self, size: int, *, key: PRNGKeyArray) -> tuple[Transition, Float[Array, " batch"]]:
        rows = jax.random.randint(key, (size,), 0, jnp.minimum(self.added, self.reward.shape[0]))
        return jax.tree.map(lambda x: x[rows], self.transitions), self.reward[rows]


class Learner(eqx.Module):
    """A Q-network, its target, and the optimiser's memory."""

    network: MLP
    target: MLP
    optimizer: optax.OptState
    updates: Int[Array, ""]

    @classmethod
    def create(cls, network: MLP, learning_rate: float) -> "Learner":
        weights = eqx.filter(network, eqx.is_array)
        return cls(network, network, rmsprop(learning_rate).init(weights), jnp.zeros((), jnp.int32))

    def update(
        self,
        encoding: Float[Array, "states inputs"],
        batch: Transition,
        reward: Float[Array, " batch"],
        *,
        learning_rate: float,
        discount: float,
        target_every: int,
        heads: int = 1,
    ) -> "Learner":
        """One step on the Huber loss of the temporal difference; the target follows every `target_every` updates.

        The network's outputs are those of `heads` heads, one after the other; each learns from its own target.
        """

        def values(network: MLP, states: Int[Array, " batch"]) -> Float[Array, "batch heads actions"]:
            return jax.vmap(network)(encoding[states]).reshape(states.shape[0], heads, -1)

        def loss(network: MLP) -> Float[Array, ""]:
            taken = jnp.take_along_axis(values(network, batch.state), batch.action[:, None, None], axis=2)[..., 0]
            following = jnp.max(values(self.target, batch.next_state), axis=2)
            goal = reward[:, None] + discount * following * (1.0 - batch.terminated[:, None])
            return jnp.mean(optax.losses.huber_loss(taken, goal))

        gradient = jax.grad(loss)(self.network)
        step, optimizer = rmsprop(learning_rate).update(gradient, self.optimizer)
        network = optax.apply_updates(self.network, step)  # pyright: ignore[reportArgumentType]  (a pytree)
        updates = self.updates + 1
        follow = updates % target_every == 0
        target = jax.tree.map(lambda new, old: jnp.where(follow, new, old), network, self.target)
        return Learner(network, target, optimizer, updates)  # pyright: ignore[reportArgumentType]


def rmsprop(learning_rate: float) -> optax.GradientTransformation:
    """The paper's: RMSprop with momentum 0.9, gradient values clipped to 5."""
    return optax.chain(optax.clip(5.0), optax.rmsprop(learning_rate, decay=0.99, eps=1e-8, momentum=0.9))


def thermometer(states: int) -> Float[Array, "states states"]:
    """State s as s + 1 ones followed by zeros."""
    lit: Bool[Array, "states states"] = jnp.arange(states)[None, :] <= jnp.arange(states)[:, None]
    return lit.astype(jnp.float32)
