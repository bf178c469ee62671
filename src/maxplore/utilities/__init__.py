"""What a transition pays in the exploration MDP: functions on arrays, and the rows that bind them to an ensemble."""

from maxplore.utilities.action_penalty import ActionPenalty
from maxplore.utilities.base import Outcome, Utility, saturation
from maxplore.utilities.cautious import Cautious
from maxplore.utilities.disagreement import Disagreement, disagreement
from maxplore.utilities.extreme import Extreme
from maxplore.utilities.information_ratio import InformationRatio, information_ratio
from maxplore.utilities.jensen_renyi import JensenRenyi, jensen_renyi, rescale_variance
from maxplore.utilities.jensen_shannon import JensenShannon, jensen_shannon
from maxplore.utilities.prediction_error import PredictionError, prediction_error
from maxplore.utilities.task import Task
from maxplore.utilities.trajectory_variance import TrajectoryVariance, trajectory_variance
from maxplore.utilities.with_reward import WithReward

UTILITIES: dict[str, type[Utility]] = {
    "jensen_shannon": JensenShannon,
    "jensen_renyi": JensenRenyi,
    "trajectory_variance": TrajectoryVariance,
    "prediction_error": PredictionError,
    "disagreement": Disagreement,
    "information_ratio": InformationRatio,
}
"""Every utility by name."""

__all__ = [
    "UTILITIES",
    "ActionPenalty",
    "Cautious",
    "Disagreement",
    "Extreme",
    "InformationRatio",
    "JensenRenyi",
    "JensenShannon",
    "Outcome",
    "PredictionError",
    "Task",
    "TrajectoryVariance",
    "Utility",
    "WithReward",
    "disagreement",
    "information_ratio",
    "jensen_renyi",
    "jensen_shannon",
    "prediction_error",
    "rescale_variance",
    "saturation",
    "trajectory_variance",
]
