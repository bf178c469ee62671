"""A figure of the paper is a declarative spec, plus a plot that only reads recorded numbers."""

from maxplore.experiments.reproduce import reproduce
from maxplore.experiments.spec import EXPERIMENTS, Claim, Experiment, Line

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "Line", "reproduce"]
