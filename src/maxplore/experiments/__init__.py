"""A figure of the paper is a declarative spec, plus a plot that only reads recorded numbers."""

from maxplore.experiments.ant_maze import AntMazeFigure
from maxplore.experiments.chain import CHAIN
from maxplore.experiments.exploration import Exploration, Line
from maxplore.experiments.half_cheetah import HalfCheetahFigure
from maxplore.experiments.mountain_car import MountainCarFigure
from maxplore.experiments.spec import Asked, Claim, Experiment, Measured

EXPERIMENTS: dict[str, Experiment] = {
    **CHAIN,
    "mountain-car": MountainCarFigure(),
    "half-cheetah": HalfCheetahFigure(),
    "ant-maze": AntMazeFigure(),
}
"""All figures, by the name that one types."""

__all__ = ["EXPERIMENTS", "Asked", "Claim", "Experiment", "Exploration", "Line", "Measured"]
