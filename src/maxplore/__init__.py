"""maxplore: learn how an environment works in as few steps as possible, with no reward at all."""

from maxplore import envs, solvers, utilities
from maxplore.errors import InputError
from maxplore.explorer import Explorer, load
from maxplore.history import History, Transition
from maxplore.learned_env import LearnedEnv, LearnedVectorEnv
from maxplore.mdp import ExplorationMDP
from maxplore.models import CategoricalEnsemble, FitConfig, GaussianConfig, GaussianEnsemble, MemberConfig, fit
from maxplore.normalizer import Normalizer

__version__ = "0.1.0"

__all__ = [
    "CategoricalEnsemble",
    "ExplorationMDP",
    "Explorer",
    "FitConfig",
    "GaussianConfig",
    "GaussianEnsemble",
    "History",
    "InputError",
    "LearnedEnv",
    "LearnedVectorEnv",
    "MemberConfig",
    "Normalizer",
    "Transition",
    "envs",
    "fit",
    "load",
    "solvers",
    "utilities",
]
