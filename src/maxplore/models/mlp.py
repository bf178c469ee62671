"""The network inside every member: a multi-layer perceptron for one example."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from maxplore.errors import InputError

Activation = Callable[[Array], Array]

ACTIVATIONS: dict[str, Activation] = {
    "swish": jax.nn.silu,
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "gelu": jax.nn.gelu,
    "elu": jax.nn.elu,
}


class Layer(eqx.Module):
    """An affine map, `x @ weight + bias`."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        return x @ self.weight + self.bias


class MLP(eqx.Module):
    """`depth` hidden layers of `width` units. Glorot initialisation, biases 0."""

    layers: tuple[Layer, ...]
    activation: Activation = eqx.field(static=True)

    def __init__(
        self, inputs: int, outputs: int, *, depth: int, width: int, activation: str | Activation, key: PRNGKeyArray
    ):
        sizes = [inputs, *[width] * depth, outputs]
        uniform, normal = jax.nn.initializers.glorot_uniform(), jax.nn.initializers.glorot_normal()
        initializers = [uniform] * depth + [normal]
        keys = jax.random.split(key, depth + 1)
        self.layers = tuple(
            Layer(init(key, (fan_in, fan_out)), jnp.zeros(fan_out))
            for init, key, fan_in, fan_out in zip(initializers, keys, sizes[:-1], sizes[1:], strict=True)
        )
        self.activation = activation_named(activation)

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.layers[-1](x)


def activation_named(name: str | Activation) -> Activation:
    if callable(name):
        return name
    if name not in ACTIVATIONS:
        raise InputError(f"activation is {name!r}, expected one of {', '.join(ACTIVATIONS)} or a function")
    return ACTIVATIONS[name]
