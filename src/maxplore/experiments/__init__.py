"""A figure of the paper is a declarative spec, plus a plot that only reads recorded numbers."""

from maxplore.experiments.chain import EXPERIMENTS
from maxplore.experiments.exploration import Exploration, Line
from maxplore.experiments.reproduce import reproduce
from maxplore.experiments.spec import Claim, Experiment, Measured

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "Exploration", "Line", "Measured", "reproduce"]
