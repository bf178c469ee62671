# pyright: basic, reportMissingImports=false
"""Stable-Baselines3 trains in what maxplore has learned of Pendulum, and is tried on the real one.

    python -m venv PEERS
    PEERS/bin/pip install torch==2.13.0  # the build for CPUs
    PEERS/bin/pip install stable-baselines3==2.9.2
    python benchmarks/learned_env_sb3.py --peers PEERS/bin/python [--explore 2000] [--train 10000]

The packages of the peers' environment are found after those of this one, so that both run in one process; the two must
be of the same version of Python. Returns are over episodes of 200 steps: about -1200 for no policy at all, -150 for a
good one.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax.numpy as jnp
import numpy as np

import maxplore

ASKED = "import json, sys, sysconfig; print(json.dumps([sys.version_info[:2], sysconfig.get_path('purelib')]))"


def borrow(peers: str) -> None:
    """Make the packages of another interpreter's environment importable here."""
    try:
        answer = subprocess.run([peers, "-c", ASKED], capture_output=True, text=True, check=True).stdout
        version, packages = json.loads(answer)
    except (OSError, subprocess.CalledProcessError, json.JSONDecodeError):
        sys.exit(f"{peers} gave no answer, expected a Python interpreter: see --help")
    if tuple(version) != sys.version_info[:2]:
        sys.exit(f"{peers} is Python {version}, expected {list(sys.version_info[:2])}, as here")
    sys.path.append(packages)
    try:
        import stable_baselines3  # noqa: F401
    except ImportError as missing:
        sys.exit(f"{peers} has no module {missing.name}, expected torch and stable-baselines3: see --help")


def reward(state: Any, action: Any, _: Any) -> Any:
    """Pendulum's own: upright, slow, and with little torque, all of the state before the step."""
    angle = jnp.arctan2(state[1], state[0])
    return -(angle**2 + 0.1 * state[2] ** 2 + 0.001 * action[0] ** 2)


def returns(env: gym.Env, choose: Any, episodes: int) -> list[float]:
    """What whole episodes pay, the same ones for everybody."""
    paid = []
    for episode in range(episodes):
        (observation, _), total, over = env.reset(seed=1000 + episode), 0.0, False
        while not over:
            observation, gained, terminated, truncated, _ = env.step(choose(observation))
            total, over = total + float(gained), terminated or truncated
        paid.append(total)
    return paid


def measure(algorithm: str, explore: int, train: int, episodes: int, seed: int) -> dict[str, Any]:
    """Everything that is written down."""
    import stable_baselines3

    real = gym.make("Pendulum-v1")
    explorer = maxplore.Explorer(real.observation_space, real.action_space, seed=seed)
    began = time.perf_counter()
    explorer.explore(real, explore)
    explored = time.perf_counter()
    learned = maxplore.LearnedEnv(explorer, reward, seed=seed)
    model = getattr(stable_baselines3, algorithm)("MlpPolicy", learned, seed=seed, device="cpu")
    model.learn(train)
    trained = time.perf_counter()

    def chosen(observation: Any) -> Any:
        return model.predict(observation, deterministic=True)[0]

    real.action_space.seed(seed)
    results = {
        "random_real": returns(real, lambda _: real.action_space.sample(), episodes),
        "trained_real": returns(real, chosen, episodes),
        "trained_learned": returns(learned, chosen, episodes),
    }
    return {
        "command": f"python benchmarks/learned_env_sb3.py --peers PYTHON --algorithm {algorithm} --explore {explore} "
        f"--train {train} --episodes {episodes} --seed {seed}",
        "versions": {"maxplore": maxplore.__version__, "stable_baselines3": stable_baselines3.__version__},
        "seconds": {"explore": explored - began, "train": trained - explored},
        "load_after": os.getloadavg(),
        "median_return": {name: float(np.median(each)) for name, each in results.items()},
        "returns": results,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True, metavar="PYTHON", help="the interpreter of the peers' environment")
    parser.add_argument("--algorithm", choices=["SAC", "PPO"], default="SAC")
    parser.add_argument("--explore", type=int, default=2000, help="real steps, without a reward")
    parser.add_argument("--train", type=int, default=10_000, help="imagined steps")
    parser.add_argument("--episodes", type=int, default=10, help="episodes that returns are measured on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks/learned_env_sb3.json"))
    own = parser.parse_args()
    for name in ("explore", "train", "episodes"):
        if getattr(own, name) < 1:
            parser.error(f"--{name} is {getattr(own, name)}, expected at least 1")
    borrow(own.peers)
    result = measure(own.algorithm, own.explore, own.train, own.episodes, own.seed)
    own.out.parent.mkdir(parents=True, exist_ok=True)
    own.out.write_text(json.dumps(result, indent=2) + "\n")
    for name, value in result["median_return"].items():
        print(f"{name:18}{value:10.1f}")
    print(f"written to {own.out}")


if __name__ == "__main__":
    main()
