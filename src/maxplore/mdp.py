"""The exploration MDP: the environment as the ensemble imagines it, paying for novelty (section 2.2, 2.3)."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from maxplore.entry import Numbers
from maxplore.errors import InputError
from maxplore.history import History
from maxplore.models.ensemble import Chance, Ensemble, Member
from maxplore.utilities.base import Outcome, Utility, saturation

Policy = Callable[[Array, Any], Array]
"""Actions for a batch of states, given a key, or the noise that was made of it."""

Noise = Callable[[PRNGKeyArray], Any]
"""What a policy leaves to chance in one step."""

Ending = Callable[[Array, Array, Array], Array]
"""Whether one transition (state, action, next state) is the last of its episode."""


class Info(NamedTuple):
    """What had to be mended in one imagined step, for each actor."""

    clipped: Int[Array, "*steps actors"]
    """Entries of the next state that left the plausible range and were put back to its edge."""
    nonfinite: Int[Array, "*steps actors"]
    """Entries of the next state that were not finite (the actor stays there) or a reward (it becomes 0)."""
    saturation: Float[Array, "*steps actors"]
    """Share of its ceiling ln N that the divergence has reached; NaN for a utility without a ceiling."""


class Step(NamedTuple):
    """One imagined step of a batch of actors, or many steps along a leading axis."""

    state: Array
    action: Array
    next_state: Array
    reward: Float[Array, "*steps actors"]
    terminated: Bool[Array, "*steps actors"]
    alive: Bool[Array, "*steps actors"]
    """Whether the imagined episode was still going on; after its end, states stand still and pay nothing."""
    info: Info


class ExplorationMDP(eqx.Module):
    """The imagined MDP: each transition draws a member uniformly, samples from it, and pays the utility, which may also
    decide on the member.

    A task's reward fits in the utility's place. All methods work on a batch of actors and are pure, so a
    solver compiles them into its own loop.
    """

    ensemble: Ensemble[Any]
    utility: Utility
    low: Float[Array, " dims"] | None
    high: Float[Array, " dims"] | None
    ending: Ending | None = eqx.field(static=True)
    """Which transitions end an episode, besides those that the ensemble has seen to do so."""

    def __init__(
        self,
        ensemble: Ensemble[Any],
        utility: Utility,
        history: History | None = None,
        *,
        margin: float = 1.0,
        space: tuple[np.ndarray, np.ndarray] | None = None,
        ending: Ending | None = None,
    ) -> None:
        """With a `history` of real vectors, imagined states stay within the range that it spans, widened by `margin`
        times its extent on either side, and within the bounds of the `space` of states if given; a margin of inf is no
        range at all."""
        self.ensemble = ensemble
        self.utility = utility
        self.ending = ending
        self.low, self.high = None, None
        if history is None:
            return
        ensemble.check_fits(history)
        if history.state_entry.count is None and margin != math.inf:
            self.low, self.high = plausible_range(history, margin)
            if space is not None:
                self.low = jnp.maximum(self.low, jnp.asarray(space[0], jnp.float32))
                self.high = jnp.minimum(self.high, jnp.asarray(space[1], jnp.float32))

    def start(self, state: Numbers, actors: int, *, key: PRNGKeyArray | None = None) -> Array:
        """All actors in one real state: the initial distribution is a point (section 2.2).

        Given many states, the actors are spread over them in turn; with a `key`, each is anywhere among them.
        """
        entry = self.ensemble.state_entry
        given = entry.batch("state", state)
        if given.ndim == len(entry.shape):
            return jnp.broadcast_to(given, (actors, *given.shape))
        turn = jnp.arange(actors) % given.shape[0]
        return given[turn if key is None else jax.random.randint(key, (actors,), 0, given.shape[0])]

    def step(
        self,
        states: Shaped[Array, "actors ..."],
        actions: Shaped[Array, "actors ..."],
        *,
        key: PRNGKeyArray,
        member: Int[Array, " actors"] | None = None,
    ) -> Step:
        """Where each actor goes, and what that pays: as one member of its own draw has it, or the one that the utility
        decides on, or the `member` given."""
        return self.advance(states, actions, self.ensemble.chance(states.shape[0], key=key), member=member)

    def advance(
        self,
        states: Shaped[Array, "actors ..."],
        actions: Shaped[Array, "actors ..."],
        chance: Chance,
        *,
        apart: tuple[Member, ...] | None = None,
        member: Int[Array, " actors"] | None = None,
    ) -> Step:
        """The same, with all draws given; and with the members `apart`, which makes loops of large ones faster."""
        entry = self.ensemble.action_entry
        if actions.shape != (states.shape[0], *entry.shape):
            raise InputError(f"actions has shape {actions.shape}, expected {(states.shape[0], *entry.shape)}")
        if jnp.issubdtype(states.dtype, jnp.floating):
            states = finite_slope(states)
        if jnp.issubdtype(actions.dtype, jnp.floating):
            actions = finite_slope(actions)
        forecast = self._forecast(states, actions, apart)
        if forecast is not None and member is None:
            member = self.utility.decides(Outcome(self.ensemble, states, actions, states, forecast), chance.member)
        if forecast is None and member is None:
            own, member = self.ensemble.dealt(states, actions, chance.hands)
        else:
            everyone = self.ensemble.forecast(states, actions, apart=apart) if forecast is None else forecast
            member = chance.member if member is None else member
            own = jax.tree.map(lambda x: x[member, jnp.arange(states.shape[0])], everyone)
        drawn = self.ensemble.realize_rows(states, own, chance.noise)
        next_states, clipped, strange = self._plausible(states, drawn)
        terminated = self.ensemble.ends(states, actions, next_states, member, chance.luck)
        terminated = terminated | self.ended(states, actions, next_states)
        outcome = Outcome(self.ensemble, states, actions, next_states, forecast)
        reward, divergence = self.utility(outcome), self.utility.divergence(outcome)
        finite = jnp.isfinite(reward)
        share = jnp.full(reward.shape, jnp.nan) if divergence is None else saturation(divergence, self.ensemble.size)
        info = Info(clipped, strange + ~finite, share)
        alive = jnp.ones_like(terminated)
        return Step(states, actions, next_states, jnp.where(finite, reward, 0.0), terminated, alive, info)

    def rollout(
        self,
        policy: Policy,
        states: Shaped[Array, "actors ..."],
        horizon: int,
        *,
        key: PRNGKeyArray,
        noise: Noise | None = None,
        restart: bool = False,
    ) -> Step:
        """`horizon` steps of all actors, `[horizon, actors, ...]`; an actor whose episode ended stands still.

        The policy is given a key for every step; or, with `noise`, what that makes of the key, drawn for all steps at
        once. With `restart` an actor begins again where it began, so that no step is wasted.
        """
        key_actions, keys = _apart(jax.random.split(key, horizon))
        drawn = key_actions if noise is None else jax.vmap(noise)(key_actions)
        return self._walk(policy, drawn, states, keys, restart)

    def follow(
        self, actions: Shaped[Array, "horizon actors ..."], states: Shaped[Array, "actors ..."], *, key: PRNGKeyArray
    ) -> Step:
        """`rollout` with all actions fixed beforehand: an open-loop plan for each actor."""
        _, keys = _apart(jax.random.split(key, actions.shape[0]))
        return self._walk(lambda _, planned: planned, actions, states, keys, False)

    def _walk(
        self,
        policy: Callable[[Array, Any], Array],
        given: Any,
        start: Array,
        keys: Shaped[PRNGKeyArray, " horizon"],
        restart: bool,
    ) -> Step:
        """As many steps as there are keys, whose actions the policy tells from the states and what it is `given`."""
        apart = self.ensemble.apart() if self.utility.needs_forecast else None
        chances = jax.vmap(lambda key: self.ensemble.chance(start.shape[0], key=key))(keys)

        def chosen(actors: Bool[Array, " actors"], these: Array, others: Array) -> Array:
            return jnp.where(jnp.expand_dims(actors, tuple(range(1, these.ndim))), these, others)

        def onward(carry: tuple[Array, Array], now: tuple[Chance, Any]) -> tuple[tuple[Array, Array], Step]:
            states, alive = carry
            step = self.advance(states, policy(states, now[1]), now[0], apart=apart)
            if restart:
                return (chosen(step.terminated, start, step.next_state), alive), step
            step = step._replace(
                next_state=chosen(alive, step.next_state, states),
                reward=jnp.where(alive, step.reward, 0.0),
                terminated=step.terminated & alive,
                alive=alive,
                info=Info(
                    jnp.where(alive, step.info.clipped, 0),
                    jnp.where(alive, step.info.nonfinite, 0),
                    jnp.where(alive, step.info.saturation, jnp.nan),
                ),
            )
            return (step.next_state, alive & ~step.terminated), step

        everyone = jnp.ones(start.shape[0], bool)
        return jax.lax.scan(onward, (start, everyone), (chances, given))[1]

    def worth(
        self,
        states: Shaped[Array, "batch ..."],
        actions: Shaped[Array, "batch ..."],
        next_states: Shaped[Array, "batch ..."],
    ) -> Float[Array, " batch"]:
        """What transitions that really happened would pay under the current ensemble."""
        forecast = self._forecast(states, actions, None)
        return self.utility(Outcome(self.ensemble, states, actions, next_states, forecast))

    def ended(
        self,
        states: Shaped[Array, "batch ..."],
        actions: Shaped[Array, "batch ..."],
        next_states: Shaped[Array, "batch ..."],
    ) -> Bool[Array, " batch"]:
        """Which transitions end an episode whatever the ensemble says."""
        if self.ending is None:
            return jnp.zeros(states.shape[0], bool)
        return jax.vmap(self.ending)(states, actions, next_states)

    def _forecast(self, states: Array, actions: Array, apart: tuple[Member, ...] | None) -> Any:
        """Every member's prediction, if the utility looks at it."""
        return self.ensemble.forecast(states, actions, apart=apart) if self.utility.needs_forecast else None

    def _plausible(self, states: Array, drawn: Array) -> tuple[Array, Int[Array, " actors"], Int[Array, " actors"]]:
        """The drawn states mended, with counts of entries clipped and of entries not finite."""
        none = jnp.zeros(states.shape[0], jnp.int32)
        if not jnp.issubdtype(drawn.dtype, jnp.floating):
            nowhere = drawn < 0  # a member whose prediction was not finite
            return jnp.where(nowhere, states, drawn), none, nowhere.astype(jnp.int32)
        finite = jnp.isfinite(drawn)
        strange = jnp.sum(~finite, axis=1, dtype=jnp.int32)
        drawn = jnp.where(finite, drawn, states)
        if self.low is None or self.high is None:
            return drawn, none, strange
        # A real state outside the range is no reason to jump: from there one may only come nearer.
        low = jnp.minimum(self.low[None, :], states)
        high = jnp.maximum(self.high[None, :], states)
        clipped = jnp.sum((drawn < low) | (drawn > high), axis=1, dtype=jnp.int32)
        return jnp.clip(drawn, low, high), clipped, strange


def _apart(
    keys: Shaped[PRNGKeyArray, " steps"],
) -> tuple[Shaped[PRNGKeyArray, " steps"], Shaped[PRNGKeyArray, " steps"]]:
    """Of every step's key, one for the action and one for what comes of it."""
    both = jax.vmap(jax.random.split)(keys)
    return both[:, 0], both[:, 1]


@jax.custom_vjp
def finite_slope(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """`x`, whose gradient is 0 where it would not be finite: one actor's bad step does not spoil all the others'."""
    return x


finite_slope.defvjp(lambda x: (x, None), lambda _, slope: (jnp.where(jnp.isfinite(slope), slope, 0.0),))


def plausible_range(history: History, margin: float) -> tuple[Float[Array, " dims"], Float[Array, " dims"]]:
    """The range of every dimension in D, widened by `margin` times its extent on either side."""
    if not margin >= 0:
        raise InputError(f"margin is {margin}, expected 0 or more")
    if not isinstance(history.size, jax.core.Tracer) and int(history.size) == 0:
        raise InputError("history is empty: it spans no range; append transitions, or give no history for no range")
    rows, filled = history.transitions, history.filled[:, None]
    low = jnp.minimum(rows.state, rows.next_state)
    high = jnp.maximum(rows.state, rows.next_state)
    low = jnp.min(jnp.where(filled, low, jnp.inf), axis=0)
    high = jnp.max(jnp.where(filled, high, -jnp.inf), axis=0)
    extent = margin * (high - low)
    return low - extent, high + extent
