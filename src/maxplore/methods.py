"""The registry of methods: what a name and a preset stand for."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from maxplore.entry import Entry
from maxplore.errors import InputError
from maxplore.explorers import (
    PAPER_MAX,
    BootstrappedDqnExplorer,
    EbDqnExplorer,
    FiniteExplorer,
    FiniteMaxConfig,
    MaxExplorer,
    OracleExplorer,
    RandomExplorer,
)
from maxplore.explorers.model_based import ModelBasedConfig
from maxplore.models import FitConfig, GaussianConfig, MemberConfig
from maxplore.models.gaussian import PAPER
from maxplore.settings import overridden
from maxplore.solvers import Gradient, GradientConfig, Icem, IcemConfig, Sac, SacConfig, Solver
from maxplore.utilities import (
    Disagreement,
    InformationRatio,
    JensenRenyi,
    PredictionError,
    TrajectoryVariance,
    Utility,
)

PRESETS = ("fast", "tasks", "paper", "smoke")
"""`fast` is for a laptop, `tasks` the same with tasks to come in mind, `paper` is the appendix to the letter, `smoke`
takes seconds and proves only that it runs."""

FEW = 6
"""Dimensions of state and action together up to which trajectory optimisation finds what the gradient does not."""

TAKEN = ("method", "preset", "seed", "horizon", "reward", "reward_weight", "devices")
"""Names that the `Explorer` itself has given a meaning."""

TINY = MemberConfig(members=3, depth=1, width=32, activation="tanh", first_gain=6.0)

FINITE: Mapping[str, Mapping[str, FiniteExplorer]] = {
    "max": {
        # One random episode: with none, members that have seen next to nothing may all agree, and stay where they are.
        **dict.fromkeys(("fast", "tasks"), MaxExplorer(FiniteMaxConfig(warm_up=1))),
        "paper": MaxExplorer(PAPER_MAX),
        "smoke": MaxExplorer(FiniteMaxConfig(TINY, warm_up=0)),
    },
    "random": dict.fromkeys(PRESETS, RandomExplorer()),
    "oracle": {**dict.fromkeys(PRESETS, OracleExplorer(0)), "paper": OracleExplorer()},
    "eb-dqn": dict.fromkeys(PRESETS, EbDqnExplorer()),
    "bootstrapped-dqn": dict.fromkeys(PRESETS, BootstrappedDqnExplorer()),
}
"""Methods for numbered states and actions. The oracle is no method but their limit: a memory without a model."""


class Method(NamedTuple):
    """A method for real states."""

    utility: Utility | None
    """What it looks for; None looks for nothing."""
    active: bool
    """Whether it plans in imagination, or learns from D alone."""
    temperature: float
    """The paper's weight of SAC's entropy."""


METHODS: Mapping[str, Method] = {
    "max": Method(JensenRenyi(), active=True, temperature=0.02),
    "tvax": Method(TrajectoryVariance(), active=True, temperature=0.2),
    "jdrx": Method(JensenRenyi(), active=False, temperature=0.02),
    "perx": Method(PredictionError(), active=False, temperature=0.2),
    "disagreement": Method(Disagreement(), active=True, temperature=0.02),
    "opax": Method(InformationRatio(), active=True, temperature=0.02),
    "random": Method(None, active=False, temperature=0.02),
}
"""Methods for real states: section 4.2, and two of later papers."""


def finite_explorer(method: str, preset: str, settings: Mapping[str, Any]) -> FiniteExplorer:
    """The explorer of this name for numbered states and actions, with these settings changed."""
    _check(method, FINITE, preset)
    return overridden(FINITE[method][preset], settings, TAKEN)


def model_based(
    method: str, preset: str, settings: Mapping[str, Any], states: Entry, actions: Entry
) -> ModelBasedConfig:
    """The config of this name for real states; `icem` plans numbered actions, and in `fast` few dimensions."""
    _check(method, METHODS, preset)
    row, numbered = METHODS[method], actions.count is not None
    compares_actors = isinstance(row.utility, TrajectoryVariance)  # which pays all plans the same
    if numbered and row.utility is not None and (not row.active or compares_actors):
        raise InputError(f"method is {method!r}, which needs real actions, got Discrete ones: use max")
    few = math.prod(states.shape) + math.prod(actions.shape) <= FEW
    config, solvers = {"paper": _paper, "smoke": _smoke}.get(preset, partial(_fast, few=few))(row)
    if preset == "tasks" and row.utility is not None and not few and not numbered:
        config = _for_tasks(config)
    usual = "sac" if not row.active or compares_actors or preset == "paper" else "gradient"
    if numbered or (usual == "gradient" and preset in ("fast", "tasks") and few):
        usual = "icem"
    solver = settings.get("solver", usual)
    if isinstance(solver, str):
        if solver not in solvers:
            raise InputError(f"solver is {solver!r}, expected one of {', '.join(solvers)}")
        if solver != "sac" and not numbered and row.utility is not None and (not row.active or compares_actors):
            raise InputError(f"solver is {solver!r}, expected sac: {method} is learned by no other")
        settings = {**settings, "solver": solvers[solver]}
    return overridden(config, settings, TAKEN)


def _paper(row: Method) -> tuple[ModelBasedConfig, dict[str, Solver]]:
    """Appendix D.2: 32 x 4 x 512, everything from scratch every 25 steps, SAC; imagination knows no bounds."""
    config = ModelBasedConfig(
        model=PAPER,
        fit=FitConfig(epochs=50),
        utility=row.utility,
        warm_up=256,
        plan_every=25,
        fresh_every=1,
        margin=math.inf,
    )
    sac = Sac(SacConfig(active=row.active, temperature=row.temperature))
    return config, {"sac": sac, "gradient": Gradient(), "icem": Icem()}


def _fast(row: Method, few: bool) -> tuple[ModelBasedConfig, dict[str, Solver]]:
    """For a laptop: a small ensemble, trained hastily but from scratch, and the gradient in place of SAC."""
    # The upper bound is the divergence's kernel too; distances add up over dimensions, and saturate a narrow one.
    # In few dimensions rounds are cheap: there are more of them, of narrow members that begin uneven and are trained
    # until they agree on what was seen. Untrained, they disagree there too, and a plan goes round in circles.
    if few:
        model = GaussianConfig(members=5, depth=3, width=64, first_gain=3.0, log_variance=(-10.0, -1.0))
        fit = FitConfig(epochs=200, most_steps=600, batch_size=64, learning_rate=1e-2, cooling=1.0, held_out=0.1)
    else:
        model = GaussianConfig(members=5, depth=2, width=200, log_variance=(-10.0, 0.5))
        fit = FitConfig(epochs=30, most_steps=120, batch_size=128, learning_rate=4e-3, held_out=0.1)
    config = ModelBasedConfig(
        model=model,
        fit=fit,
        utility=row.utility,
        warm_up=50,
        plan_every=10 if few else 25,
        solve_at_reset=False,
    )
    sac = SacConfig(active=row.active, temperature=row.temperature, batch_size=256, warm_start=True)
    # Far-sighted plans, most of them with full force, are found where there are few dimensions, and only there.
    icem = Icem(IcemConfig(horizon=100, rounds=3, plans=48, held=4, spread=2.0))
    return config, {"sac": Sac(replace(sac, episodes=10, updates=10)), "gradient": Gradient(), "icem": icem}


def _for_tasks(fast: ModelBasedConfig) -> ModelBasedConfig:
    """What makes D good for tasks where there are many dimensions (docs/exploitation.md): a model that is trained on
    errs less, some actions at random tell what each does, and dreams that are tried find out what is believed falsely.
    In few dimensions tasks are solved from what `fast` has seen."""
    fit = replace(fast.fit, epochs=5, cooling=1.0)
    return replace(fast, fit=fit, fresh_every=20, dither=0.1, dreams=0.4)


def _smoke(row: Method) -> tuple[ModelBasedConfig, dict[str, Solver]]:
    """Seconds: nothing is learned well, everything is run."""
    config = ModelBasedConfig(
        model=GaussianConfig(members=3, depth=1, width=16, log_variance=(-10.0, -1.0)),
        fit=FitConfig(epochs=3, batch_size=32, held_out=0.1),
        utility=row.utility,
        warm_up=10,
        plan_every=25,
    )
    sac = SacConfig(active=row.active, temperature=row.temperature, batch_size=16, history_updates=4, width=16)
    return config, {
        "sac": Sac(replace(sac, episodes=5, steps=5, actors=8, updates=2)),
        "gradient": Gradient(GradientConfig(iterations=4, actors=4, horizon=3, lifetime=6, width=16)),
        "icem": Icem(IcemConfig(horizon=4, rounds=2, plans=8, elites=4, kept=2)),
    }


def _check(method: str, methods: Mapping[str, Any], preset: str) -> None:
    if not isinstance(method, str) or method not in methods:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"method is {method!r}, expected one of {', '.join(methods)}")
    if not isinstance(preset, str) or preset not in PRESETS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"preset is {preset!r}, expected one of {', '.join(PRESETS)}")
