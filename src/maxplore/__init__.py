"""maxplore: learn how an environment works in as few steps as possible, with no reward at all."""

from maxplore import devices, envs, solvers, tasks, utilities
from maxplore.errors import InputError
from maxplore.exploit import ExploitConfig, FiniteExploitConfig, Forecast, Report, TaskPolicy, refine, rehearse
from maxplore.explorer import Explorer, load
from maxplore.history import History, Transition
from maxplore.learned_env import LearnedEnv, LearnedVectorEnv
from maxplore.many import explore_many
from maxplore.mdp import ExplorationMDP
from maxplore.models import CategoricalEnsemble, FitConfig, GaussianConfig, GaussianEnsemble, MemberConfig, fit
from maxplore.normalizer import Normalizer

__version__ = "0.1.0"

__all__ = [
    "CategoricalEnsemble",
    "ExploitConfig",
    "ExplorationMDP",
    "Explorer",
    "FiniteExploitConfig",
    "FitConfig",
    "Forecast",
    "GaussianConfig",
    "GaussianEnsemble",
    "History",
    "InputError",
    "LearnedEnv",
    "LearnedVectorEnv",
    "MemberConfig",
    "Normalizer",
    "Report",
    "TaskPolicy",
    "Transition",
    "devices",
    "envs",
    "explore_many",
    "fit",
    "load",
    "refine",
    "rehearse",
    "solvers",
    "tasks",
    "utilities",
]
