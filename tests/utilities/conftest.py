"""A small Gaussian ensemble with known statistics, and transitions in front of it."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from maxplore.models.gaussian import Gaussian, GaussianConfig, GaussianEnsemble
from maxplore.normalizer import Normalizer
from maxplore.utilities import Outcome


@pytest.fixture(scope="session")
def ensemble() -> GaussianEnsemble:
    """Three members; states have scale (2, 1/4), deltas mean (1/2, -1/2) and scale (1/2, 2)."""
    plain = GaussianEnsemble(2, 1, GaussianConfig(members=3, depth=1, width=8), key=jax.random.key(0))
    varies = jnp.ones(2, bool)
    state = Normalizer(jnp.array([10.0, 20.0]), jnp.array([2.0, 0.25]), varies)
    delta = Normalizer(jnp.array([0.5, -0.5]), jnp.array([0.5, 2.0]), varies)
    return eqx.tree_at(lambda e: (e.state, e.delta), plain, (state, delta))


@pytest.fixture(scope="session")
def outcome_of(ensemble: GaussianEnsemble) -> Callable[..., Outcome]:
    """`outcome_of(forecast, state=, action=, next_state=)`: two transitions, of zeros where nothing is said."""
    rows = jnp.zeros((2, 2))

    def build(forecast: Gaussian | None = None, *, state=rows, action=rows[:, :1], next_state=rows) -> Outcome:
        return Outcome(ensemble, state, action, next_state, forecast)

    return build
