"""Many seeds at once: whole runs in a functional environment, side by side in one compiled program."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, PRNGKeyArray, Shaped

from maxplore import checks
from maxplore import devices as places
from maxplore.compiling import compiled
from maxplore.entry import Entry
from maxplore.errors import InputError
from maxplore.explorer import Explorer
from maxplore.explorers.model_based import Lived, ModelAgent, ModelBasedConfig
from maxplore.explorers.rounds import FunctionalEnv, ended, live
from maxplore.history import History
from maxplore.solvers import Solver
from maxplore.utilities import Utility


def explore_many(
    env: FunctionalEnv | Any,
    steps: int,
    *,
    seeds: int | Iterable[int],
    method: str = "max",
    preset: str = "fast",
    devices: int = 1,
    **settings: Any,
) -> list[Explorer]:
    """Explore a functional environment once for each of the `seeds` (a number of them, or which), all at the same time.

    What comes back are the explorers, one a seed, as if each had explored alone: to be asked, told, saved, exploited.
    On several `devices` the seeds are dealt out to them. When all this pays is on the page about devices.

    >>> from maxplore.envs import MountainCar
    >>> one, two = explore_many(MountainCar(), 5, seeds=(0, 1))
    >>> one.steps, two.steps
    (5, 5)
    """
    numbers = list(range(seeds) if isinstance(seeds, int) else seeds)
    if not numbers:
        raise InputError("seeds has none, expected at least one")
    for name in {"seed", "horizon"} & set(settings):
        raise InputError(f"{name} is given, expected none: seeds has the seeds, and the environment its horizon")
    steps = checks.counted("steps", steps)
    _check(env)
    named: dict[str, Any] = {"method": method, "preset": preset, "horizon": env.horizon}
    explorers = [Explorer(env.observation_space, env.action_space, seed=seed, **named, **settings) for seed in numbers]
    agent = explorers[0]._agent  # pyright: ignore[reportPrivateUsage]
    if not isinstance(agent, ModelAgent):
        raise InputError("the environment's spaces are Discrete, expected real states: see maxplore.explorers.run")
    states, actions = agent.history.state_entry, agent.history.action_entry
    _check_functions(env, states)
    share = -(-len(numbers) // places.counted(devices))
    mesh = None if devices == 1 else places.line_of(devices, "seeds")
    keys = jnp.stack([jax.random.key(numbers[k % len(numbers)]) for k in range(share * devices)])
    history = History.empty(states, actions, capacity=agent.history.room_for(steps))
    config = agent.config
    plain = replace(config, utility=None)
    lived = jax.device_get(_live(plain, config.utility, config.solver, env, history, steps, mesh, keys))
    for k, (seed, explorer) in enumerate(zip(numbers, explorers, strict=True)):
        own = jax.tree.map(lambda x, k=k: jnp.asarray(x[k]), lived)  # wherever it was computed
        _check_finite(own.history, seed)
        explorer._adopt(own)  # pyright: ignore[reportPrivateUsage]
    return explorers


@compiled
def _live(
    config: ModelBasedConfig,
    utility: Utility | None,
    solver: Solver,
    env: FunctionalEnv,
    history: History,
    steps: int,
    mesh: Mesh | None,
    keys: Shaped[PRNGKeyArray, " seeds"],
) -> Lived:
    """All seeds at once; what is an array among the settings is an argument, and none of what is compiled."""
    config = replace(config, utility=utility, solver=solver)

    def together(keys: Shaped[PRNGKeyArray, " share"]) -> Lived:
        return eqx.filter_vmap(partial(_one, config, env, history, steps))(keys)

    if mesh is None:
        return together(keys)
    # Each device has seeds of its own, and no need of any other.
    spec = PartitionSpec("seeds")
    return jax.shard_map(together, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)(keys)


def _one(config: ModelBasedConfig, env: FunctionalEnv, history: History, steps: int, key: PRNGKeyArray) -> Lived:
    return live(config, env, history, steps, key=key)


def _check(env: Any) -> None:
    """An `InputError` unless this is a functional environment with vectors for states."""
    missing = [
        name for name in ("observation_space", "action_space", "horizon", "reset", "step") if not hasattr(env, name)
    ]
    if missing or isinstance(env, gym.Env):
        lacks = f"without {', '.join(missing)}" if missing else "that keeps its state to itself"
        raise InputError(
            f"env is a {type(env).__name__} {lacks}, expected pure functions such as maxplore.envs.MountainCar; others "
            "explore one seed a process"
        )
    space = env.observation_space
    if isinstance(space, gym.spaces.Box) and len(space.shape) != 1:
        raise InputError(f"observation_space has shape {space.shape}, expected that of a vector")


def _check_functions(env: FunctionalEnv, states: Entry) -> None:
    """An `InputError` unless the functions can be compiled, and give what they should."""
    push = jnp.asarray(env.action_space.sample())

    def tried(key: PRNGKeyArray) -> dict[str, Array]:
        first = env.reset(key=key)
        following, _ = env.step(first, push, key=key)
        return {"reset": first, "step": following, "terminated": ended(env, first, push, following)}

    try:
        found = jax.eval_shape(tried, jax.random.key(0))
    except Exception as error:  # somebody else's code may raise anything
        what = " ".join(str(error).split())[:200]
        raise InputError(
            f"env cannot be compiled ({type(error).__name__}: {what}), expected pure functions in jax.numpy"
        ) from error
    for name, shape in {"reset": states.shape, "step": states.shape, "terminated": ()}.items():
        if found[name].shape != shape:
            raise InputError(f"env's {name} gives shape {found[name].shape}, expected {shape}")


def _check_finite(history: History, seed: int) -> None:
    """An `InputError` that names the first step whose state is no number."""
    bad = ~np.isfinite(np.asarray(history.transitions.next_state)).all(axis=1)
    if bad.any():
        raise InputError(f"the state after step {int(bad.argmax())} of seed {seed} is not finite: see the environment")
