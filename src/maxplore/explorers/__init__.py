"""Explorers: `init / act / observe`, pure functions of a state pytree."""

from maxplore.explorers.base import Finite, FiniteExplorer
from maxplore.explorers.bootstrapped_dqn import BootstrappedDqnConfig, BootstrappedDqnExplorer
from maxplore.explorers.eb_dqn import EbDqnConfig, EbDqnExplorer
from maxplore.explorers.loop import episodes_to_explore, run
from maxplore.explorers.max import FiniteMaxConfig, MaxExplorer
from maxplore.explorers.oracle import OracleExplorer
from maxplore.explorers.random import RandomExplorer

__all__ = [
    "BootstrappedDqnConfig",
    "BootstrappedDqnExplorer",
    "EbDqnConfig",
    "EbDqnExplorer",
    "Finite",
    "FiniteExplorer",
    "FiniteMaxConfig",
    "MaxExplorer",
    "OracleExplorer",
    "RandomExplorer",
    "episodes_to_explore",
    "run",
]
