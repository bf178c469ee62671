"""The world as an explorer has learned it, row by row: what both environments of `learned_env` are made of."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Shaped, UInt

from maxplore import checks, spaces
from maxplore.compiling import compiled
from maxplore.entry import as_array, refuse
from maxplore.episodes import begins, longest
from maxplore.errors import InputError
from maxplore.explorer import Explorer
from maxplore.history import History
from maxplore.mdp import ExplorationMDP
from maxplore.models.categorical import CategoricalEnsemble
from maxplore.rewards import Reward, Traced, ends, inner
from maxplore.utilities import Disagreement, JensenShannon


class Happened(NamedTuple):
    """What came of one step of every row."""

    next_state: Array
    reward: Float[Array, " rows"]
    terminated: Bool[Array, " rows"]
    disagreement: Float[Array, " rows"]


class World(eqx.Module):
    """One imagined step, with a task's reward and ends."""

    mdp: ExplorationMDP
    """It pays disagreement: the forecast of every member then serves the step as well."""
    endings: Bool[Array, " states"] | None
    """Numbered states that ended an episode in D."""
    reward: Traced = eqx.field(static=True)
    terminated: Traced | None = eqx.field(static=True)
    snap: Callable[[Array], Array] = eqx.field(static=True)

    def step(
        self,
        state: Shaped[Array, "*state"],
        action: Shaped[Array, "*action"],
        seed: UInt[Array, ""],
        step: Int[Array, ""],
    ) -> Happened:
        """What comes of one row's action, by a member of its own draw; `seed` is the episode's."""
        key = jax.random.fold_in(jax.random.key(seed), step)
        imagined = self.mdp.step(state[None], action[None], key=key)
        next_state = self.snap(imagined.next_state[0])
        over, disagreement = imagined.terminated[0], imagined.reward[0]
        if self.endings is not None:
            over = over | self.endings[next_state]
        if self.terminated is not None:
            over = over | self.terminated(state, action, next_state)
        if self.mdp.ensemble.state_entry.count is None:
            disagreement = disagreement / state.size
        return Happened(next_state, self.reward(state, action, next_state), over, disagreement)


@compiled
def _step(world: World, states: Array, actions: Array, seeds: Array, steps: Array) -> Happened:
    return jax.vmap(world.step)(states, actions, seeds, steps)


class Rows:
    """Imagined episodes side by side, each with randomness of its own: what happens in a row depends on no other."""

    def __init__(
        self,
        explorer: Explorer,
        reward: Reward,
        terminated: Reward | None,
        horizon: int | None,
        starts: Any,
        count: int,
    ) -> None:
        space = explorer.observation_space
        if not isinstance(space, gym.spaces.Box | gym.spaces.Discrete):
            raise InputError(
                f"observation_space is {space}, expected a Box or Discrete, whose elements a model can make: explore "
                "with the environment in gymnasium's FlattenObservation"
            )
        ensemble = explorer.model.ensemble
        if explorer.steps == 0:
            raise InputError("the explorer has seen no transition, expected at least one: call explore or tell first")
        self._space = space
        self._moves = explorer.action_space
        self._actions = spaces.actions(self._moves)
        self._codec = spaces.observations(space, numbered=self._actions.entry.count is not None)
        numbered = isinstance(ensemble, CategoricalEnsemble)
        utility = JensenShannon() if numbered else Disagreement()
        self._world = World(
            ExplorationMDP(ensemble, utility, explorer.history, space=self._codec.bounds),
            _endings(explorer.history) if numbered else None,
            inner(reward, self._codec, self._actions),
            None if terminated is None else ends(terminated, self._codec, self._actions),
            _snap(space, numbered),
        )
        first = begins(explorer.history)
        self._horizon = longest(explorer.history) if horizon is None else checks.counted("horizon", horizon)
        seen = np.asarray(explorer.history.transitions.state)[: explorer.steps][first]
        self.starts = self._inward(self._observed(seen)) if starts is None else self._checked(starts)
        """States that episodes begin in, in maxplore's own arrays."""
        self._states = np.repeat(self.starts[:1], count, axis=0)
        self._seeds = np.zeros(count, np.uint32)
        self._steps = np.zeros(count, np.int32)

    @property
    def observations(self) -> np.ndarray:
        """Where every row is, as the environment has it: always an element of its space."""
        return self._observed(self._states)

    def begin(self, row: int, numbers: np.random.Generator) -> None:
        """Another episode in this row."""
        self._states[row] = self.starts[numbers.integers(len(self.starts))]
        self._seeds[row] = numbers.integers(2**32, dtype=np.uint32)
        self._steps[row] = 0

    def one_action(self, action: Any) -> np.ndarray:
        """An action for the only row."""
        return self._actions.inward("action", self._clipped("action", action))[None]

    def every_action(self, actions: Any) -> np.ndarray:
        """An action for each row."""
        inside = self._actions.batch("actions", self._clipped("actions", actions))
        wanted = (len(self._states), *self._actions.entry.shape)
        if inside.shape != wanted:
            raise InputError(f"actions has shape {np.shape(actions)}, expected one action for each of {wanted[0]} rows")
        return inside

    def step(self, actions: np.ndarray, going: np.ndarray) -> tuple[Happened, np.ndarray]:
        """One step of the rows that are `going`, and which episodes are cut off there. The others stay as they are."""
        inputs = map(jnp.asarray, (self._states, actions, self._seeds, self._steps))
        happened = jax.device_get(_step(self._world, *inputs))
        bad = going & ~np.isfinite(happened.reward)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"reward is {happened.reward[row]} for the next state {happened.next_state[row]}, expected a finite "
                "number"
            )
        self._states[going] = happened.next_state[going]
        self._steps[going] += 1
        return happened, going & (self._steps >= self._horizon)

    def _clipped(self, name: str, actions: Any) -> np.ndarray:
        """Actions within their bounds, as Gymnasium's own environments have it."""
        given, space = as_array(name, actions), self._moves
        if isinstance(space, gym.spaces.Box) and given.shape[max(given.ndim - len(space.shape), 0) :] == space.shape:
            return np.clip(given, space.low, space.high)
        return given

    def _observed(self, states: np.ndarray) -> np.ndarray:
        space = self._space
        if isinstance(space, gym.spaces.Discrete):
            numbers = states if states.ndim == 1 else states.argmax(axis=1)
            return (numbers.astype(np.int64) + int(space.start)).astype(space.dtype)
        # A bound need not be a float32 number.
        rows = states.reshape(-1, *space.shape).astype(np.float64)
        return np.clip(rows, space.low, space.high).astype(space.dtype)

    def _inward(self, observations: np.ndarray) -> np.ndarray:
        if isinstance(self._space, gym.spaces.Discrete) and self._codec.entry.count is None:
            numbers = spaces.Numbered(self._space).batch("starts", observations)
            return np.eye(int(self._space.n), dtype=np.float32)[numbers]
        return self._codec.batch("starts", observations)

    def _checked(self, starts: Any) -> np.ndarray:
        given, shape = as_array("starts", starts), self._space.shape
        if given.ndim == 0 or given.shape[1:] != shape or len(given) == 0:
            raise InputError(f"starts has shape {given.shape}, expected rows of observations, each of shape {shape}")
        if isinstance(self._space, gym.spaces.Box):
            inside = (given >= self._space.low) & (given <= self._space.high)
            refuse("starts", given, ~inside, f"a number within the bounds of {self._space}")
        return self._inward(given)


def _endings(history: History) -> Bool[Array, " states"]:
    rows, count = history.transitions, history.state_entry.count
    assert count is not None
    return jnp.zeros(count, bool).at[rows.next_state].max(rows.terminated & history.filled)


def _snap(space: gym.spaces.Box | gym.spaces.Discrete, numbered: bool) -> Callable[[Array], Array]:
    """What makes an imagined state one that the space can have."""
    if isinstance(space, gym.spaces.Discrete):
        return _as_it_is if numbered else _likeliest
    if np.issubdtype(space.dtype, np.integer):
        return jnp.round
    return _half if space.dtype == np.float16 else _as_it_is


def _as_it_is(state: Array) -> Array:
    return state


def _likeliest(state: Array) -> Array:
    return jax.nn.one_hot(jnp.argmax(state), state.size)


def _half(state: Array) -> Array:
    return state.astype(jnp.float16).astype(state.dtype)
