"""Whether what was learned of Half Cheetah would let a real runner run: a policy from reality, tried in the models.

    maxplore explore maxplore/HalfCheetah-v0 --method max --steps 20000 --seed 1000 --out runs/max
    python benchmarks/fidelity.py runs/max [RUN ...] [--out results/benchmarks/fidelity.json]

SAC learns to run in the real environment (the oracle of fig. 4, cut short). Its policies are then let loose in every
member of a model that is fitted to the D of each RUN as `exploit` fits it: from the first states of D's episodes, once
as imagination has it, and once without the noise that members add to every step. A model in which a runner stands still
has no running to be found, whoever looks for it. One process, one core.
"""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from exploration import commit

import maxplore
from maxplore.episodes import begins
from maxplore.exploit import oracle
from maxplore.exploit.real import ExploitConfig
from maxplore.mdp import ExplorationMDP
from maxplore.models import GaussianEnsemble, fit
from maxplore.runs.directory import Folder
from maxplore.tasks import TASKS, running
from maxplore.utilities import Task

LEARNED, EVERY, SEED = 15_000, 5000, 7
"""Real steps of the runner, and between two of its policies that are tried."""
EPISODES, STEPS = 40, 100
"""Imagined episodes, dealt out to the members, and their length."""
NOISE = (1.0, 0.0)
"""How much of the noise of members is added."""
MARGIN = 0.1
"""How far the runner may leave the range of D, as a share of its extent."""


@eqx.filter_jit
def advanced(mdp: ExplorationMDP, states: Any, actions: Any, members: Any, scale: Any, key: Any) -> tuple[Any, Any]:
    """One imagined step of all episodes, each in the world of its own member: next states, and what is paid."""
    chance = mdp.ensemble.chance(states.shape[0], key=key)
    step = mdp.advance(states, actions, chance._replace(noise=scale * chance.noise), member=members)
    return step.next_state, step.reward


def imagined(policy: maxplore.TaskPolicy, mdp: ExplorationMDP, starts: np.ndarray, scale: float) -> np.ndarray:
    """What the policy is paid in the models, an entry for each episode."""
    states, paid = jnp.asarray(starts[np.arange(EPISODES) % len(starts)]), np.zeros(EPISODES)
    members = jnp.arange(EPISODES) % mdp.ensemble.size
    for number in range(STEPS):
        actions = jnp.asarray(np.stack([policy(state) for state in np.asarray(states)]))
        states, reward = advanced(mdp, states, actions, members, scale, jax.random.fold_in(jax.random.key(0), number))
        paid += np.asarray(reward)
    return paid


def world(run: Path) -> tuple[ExplorationMDP, np.ndarray]:
    """The models of what a run has seen, paying for running; and the first states of its episodes."""
    config, explorer = ExploitConfig(), maxplore.load(run)
    history = explorer.history
    key_new, key_fit = jax.random.split(jax.random.key(0))
    ensemble = GaussianEnsemble(19, 6, config.model, key=key_new)
    ensemble = fit(ensemble, history, config.fit, key=key_fit).ensemble
    starts = np.asarray(history.transitions.state)[: explorer.steps][begins(history)]
    return ExplorationMDP(ensemble, Task(running), history, margin=MARGIN), starts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="runs of maxplore/HalfCheetah-v0")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks/fidelity.json"))
    asked = parser.parse_args()
    begin, worlds = time.perf_counter(), [(Folder(run).read_config(), *world(run)) for run in asked.runs]
    rows: list[dict[str, Any]] = []
    for rated in oracle(gym.make(TASKS["running"].env), "running", LEARNED, rate_every=EVERY, seed=SEED):
        for config, mdp, starts in worlds:
            for scale in NOISE:
                paid = imagined(rated.policy, mdp, starts, scale)
                row = {
                    "learned": rated.steps,
                    "real": [round(float(x), 1) for x in rated.returns],
                    "method": config.method,
                    "seed": config.seed,
                    "noise": scale,
                    "imagined": round(float(paid.mean()), 1),
                    "by_member": [
                        round(float(paid[k :: mdp.ensemble.size].mean()), 1) for k in range(mdp.ensemble.size)
                    ],
                }
                rows.append(row)
                print(json.dumps(row), flush=True)
    result = {
        "what": "a policy that SAC learned in the real Half Cheetah, in models of what was explored: "
        f"{EPISODES} imagined episodes of {STEPS} steps",
        "command": f"python benchmarks/fidelity.py {' '.join(sys.argv[1:])}",
        "commit": commit(),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
        "seconds": round(time.perf_counter() - begin, 1),
        "runs": rows,
    }
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
