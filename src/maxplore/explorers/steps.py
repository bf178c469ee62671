"""A step of exploration: the random keys that belong to it, and what is done of a plan in it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray, Shaped

from maxplore.entry import Entry
from maxplore.explorers.survey import anything
from maxplore.solvers import Policy

STRETCH = 25
"""Steps on end that an action is held for, where it is."""


class StepKeys(NamedTuple):
    """The keys of a step. Every loop that uses them agrees."""

    random: PRNGKeyArray
    """For a random action."""
    fit: PRNGKeyArray
    solve: PRNGKeyArray
    stretch: PRNGKeyArray
    """The same for all steps of a stretch."""


def choice_keys(key: PRNGKeyArray, now: int | Int[Array, ""]) -> StepKeys:
    """The keys of this step."""
    key_stretch = jax.random.fold_in(jax.random.fold_in(key, now - now % STRETCH), 3)  # splitting in 3 never gives it
    key_random, key_fit, key_solve = jax.random.split(jax.random.fold_in(key, now), 3)
    return StepKeys(key_random, key_fit, key_solve, key_stretch)


def follow(
    policy: Policy, state: Shaped[Array, "*state"], entry: Entry, dither: float, rest: float, keys: StepKeys
) -> Shaped[Array, "*action"]:
    """What the policy does in a state, with a share of its numbers (`dither`) drawn at random instead; or, in some of
    the stretches (`rest` is their share), one action drawn for all of it."""
    action = policy(state)
    if dither:
        key_which, key_what = jax.random.split(keys.random)
        drawn = jax.random.bernoulli(key_which, dither, entry.shape)
        action = jnp.where(drawn, anything(entry, (), key_what), action)
    if rest:
        key_whether, key_held = jax.random.split(keys.stretch)
        action = jnp.where(jax.random.bernoulli(key_whether, rest), anything(entry, (), key_held), action)
    return action
