"""The registry of methods: what a name and a preset stand for."""

from collections.abc import Mapping
from typing import Any

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
from maxplore.models.ensemble import MemberConfig
from maxplore.settings import overridden

PRESETS = ("fast", "paper", "smoke")

TINY = MemberConfig(members=3, depth=1, width=32, activation="tanh", first_gain=6.0)

FINITE: Mapping[str, Mapping[str, FiniteExplorer]] = {
    "max": {
        "fast": MaxExplorer(FiniteMaxConfig(warm_up=0)),
        "paper": MaxExplorer(PAPER_MAX),
        "smoke": MaxExplorer(FiniteMaxConfig(TINY, warm_up=0)),
    },
    "random": dict.fromkeys(PRESETS, RandomExplorer()),
    "oracle": {"fast": OracleExplorer(0), "paper": OracleExplorer(), "smoke": OracleExplorer(0)},
    "eb-dqn": dict.fromkeys(PRESETS, EbDqnExplorer()),
    "bootstrapped-dqn": dict.fromkeys(PRESETS, BootstrappedDqnExplorer()),
}
"""Methods for numbered states and actions. The oracle is no method but their limit: a memory without a model."""


def finite_explorer(method: str, preset: str, settings: Mapping[str, Any]) -> FiniteExplorer:
    """The explorer of this name, with these settings changed."""
    if method not in FINITE:
        raise InputError(f"method is {method!r}, expected one of {', '.join(FINITE)}")
    if preset not in PRESETS:
        raise InputError(f"preset is {preset!r}, expected one of {', '.join(PRESETS)}")
    return overridden(FINITE[method][preset], settings)
