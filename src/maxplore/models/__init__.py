"""Models of the environment: one member network, the ensemble as its `vmap`, one `fit` for every kind."""

from maxplore.models.adam import Moments
from maxplore.models.categorical import CategoricalEnsemble
from maxplore.models.ensemble import Ensemble, MemberConfig, Metrics
from maxplore.models.fit import FitConfig, FitReport, Fitted, fit
from maxplore.models.gaussian import Gaussian, GaussianConfig, GaussianEnsemble

__all__ = [
    "CategoricalEnsemble",
    "Ensemble",
    "FitConfig",
    "FitReport",
    "Fitted",
    "Gaussian",
    "GaussianConfig",
    "GaussianEnsemble",
    "MemberConfig",
    "Metrics",
    "Moments",
    "fit",
]
