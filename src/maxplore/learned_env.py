"""The dynamics that an explorer has learned, as Gymnasium environments in which any other library can train."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from maxplore import checks
from maxplore.errors import InputError
from maxplore.explorer import Explorer
from maxplore.learned_world import Rows
from maxplore.rewards import Reward


class LearnedEnv(gym.Env[Any, Any]):
    """What `explorer` has learned up to now, with a task's `reward`; what it learns later needs another one.

    `reward(state, action, next_state)`, and `terminated` of the same form, are written for one transition in
    `jax.numpy`, in the environment's own units. They are compiled once: what they read from elsewhere must not change.
    Each step draws a member of the ensemble and samples from it, within the range of D and the bounds of the space.
    Episodes end where members say that they do, or where `terminated` does, and are cut off after `horizon` steps (by
    default the longest episode of D). They begin in one of `starts`, rows of observations (by default the first of
    every episode of D). Actions are clipped to their space. `info["disagreement"]` of a step tells how far to trust it:
    the standard deviation of the members' means in units of the usual change of state, averaged over dimensions; of
    Discrete states, their Jensen-Shannon divergence.

    >>> lake = gym.make("FrozenLake-v1", is_slippery=False)
    >>> explorer = Explorer(lake.observation_space, lake.action_space, preset="smoke")
    >>> explorer.tell(0, 1, 4, truncated=True)
    >>> env = LearnedEnv(explorer, lambda state, action, next_state: next_state == 15, horizon=100)
    >>> env.reset(seed=0)
    (np.int64(0), {})
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        explorer: Explorer,
        reward: Reward,
        *,
        terminated: Reward | None = None,
        horizon: int | None = None,
        starts: Any = None,
        seed: int | None = None,
    ) -> None:
        self._rows = Rows(explorer, reward, terminated, horizon, starts, 1)
        self._begun = False
        self.observation_space, self.action_space = explorer.observation_space, explorer.action_space
        super().reset(seed=seed)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; `seed` settles all that happens from here on."""
        super().reset(seed=seed)
        self._rows.begin(0, self.np_random)
        self._begun = True
        return self._rows.observations[0], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One imagined step."""
        if not self._begun:
            raise gym.error.ResetNeeded("step is called before reset: call reset first")
        happened, truncated = self._rows.step(self._rows.one_action(action), np.ones(1, bool))
        info = {"disagreement": float(happened.disagreement[0])}
        over = bool(happened.terminated[0])
        return self._rows.observations[0], float(happened.reward[0]), over, bool(truncated[0]), info


class LearnedVectorEnv(gym.vector.VectorEnv[Any, Any, Any]):
    """`num_envs` rows of a `LearnedEnv`, stepped in one compiled call.

    Row i is what a `LearnedEnv` with the seed + i would be. `autoreset_mode` is one of Gymnasium's three, by default
    its own: a row whose episode is over begins another at the next step, whose action counts for nothing.
    """

    def __init__(
        self,
        explorer: Explorer,
        reward: Reward,
        num_envs: int,
        *,
        terminated: Reward | None = None,
        horizon: int | None = None,
        starts: Any = None,
        seed: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        try:
            self._mode = AutoresetMode(autoreset_mode)
        except ValueError:
            known = ", ".join(mode.value for mode in AutoresetMode)
            raise InputError(f"autoreset_mode is {autoreset_mode!r}, expected one of {known}") from None
        self.num_envs = checks.counted("num_envs", num_envs)
        self.metadata = {"render_modes": [], "autoreset_mode": self._mode}
        self._rows = Rows(explorer, reward, terminated, horizon, starts, self.num_envs)
        self.single_observation_space = explorer.observation_space
        self.single_action_space = explorer.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._numbers = [seeding.np_random(own)[0] for own in self._seeds(seed)]
        self._over = np.zeros(self.num_envs, bool)
        self._begun = False

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every row, or where `options["reset_mask"]` says so; `seed` is for the first row, and the
        others count on from it, or one for each."""
        chosen = np.ones(self.num_envs, bool)
        if options is not None and "reset_mask" in options:
            chosen = np.asarray(options["reset_mask"])
            if chosen.shape != (self.num_envs,) or chosen.dtype != bool:
                raise InputError(f"reset_mask is {options['reset_mask']}, expected True or False for each row")
            if not (self._begun or chosen.all()):
                raise InputError("reset_mask leaves rows out that have never begun: reset all of them first")
        for row, own in enumerate(self._seeds(seed)):
            if chosen[row]:
                if own is not None:
                    self._numbers[row] = seeding.np_random(own)[0]
                self._rows.begin(row, self._numbers[row])
        self._over = self._over & ~chosen
        self._begun = True
        return self._rows.observations, {}

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One imagined step of every row."""
        if not self._begun or (self._mode is AutoresetMode.DISABLED and self._over.any()):
            raise gym.error.ResetNeeded("step is called with an episode over or none begun: call reset first")
        going = ~self._over
        happened, truncated = self._rows.step(self._rows.every_action(actions), going)
        self._begin(np.flatnonzero(self._over))
        terminated = going & happened.terminated
        reward = np.where(going, happened.reward, 0.0).astype(np.float64)
        self._over = terminated | truncated
        told, infos = going, dict[str, Any]()
        if self._mode is AutoresetMode.SAME_STEP:
            last, over = self._rows.observations, np.flatnonzero(self._over)
            for row in over:
                final = {"final_obs": last[row], "final_info": {"disagreement": float(happened.disagreement[row])}}
                infos = self._add_info(infos, final, int(row))
            self._begin(over)
            told, self._over = ~self._over, np.zeros(self.num_envs, bool)
        infos |= {"disagreement": np.where(told, happened.disagreement, 0.0).astype(np.float64), "_disagreement": told}
        return self._rows.observations, reward, terminated, truncated, infos

    def _begin(self, rows: np.ndarray) -> None:
        for row in rows:
            self._rows.begin(int(row), self._numbers[row])

    def _seeds(self, seed: int | Sequence[int | None] | None) -> Sequence[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer):
            return [int(seed) + row for row in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise InputError(f"seed has {len(seed)} entries, expected one number, or one for each of {self.num_envs}")
        return seed
