"""An explorer that is asked and told, one step at a time, by whoever owns the loop."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from maxplore.compiling import compiled
from maxplore.errors import InputError
from maxplore.explorers.base import Finite, FiniteExplorer
from maxplore.explorers.bootstrapped_dqn import BootstrappedDqnExplorer
from maxplore.explorers.eb_dqn import EbDqnExplorer
from maxplore.explorers.loop import step_keys
from maxplore.explorers.max import MaxExplorer, MaxMind, tabulate
from maxplore.explorers.memory import Memory
from maxplore.history import History, Transition
from maxplore.models.categorical import CategoricalEnsemble
from maxplore.models.ensemble import Ensemble

_tabulate = compiled(tabulate)


Filled = Callable[[str, Any], Any]
"""Given the name of a group and a pytree, the arrays of that group in the places of the pytree's."""


class Agent(ABC):
    """What chooses the actions behind an `Explorer`, in maxplore's own arrays."""

    _history: History
    _told: list[tuple[np.ndarray, ...]]
    """Rows of D that are not in its arrays yet: each time that they change they are copied, however long they are."""

    @property
    def history(self) -> History:
        """D: every transition told so far."""
        if self._told:
            self._history, self._told = (
                self._history.extended([np.concatenate(x) for x in zip(*self._told, strict=True)]),
                [],
            )
        return self._history

    @history.setter
    def history(self, history: History) -> None:
        self._history, self._told = history, []

    def remember(self, transition: Transition) -> None:
        """Add to D, or an `InputError` that says what is wrong."""
        row = transition
        columns = self._history.checked(row.state, row.action, row.next_state, row.terminated, row.truncated)
        self._told.append(columns)

    @property
    def steps(self) -> int:
        """Transitions told so far."""
        return int(self._history.size) + len(self._told)

    @abstractmethod
    def begin(self) -> None:
        """Another episode begins, though nothing told so."""

    @abstractmethod
    def ask(self, state: Any) -> Any:
        """An action for this state. Asking again gives the same one."""

    @abstractmethod
    def tell(self, transition: Transition, reward: float = 0.0) -> None:
        """Learn from a transition, wherever it comes from."""

    @property
    @abstractmethod
    def settings(self) -> Any:
        """The config that it goes by."""

    @property
    def minds_reward(self) -> bool:
        """Whether it learns from the rewards that it is told of."""
        return False

    @property
    @abstractmethod
    def promises(self) -> bool:
        """Whether its plans promise anything."""

    @abstractmethod
    def promise(self, state: Any) -> float | None:
        """Utility that its plans promise from here; None if it makes none, or has made none yet."""

    @property
    @abstractmethod
    def model(self) -> Ensemble[Any]:
        """The ensemble, or an `InputError` if the method has none."""

    @abstractmethod
    def utility(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """How novel these pairs would be."""

    @abstractmethod
    def survey(self) -> dict[str, np.ndarray]:
        """How sure its models are, and where, as tables by name; none as long as there are no models. It changes
        nothing, and is the same at the same step."""

    @property
    @abstractmethod
    def coverage(self) -> float:
        """How much of the environment was seen."""

    @property
    @abstractmethod
    def figures(self) -> list[dict[str, float]]:
        """How learning went, one row a round."""

    @property
    def latest(self) -> dict[str, float] | None:
        """The figures of the newest round; None before the first."""
        return None

    @abstractmethod
    def learn_horizon(self, steps: int) -> None:
        """Episodes are so long, as is known now."""

    @property
    @abstractmethod
    def horizon(self) -> int | None:
        """How long episodes are, if that is known."""

    @abstractmethod
    def frozen(self, *, with_history: bool = True) -> tuple[dict[str, Any], dict[str, Any]]:
        """All that it knows: a plain description, and groups of arrays by name; D among them or not."""

    @abstractmethod
    def thaw(self, plain: dict[str, Any], filled: Filled) -> None:
        """Know what `frozen` told; the arrays of a group come from `filled`."""

    def _frozen_history(self, wanted: bool) -> dict[str, Transition]:
        """D without the room that is left in it, as a group; none if it is not wanted."""
        return {"history": jax.tree.map(lambda x: x[: self.steps], self.history.transitions)} if wanted else {}

    def _thaw_history(self, steps: int, filled: Filled) -> None:
        if steps == 0:
            return
        like = jax.tree.map(lambda x: jax.ShapeDtypeStruct((steps, *x.shape[1:]), x.dtype), self.history.transitions)
        rows = filled("history", like)
        self.history = self.history.append(rows.state, rows.action, rows.next_state, rows.terminated, rows.truncated)


class FiniteAgent(Agent):
    """The same explorer as in a compiled run, with the same keys: the same transitions give the same actions."""

    def __init__(
        self,
        explorer: FiniteExplorer,
        world: Finite,
        *,
        key: PRNGKeyArray,
        external: Float[Array, "states actions states"] | None = None,
    ) -> None:
        """With `external`, what every transition pays is added to MAX's utility."""
        key_init, self._key = jax.random.split(key)
        self.explorer, self.world = explorer, world
        self.mind: Any = _init(explorer, world, key_init)
        if external is not None:
            if not isinstance(self.mind, MaxMind):
                raise InputError(
                    "reward is given, expected none: among methods for Discrete spaces only max mixes it in"
                )
            self.mind = MaxMind(self.mind.memory, self.mind.ensemble, self.mind.moments, external)
        self.history = History.discrete(world.states, world.actions)

    @property
    def settings(self) -> Any:
        return self.explorer

    def learn_horizon(self, steps: int) -> None:
        if not self.world.known_end:
            self.world = Finite(self.world.states, self.world.actions, steps)

    @property
    def horizon(self) -> int | None:
        return self.world.horizon if self.world.known_end else None

    def begin(self) -> None:
        self.mind = jax.tree.map(
            lambda x: x.began() if isinstance(x, Memory) else x, self.mind, is_leaf=lambda x: isinstance(x, Memory)
        )

    def ask(self, state: Any) -> int:
        return int(_act(self.explorer, self.world, self.mind, jnp.asarray(state, jnp.int32), *self._now))

    def tell(self, transition: Transition, reward: float = 0.0) -> None:
        self.mind = _observe(self.explorer, self.world, self.mind, transition, jnp.float32(reward), *self._now)
        self.remember(transition)

    @property
    def minds_reward(self) -> bool:
        return isinstance(self.explorer, EbDqnExplorer | BootstrappedDqnExplorer)

    @property
    def promises(self) -> bool:
        return isinstance(self.explorer, MaxExplorer)

    def promise(self, state: Any) -> float | None:
        if not isinstance(self.explorer, MaxExplorer) or self.explorer.warming_up(self.world, self.mind):
            return None
        return float(_promise(self.explorer, self.world, self.mind, jnp.asarray(state, jnp.int32), *self._now))

    @property
    def model(self) -> CategoricalEnsemble:
        return self._max_mind().ensemble

    def utility(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        if states.shape != actions.shape:
            raise InputError(f"actions has shape {actions.shape}, expected {states.shape}, the shape of observations")
        return np.asarray(np.asarray(_tabulate(self._max_mind()).pays)[states, actions])

    def survey(self) -> dict[str, np.ndarray]:
        """The utility of every pair of state and action."""
        if not isinstance(self.explorer, MaxExplorer) or self.explorer.warming_up(self.world, self.mind):
            return {}
        return {"pairs": np.asarray(_tabulate(self._max_mind()).pays)}

    @property
    def coverage(self) -> float:
        """Share of all state-action pairs tried."""
        rows = self.history.transitions
        pairs = np.asarray(rows.state) * self.world.actions + np.asarray(rows.action)
        return len(np.unique(pairs[: self.steps])) / (self.world.states * self.world.actions)

    @property
    def figures(self) -> list[dict[str, float]]:
        return []  # it learns at every step: there are no rounds to report

    def frozen(self, *, with_history: bool = True) -> tuple[dict[str, Any], dict[str, Any]]:
        plain = {"steps": self.steps, "horizon": self.world.horizon, "known_end": self.world.known_end}
        return plain, {**self._frozen_history(with_history), "mind": eqx.filter(self.mind, eqx.is_array)}

    def thaw(self, plain: dict[str, Any], filled: Filled) -> None:
        self.world = Finite(self.world.states, self.world.actions, plain["horizon"], plain["known_end"])
        self._thaw_history(plain["steps"], filled)
        arrays, rest = eqx.partition(self.mind, eqx.is_array)
        self.mind = eqx.combine(filled("mind", arrays), rest)

    def _max_mind(self) -> MaxMind:
        if not isinstance(self.mind, MaxMind):
            raise InputError("this method has no model: use method='max'")
        return self.mind

    @property
    def _now(self) -> tuple[PRNGKeyArray, Int[Array, ""]]:
        return self._key, jnp.int32(self.steps)


@compiled
def _init(explorer: FiniteExplorer, world: Finite, key: PRNGKeyArray) -> Any:
    return explorer.init(world, key=key)


@compiled
def _act(
    explorer: FiniteExplorer,
    world: Finite,
    mind: Any,
    state: Int[Array, ""],
    key: PRNGKeyArray,
    number: Int[Array, ""],
) -> Int[Array, ""]:
    return explorer.act(world, mind, state, key=step_keys(key, number)[0])


@compiled
def _observe(
    explorer: FiniteExplorer,
    world: Finite,
    mind: Any,
    transition: Transition,
    reward: Float[Array, ""],
    key: PRNGKeyArray,
    number: Int[Array, ""],
) -> Any:
    return explorer.observe(world, mind, transition, reward, key=step_keys(key, number)[1])


@compiled
def _promise(
    explorer: MaxExplorer, world: Finite, mind: Any, state: Int[Array, ""], key: PRNGKeyArray, number: Int[Array, ""]
) -> Float[Array, ""]:
    return jnp.max(explorer.values(world, mind, state, key=step_keys(key, number)[0]))
