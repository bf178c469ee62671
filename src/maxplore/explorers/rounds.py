"""Algorithm 1 for real states as one pure function: a run in a functional environment, ready for `jit` and `vmap`.

Step by step it does what a `ModelAgent` does that is asked and told, with the same functions and the same keys. What
happens at which step depends on the step's number alone, as long as no episode ends early: `vmap`ped over seeds, models
are then fitted and plans made only where they are due.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from maxplore import spaces
from maxplore.explorers.dreams import Dream, boldest, dream_mdp, dreamer, records, scheduled
from maxplore.explorers.model_based import (
    Learned,
    Lived,
    ModelBasedConfig,
    Reports,
    calibrated,
    imagined_mdp,
    new_ensemble,
)
from maxplore.explorers.steps import choice_keys, follow
from maxplore.explorers.survey import anything
from maxplore.history import History, Transition
from maxplore.models import Fitted, GaussianEnsemble, fit
from maxplore.models.adam import Moments
from maxplore.solvers import SolveInfo


@runtime_checkable
class FunctionalEnv(Protocol):
    """An environment of real states as pure functions in `jax.numpy`, for one example: `MountainCar` is one.

    If episodes can end before `horizon` steps are over, it also has `terminated(state, action, next_state)`.
    """

    @property
    def observation_space(self) -> gym.Space[Any]:
        """A Box of vectors."""
        ...

    @property
    def action_space(self) -> gym.Space[Any]:
        """A bounded Box, or Discrete."""
        ...

    @property
    def horizon(self) -> int:
        """Steps of an episode, at the most."""
        ...

    def reset(self, *, key: PRNGKeyArray) -> Array:
        """A first state."""
        ...

    def step(self, state: Array, action: Array, *, key: PRNGKeyArray) -> tuple[Array, Array]:
        """The next state, and a reward that nobody looks at."""
        ...


class Walk(NamedTuple):
    """Where the real environment stands, and all that was seen of it."""

    state: Float[Array, " dims"]
    age: Int[Array, ""]
    """Steps since the episode began."""
    history: History


class Plan(NamedTuple):
    """What came of the latest solve."""

    found: Any
    """The arrays of policy and memory."""
    step: Int[Array, ""]
    """When that was."""
    info: SolveInfo


class Slept(NamedTuple):
    """What came of the latest dream."""

    dream: Any
    """Its arrays."""
    stretch: Int[Array, ""]
    """The number of the stretch that it was for."""


class Stand(NamedTuple):
    """Where a run stands between two steps."""

    walk: Walk
    plan: Plan
    slept: Slept | None
    """None if nobody dreams."""


def live(config: ModelBasedConfig, env: FunctionalEnv, history: History, steps: int, *, key: PRNGKeyArray) -> Lived:
    """So many steps from an empty `history`, which must have room for them; the `key` is that of an `Explorer`."""
    actions = spaces.actions(env.action_space)
    space = spaces.observations(env.observation_space, numbered=actions.entry.count is not None).bounds
    model = replace(config.model, termination=config.model.termination or hasattr(env, "terminated"))
    config = replace(config, model=model, solver=config.solver.within(env.horizon))
    key_ensemble, key_agent = jax.random.split(key)
    key_reset, key_step = jax.random.split(jax.random.fold_in(key, 2**32 - 1))  # which splitting never gives

    def begun(now: Int[Array, ""]) -> Float[Array, " dims"]:
        return env.reset(key=jax.random.fold_in(key_reset, now)).astype(jnp.float32)

    def advanced(walk: Walk, action: Array, now: Int[Array, ""]) -> Walk:
        """One real step, and a new episode if that was the last of one."""
        key_env = jax.random.fold_in(key_step, now)
        following = env.step(walk.state, actions.traced(action), key=key_env)[0].astype(jnp.float32)
        last, cut = ended(env, walk.state, actions.traced(action), following), walk.age + 1 >= env.horizon
        history = walk.history.write(Transition(walk.state, action, following, last, cut))
        over = last | cut
        state = jax.lax.cond(over, lambda: begun(now + 1), lambda: following)
        return Walk(state, jnp.where(over, 0, walk.age + 1), history)

    def at_random(walk: Walk, now: Int[Array, ""]) -> tuple[Walk, None]:
        key_random = choice_keys(key_agent, now).random
        return advanced(walk, anything(history.action_entry, (), key_random), now), None

    warm_up = steps if config.utility is None else min(config.warm_up, steps)
    walk = Walk(begun(jnp.int32(0)), jnp.int32(0), history)
    walk, _ = jax.lax.scan(at_random, walk, jnp.arange(warm_up))
    if steps == warm_up:
        return Lived(walk.history, None)

    rounds = -(-(steps - warm_up) // config.plan_every)
    anew = np.zeros(rounds, bool)
    anew[list(takewhile(lambda number: number < rounds, config.fresh_rounds()))] = True
    ensemble = new_ensemble(history, model, key=key_ensemble)
    solver, mdp = config.solver, imagined_mdp(config, ensemble, walk.history, space)
    like = eqx.filter_eval_shape(solver.solve, mdp, walk.state, walk.history, key=key_agent)
    arrays, rest = eqx.partition((like.policy, like.memory), lambda x: isinstance(x, jax.ShapeDtypeStruct))
    nothing = Plan(jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), arrays), jnp.int32(0), SolveInfo.blank())

    def dreamt(walk: Walk, ensemble: GaussianEnsemble, key: PRNGKeyArray) -> Dream:
        mdp, record = dream_mdp(ensemble, walk.history, space), records(ensemble, walk.history, config.dream_steps)
        return boldest(dreamer(config.dream_steps, env.horizon), mdp, record, walk.state, key=key)

    blank, asleep, awake = SolveInfo.blank(), None, None
    if config.dreams:
        like = eqx.filter_eval_shape(dreamt, walk, ensemble, key_agent)
        shapes, awake = eqx.partition(like, lambda x: isinstance(x, jax.ShapeDtypeStruct))
        asleep = Slept(jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes), jnp.int32(-1))

    def learned(history: History, before: tuple[GaussianEnsemble, Moments], number: Any) -> Fitted[GaussianEnsemble]:
        key_fit = choice_keys(key_agent, config.warm_up + number * config.plan_every).fit

        def train(fresh: bool) -> Callable[[], Fitted[GaussianEnsemble]]:
            own, moments = replace(config.fit, from_scratch=fresh), None if fresh else before[1]
            return lambda: fit(before[0], history, own, key=key_fit, moments=moments)

        if anew.all():
            return train(True)()
        return jax.lax.cond(jnp.asarray(anew)[number], train(True), train(False))

    def solved(walk: Walk, ensemble: GaussianEnsemble, plan: Plan, now: Int[Array, ""]) -> Plan:
        key_solve = choice_keys(key_agent, now).solve
        mdp, memory = imagined_mdp(config, ensemble, walk.history, space), eqx.combine(plan.found, rest)[1]
        if solver.warm_start:
            first = lambda: eqx.filter(solver.fresh_memory(mdp, key=key_solve), eqx.is_array)  # noqa: E731
            memory = jax.lax.cond(now == config.warm_up, first, lambda: plan.found[1])
            memory = eqx.combine(memory, rest[1])
        solution = solver.solve(mdp, walk.state, walk.history, memory, key=key_solve)
        return Plan(eqx.filter((solution.policy, solution.memory), eqx.is_array), now, solution.info)

    def due(stand: Stand, now: Int[Array, ""], offset: Int[Array, ""]) -> Bool[Array, ""]:
        """Whether there must be a new solve: after a fit, or where the plan is of no use any more."""
        walk, plan, slept = stand
        begins, again = walk.age == 0, offset == 0
        if slept is not None:
            again = again | (plan.step < (slept.stretch + 1) * config.dream_steps)  # of before the dream
        if solver.good_for is not None:
            again = again | begins | (now - plan.step >= solver.good_for)
        return again | begins if config.solve_at_reset else again

    def one_round(carry: tuple[Stand, Any], number: Int[Array, ""]) -> tuple[tuple[Stand, Any], Reports]:
        stand, before = carry
        fitted = learned(stand.walk.history, before, number)
        ensemble, first = fitted.ensemble, config.warm_up + number * config.plan_every

        def seeks(stand: Stand, offset: Int[Array, ""]) -> tuple[Array, Stand]:
            """An action that leads to novelty."""
            now, walk = first + offset, stand.walk
            due_now = due(stand, now, offset)
            plan = jax.lax.cond(due_now, lambda: solved(walk, ensemble, stand.plan, now), lambda: stand.plan)
            policy = eqx.combine(plan.found, rest)[0].later(now - plan.step)
            keys = choice_keys(key_agent, now)
            action = follow(policy, walk.state, actions.entry, config.dither, config.rest, keys)
            return action, stand._replace(plan=plan)

        def tests(stand: Stand, offset: Int[Array, ""]) -> tuple[Array, Stand]:
            """An action of a dream."""
            now, walk = first + offset, stand.walk

            def falls_asleep() -> Slept:
                dream = dreamt(walk, ensemble, choice_keys(key_agent, now).solve)
                return Slept(eqx.filter(dream, eqx.is_array), now // config.dream_steps)

            slept = jax.lax.cond(now % config.dream_steps == 0, falls_asleep, lambda: stand.slept)
            return eqx.combine(slept.dream, awake).policy(walk.state), stand._replace(slept=slept)

        def go(stand: Stand, offset: Int[Array, ""]) -> Stand:
            now = first + offset
            if config.dreams:
                begun = now - now % config.dream_steps > config.warm_up
                tested = begun & scheduled(now, config.dream_steps, config.dreams, env.horizon)
                action, stand = jax.lax.cond(tested, tests, seeks, stand, offset)
            else:
                action, stand = seeks(stand, offset)
            return stand._replace(walk=advanced(stand.walk, action, now))

        def step(stand: Stand, offset: Int[Array, ""]) -> tuple[Stand, None]:
            return jax.lax.cond(first + offset < steps, lambda: go(stand, offset), lambda: stand), None

        calibration = calibrated(ensemble, stand.walk.history, config.fit.held_out)
        stand, _ = jax.lax.scan(step, stand, jnp.arange(config.plan_every))
        solve = jax.tree.map(lambda own, none: jnp.where(stand.plan.step >= first, own, none), stand.plan.info, blank)
        return (stand, (ensemble, fitted.moments)), Reports(fitted.report, solve, calibration)

    begin = (Stand(walk, nothing, asleep), (ensemble, Moments.zero(ensemble.members)))
    (stand, (ensemble, moments)), reports = jax.lax.scan(one_round, begin, jnp.arange(rounds))
    (policy, memory), slept = eqx.combine(stand.plan.found, rest), stand.slept
    dreamt_last = (None, None) if slept is None else (eqx.combine(slept.dream, awake), slept.stretch)
    own = Learned(ensemble, moments, policy, memory, stand.plan.step, reports, *dreamt_last)
    return Lived(stand.walk.history, own)


def ended(env: Any, state: Array, action: Array, following: Array) -> Bool[Array, "*shape"]:
    """Whether the episode ends there; of an environment that never says so, no."""
    if not hasattr(env, "terminated"):
        return jnp.zeros((), bool)
    return jnp.asarray(env.terminated(state, action, following), bool)
