"""Jensen-Renyi divergence of Gaussian predictions (eq. 10), with quadratic Renyi entropy."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from maxplore.utilities.base import Outcome, Utility, gaussian


def jensen_renyi(
    mean: Float[Array, "members *batch dims"], variance: Float[Array, "members *batch dims"]
) -> Float[Array, "*batch"]:
    """How much the members' Gaussians disagree, in nats: 0 if all are equal, ln N if all are far apart.

    It can be negative where means agree and variances differ much: quadratic entropy is not concave.

    >>> far, near = jnp.array([[0.0], [100.0]]), jnp.array([[0.0], [0.0]])
    >>> jensen_renyi(far, jnp.ones((2, 1))).round(4), jensen_renyi(near, jnp.ones((2, 1))).round(4)
    (Array(0.6931, dtype=float32), Array(0., dtype=float32))
    """
    # With h_i = ln|Sigma_i| / 2, less its mean over members, eq. 10 is
    #   -ln 1/N^2 sum_ij exp(-p_ij / 2 - g_ij - (h_i + h_j) / 2),
    #   p_ij = Delta^T Omega^-1 Delta,   g_ij = 1/2 sum_k ln (v_i + v_j) / (2 sqrt(v_i v_j)) >= 0.
    # All large terms are gone before anything is summed: equal members give exactly 0 in any dimension.
    members = mean.shape[0]
    log_variance = jnp.log(variance)
    log_variance = log_variance - log_variance[:1]
    entropy = 0.5 * jnp.sum(log_variance - jnp.mean(log_variance, axis=0, keepdims=True), axis=-1)
    gap = mean[:, None] - mean[None]
    width = variance[:, None] + variance[None]
    distance = 0.5 * gap**2 / width
    mismatch = 0.5 * jnp.log(width / (2 * jnp.sqrt(variance[:, None]) * jnp.sqrt(variance[None])))
    exponent = -jnp.sum(distance + mismatch, axis=-1) - 0.5 * (entropy[:, None] + entropy[None])
    overlap = jax.nn.logsumexp(exponent, axis=(0, 1))
    return jnp.minimum(2 * math.log(members) - overlap, math.log(members))


def rescale_variance(variance: Float[Array, "*shape"], upper: float, temperature: float) -> Float[Array, "*shape"]:
    """The paper's lambda: variances drawn towards their upper bound, so that means count for more.

    1 leaves them as they are, 0 puts the bound in place of all.
    """
    return upper - temperature * (upper - variance)


class JensenRenyi(Utility):
    """MAX's utility for continuous environments."""

    temperature: float = 0.1
    """lambda of section 2.4; the paper has 0.1 throughout."""

    def __call__(self, outcome: Outcome) -> Float[Array, " batch"]:
        upper = math.exp(gaussian(outcome).config.log_variance[1])
        mean, variance = outcome.forecast
        return jensen_renyi(mean, rescale_variance(variance, upper, self.temperature))
