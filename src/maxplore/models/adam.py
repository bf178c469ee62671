"""Adam with value clipping and weight decay, written as one pass over the parameters."""

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

Parameters = TypeVar("Parameters")


class Moments(NamedTuple):
    """What Adam remembers: running means of the gradient and of its square."""

    steps: Int[Array, ""]
    first: PyTree
    second: PyTree

    @classmethod
    def zero(cls, parameters: PyTree) -> "Moments":
        first, second = (jax.tree.map(jnp.zeros_like, parameters) for _ in range(2))
        return cls(jnp.zeros((), jnp.int32), first, second)


def adam(
    parameters: Parameters,
    gradient: Parameters,
    moments: Moments,
    *,
    learning_rate: float | Float[Array, ""] = 1e-3,
    clip: float = 5.0,
    weight_decay: float = 0.0,
    decay: tuple[float, float] = (0.9, 0.999),
    epsilon: float = 1e-8,
) -> tuple[Parameters, Moments]:
    """One step of Adam: gradient values clipped to +-`clip`, `weight_decay` times the parameters added (L2)."""
    fast, slow = decay
    steps = moments.steps + 1
    rate = learning_rate / (1 - fast**steps)
    correction = 1 / (1 - slow**steps)

    def step(p: Array, g: Array, m: Array, v: Array) -> tuple[Array, Array, Array]:
        g = jnp.clip(g, -clip, clip)
        g = g + weight_decay * p if weight_decay else g
        m = fast * m + (1 - fast) * g
        v = slow * v + (1 - slow) * g * g
        return p - rate * m / (jnp.sqrt(v * correction) + epsilon), m, v

    stepped = jax.tree.map(step, parameters, gradient, moments.first, moments.second)
    outer = jax.tree.structure(parameters)
    parameters, first, second = jax.tree.transpose(outer, jax.tree.structure((0, 0, 0)), stepped)
    return parameters, Moments(steps, first, second)
