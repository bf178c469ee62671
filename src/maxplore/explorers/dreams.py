"""Dreams put to the test: what the models promise most beyond anything that was ever seen, tried in reality.

Novelty looks for what members disagree about. Where all of them err alike they agree, and novelty never goes there; but
a policy that is learned in them does, whatever its task, because the world is kinder there than it really is. So some
stretches of exploration make a wish that no task has asked for (one number of the state as large, or as small, as can
be), learn a policy for it in imagination, and follow it: what was false in the dream is in D then.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from maxplore.history import History
from maxplore.mdp import ExplorationMDP
from maxplore.models import GaussianEnsemble
from maxplore.solvers import Gradient, GradientConfig, Policy
from maxplore.solvers.base import real
from maxplore.utilities import Extreme

WISHES = 6
"""Drawn for a stretch; the boldest of their dreams is followed."""

MARGIN = 0.1
"""How far dreams may leave the range of D, as a share of its extent, as those of tasks do."""

DREAMER = Gradient(GradientConfig(iterations=150, warm_start=False))
"""How they are learned: in trials, slopes found what is false in a model sooner than `sac` did."""


class Dream(NamedTuple):
    """A wish, and how it is to come true."""

    policy: Policy
    direction: Float[Array, " dims"]
    """One number of the state: 1 as large as can be, -1 as small."""
    promise: Float[Array, ""]
    """What the models say that a step is paid, in units of that number's spread over D."""


def dreamer(stretch: int, episode: int | None) -> Gradient:
    """What dreams: lives as long as the stretches that records are of, or as episodes, if these are shorter."""
    life = stretch if episode is None else min(stretch, episode)
    return Gradient(replace(DREAMER.config, lifetime=life))


def scheduled(now: Any, stretch: int, share: float, episode: int | None = None) -> Any:
    """Whether the stretch that this step is in tests a dream: evenly spread, by the step's number alone.

    Where an episode is known to have several stretches, they are counted round from another one in each: dreams are
    then in no fixed part of episodes.

    >>> [scheduled(now, 10, 0.4) for now in (0, 10, 20, 30, 40)]
    [False, False, True, False, True]
    """
    number, parts = now // stretch, 1 if episode is None else episode // stretch
    if parts > 1:
        passed = number // parts
        turned = passed % 1000 * 617 % 1000 * parts // 1000  # by the golden ratio, so that no share falls in step
        number = passed * parts + (number + turned) % parts
    number, tested = number % 1000, round(1000 * share)  # small whole numbers, which any device counts alike
    return (number + 1) * tested // 1000 > number * tested // 1000


def dream_mdp(
    ensemble: GaussianEnsemble, history: History, space: tuple[np.ndarray, np.ndarray] | None
) -> ExplorationMDP:
    """What is dreamt in, with no wish yet."""
    nothing = Extreme(jnp.zeros(ensemble.state.mean.size))
    return ExplorationMDP(ensemble, nothing, history, margin=MARGIN, space=space)


def records(ensemble: GaussianEnsemble, history: History, stretch: int) -> Float[Array, "2 dims"]:
    """The most of every number, and the most of its opposite, in the mean of any whole stretch of D."""
    seen, count = history.transitions.next_state, history.filled
    blocks = jnp.arange(count.size) // stretch
    total = -(-count.size // stretch)
    rows = jnp.where(count[:, None], jax.vmap(ensemble.state.normalize)(seen), 0.0)
    mean = jax.ops.segment_sum(rows, blocks, total) / stretch
    whole = (jax.ops.segment_sum(count.astype(jnp.int32), blocks, total) == stretch)[:, None]
    return jnp.stack([jnp.max(jnp.where(whole, sign * mean, -jnp.inf), axis=0) for sign in (1, -1)])


def boldest(
    dreams: Gradient,
    mdp: ExplorationMDP,
    record: Float[Array, "2 dims"],
    state: Float[Array, " dims"],
    *,
    key: PRNGKeyArray,
) -> Dream:
    """Of some wishes drawn by chance, the one whose dream promises most beyond its record."""
    dims, moves = record.shape[1], real(mdp, "a dream").delta.varies
    key_which, key_dream = jax.random.split(key)
    which = jax.random.permutation(key_which, 2 * dims)
    which = which[jnp.argsort(~moves[which % dims], stable=True)][:WISHES]  # of what never moves, only if need be
    signs, places = 1 - 2 * (which // dims), which % dims
    directions = signs[:, None] * jax.nn.one_hot(places, dims)

    def dreamt(direction: Float[Array, " dims"], key: PRNGKeyArray) -> tuple[Policy, Float[Array, ""]]:
        own = eqx.tree_at(lambda mdp: mdp.utility.direction, mdp, direction)
        key_init, key_run = jax.random.split(key)
        solution = dreams.run(own, state, None, dreams.init(own, key=key_init), key=key_run)
        return solution.policy, solution.info.after

    policies, promises = eqx.filter_vmap(dreamt)(directions, jax.random.split(key_dream, len(directions)))
    gain = promises - record[which // dims, places]
    chosen = jnp.argmax(jnp.where(jnp.isnan(gain) | ~moves[places], -jnp.inf, gain))
    policy = jax.tree.map(lambda x: x[chosen] if eqx.is_array(x) else x, policies)
    return Dream(policy, directions[chosen], promises[chosen])
