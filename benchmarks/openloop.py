"""How far ahead models of Half Cheetah can be believed, and what policies learned in them are really paid.

    python benchmarks/openloop.py [D.npz ...] [--mixed 60000 20000] [--tasks running flipping]

Plentiful data first, then less, then what exploration has seen. Plentiful and mixed are the steps of SAC that learns in
the real environment, for running and for flipping, from its first random actions on (`--mixed`: whole episodes of it,
so many steps in all). D.npz are those of `exploration.py half-cheetah --steps 20000`. A model is fitted to each as
`exploit` fits it. Episodes that no model learned from (of both policies that SAC has come to, and of random actions,
without noise in observations) are then lived again in the world of every member, their actions given: 1, 5, 20 and 100
steps on end, within the range of D as imagination is. An error of 1 is that of the mean of all states to be told. With
`--tasks`, policies are learned in the same models, half of the usual budget, and rated in three real episodes. One
process, one core. What is finished is kept in runs/benchmarks/ and never made again. Writes
results/benchmarks/openloop.json.
"""

import argparse
import json
import os
import platform
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from exploitation import KEPT, STUDIES, knowing
from exploration import commit
from guards import BUDGET

from maxplore.exploit import oracle
from maxplore.exploit.real import ExploitConfig, TaskModel
from maxplore.mdp import ExplorationMDP
from maxplore.tasks import flipping, running
from maxplore.utilities import Task

ENV = STUDIES["half-cheetah"].env
LEARNED, SEED = 30_000, 7
"""Real steps of SAC for each task."""
EPISODES, STEPS = 10, 100
"""That are lived again, of each kind, and their length."""
AHEAD = (1, 5, 20, 100)
ERRORS = "errors"
"""What is told of a model, besides tasks."""
REWARDS = {"running": running, "flipping": flipping}
PLACES = {"x velocity": 10, "pitch velocity": 12}
"""Numbers of the state that are told apart."""


class Recorded(gym.Wrapper[Any, Any, Any, Any]):
    """Keeps every transition, for D."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.rows: dict[str, list[Any]] = {name: [] for name in KEPT}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = super().reset(seed=seed, options=options)
        self._before = observation
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        following, paid, terminated, truncated, info = super().step(action)
        for name, value in zip(KEPT, (self._before, action, following, terminated, truncated), strict=True):
            self.rows[name].append(value)
        self._before = following
        return following, paid, terminated, truncated, info


def lived(act: Any, seed: int) -> dict[str, np.ndarray]:
    """Real episodes without noise: states `[episodes, steps + 1, dims]` and actions."""
    env, states, actions = gym.make(ENV, noise=0.0), list[Any](), list[Any]()
    for number in range(EPISODES):
        observation, _ = env.reset(seed=seed + number)
        own, moves = [observation], list[Any]()
        for _ in range(STEPS):
            moves.append(act(observation))
            observation = env.step(moves[-1])[0]
            own.append(observation)
        states.append(own)
        actions.append(moves)
    return {"states": np.array(states, np.float32), "actions": np.array(actions, np.float32)}


def reality(runs: Path) -> tuple[dict[str, np.ndarray], dict[str, dict[str, np.ndarray]]]:
    """All that SAC has seen, and the episodes that models are rated on; learned once, and kept."""
    path = runs / f"openloop-{LEARNED}-{SEED}.npz"
    if not path.exists():
        numbers, parts = np.random.default_rng(SEED), dict[str, Any]()
        seen: dict[str, list[Any]] = {name: [] for name in KEPT}
        for number, task in enumerate(REWARDS):
            env = Recorded(gym.make(ENV))
            *_, last = oracle(env, task, LEARNED, rate_every=LEARNED, seed=SEED + number)
            for name in KEPT:  # the episodes that it is rated in come after, and are nobody's
                seen[name] += env.rows[name][:LEARNED]
            parts |= {f"{task}-{name}": value for name, value in lived(last.policy, 30_000).items()}
            print(task, "by SAC:", last.returns, flush=True)
        walk = lived(lambda _: numbers.uniform(-1, 1, 6).astype(np.float32), 30_000)
        parts |= {f"random-{name}": value for name, value in walk.items()}
        draft = path.with_name(f"draft-{path.name}")
        np.savez(draft, allow_pickle=False, **{name: np.array(value) for name, value in seen.items()}, **parts)
        draft.rename(path)
    with np.load(path, allow_pickle=False) as held:
        kinds = (*REWARDS, "random")
        rated = {kind: {name: held[f"{kind}-{name}"] for name in ("states", "actions")} for kind in kinds}
        return {name: held[name] for name in KEPT}, rated


def mixed(seen: dict[str, np.ndarray], steps: int) -> dict[str, np.ndarray]:
    """So many steps of it, in whole episodes from anywhere."""
    chosen = np.sort(np.random.default_rng(SEED).permutation(len(seen["state"]) // STEPS)[: steps // STEPS])
    place = (chosen[:, None] * STEPS + np.arange(STEPS)).ravel()
    return {name: value[place] for name, value in seen.items()}


@eqx.filter_jit
def followed(mdp: ExplorationMDP, states: Any, actions: Any) -> tuple[Any, Any]:
    """Where these actions lead in the world of every member, from these states, and what is paid on the way."""
    members, count = mdp.ensemble.size, states.shape[0]
    member = jnp.repeat(jnp.arange(members), count)
    chance = mdp.ensemble.chance(members * count, key=jax.random.key(0))
    chance = chance._replace(noise=jnp.zeros_like(chance.noise))

    def onward(now: Any, action: Any) -> tuple[Any, Any]:
        step = mdp.advance(now, jnp.tile(action, (members, 1)), chance, member=member)
        return step.next_state, step.reward

    arrived, paid = jax.lax.scan(onward, jnp.tile(states, (members, 1)), jnp.swapaxes(actions, 0, 1))
    return arrived.reshape(members, count, -1), paid.sum(axis=0).reshape(members, count)


def rated(model: TaskModel, task: str | None, episodes: dict[str, np.ndarray]) -> dict[str, Any]:
    """Errors of a model so many steps ahead, and what it has whole episodes paid."""
    states, actions = episodes["states"], episodes["actions"]
    pays = Task(REWARDS[task or "running"])
    mdp = ExplorationMDP(model.ensemble, pays, model.history, margin=ExploitConfig().margin, space=model.space)
    dims, row = states.shape[-1], dict[str, Any]()
    for ahead in AHEAD:
        begin = states[:, :-1:ahead].reshape(-1, dims)
        moves = actions.reshape(-1, ahead, actions.shape[-1])
        arrived, paid = map(np.asarray, followed(mdp, jnp.asarray(begin), jnp.asarray(moves)))
        truth = states[:, ahead::ahead].reshape(-1, dims)
        error = np.sqrt(np.mean((arrived - truth) ** 2, axis=(0, 1))) / truth.std(axis=0)
        row[str(ahead)] = {"all": round(float(error.mean()), 3)}
        row[str(ahead)] |= {name: round(float(error[place]), 3) for name, place in PLACES.items()}
        if ahead == STEPS and task is not None:
            row["imagined"] = [round(float(each), 1) for each in paid.mean(axis=1)]
            each = jax.vmap(jax.vmap(REWARDS[task]))(*map(jnp.asarray, (states[:, :-1], actions, states[:, 1:])))
            row["real"] = round(float(np.asarray(each).sum(axis=1).mean()), 1)
    return row


def measured(seen: Mapping[str, np.ndarray], episodes: Any, todo: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Of one D what is asked for, as it comes: the errors of its model, and what policies from it are paid."""
    env = gym.make(ENV)
    explorer = knowing(env, seen, seed=SEED)
    for what in todo:
        begin = time.process_time()
        if what == ERRORS:
            model = explorer.task_model()
            told = {kind: rated(model, kind if kind in REWARDS else None, own) for kind, own in episodes.items()}
        else:
            policy = explorer.exploit(what, **BUDGET)
            returns = policy.evaluate(env, 3, seed=10_000)
            told = {
                "returns": [round(float(each), 1) for each in returns],
                "imagined": round(policy.report.imagined, 1),
            }
        cost = round(time.process_time() - begin, 1)
        yield {"what": what, "steps": explorer.steps, "commit": commit(), "told": told, "cpu_seconds": cost}


def folded(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All that is told of a D, together."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        own = found.setdefault(row["D"], {"D": row["D"], "steps": row["steps"], "errors": {}, "tasks": {}})
        if row["what"] == ERRORS:
            own["errors"] = row["told"]
        else:
            own["tasks"][row["what"]] = row["told"]
    return list(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*", metavar="D.npz")
    parser.add_argument("--mixed", type=int, nargs="*", default=[], metavar="STEPS")
    parser.add_argument("--tasks", nargs="*", default=[], choices=REWARDS)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    parser.add_argument("--runs", type=Path, default=Path("runs/benchmarks"))
    asked = parser.parse_args()
    for file in asked.files:
        if not file.is_file():
            parser.error(f"there is no {file}, expected a D that exploration.py has kept")
    for folder in (asked.runs, asked.out):
        folder.mkdir(parents=True, exist_ok=True)
    if any(not STEPS <= steps <= 2 * LEARNED for steps in asked.mixed):
        parser.error(f"mixed is {asked.mixed}, expected numbers from {STEPS} to {2 * LEARNED}")
    path = asked.runs / "openloop.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    seen, episodes = reality(asked.runs)
    for name, get in [
        *((f"mixed-{steps}", lambda steps=steps: mixed(seen, steps)) for steps in asked.mixed),
        *((file.stem, lambda file=file: np.load(file, allow_pickle=False)) for file in asked.files),
    ]:
        done = {row["what"] for row in rows if row["D"] == name}
        todo = [what for what in (ERRORS, *asked.tasks) if what not in done]
        for told in measured(get(), episodes, todo) if todo else ():
            rows.append({"D": name, **told})
            print(json.dumps(rows[-1]), flush=True)
            with path.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    result = {
        "what": f"Half Cheetah: errors of models 1 to 100 steps ahead, in episodes of SAC after {LEARNED} real steps "
        f"and of random actions, {EPISODES} of each, as shares of the spread; policies learned with {BUDGET}",
        "command": f"python benchmarks/openloop.py {shlex.join(sys.argv[1:])}".strip(),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
        "runs": folded(rows),
    }
    (asked.out / "openloop.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
