# pyright: basic, reportMissingImports=false
"""mbrl-lib's side of `peers.py`, which starts it with the interpreter of its environment: no maxplore, no JAX here.

All work is done by the library's own classes, as its examples use them; nothing is written anew, nothing switched off.
"""

import json
import os
import sys
from collections.abc import Callable
from itertools import islice
from typing import Any

import peers
from peers import ACTION, BATCH, CEM, ENSEMBLES, ICEM, PLAN, ROWS, STATE

try:
    import gymnasium
    import mbrl
    import mbrl.models
    import mbrl.planning
    import numpy as np
    import torch
    from mbrl.env.termination_fns import no_termination
    from mbrl.types import TransitionBatch
    from mbrl.util.replay_buffer import BootstrapIterator
except Exception as reason:  # old packages among new ones fail in many ways
    told = f"cannot import mbrl-lib ({type(reason).__name__}: {reason}): peers.py --help has the pip commands"
    print(json.dumps({"error": told}), flush=True)
    sys.exit(1)

DOES = {
    "ensemble": "draws a batch for each member; a step of Adam of all members on the negative log-likelihood",
    "cem": "a plan from one state: white noise, elites, each row of each step by a member of its own draw",
    "icem": "the same with coloured noise and elites kept",
}
"""Of one unit."""


class Spaces(gymnasium.Env):
    """An environment that is never stepped: only its spaces count."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (STATE,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (ACTION,), np.float32)


def model(members: int, depth: int, width: int) -> tuple[Any, Any]:
    """An ensemble that knows the statistics of D, and D."""
    numbers = np.random.default_rng(0)
    states, following = (numbers.normal(size=(ROWS, STATE)).astype(np.float32) for _ in range(2))
    actions, never = numbers.normal(size=(ROWS, ACTION)).astype(np.float32), np.zeros(ROWS, bool)
    rows = TransitionBatch(states, actions, following, np.zeros(ROWS, np.float32), never, never)
    network = mbrl.models.GaussianMLP(
        STATE + ACTION,
        STATE,
        "cpu",
        num_layers=depth,
        ensemble_size=members,
        hid_size=width,
        propagation_method="random_model",
        activation_fn_cfg={"_target_": "torch.nn.SiLU"},
    )
    own = mbrl.models.OneDTransitionRewardModel(network, normalize=True, learned_rewards=False)
    own.update_normalizer(rows)
    return own, rows


def learner(members: int, depth: int, width: int) -> tuple[Callable[[int], Any], int]:
    """Gradient steps as `ModelTrainer` takes them, and how many parameters they move."""
    own, rows = model(members, depth, width)
    optimiser = mbrl.models.ModelTrainer(own, optim_lr=1e-3, weight_decay=0.0).optimizer
    batches = BootstrapIterator(rows, BATCH, members, shuffle_each_epoch=True)

    def learn(units: int) -> None:
        for batch in islice(iter(batches), units):
            own.update(batch, optimiser)

    return learn, sum(x.numel() for x in own.parameters() if x.requires_grad)


def planner(config: dict[str, Any]) -> tuple[Callable[[int], Any], int, float]:
    """Plans by an optimiser of the library, the parameters of the model, and the imagined steps of one plan."""
    own, _ = model(*ENSEMBLES["ensemble_5x2"])
    env = mbrl.models.ModelEnv(
        Spaces(), own, no_termination, lambda action, state: state[:, :1] - 0.1 * (action**2).sum(1, keepdim=True)
    )
    config = {"num_iterations": PLAN["rounds"], "elite_ratio": PLAN["elites"] / config["population_size"]} | config
    config |= {"alpha": PLAN["momentum"], "device": "cpu", "lower_bound": "???", "upper_bound": "???"}
    optimizer = mbrl.planning.TrajectoryOptimizer(
        mbrl.planning.trajectory_opt.omegaconf.OmegaConf.create(config),
        -np.ones(ACTION, np.float32),
        np.ones(ACTION, np.float32),
        PLAN["horizon"],
    )
    rated = []

    def rate(plans: Any) -> Any:
        rated.append(plans.shape[0])
        return env.evaluate_action_sequences(plans, np.zeros(STATE), PLAN["particles"])

    def plan(units: int) -> None:
        for _ in range(units):
            optimizer.optimize(rate)

    plan(1)
    rated.clear()
    plan(1)  # the second knows elites of the first
    size = sum(x.numel() for x in own.parameters() if x.requires_grad)
    return plan, size, sum(rated) * PLAN["particles"] * PLAN["horizon"]


def main() -> None:
    if "PEER_THREADS" in os.environ:
        torch.set_num_threads(int(os.environ["PEER_THREADS"]))
    torch.manual_seed(0)
    work: dict[str, Callable[[int], Any]] = {}
    told: dict[str, Any] = {}
    for name, sizes in ENSEMBLES.items():
        work[name], count = learner(*sizes)
        told[name] = {"parameters": count, "does": DOES["ensemble"], "optimiser": "Adam, as ModelTrainer has it"}
    kinds = {
        "cem": {"_target_": "mbrl.planning.CEMOptimizer", "population_size": CEM["rated"], "clipped_normal": True},
        "icem": {
            "_target_": "mbrl.planning.ICEMOptimizer",
            "population_size": ICEM["drawn"],
            "population_decay_factor": 1.0,
            "colored_noise_exponent": PLAN["beta"],
            "keep_elite_frac": ICEM["kept"] / PLAN["elites"],
        },
    }
    for name, config in kinds.items():
        work[name], count, steps = planner(config)
        told[name] = {"parameters": count, "does": DOES[name], "optimiser": "none", "imagined_steps": steps}
    about = {
        "threads": torch.get_num_threads(),
        "versions": {"torch": torch.__version__, "mbrl": mbrl.__version__},
        "products": [],
        "work": told,
    }
    peers.serve(about, work)


if __name__ == "__main__":
    main()
