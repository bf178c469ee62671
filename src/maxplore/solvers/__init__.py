"""Solvers of the exploration MDP."""

from maxplore.solvers.base import Policy, Solution, SolveInfo, Solver
from maxplore.solvers.gradient import Gradient, GradientConfig
from maxplore.solvers.icem import Icem, IcemConfig
from maxplore.solvers.sac import Sac, SacConfig
from maxplore.solvers.value_iteration import Table, value_iteration

SOLVERS: dict[str, type[Solver]] = {"sac": Sac, "gradient": Gradient, "icem": Icem}
"""Every solver of imagined walks by name; a tabulated MDP has `value_iteration` and `mcts`."""

__all__ = [
    "SOLVERS",
    "Gradient",
    "GradientConfig",
    "Icem",
    "IcemConfig",
    "Policy",
    "Sac",
    "SacConfig",
    "Solution",
    "SolveInfo",
    "Solver",
    "Table",
    "value_iteration",
]
