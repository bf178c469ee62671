"""The exploration MDP: the environment as the ensemble imagines it, paying for novelty (section 2.2, 2.3)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from maxplore.history import History
from maxplore.models.ensemble import Ensemble, Member
from maxplore.utilities.base import Outcome, Utility

Policy = Callable[[Array, PRNGKeyArray], Array]
"""Actions for a batch of states."""


class Info(NamedTuple):
    """What had to be mended in one imagined step, for each actor."""

    clipped: Int[Array, "*steps actors"]
    """Entries of the next state that left the plausible range and were put back to its edge."""
    nonfinite: Int[Array, "*steps actors"]
    """Entries of the next state that were not finite (the actor stays there) or a reward (it becomes 0)."""


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
    """The imagined MDP: each transition draws a member uniformly, samples from it, and pays the utility.

    A task's reward fits in the utility's place. All methods work on a batch of actors and are pure, so a
    solver compiles them into its own loop.
    """

    ensemble: Ensemble[Any]
    utility: Utility
    low: Float[Array, " dims"] | None
    high: Float[Array, " dims"] | None
    apart: tuple[Member, ...] | None

    def __init__(
        self, ensemble: Ensemble[Any], utility: Utility, history: History | None = None, *, margin: float = 1.0
    ) -> None:
        """With a `history` of real vectors, imagined states stay within the range that it spans,
        widened by `margin` times its extent on either side."""
        self.ensemble = ensemble
        self.utility = utility
        self.apart = ensemble.apart() if utility.needs_forecast else None
        self.low, self.high = None, None
        if history is not None and history.state_entry.count is None:
            self.low, self.high = plausible_range(history, margin)

    def start(self, state: Shaped[Array, " ..."], actors: int) -> Shaped[Array, "actors ..."]:
        """All actors in one real state: the initial distribution is a point (section 2.2)."""
        return jnp.broadcast_to(state, (actors, *state.shape))

    def step(
        self, states: Shaped[Array, "actors ..."], actions: Shaped[Array, "actors ..."], *, key: PRNGKeyArray
    ) -> Step:
        """Where each actor goes, as one member of its own draw has it, and what that pays."""
        forecast = self._forecast(states, actions)
        if forecast is None:
            drawn, terminated = self.ensemble.sample(states, actions, key=key)
        else:
            key_member, key_draw = jax.random.split(key)
            actors = jnp.arange(states.shape[0])
            member = jax.random.randint(key_member, actors.shape, 0, self.ensemble.size)
            own = jax.tree.map(lambda x: x[member, actors], forecast)
            drawn, terminated = self.ensemble.draw(states, actions, own, member, key=key_draw)
        next_states, clipped, strange = self._plausible(states, drawn)
        reward = self.utility(Outcome(self.ensemble, states, actions, next_states, forecast))
        finite = jnp.isfinite(reward)
        info = Info(clipped, strange + ~finite)
        alive = jnp.ones_like(terminated)
        return Step(states, actions, next_states, jnp.where(finite, reward, 0.0), terminated, alive, info)

    def rollout(self, policy: Policy, states: Shaped[Array, "actors ..."], horizon: int, *, key: PRNGKeyArray) -> Step:
        """`horizon` steps of all actors, `[horizon, actors, ...]`; an actor whose episode ended stands still."""

        def advance(carry: tuple[Array, Array], key: PRNGKeyArray) -> tuple[tuple[Array, Array], Step]:
            states, alive = carry
            key_action, key_step = jax.random.split(key)
            step = self.step(states, policy(states, key_action), key=key_step)
            step = step._replace(
                next_state=jnp.where(jnp.expand_dims(alive, tuple(range(1, states.ndim))), step.next_state, states),
                reward=jnp.where(alive, step.reward, 0.0),
                terminated=step.terminated & alive,
                alive=alive,
                info=jax.tree.map(lambda count: jnp.where(alive, count, 0), step.info),
            )
            return (step.next_state, alive & ~step.terminated), step

        everyone = jnp.ones(states.shape[0], bool)
        return jax.lax.scan(advance, (states, everyone), jax.random.split(key, horizon))[1]

    def worth(
        self,
        states: Shaped[Array, "batch ..."],
        actions: Shaped[Array, "batch ..."],
        next_states: Shaped[Array, "batch ..."],
    ) -> Float[Array, " batch"]:
        """What transitions that really happened would pay under the current ensemble."""
        forecast = self._forecast(states, actions)
        return self.utility(Outcome(self.ensemble, states, actions, next_states, forecast))

    def _forecast(self, states: Array, actions: Array) -> Any:
        """Every member's prediction, if the utility looks at it."""
        return self.ensemble.forecast(states, actions, apart=self.apart) if self.utility.needs_forecast else None

    def _plausible(self, states: Array, drawn: Array) -> tuple[Array, Int[Array, " actors"], Int[Array, " actors"]]:
        """The drawn states mended, with counts of entries clipped and of entries not finite."""
        none = jnp.zeros(states.shape[0], jnp.int32)
        if not jnp.issubdtype(drawn.dtype, jnp.floating):
            return drawn, none, none
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


def plausible_range(history: History, margin: float) -> tuple[Float[Array, " dims"], Float[Array, " dims"]]:
    """The range of every dimension in D, widened by `margin` times its extent on either side."""
    rows, filled = history.transitions, history.filled[:, None]
    low = jnp.minimum(rows.state, rows.next_state)
    high = jnp.maximum(rows.state, rows.next_state)
    low = jnp.min(jnp.where(filled, low, jnp.inf), axis=0)
    high = jnp.max(jnp.where(filled, high, -jnp.inf), axis=0)
    extent = margin * (high - low)
    return low - extent, high + extent
