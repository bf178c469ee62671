"""The networks of the learned policies: a squashed Gaussian over actions, and scalar values."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from maxplore.models.gaussian import new_inputs
from maxplore.models.mlp import MLP, Activation
from maxplore.normalizer import Normalizer
from maxplore.solvers.base import Policy


class Draw(eqx.Module):
    """One action drawn from a policy, with what its gradient needs."""

    action: Float[Array, " actions"]
    log_density: Float[Array, ""]
    mean: Float[Array, " actions"]
    """Before squashing."""
    log_std: Float[Array, " actions"]


class Actor(Policy):
    """tanh of a Gaussian whose mean and standard deviation a network tells from the normalised state."""

    network: MLP
    normalizer: Normalizer
    """The model's statistics of states."""
    log_std: tuple[float, float] = eqx.field(static=True)
    """Bounds; tanh squashes the network's output into them."""

    def __call__(self, state: Float[Array, " dims"], *, key: PRNGKeyArray | None = None) -> Float[Array, " actions"]:
        if key is None:
            return jnp.tanh(self.gaussian(state)[0])
        return self.draw(state, jax.random.normal(key, (self.dims,))).action

    @property
    def dims(self) -> int:
        """How many numbers an action has."""
        return self.network.layers[-1].bias.shape[-1] // 2

    def gaussian(self, state: Float[Array, " dims"]) -> tuple[Float[Array, " actions"], Float[Array, " actions"]]:
        """Mean and log standard deviation before squashing."""
        mean, raw = jnp.split(self.network(self.normalizer.normalize(state)), 2)
        low, high = self.log_std
        return mean, low + 0.5 * (high - low) * (1 + jnp.tanh(raw))

    def draw(self, state: Float[Array, " dims"], noise: Float[Array, " actions"]) -> Draw:
        """The action that standard normal `noise` leads to: differentiable in state and parameters."""
        mean, log_std = self.gaussian(state)
        raw = mean + jnp.exp(log_std) * noise
        normal = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi)
        # ln(1 - tanh(x)^2) without cancellation
        squash = 2 * (math.log(2) - raw - jax.nn.softplus(-2 * raw))
        return Draw(jnp.tanh(raw), jnp.sum(normal - squash), mean, log_std)


def new_actor(
    normalizer: Normalizer,
    actions: int,
    *,
    depth: int,
    width: int,
    activation: Activation | str,
    log_std: tuple[float, float],
    initial_log_std: float | None,
    key: PRNGKeyArray,
) -> Actor:
    """An actor as drawn. `initial_log_std` None lets it begin around the middle of the bounds."""
    network = orthogonal(normalizer.mean.size, 2 * actions, depth=depth, width=width, activation=activation, key=key)
    if initial_log_std is not None:
        low, high = log_std
        share = min(max((initial_log_std - low) / (high - low), 0.01), 0.99)
        last = network.layers[-1]
        bias = last.bias.at[actions:].set(math.atanh(2 * share - 1))
        # Small last weights: every state begins with about the same wide distribution.
        network = eqx.tree_at(lambda n: (n.layers[-1].weight, n.layers[-1].bias), network, (0.01 * last.weight, bias))
    return Actor(network, normalizer, log_std)


def orthogonal(
    inputs: int, outputs: int, *, depth: int, width: int, activation: Activation | str, key: PRNGKeyArray
) -> MLP:
    """A network with orthogonal weights and biases 0."""
    key_shape, *keys = jax.random.split(key, depth + 2)
    network = MLP(inputs, outputs, depth=depth, width=width, activation=activation, key=key_shape)
    draw = jax.nn.initializers.orthogonal()
    weights = [draw(key, layer.weight.shape) for key, layer in zip(keys, network.layers, strict=True)]
    return eqx.tree_at(lambda n: [layer.weight for layer in n.layers], network, weights)


def adapted(network: MLP, old: Normalizer, new: Normalizer) -> MLP:
    """The network that says of newly normalised states (its first inputs) what it said of the old ones."""
    first = network.layers[0]
    rest = first.weight.shape[-2] - old.mean.size
    changes = [(old, new), (Normalizer.identity(rest), Normalizer.identity(rest))]
    return eqx.tree_at(lambda n: n.layers[0], network, new_inputs(first, changes))
