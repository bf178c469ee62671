"""Impossible numbers are refused by name, wherever they are given."""

import math

import pytest

from maxplore.errors import InputError
from maxplore.models import FitConfig, GaussianConfig
from maxplore.solvers import GradientConfig, IcemConfig, SacConfig
from maxplore.utilities import JensenRenyi


@pytest.mark.parametrize(
    ("made", "settings", "message"),
    [
        (GradientConfig, {"policy_rate": -1.0}, "policy_rate is -1.0, expected more than 0"),
        (GradientConfig, {"max_norm": math.nan}, "max_norm is nan, expected more than 0"),
        (GradientConfig, {"depth": -1}, "depth is -1, expected at least 0"),
        (GradientConfig, {"entropy": -0.1}, "entropy is -0.1, expected 0 or more"),
        (GradientConfig, {"log_std": (1.0, -5.0)}, r"log_std is \(1.0, -5.0\), expected finite bounds"),
        (SacConfig, {"history_updates": -1}, "history_updates is -1, expected at least 0"),
        (SacConfig, {"learning_rate": math.inf}, "learning_rate is inf, expected more than 0"),
        (SacConfig, {"penalty": -1.0}, "penalty is -1.0, expected 0 or more"),
        (SacConfig, {"tau": 1.5}, "tau is 1.5, expected a share from 0 to 1"),
        (SacConfig, {"log_std": (0.0, 0.0)}, r"log_std is \(0.0, 0.0\), expected finite bounds"),
        (IcemConfig, {"plans": 0}, "plans is 0, expected at least 1"),
        (IcemConfig, {"momentum": -0.1}, "momentum is -0.1, expected a share"),
        (JensenRenyi, {"temperature": 1.1}, "temperature is 1.1, expected a share"),
        (FitConfig, {"weight_decay": math.inf}, "weight_decay is inf, expected 0 or more"),
        (GaussianConfig, {"log_variance": (-1.0, math.inf)}, "log_variance is .*, expected finite bounds"),
    ],
)
def test_an_impossible_number_is_refused_by_name(made, settings, message):
    with pytest.raises(InputError, match=message):
        made(**settings)
