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
from maxplore.solvers import Sac, SacConfig
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
    (sac, about_sac), (ensemble, about_ensemble), large = sac_work(), ensemble_work(), products()
    work = about_sac | about_ensemble
    for name, each in work.items():
        each["does"] = DOES[name]
        each["optimiser"] = "none" if name == "imagined" else "Adam, one compiled pass"
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
    peers.serve(about, sac | ensemble | large, divergence)


if __name__ == "__main__":
    main()
