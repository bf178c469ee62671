"""The randomised Chain (section 4.1): a corridor whose two actions are swapped in about half of its states.

`Chain` is the functional core, `ChainEnv` its Gymnasium shell; both take the same steps.
"""

from typing import Any

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from maxplore.compiling import compiled
from maxplore.errors import InputError

START = 1
LEFT_REWARD, RIGHT_REWARD = 0.001, 1.0


class Chain(eqx.Module):
    """`length` states in a row; action 1 goes right and 0 left, or the other way round where `swapped`.

    Whoever tries to leave the chain stays in place, and only staying at an edge is rewarded. With `stochastic_trap`,
    state 0 leads to 0 or 1 with equal chance, whatever the action.
    """

    swapped: Bool[Array, " length"]
    stochastic_trap: bool = eqx.field(static=True, default=False)

    @classmethod
    def random(cls, length: int = 50, *, stochastic_trap: bool = False, key: PRNGKeyArray) -> "Chain":
        """A chain with swaps of its own."""
        if length < 2:
            raise InputError(f"length is {length}, expected at least 2")
        return cls(jax.random.bernoulli(key, 0.5, (length,)), stochastic_trap)

    @property
    def length(self) -> int:
        return self.swapped.shape[0]

    @property
    def horizon(self) -> int:
        """Steps of an episode, L + 9."""
        return self.length + 9

    def reset(self) -> Int[Array, ""]:
        return jnp.int32(START)

    def step(
        self, state: Int[Array, ""], action: Int[Array, ""], *, key: PRNGKeyArray
    ) -> tuple[Int[Array, ""], Float[Array, ""]]:
        """The next state and the reward."""
        right = (action == 1) ^ self.swapped[state]
        following = jnp.clip(state + jnp.where(right, 1, -1), 0, self.length - 1)
        if self.stochastic_trap:
            following = jnp.where(state == 0, jax.random.bernoulli(key).astype(following.dtype), following)
        at_edge = jnp.where(state == 0, LEFT_REWARD, RIGHT_REWARD)
        return following.astype(jnp.int32), jnp.where(following == state, at_edge, 0.0)


class ChainEnv(gym.Env[np.int64, int | np.int64]):
    """`maxplore/Chain-v0`: the Chain for Gymnasium. `seed` decides which actions are swapped."""

    metadata: dict[str, Any] = {"render_modes": ["ansi"]}  # noqa: RUF012  (Gymnasium's own convention)

    def __init__(
        self, length: int = 50, stochastic_trap: bool = False, seed: int = 0, render_mode: str | None = None
    ) -> None:
        self.chain = Chain.random(length, stochastic_trap=stochastic_trap, key=jax.random.key(seed))
        self.observation_space = gym.spaces.Discrete(length)
        self.action_space = gym.spaces.Discrete(2)
        self.render_mode = render_mode
        self._state, self._time = START, 0

    @property
    def horizon(self) -> int:
        """Steps of an episode."""
        return self.chain.horizon

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self._state, self._time = START, 0
        return np.int64(self._state), {}

    def step(self, action: int | np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise InputError(f"action is {action!r}, expected 0 or 1")
        key = jax.random.key(int(self.np_random.integers(2**31)))
        state, reward = _step(self.chain, jnp.int32(self._state), jnp.int32(action), key)
        self._state, self._time = int(state), self._time + 1
        # The episode's length is the environment's own: it ends by the clock, not by what happened.
        return np.int64(self._state), float(reward), False, self._time >= self.chain.horizon, {}

    def render(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return "".join("*" if state == self._state else "." for state in range(self.chain.length))


@compiled
def _step(chain: Chain, state: Array, action: Array, key: PRNGKeyArray) -> tuple[Array, Array]:
    return chain.step(state, action, key=key)
