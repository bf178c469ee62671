"""A walk that can be stopped at a gate, or end its process there."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium import spaces

# The module registers it: this id can be made by a process that knows nothing of the module.
ID = "tests.sweep.gate:maxplore-test/Gate-v0"
STATES = 5


class Gate(gym.Env[Any, Any]):
    """To the right, or else to the left. At its step `at` it waits until there is a file `gate`; or it makes the file,
    and kills its process: the next one finds the gate open."""

    observation_space = spaces.Discrete(STATES)
    action_space = spaces.Discrete(2)

    def __init__(self, gate: str = "", at: int = 12, fatal: bool = False) -> None:
        self.gate, self.at, self.fatal, self.steps, self.place = Path(gate), at, fatal, 0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(STATES))
        return self.place, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        while self.steps >= self.at and not self.gate.exists():
            if self.fatal:
                self.gate.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.02)
        self.place = max(0, min(STATES - 1, self.place + (1 if action else -1)))
        return self.place, 0.0, False, False, {}


gym.register("maxplore-test/Gate-v0", f"{__name__}:Gate", max_episode_steps=8)
