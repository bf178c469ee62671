"""Trajectory optimisation: the cross-entropy method with coloured noise and elites kept (after Pinneri et al., 2020).

It plans open-loop, for the next real step or few, and learns no network: for low dimensions, and for numbered actions.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

from maxplore import checks
from maxplore.errors import InputError
from maxplore.history import History
from maxplore.mdp import ExplorationMDP, Step
from maxplore.solvers.base import Policy, Solution, SolveInfo, Solver, imagined
from maxplore.solvers.draws import normal


@dataclass(frozen=True)
class IcemConfig:
    """How to search for a plan."""

    horizon: int = 30
    """Steps that a plan looks ahead."""
    rounds: int = 4
    """Times that plans are drawn, rated, and the distribution moved to the best of them."""
    plans: int = 64
    """Plans drawn in a round."""
    held: int = 0
    """Of these, plans that hold one action throughout, with full force: what takes a long push is found by no noise."""
    elites: int = 10
    """The best of a round, which the next one is drawn around."""
    kept: int = 4
    """Of these, how many stay in the race for the next round, and shifted by a step for the next solve."""
    particles: int = 1
    """Imagined walks over which the value of a plan is averaged."""
    beta: float = 2.0
    """Colour of the noise, whose power falls as frequency^-beta: 0 is white, 2 keeps directions for long."""
    spread: float = 0.7
    """Standard deviation of the first round's noise."""
    momentum: float = 0.1
    """Share of the old mean and spread that stays from round to round."""
    discount: float = 1.0
    """Of utilities along a plan."""
    followed: int = 1
    """Real steps that a plan is followed for before there is a new one."""

    def __post_init__(self) -> None:
        checks.at_least(1, self, "horizon", "rounds", "plans", "elites", "kept", "particles", "followed")
        if self.followed > self.horizon:
            raise InputError(f"followed is {self.followed}, expected at most the horizon, {self.horizon}")
        checks.at_least(0, self, "held")
        if self.held > self.plans:
            raise InputError(f"held is {self.held}, expected at most the number of plans, {self.plans}")
        if not self.kept <= self.elites <= self.plans:
            raise InputError(
                f"kept, elites, plans are {self.kept}, {self.elites}, {self.plans}, expected none larger than the next"
            )
        checks.not_negative(self, "beta")
        checks.positive(self, "spread")
        checks.share(self, "momentum", "discount")


class Plan(Policy):
    """Actions decided beforehand, whatever the state: as a policy it gives the first of them."""

    actions: Shaped[Array, "horizon *action"]

    def __call__(self, state: Shaped[Array, "*state"], *, key: PRNGKeyArray | None = None) -> Shaped[Array, "*action"]:
        return self.actions[0]

    def later(self, steps: int | Int[Array, ""]) -> "Plan":
        return Plan(jnp.roll(self.actions, -steps, axis=0))


class Search(NamedTuple):
    """Where the search stands: scores of actions along plans. Memory is the same, shifted by the steps followed."""

    mean: Float[Array, "horizon scores"]
    spread: Float[Array, "horizon scores"]
    kept: Float[Array, "kept horizon scores"]
    """The best plans, the very best first."""


class Icem(Solver):
    """The solver for low dimensions, and the one for numbered actions."""

    config: IcemConfig = eqx.field(static=True, default=IcemConfig())

    @property
    def good_for(self) -> int:
        return self.config.followed

    def within(self, steps: int) -> "Icem":
        own = self.config
        return Icem(replace(own, horizon=min(own.horizon, steps), followed=min(own.followed, steps)))

    def init(self, mdp: ExplorationMDP, *, key: PRNGKeyArray) -> Search:
        config, entry = self.config, mdp.ensemble.action_entry
        # A real action is its own scores; of numbered ones, the highest score is chosen.
        scores = entry.count if entry.count is not None else entry.shape[0]
        nothing = jnp.zeros((config.horizon, scores))
        return Search(nothing, jnp.full_like(nothing, config.spread), jnp.zeros((config.kept, *nothing.shape)))

    def run(
        self, mdp: ExplorationMDP, state: Array, history: History | None, memory: Search, *, key: PRNGKeyArray
    ) -> Solution:
        config = self.config

        def one_round(carry: tuple[Search, SolveInfo], key: PRNGKeyArray) -> tuple[tuple[Search, SolveInfo], Array]:
            search, info = carry
            key_noise, key_value = jax.random.split(key)
            noise = colored_noise(config.plans, *search.mean.shape, beta=config.beta, key=key_noise)
            drawn = search.mean[None] + search.spread[None] * noise
            if config.held:
                drawn = drawn.at[: config.held].set(self.held(search, key=jax.random.fold_in(key_noise, 1)))
            if mdp.ensemble.action_entry.count is None:
                drawn = jnp.clip(drawn, -1.0, 1.0)
            plans = jnp.concatenate([drawn, search.kept, search.mean[None]])
            values, steps = self.rate(mdp, state, plans, key=key_value)
            best_values, best = jax.lax.top_k(values, config.elites)
            elite = plans[best]
            stay = config.momentum
            search = Search(
                stay * search.mean + (1 - stay) * jnp.mean(elite, axis=0),
                stay * search.spread + (1 - stay) * jnp.std(elite, axis=0),
                elite[: config.kept],
            )
            return (search, imagined(info, steps)), best_values[0] / config.horizon

        begin, keys = (memory, SolveInfo.blank()), jax.random.split(key, config.rounds)
        (search, info), best = jax.lax.scan(one_round, begin, keys)
        info = info._replace(before=best[0], after=best[-1])
        mean, kept = _shifted(search.mean, config.followed), _shifted(search.kept, config.followed)
        ahead = Search(mean, jnp.full_like(search.spread, config.spread), kept)
        return Solution(Plan(self.actions(mdp, search.kept[0])), ahead, info)

    def held(self, search: Search, *, key: PRNGKeyArray) -> Float[Array, "held horizon scores"]:
        """Scores that never change: for numbered actions any of them, for real ones a corner of their box."""
        horizon, scores = search.mean.shape
        chosen = jnp.sign(jax.random.normal(key, (self.config.held, 1, scores)))
        chosen = chosen * jax.random.uniform(jax.random.fold_in(key, 1), chosen.shape, minval=1.0, maxval=2.0)
        return jnp.broadcast_to(chosen, (self.config.held, horizon, scores))

    def rate(
        self, mdp: ExplorationMDP, state: Array, plans: Float[Array, "plans horizon scores"], *, key: PRNGKeyArray
    ) -> tuple[Float[Array, " plans"], Step]:
        """The utility that each plan collects from `state` on, averaged over its imagined walks."""
        config, count = self.config, plans.shape[0]
        actions = jnp.swapaxes(self.actions(mdp, plans), 0, 1)
        actions = jnp.repeat(actions, config.particles, axis=1)
        steps = mdp.follow(actions, mdp.start(state, count * config.particles), key=key)
        fade = config.discount ** jnp.arange(config.horizon)
        gained = jnp.sum(fade[:, None] * steps.reward, axis=0)
        return jnp.mean(gained.reshape(count, config.particles), axis=1), steps

    def actions(self, mdp: ExplorationMDP, plans: Float[Array, "*plans scores"]) -> Shaped[Array, "..."]:
        """The actions that scores stand for."""
        if mdp.ensemble.action_entry.count is None:
            return plans
        chosen: Int[Array, ...] = jnp.argmax(plans, axis=-1).astype(jnp.int32)
        return chosen


def colored_noise(
    count: int, horizon: int, dims: int, *, beta: float, key: PRNGKeyArray
) -> Float[Array, "count horizon dims"]:
    """Gaussian noise of variance 1 along time, whose power falls as frequency^-beta.

    >>> colored_noise(5, 20, 2, beta=1.0, key=jax.random.key(0)).shape
    (5, 20, 2)
    """
    frequency = np.fft.rfftfreq(horizon)
    frequency[0] = 1 / horizon  # the constant part is as strong as the slowest wave
    amplitude = frequency ** (-beta / 2)
    # The constant part, and the fastest wave of an even horizon, have no phase: one real number each.
    alone = np.zeros(frequency.size, bool)
    alone[0], alone[-1] = True, alone[-1] or horizon % 2 == 0
    variance = np.sum(np.where(alone, 2, 4) * amplitude**2) / horizon**2
    parts = normal(key, (2, count, dims, frequency.size))
    strength = jnp.asarray(amplitude / np.sqrt(variance), jnp.float32)[None, None]
    single = jnp.asarray(alone)[None, None]
    waves = jax.lax.complex(
        jnp.where(single, np.sqrt(2), 1.0) * strength * parts[0], jnp.where(single, 0.0, 1.0) * strength * parts[1]
    )
    return jnp.swapaxes(jnp.fft.irfft(waves, n=horizon, axis=-1), 1, 2)


def _shifted(plans: Float[Array, "*plans horizon scores"], steps: int) -> Float[Array, "*plans horizon scores"]:
    """The rest of plans once so many actions are done; the last action is held for as long."""
    return jnp.concatenate([plans[..., steps:, :], jnp.repeat(plans[..., -1:, :], steps, axis=-2)], axis=-2)
