"""Solvers of the exploration MDP."""

from maxplore.solvers.value_iteration import Table, value_iteration

__all__ = ["Table", "value_iteration"]
