"""What is computed on several virtual devices, in a process of its own: `python -m tests.on_devices FOLDER`.

It prints, as JSON, how far results are from those of one device, and where they are.
"""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import maxplore
from maxplore.devices import dealt, row
from maxplore.envs import MountainCar
from maxplore.models import Moments, fit
from maxplore.runs import run as running
from maxplore.utilities import JensenRenyi, Task
from tests.systems import history_of, linear_gaussian

MEMBERS = 4


def where(tree: Any) -> list[list[int]]:
    """For each array, the devices that hold a part of it and nothing of another's, one for each part."""
    return [[shard.device.id for shard in x.addressable_shards if shard.data.shape[0] < len(x)] for x in leaves(tree)]


def leaves(tree: Any) -> list[Any]:
    return jax.tree.leaves(eqx.filter(tree, lambda x: eqx.is_array(x) or isinstance(x, np.ndarray)))


def apart(one: Any, other: Any) -> float:
    """The largest difference of two pytrees."""
    gaps = [
        np.abs(np.asarray(x, float) - np.asarray(y, float)) for x, y in zip(leaves(one), leaves(other), strict=True)
    ]
    return max(float(np.max(np.nan_to_num(gap))) for gap in gaps)


def models() -> dict[str, Any]:
    """A warm start, predictions, imagined steps in which each row has a member of its own, the slope of a utility."""
    history = history_of(*linear_gaussian(100, 0.05)[:3])
    states, actions = history.transitions.state[:6], history.transitions.action[:6]
    key, found, warm = jax.random.key(1), dict[int, Any](), maxplore.FitConfig(steps=20, from_scratch=False)
    for count in (1, 4):
        mesh = row(count, MEMBERS)
        config = maxplore.GaussianConfig(members=MEMBERS, depth=1, width=8, termination=True)
        ensemble = maxplore.GaussianEnsemble(2, 1, config, mesh=mesh, key=jax.random.key(0))
        some = dealt(mesh, jax.tree.map(lambda x: jnp.full_like(x, 0.01), ensemble.members))
        fitted = fit(ensemble, history, warm, key=key, moments=Moments(jnp.int32(7), some, some))
        mdp = maxplore.ExplorationMDP(fitted.ensemble, Task(lambda s, a, s2: s2[0]), history)
        worth = maxplore.ExplorationMDP(fitted.ensemble, JensenRenyi(), history)
        slope = eqx.filter_jit(jax.grad(lambda a, worth: jnp.sum(worth.step(states, a, key=key).reward)))
        numbered = maxplore.CategoricalEnsemble(3, 2, maxplore.MemberConfig(MEMBERS, 1, 8), mesh=mesh, key=key)
        found[count] = {
            "fit": fitted,
            "predict": fitted.ensemble.predict(states, actions),
            "imagined steps": eqx.filter_jit(mdp.step)(states, actions, key=key),
            "slope of the utility": slope(actions, worth),
            "categorical members": numbered.predict(jnp.array([0, 1]), jnp.array([1, 0])),
        }
    return {
        "apart": {name: apart(one, found[4][name]) for name, one in found[1].items()},
        "steepest": float(jnp.max(jnp.abs(found[4]["slope of the utility"]))),
        "members": {count: where(own["fit"].ensemble.members) for count, own in found.items()},
        "moments": {count: where(own["fit"].moments[1:]) for count, own in found.items()},
    }


def rounds(folder: Path) -> dict[str, Any]:
    """A whole round: fit, solve, act. Then the explorer is saved on two devices, and goes on with other numbers."""
    car, numbers = MountainCar(), np.random.default_rng(0)
    seen = numbers.uniform([-1.2, -0.07], [0.6, 0.07], (10, 2)).astype(np.float32)
    here, still = np.array([-0.5, 0.0], np.float32), np.zeros((10, 1))
    explorers: dict[int, maxplore.Explorer] = {}
    for count in (1, 2):
        settings: dict[str, Any] = {"preset": "smoke", "members": MEMBERS, "solver": "icem", "devices": count}
        explorers[count] = own = maxplore.Explorer(car.observation_space, car.action_space, **settings)
        for state in seen:
            push = own.ask(state)
            own.tell(state, push, np.asarray(car.step(jnp.asarray(state), jnp.asarray(push))[0]), truncated=True)
    acts = {count: own.ask(here) for count, own in explorers.items()}
    agents: list[Any] = [own._agent for own in explorers.values()]
    explorers[2].save(folder / "saved")
    back = {count: maxplore.load(folder / "saved", devices=count) for count in (1, 4)}
    return {
        "apart": {
            "fit": apart(*(own.ensemble for own in agents)),
            "moments": apart(*(own._moments for own in agents)),
            "policy": apart(*(own._policy for own in agents)),
            "act": apart(*acts.values()),
            "figures": apart(*(list(map(np.asarray, own.figures[0].values())) for own in explorers.values())),
            "predict": apart(*(own.model.predict(seen, still) for own in explorers.values())),
            "utility": apart(*(own.utility(seen, still) for own in explorers.values())),
            "the same again on one device": apart(acts[2], back[1].ask(here)),
        },
        "members": where(agents[1].ensemble.members),
        "back on": {count: where(own.model.ensemble.members)[0] for count, own in back.items()},
    }


def runs(folder: Path) -> dict[str, Any]:
    """A run begun on two devices is resumed on as many, on four, and where there are fewer."""
    asked: dict[str, Any] = {"method": "random", "preset": "smoke", "settings": {"members": 4}}
    counts: list[int] = []

    def on(run: Any) -> None:
        with run:
            run.explore(run.steps + 3)
            counts.append(len({*where(run.explorer._agent.ensemble.members)[0]}))

    on(running.new(folder / "run", "maxplore/MountainCar-v0", devices=2, **asked))
    on(running.resumed(folder / "run"))
    on(running.resumed(folder / "run", devices=4))
    real = jax.local_device_count
    jax.local_device_count = lambda *_, **__: 2
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        on(running.resumed(folder / "run"))
    jax.local_device_count = real
    try:
        running.resumed(folder / "run", devices=3)
        refused = ""
    except maxplore.InputError as error:
        refused = str(error)
    with running.Record.read(folder / "run" / "run.sqlite") as record:
        noted = [(event.step, event.text) for event in record.events() if event.kind == "devices"]
    return {"counts": counts, "warned": [str(own.message) for own in said], "noted": noted, "refused": refused}


def seeds() -> dict[str, Any]:
    """Three seeds on two devices."""
    asked: dict[str, Any] = {"seeds": (5, 6, 7), "method": "random", "preset": "smoke"}
    one, two = (maxplore.explore_many(MountainCar(), 6, devices=count, **asked) for count in (1, 2))
    return {"apart": apart([own.history for own in one], [own.history for own in two])}


if __name__ == "__main__":
    jax.config.update("jax_numpy_rank_promotion", "raise")
    jax.config.update("jax_num_cpu_devices", 4)
    jax.config.update("jax_disable_most_optimizations", True)  # compiling is most of the time
    to = Path(sys.argv[1])
    sys.stdout.write(json.dumps({"models": models(), "round": rounds(to), "run": runs(to), "seeds": seeds()}))
