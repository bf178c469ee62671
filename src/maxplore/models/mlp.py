"""The network inside every member: a multi-layer perceptron for one example."""

import math
from collections.abc import Callable
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from maxplore.errors import InputError

Activation = Callable[[Array], Array]


@jax.custom_jvp
def swish(x: Array) -> Array:
    """x sigmoid(x)."""
    return x * jax.nn.sigmoid(x)


@swish.defjvp
def _swish_jvp(values: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    # Written in what the forward pass has computed already: the backward pass needs no exponential.
    (x,), (tangent,) = values, tangents
    sigmoid = jax.nn.sigmoid(x)
    y = x * sigmoid
    return y, (sigmoid + y * (1 - sigmoid)) * tangent


ACTIVATIONS: dict[str, Activation] = {
    "swish": swish,
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "gelu": jax.nn.gelu,
    "elu": jax.nn.elu,
    "leaky_relu": jax.nn.leaky_relu,
}


OPEN = -1.0 + 2.0**-24
"""The smallest float32 above -1: its normal quantile is finite."""


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
    ) -> None:
        sizes = [inputs, *[width] * depth, outputs]
        shapes = list(pairwise(sizes))
        # One draw for all layers: a generator compiled for each would take longer than a small fit.
        draws = jax.random.uniform(key, (sum(map(math.prod, shapes)),), minval=OPEN, maxval=1.0)
        layers: list[Layer] = []
        for last, (fan_in, fan_out) in zip([False] * depth + [True], shapes, strict=True):
            own, draws = draws[: fan_in * fan_out], draws[fan_in * fan_out :]
            # Variance 2 / (fan_in + fan_out): uniform for hidden layers, normal for the last.
            unit = math.sqrt(2) * jax.scipy.special.erfinv(own) if last else math.sqrt(3) * own
            weight = math.sqrt(2 / (fan_in + fan_out)) * unit.reshape(fan_in, fan_out)
            layers.append(Layer(weight, jnp.zeros(fan_out)))
        self.layers = tuple(layers)
        self.activation = activation_named(activation)

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        return self.after_first(self.layers[0](x))

    def after_first(self, x: Float[Array, " width"]) -> Float[Array, " outputs"]:
        """The rest, for callers that know the first layer's sums by other means."""
        for layer in self.layers[1:]:
            x = layer(self.activation(x))
        return x


def activation_named(name: str | Activation) -> Activation:
    if callable(name):
        return name
    if name not in ACTIVATIONS:
        raise InputError(f"activation is {name!r}, expected one of {', '.join(ACTIVATIONS)} or a function")
    return ACTIVATIONS[name]
