"""An explorer that is asked and told, one step at a time, by whoever owns the loop."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from maxplore.errors import InputError
from maxplore.explorers.base import Finite, FiniteExplorer
from maxplore.explorers.loop import step_keys
from maxplore.explorers.max import MaxExplorer
from maxplore.explorers.memory import Memory
from maxplore.history import Transition


class FiniteAgent:
    """The same explorer as in a compiled run, with the same keys: the same transitions give the same actions."""

    def __init__(self, explorer: FiniteExplorer, world: Finite, *, key: PRNGKeyArray) -> None:
        key_init, self._key = jax.random.split(key)
        self.explorer, self.world = explorer, world
        self.mind: Any = _init(explorer, world, key_init)
        self.steps = 0
        """Transitions told so far."""

    def begin(self) -> None:
        """Another episode begins, though nothing told so."""
        self.mind = jax.tree.map(
            lambda x: x.began() if isinstance(x, Memory) else x, self.mind, is_leaf=lambda x: isinstance(x, Memory)
        )

    def ask(self, state: Any) -> int:
        """An action for this state. Asking again gives the same one."""
        return int(
            _act(self.explorer, self.world, self.mind, jnp.asarray(state, jnp.int32), self._key, jnp.int32(self.steps))
        )

    def promise(self, state: Any) -> float:
        """Utility that MAX's best plan promises from here."""
        if not isinstance(self.explorer, MaxExplorer):
            raise InputError("this method makes no plans: only MAX does")
        now = (self._key, jnp.int32(self.steps))
        return float(_promise(self.explorer, self.world, self.mind, jnp.asarray(state, jnp.int32), *now))

    def tell(self, transition: Transition, reward: float = 0.0) -> None:
        """Learn from a transition, wherever it comes from."""
        now = (self._key, jnp.int32(self.steps))
        self.mind = _observe(self.explorer, self.world, self.mind, transition, jnp.float32(reward), *now)
        self.steps += 1


@eqx.filter_jit
def _init(explorer: FiniteExplorer, world: Finite, key: PRNGKeyArray) -> Any:
    return explorer.init(world, key=key)


@eqx.filter_jit
def _act(
    explorer: FiniteExplorer,
    world: Finite,
    mind: Any,
    state: Int[Array, ""],
    key: PRNGKeyArray,
    number: Int[Array, ""],
) -> Int[Array, ""]:
    return explorer.act(world, mind, state, key=step_keys(key, number)[0])


@eqx.filter_jit
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


@eqx.filter_jit
def _promise(
    explorer: MaxExplorer, world: Finite, mind: Any, state: Int[Array, ""], key: PRNGKeyArray, number: Int[Array, ""]
) -> Float[Array, ""]:
    return jnp.max(explorer.values(world, mind, state, key=step_keys(key, number)[0]))
