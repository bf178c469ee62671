"""Statistics that bring states, actions and state deltas to mean 0 and standard deviation 1."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


class Normalizer(eqx.Module):
    """Mean and scale of every dimension. A dimension that never varied has `scale` 1 and `varies` False.

    Angles and other special dimensions are the environment's matter: here all numbers are alike.
    """

    mean: Float[Array, " dims"]
    scale: Float[Array, " dims"]
    varies: Bool[Array, " dims"]

    @classmethod
    def identity(cls, dims: int) -> "Normalizer":
        return cls(jnp.zeros(dims), jnp.ones(dims), jnp.ones(dims, bool))

    @classmethod
    def of(cls, rows: Float[Array, "n dims"], chosen: Bool[Array, " n"]) -> "Normalizer":
        """Population statistics of the chosen rows, in two passes and safe from cancellation and overflow."""
        count = jnp.maximum(jnp.sum(chosen), 1).astype(rows.dtype)
        weight = chosen[:, None].astype(rows.dtype) / count
        # Offsets from one of the rows: a constant dimension gives exact zeros, whatever its size.
        first = rows[jnp.argmax(chosen)][None, :]
        mean = first + jnp.sum((rows - first) * weight, axis=0, keepdims=True)
        offset = jnp.where(chosen[:, None], rows - mean, 0.0)
        # Squares of offsets in [-1, 1] neither overflow nor vanish.
        reach = jnp.max(jnp.abs(offset), axis=0, keepdims=True)
        unit = offset / jnp.where(reach > 0, reach, 1.0)
        std = (reach * jnp.sqrt(jnp.sum(unit**2 * weight, axis=0, keepdims=True)))[0]
        # Below the rounding of the values themselves there is nothing but noise.
        rounding = 4 * jnp.finfo(rows.dtype).eps * jnp.abs(mean[0])
        varies = std > rounding
        return cls(mean[0], jnp.where(varies, std, 1.0), varies)

    def normalize(self, value: Float[Array, " dims"]) -> Float[Array, " dims"]:
        return (value - self.mean) / self.scale

    def denormalize(self, value: Float[Array, " dims"]) -> Float[Array, " dims"]:
        """Back to the data's own units; a dimension that never varied stays what it always was."""
        return self.mean + self.spread * value

    @property
    def spread(self) -> Float[Array, " dims"]:
        """The standard deviation itself: `scale`, but 0 for a dimension that never varied."""
        return jnp.where(self.varies, self.scale, 0.0)
