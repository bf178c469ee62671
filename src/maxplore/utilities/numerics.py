"""Small numerical helpers of the utilities."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def safe_sqrt(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Square root whose gradient at 0 is 0 rather than infinite."""
    positive = x > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, 1.0)), 0.0)


def variance_of(x: Float[Array, "n *shape"]) -> Float[Array, "*shape"]:
    """Population variance over the leading axis, exactly 0 where all are equal, whatever their size."""
    return jnp.var(x - x[:1], axis=0)
