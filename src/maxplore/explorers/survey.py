"""Where models of real states disagree, and how far they can be believed: what a run keeps of them as it goes on."""

from statistics import NormalDist

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from maxplore.compiling import compiled
from maxplore.entry import Entry
from maxplore.history import History, held_out
from maxplore.mdp import plausible_range
from maxplore.models import GaussianEnsemble

PROBES = 512
"""States at which the models are asked: half of them from D, the others anywhere in its range."""

TRIES = 4
"""Random actions that are asked about in each."""

WIDENED = 0.1
"""How far that range is widened on either side, as a share of its extent."""

RECENT = 512
"""Rows, the latest, that reliability is measured on; of these, those held out."""

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Chances with which the truth should lie in the middle of what was expected."""

WIDTHS = tuple(NormalDist().inv_cdf((1 + level) / 2) for level in LEVELS)
"""Standard deviations of a Gaussian on either side, for each."""


@compiled
def reliability(ensemble: GaussianEnsemble, history: History, share: float) -> Float[Array, " levels"]:
    """How often the truth lies in the middle of the ensemble's mixture, taken for a Gaussian, at each of `LEVELS`; NaN
    if nothing is held out."""
    rows = jnp.maximum(history.size - 1 - jnp.arange(RECENT), 0)
    counted = (jnp.arange(RECENT) < history.size) & held_out(history, share)[rows]
    seen = history[rows]
    forecast = ensemble.forecast(seen.state, seen.action)
    truth = jax.vmap(ensemble.delta.normalize)(seen.next_state - seen.state)
    mean = jnp.mean(forecast.mean, axis=0)
    variance = jnp.mean(forecast.variance + (forecast.mean - mean[None]) ** 2, axis=0)

    def inside(width: Float[Array, ""]) -> Float[Array, ""]:
        return jnp.mean(jnp.abs(truth - mean) <= width * jnp.sqrt(variance), where=counted[:, None])

    return jax.vmap(inside)(jnp.asarray(WIDTHS))


def probes(
    history: History, space: tuple[np.ndarray, np.ndarray] | None, *, key: PRNGKeyArray
) -> tuple[Float[Array, "probes dims"], Shaped[Array, "tries probes *action"]]:
    """States, the first half of them from D, the others within the bounds of their `space`; and actions in them."""
    key_seen, key_place, key_action = jax.random.split(key, 3)
    half = PROBES // 2
    seen = history[jax.random.randint(key_seen, (half,), 0, history.size)].state
    low, high = plausible_range(history, WIDENED)
    if space is not None:
        low, high = jnp.maximum(low, jnp.asarray(space[0])), jnp.minimum(high, jnp.asarray(space[1]))
    place = low[None] + (high - low)[None] * jax.random.uniform(key_place, seen.shape)
    return jnp.concatenate([seen, place]), anything(history.action_entry, (TRIES, PROBES), key_action)


def anything(entry: Entry, batch: tuple[int, ...], key: PRNGKeyArray) -> Array:
    """Random actions, as they are inside."""
    if entry.count is not None:
        return jax.random.randint(key, batch, 0, entry.count)
    return jax.random.uniform(key, (*batch, *entry.shape), minval=-1.0, maxval=1.0)
