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
from jaxtyping import install_import_hook

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_num_cpu_devices", 4)
install_import_hook("maxplore", "beartype.beartype")

import maxplore  # noqa: E402
from maxplore.devices import row  # noqa: E402
from maxplore.envs import MountainCar  # noqa: E402
from maxplore.models import CategoricalEnsemble, Fitted, fit  # noqa: E402
from maxplore.runs import run as running  # noqa: E402
from maxplore.utilities import JensenRenyi, Task  # noqa: E402
from tests.systems import history_of, linear_gaussian  # noqa: E402

MEMBERS = 4
MODEL = maxplore.GaussianConfig(members=MEMBERS, depth=1, width=8, termination=True)
LEARN = maxplore.FitConfig(epochs=4, batch_size=32, held_out=0.2, patience=3)


def where(tree: Any) -> list[list[int]]:
    """For each array, the devices that hold a part of it and nothing of another's, one for each part."""
    return [[shard.device.id for shard in x.addressable_shards if shard.data.shape[0] < len(x)] for x in leaves(tree)]


def leaves(tree: Any) -> list[Any]:
    return jax.tree.leaves(eqx.filter(tree, eqx.is_array))


def apart(one: Any, other: Any) -> float:
    """The largest difference of two pytrees."""
    gaps = [
        np.abs(np.asarray(x, float) - np.asarray(y, float)) for x, y in zip(leaves(one), leaves(other), strict=True)
    ]
    return max(float(np.max(np.nan_to_num(gap))) for gap in gaps)


def models() -> dict[str, Any]:
    """Fit, predict, utility and imagined steps of Gaussian members with a termination head; categorical members."""
    history = history_of(*linear_gaussian(200, 0.05)[:3])
    states, actions = history.transitions.state[:6], history.transitions.action[:6]
    key, found = jax.random.key(1), dict[int, list[Any]]()
    fitted: dict[int, Fitted[Any]] = {}
    for count in (1, 4):
        mesh = row(count, MEMBERS)
        ensemble = maxplore.GaussianEnsemble(2, 1, MODEL, mesh=mesh, key=jax.random.key(0))
        fitted[count] = first = fit(ensemble, history, LEARN, key=key)
        warm = maxplore.FitConfig(epochs=2, batch_size=32, from_scratch=False)
        second = fit(first.ensemble, history, warm, key=key, moments=first.moments)
        steps = [
            eqx.filter_jit(maxplore.ExplorationMDP(second.ensemble, utility, history).step)(states, actions, key=key)
            for utility in (JensenRenyi(), Task(lambda s, a, s2: s2[0]))
        ]
        numbered = CategoricalEnsemble(3, 2, maxplore.MemberConfig(MEMBERS, 1, 8), mesh=mesh, key=key)
        predicted = numbered.predict(jnp.array([0, 1]), jnp.array([1, 0]))
        found[count] = [first, second, second.ensemble.predict(states, actions), steps, predicted]
    names = ("fit", "warm fit", "predict", "imagined steps", "categorical members")
    return {
        "apart": {name: apart(one, other) for name, one, other in zip(names, found[1], found[4], strict=True)},
        "members": {n: where(own.ensemble.members) for n, own in fitted.items()},
        "moments": {n: where((own.moments.first, own.moments.second)) for n, own in fitted.items()},
    }


def rounds(folder: Path) -> dict[str, Any]:
    """A whole round: fit, solve, act. Then the explorer is saved on two devices, and goes on with other numbers."""
    car, numbers = MountainCar(), np.random.default_rng(0)
    seen = numbers.uniform([-1.2, -0.07], [0.6, 0.07], (10, 2)).astype(np.float32)
    explorers: dict[int, maxplore.Explorer] = {}
    for count in (1, 2):
        own = maxplore.Explorer(car.observation_space, car.action_space, preset="smoke", members=4, devices=count)
        for state in seen:
            push = own.ask(state)
            own.tell(state, push, np.asarray(car.step(state, push)[0]), truncated=True)
        explorers[count] = own
    here = np.array([-0.5, 0.0], np.float32)
    acts = {count: own.ask(here) for count, own in explorers.items()}
    explorers[2].save(folder / "saved")
    back = {count: maxplore.load(folder / "saved", devices=count) for count in (1, 4)}
    return {
        "act": apart(*acts.values()),
        "figures": apart(*(list(map(jnp.asarray, own.figures[0].values())) for own in explorers.values())),
        "utility": apart(*(own.utility(seen, np.zeros((10, 1))) for own in explorers.values())),
        "solved again": [float(np.abs(acts[2] - own.ask(here)).max()) for own in back.values()],
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
    to = Path(sys.argv[1])
    sys.stdout.write(json.dumps({"models": models(), "round": rounds(to), "run": runs(to), "seeds": seeds()}))
