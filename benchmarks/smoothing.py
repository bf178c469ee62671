"""How much of the noise in Half Cheetah's observations can be taken out of D, and what models gain by it.

    maxplore explore maxplore/HalfCheetah-v0 --method random --steps 20000 --seed 1000 --out runs/random
    python benchmarks/smoothing.py runs/random [RUN ...] [--out results/benchmarks/smoothing.json]

The noise is in what is observed and never in the simulator: the actions of a RUN in an environment without noise give
the states as they were. Models are fitted as `exploit` fits them: to D as it was observed, to D with its noise taken
out as far as the first model can tell, and to the states as they were, which nobody has. All are rated on steps that
none of them learned from, by how far the mean of their members is from the truth. One process, one core.
"""

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import numpy as np
from exploration import commit

from maxplore.episodes import rows
from maxplore.exploit.real import ExploitConfig, TaskModel
from maxplore.exploit.smoothing import noise_of
from maxplore.history import History, held_out
from maxplore.models import GaussianEnsemble
from maxplore.runs.directory import Folder
from maxplore.runs.record import Record
from maxplore.runs.reliving import told

ENV = "maxplore/HalfCheetah-v0"
GROUPS = {"positions": slice(1, 10), "x velocity": slice(10, 11), "other velocities": slice(11, 19)}
"""Dimensions that are averaged: height, pitch and joint angles; and velocities."""


def as_it_was(run: Path, history: History) -> tuple[np.ndarray, np.ndarray]:
    """States and next states of D without noise."""
    env, own = gym.make(ENV, noise=0.0).unwrapped, rows(history)
    with Record.read(Folder(run).record) as record:
        episodes = {episode.first_step: episode.seed for episode in record.episodes()}
    states, next_states = np.zeros_like(own.state), np.zeros_like(own.state)
    state = states[0]
    for step, action in enumerate(own.action):
        if step in episodes:
            state, _ = env.reset(seed=episodes[step])
        states[step] = state
        state, *_ = env.step(action)
        next_states[step] = state
    return states, next_states


def measured(run: Path) -> dict[str, Any]:
    """What is found of the noise in a run's D, what is left of it, and how far from the truth models are."""
    config = Folder(run).read_config()
    with Record.read(Folder(run).record) as record:
        explorer = told(Folder(run), record, record.steps)
    history = explorer.history
    states, next_states = as_it_was(run, history)
    count = len(states)
    truly = history.continuous(19, 6, capacity=history.capacity).append(
        states, rows(history).action, next_states, rows(history).terminated, rows(history).truncated
    )
    aside = np.flatnonzero(np.asarray(held_out(history, ExploitConfig().fit.held_out))[:count])
    key_new, key_fit = jax.random.split(jax.random.key(0))

    def model(history: History, smoothing: bool) -> TaskModel:
        own = ExploitConfig(smoothing=smoothing)
        return TaskModel.of(GaussianEnsemble(19, 6, own.model, key=key_new), history, None, own, 0, key=key_fit)

    models = {"observed": model(history, False), "smoothed": model(history, True), "as it was": model(truly, False)}
    first = models["observed"].ensemble
    found = np.sqrt(np.asarray(noise_of(first, history).observed)) * np.asarray(first.state.scale)
    seen, left = (np.asarray(own.transitions.state)[:count] - states for own in (history, models["smoothed"].history))
    errors: dict[str, dict[str, float]] = {}
    for name, own in models.items():
        mean = np.asarray(own.ensemble.predict(states[aside], rows(history).action[aside])[0]).mean(axis=0)
        each = np.sqrt(np.mean((mean - next_states[aside]) ** 2, axis=0))
        errors[name] = {group: round(float(each[part].mean()), 4) for group, part in GROUPS.items()}
    positions = GROUPS["positions"]
    return {
        "method": config.method,
        "seed": config.seed,
        "steps": count,
        "noise": round(float(np.sqrt(np.mean(seen[:, positions] ** 2))), 4),
        "found": [round(float(x), 4) for x in found],
        "left": round(float(np.sqrt(np.mean(left[:, positions] ** 2))), 4),
        "errors": errors,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help=f"runs of {ENV}")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks/smoothing.json"))
    asked = parser.parse_args()
    begin, found = time.perf_counter(), list[dict[str, Any]]()
    for run in asked.runs:
        found.append(measured(run))
        print(json.dumps(found[-1]), flush=True)
    result = {
        "what": "noise in observations of Half Cheetah: how much is found in D and taken out, and the root mean "
        "squared error of models for steps that none has learned from, from states and to states without noise",
        "command": f"python benchmarks/smoothing.py {' '.join(run.name for run in asked.runs)}",
        "commit": commit(),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
        "seconds": round(time.perf_counter() - begin, 1),
        "runs": found,
    }
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
