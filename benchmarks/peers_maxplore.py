"""maxplore's side of `peers.py`, which starts it and asks it for work over standard input."""

import os
import platform
from collections.abc import Callable
from typing import Any

import core
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import peers
import solvers

import maxplore
from maxplore.models.gaussian import PAPER
from maxplore.solvers import Icem, IcemConfig, Sac, SacConfig
from maxplore.utilities import Task
from maxplore.utilities.jensen_renyi import jensen_renyi

SAC = {
    "sac_small": SacConfig(batch_size=256),
    "sac_small_twin_targets": SacConfig(batch_size=256, twin_targets=True),
    "sac_small_automatic": SacConfig(batch_size=256, twin_targets=True, automatic=True),
    "sac_paper": SacConfig(),
}
DOES = {
    "sac_small": "draws a batch; steps twin Q, V, actor; moves the target of V",
    "sac_small_twin_targets": "draws a batch; steps twin Q, actor; moves the targets of both Q",
    "sac_small_automatic": "draws a batch; steps twin Q, actor, temperature; moves the targets of both Q",
    "sac_paper": "draws a batch; steps twin Q, V, actor; moves the target of V",
    "gradient": "draws a batch for each member; a step of Adam of all members on the negative log-likelihood",
    "imagined": "random actions; forecasts of all members; next states; Jensen-Renyi divergence, lambda 0.1",
    "ensemble": "draws a batch for each member; a step of Adam of all members on the negative log-likelihood",
    "cem": "a plan from one state: white noise, elites, each row of each step by a member of its own draw",
    "icem": "the same with coloured noise and elites kept",
}
"""Of one unit."""

Work = dict[str, Callable[[int], Any]]


def waited(function: Callable[[], Any], units: int) -> Callable[[int], Any]:
    """A call of fixed size that is over when its numbers are there."""

    def call(asked: int) -> None:
        assert asked == units, f"{asked} units asked, {units} compiled"
        jax.block_until_ready(function())

    return call


def size(tree: Any) -> int:
    """The number of parameters in a pytree."""
    return sum(x.size for x in jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array)))


def sac_work() -> tuple[Work, dict[str, Any]]:
    """SAC updates by name, and what they are."""
    mdp, _ = solvers.setting()
    work: Work = {}
    about: dict[str, Any] = {}
    for name, config in SAC.items():
        units = peers.ITEMS[name].units
        work[name] = waited(solvers.sac_updates(mdp, config, units), units)
        networks = Sac(config).init(mdp, key=jax.random.key(0)).networks
        # Stable-Baselines3 has no V, and a fixed temperature is no parameter of the peers.
        extra = (0 if config.automatic else 1) + (0 if name == "sac_paper" else size(networks.value))
        about[name] = {"parameters": size(networks), "extra_parameters": extra}
        about[name]["operations"] = solvers.update_operations(config)
    return work, about


def ensemble_work() -> tuple[Work, dict[str, Any]]:
    """The paper's ensemble: what `core.py` times."""
    members = maxplore.GaussianEnsemble(core.STATE, core.ACTION, PAPER, key=jax.random.key(0)).members
    work: Work = {}
    about: dict[str, Any] = {}
    for name, (function, units, operations) in core.workloads("paper").items():
        if name in peers.ITEMS:
            work[name] = waited(function, units)
            about[name] = {"parameters": size(members), "operations": operations}
    return work, about


def beside_mbrl() -> tuple[Work, dict[str, Any]]:
    """What mbrl-lib does, too: ensembles that learn, and plans for a task in the first of them."""
    work: Work = {}
    about: dict[str, Any] = {}
    assert core.BATCH == peers.BATCH
    for name, (members, depth, width) in peers.ENSEMBLES.items():
        config, units = maxplore.GaussianConfig(members=members, depth=depth, width=width), peers.ITEMS[name].units
        function, operations = core.learning(config, units)
        work[name] = waited(function, units)
        own = maxplore.GaussianEnsemble(core.STATE, core.ACTION, config, key=jax.random.key(0)).members
        about[name] = {"parameters": size(own), "operations": operations, "does": DOES["ensemble"]}
    explored, history = solvers.setting()
    mdp = maxplore.ExplorationMDP(explored.ensemble, Task(running), history)
    cem = {"plans": peers.CEM["rated"] - 2, "kept": 1, "beta": 0.0}  # one elite and the mean are rated besides
    icem = {"plans": peers.ICEM["drawn_here"], "kept": peers.ICEM["kept"]}
    for name, own in {"cem": cem, "icem": icem}.items():
        settings: dict[str, Any] = {**peers.PLAN, **own, "spread": 0.5}
        config = IcemConfig(**settings)
        work[name] = waited(planning(Icem(config), mdp, history), 1)
        rated = config.rounds * (config.plans + config.kept + 1)
        steps = rated * config.particles * config.horizon
        about[name] = {"parameters": size(mdp.ensemble.members), "imagined_steps": steps}
        about[name]["operations"] = 2.0 * steps * core.multiplications(solvers.MODEL)
    return work, about


def running(_: Any, action: Any, next_state: Any) -> Any:
    """A task's reward, the same on both sides."""
    return next_state[0] - 0.1 * jnp.sum(action**2)


def planning(solver: Icem, mdp: maxplore.ExplorationMDP, history: maxplore.History) -> Callable[[], Any]:
    """A call that makes a plan, knowing the one before."""
    memory = solver.solve(mdp, np.zeros(core.STATE), history, key=jax.random.key(1)).memory
    return lambda: solver.solve(mdp, np.zeros(core.STATE), history, memory, key=jax.random.key(2)).policy


def products() -> Work:
    """The large square product, by XLA and by NumPy's BLAS."""
    large = np.random.default_rng(0).normal(size=(2048, 2048)).astype(np.float32)
    out, device = np.empty_like(large), jnp.asarray(large)
    product = jax.jit(lambda x: x @ x)
    return {"xla": waited(lambda: product(device), 1), "numpy": waited(lambda: np.matmul(large, large, out=out), 1)}


def divergence(mean: Any, variance: Any) -> list[float]:
    """The Jensen-Renyi divergence of such Gaussians, as plain numbers."""
    return jensen_renyi(np.array(mean, np.float32), np.array(variance, np.float32)).tolist()


def main() -> None:
    assert (peers.STATE, peers.ACTION, peers.ROWS) == (solvers.STATE, solvers.ACTION, solvers.ROWS)
    (sac, about_sac), (ensemble, about_ensemble), (mbrl, about_mbrl) = sac_work(), ensemble_work(), beside_mbrl()
    work, large = about_sac | about_ensemble | about_mbrl, products()
    for name, each in work.items():
        each.setdefault("does", DOES.get(name))
        each["optimiser"] = "none" if name in ("imagined", "cem", "icem") else "Adam, one compiled pass"
    about = {
        "threads": int(os.environ.get("PEER_THREADS", len(os.sched_getaffinity(0)))),
        "versions": {
            "python": platform.python_version(),
            "jax": jax.__version__,
            "maxplore": maxplore.__version__,
        },
        "products": list(large),
        "work": work,
    }
    peers.serve(about, sac | ensemble | mbrl | large, divergence)


if __name__ == "__main__":
    main()
