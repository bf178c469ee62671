"""What it costs that real environments are stepped through a door: copies and checks, beside `explore` without them.

    python benchmarks/door.py [--steps 500] [--turns 5] [--out results/benchmarks/door.json]

The same exploration, from the same seed, with and without the door (what comes in is only made an array of the right
type), in turns and in processor time; the first turn, in which things are compiled, counts for nobody. The door's own
time for a step is measured apart from the rest, which varies more from turn to turn than the door costs.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import maxplore
from maxplore import explorer as explorers
from maxplore import interaction, spaces

WORLDS = {"Pendulum-v1": {}, "FrozenLake-v1": {"is_slippery": False}}


def bare_step(env: gym.Env[Any, Any], action: Any, **_: Any) -> interaction.Told:
    following, reward, terminated, truncated, _ = env.step(action)
    return interaction.Told(following, float(reward), bool(terminated), bool(truncated))


BARE = {
    (explorers, "step_env"): bare_step,
    (spaces, "taken"): lambda _space, _name, value: np.asarray(value),
    (spaces.Numbered, "inward"): lambda self, _name, value: np.asarray(value - self.start, np.int32),
}
DOOR = {place: getattr(*place) for place in BARE}


def explored(name: str, steps: int, door: bool) -> float:
    """Seconds of processor time."""
    for place, function in (DOOR if door else BARE).items():
        setattr(*place, function)
    env = gym.make(name, **WORLDS[name])
    explorer = maxplore.Explorer(env.observation_space, env.action_space, seed=0)
    begin = time.process_time()
    explorer.explore(env, steps, progress=False)
    return time.process_time() - begin


def microseconds(name: str, door: bool, times: int = 2000) -> float:
    """What comes in and goes out in one step of `explore`: a step of the environment, asked and told."""
    for place, function in (DOOR if door else BARE).items():
        setattr(*place, function)
    env = gym.make(name, **WORLDS[name], max_episode_steps=10**9)
    states = spaces.observations(env.observation_space)
    moves, (seen, _), spent = spaces.actions(env.action_space), env.reset(seed=0), 0.0
    env.action_space.seed(0)
    for _ in range(times):
        action, begin = env.action_space.sample(), time.process_time()
        told = explorers.step_env(env, action)
        for value in (seen, seen, told.observation):  # asked, told, told
            states.inward("observation", value)
        moves.inward("action", action)
        spent += time.process_time() - begin
        seen = env.reset()[0] if told.terminated else told.observation
    return 1e6 * spent / times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks/door.json"))
    asked = parser.parse_args()
    result: dict[str, Any] = {"command": f"python benchmarks/door.py --steps {asked.steps} --turns {asked.turns}"}
    for name in WORLDS:
        turns = [[explored(name, asked.steps, door) for door in (True, False)] for _ in range(asked.turns + 1)][1:]
        step = statistics.median(bare for _, bare in turns) / asked.steps
        apart = microseconds(name, door=True) - microseconds(name, door=False)
        result[name] = {
            "ratio": round(statistics.median(with_door / bare for with_door, bare in turns), 4),
            "milliseconds_per_step": round(1000 * step, 3),
            "door_microseconds_per_step": round(apart, 1),
            "door_share": round(1e-6 * apart / step, 5),
        }
    print(json.dumps(result, indent=1))
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
