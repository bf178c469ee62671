"""Explorers: `init / act / observe`, pure functions of a state pytree."""

from maxplore.explorers.agent import FiniteAgent
from maxplore.explorers.base import Finite, FiniteExplorer
from maxplore.explorers.bootstrapped_dqn import BootstrappedDqnConfig, BootstrappedDqnExplorer
from maxplore.explorers.eb_dqn import EbDqnConfig, EbDqnExplorer
from maxplore.explorers.loop import episodes_to_explore, run
from maxplore.explorers.max import PAPER_MAX, FiniteMaxConfig, MaxExplorer
from maxplore.explorers.oracle import OracleExplorer
from maxplore.explorers.random import RandomExplorer
from maxplore.explorers.training import Minibatches, UntilFitted

__all__ = [
    "PAPER_MAX",
    "BootstrappedDqnConfig",
    "BootstrappedDqnExplorer",
    "EbDqnConfig",
    "EbDqnExplorer",
    "Finite",
    "FiniteAgent",
    "FiniteExplorer",
    "FiniteMaxConfig",
    "MaxExplorer",
    "Minibatches",
    "OracleExplorer",
    "RandomExplorer",
    "UntilFitted",
    "episodes_to_explore",
    "run",
]
