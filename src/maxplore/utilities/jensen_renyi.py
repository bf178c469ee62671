"""Jensen-Renyi divergence of Gaussian predictions (eq. 10), with quadratic Renyi entropy.

With h_i = ln|Sigma_i| / 2 less its mean over members, eq. 10 reads

    JRD = -ln 1/N^2 sum_ij exp(-p_ij / 2 - g_ij - (h_i + h_j) / 2)
    p_ij = sum_k (mu_i - mu_j)^2 / (v_i + v_j)
    g_ij = 1/2 sum_k ln (v_i + v_j) / (2 sqrt(v_i v_j)) = 1/4 sum_k ln(1 + (v_i - v_j)^2 / (4 v_i v_j))

All large terms are gone before anything is summed, so equal members give exactly 0 in any dimension.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num

from maxplore import checks
from maxplore.utilities.base import Outcome, Utility, gaussian

LEAST = 1e-30
"""Variances below this count as this: its reciprocal and its square root are still ordinary numbers."""

UNROLLED = 32
"""Dimensions handled in one stretch of straight-line code; more of them take a loop."""


def jensen_renyi(
    mean: Num[Array, "members *batch dims"] | Num[np.ndarray, "members *batch dims"],
    variance: Num[Array, "members *batch dims"] | Num[np.ndarray, "members *batch dims"],
) -> Float[Array, "*batch"]:
    """How much the members' Gaussians disagree, in nats: 0 if all are equal, ln N if all are far apart.

    It can be negative where means agree and variances differ much: quadratic entropy is not concave. Computed in
    float32, whatever comes in; a dimension with variance 0 in all members counts for nothing while their means agree.

    >>> far, near = jnp.array([[0.0], [100.0]]), jnp.array([[0.0], [0.0]])
    >>> jensen_renyi(far, jnp.ones((2, 1))).round(4), jensen_renyi(near, jnp.ones((2, 1))).round(4)
    (Array(0.6931, dtype=float32), Array(0., dtype=float32))
    """
    members, dims, batch = mean.shape[0], mean.shape[-1], mean.shape[1:-1]
    mean, variance = jnp.asarray(mean, jnp.float32), jnp.maximum(jnp.asarray(variance, jnp.float32), LEAST)
    rows = (x.reshape(members, math.prod(batch), dims) for x in (mean, variance))
    return jax.vmap(_divergence, in_axes=1)(*rows).reshape(batch)


def rescale_variance(variance: Float[Array, "*shape"], upper: float, temperature: float) -> Float[Array, "*shape"]:
    """The paper's lambda: variances drawn towards their upper bound, so that means count for more.

    1 leaves them as they are, 0 puts the bound in place of all.
    """
    return (1 - temperature) * upper + temperature * variance


class JensenRenyi(Utility):
    """MAX's utility for continuous environments."""

    temperature: float = 0.1
    """lambda of section 2.4; the paper has 0.1 throughout."""

    def __check_init__(self) -> None:
        checks.share(self, "temperature")

    def __call__(self, outcome: Outcome) -> Float[Array, " batch"]:
        return self.divergence(outcome)

    def divergence(self, outcome: Outcome) -> Float[Array, " batch"]:
        upper = math.exp(gaussian(outcome).config.log_variance[1])
        mean, variance = outcome.forecast
        return jensen_renyi(mean, rescale_variance(variance, upper, self.temperature))


def _divergence(mean: Float[Array, "members dims"], variance: Float[Array, "members dims"]) -> Float[Array, ""]:
    members = mean.shape[0]
    log_variance = jnp.log(variance)
    log_variance = log_variance - log_variance[:1]  # the mean of equal numbers is then exact
    entropy = 0.5 * jnp.sum(log_variance - jnp.mean(log_variance, axis=0, keepdims=True), axis=1)

    # The grid of pairs is symmetric: square blocks of it on and above the diagonal are enough.
    block = next(size for size in (8, 4, 2, 1) if members % size == 0)
    above, beside = np.triu_indices(members // block)
    count = np.where(above == beside, 1.0, 2.0).astype(np.float32)  # a block off the diagonal stands for two
    mean, variance = (x.T.reshape(-1, members // block, block) for x in (mean, variance))
    entropy = entropy.reshape(-1, block)
    exponent = _overlap(
        mean[:, above, :, None], variance[:, above, :, None], mean[:, beside, None, :], variance[:, beside, None, :]
    )
    exponent = exponent - 0.5 * (entropy[above][:, :, None] + entropy[beside][:, None, :])
    total = jax.nn.logsumexp(exponent, b=jnp.broadcast_to(count[:, None, None], exponent.shape))
    return jnp.minimum(2 * math.log(members) - total, math.log(members))


@jax.custom_jvp
def _overlap(mean_i: Array, variance_i: Array, mean_j: Array, variance_j: Array) -> Array:
    """-p_ij / 2 - g_ij, summed over the leading axis; the other axes broadcast.

    The logarithms of g are one logarithm of a product, whose exponent is kept apart so that it cannot overflow.
    """
    operands = (mean_i, variance_i, 1 / variance_i, mean_j, variance_j, 1 / variance_j)

    def add(carry: tuple[Array, Array, Array], stretch: tuple[Array, ...]) -> tuple[tuple[Array, Array, Array], None]:
        distance, mantissa, exponent = carry
        for m_i, v_i, r_i, m_j, v_j, r_j in zip(*stretch, strict=True):
            gap, mismatch = m_i - m_j, v_i - v_j
            distance = distance + gap * (gap / (v_i + v_j))
            mantissa, power = _normalized(mantissa * (1 + 0.25 * (mismatch * r_i) * (mismatch * r_j)))
            exponent = exponent + power
        return (distance, mantissa, exponent), None

    shape = jnp.broadcast_shapes(mean_i.shape[1:], mean_j.shape[1:])
    carry = (jnp.zeros(shape, jnp.float32), jnp.ones(shape, jnp.float32), jnp.zeros(shape, jnp.int32))
    dims = mean_i.shape[0]
    looped = dims - dims % UNROLLED if dims > UNROLLED else 0
    if looped:
        stretches = tuple(x[:looped].reshape(-1, UNROLLED, *x.shape[1:]) for x in operands)
        carry, _ = jax.lax.scan(add, carry, stretches)
    (distance, mantissa, exponent), _ = add(carry, tuple(x[looped:] for x in operands))
    logarithm = jnp.log(mantissa) + math.log(2) * exponent.astype(jnp.float32)
    return -0.5 * distance - 0.25 * logarithm


@_overlap.defjvp
def _overlap_jvp(values: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    mean_i, variance_i, mean_j, variance_j = values
    d_mean_i, d_variance_i, d_mean_j, d_variance_j = tangents
    width = variance_i + variance_j
    pull = (mean_i - mean_j) / width
    # dg/dv_i = (v_i - v_j) / (4 v_i (v_i + v_j)), and the same with i and j exchanged
    mismatch = 0.25 * (variance_i - variance_j) / width
    squeeze = jnp.minimum(0.5 * pull**2, 1e37)  # finite, so that members with no overlap have slope 0 and not NaN
    slope = -pull * (d_mean_i - d_mean_j) + squeeze * (d_variance_i + d_variance_j)
    slope = slope - mismatch / variance_i * d_variance_i + mismatch / variance_j * d_variance_j
    return _overlap(*values), jnp.sum(slope, axis=0)


def _normalized(x: Float[Array, "*shape"]) -> tuple[Float[Array, "*shape"], Int[Array, "*shape"]]:
    """A positive float32 as mantissa in [1, 2) and power of two, by its bits."""
    bits = jax.lax.bitcast_convert_type(x, jnp.int32)
    mantissa = jax.lax.bitcast_convert_type((bits & 0x007FFFFF) | 0x3F800000, jnp.float32)
    return mantissa, (bits >> 23) - 127
