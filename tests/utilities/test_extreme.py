"""One number of the state, as large or as small as can be: by hand, in units of its spread."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pytest

from maxplore.utilities import Extreme, Outcome


@pytest.mark.parametrize(
    ("direction", "pay"),
    [([1.0, 0.0], [1.0, -5.0]), ([0.0, -1.0], [-4.0, 80.0]), ([1.0, -1.0], [-3.0, 75.0])],
    ids=["up", "down", "both"],
)
def test_by_hand(outcome_of: Callable[..., Outcome], direction: list[float], pay: list[float]):
    """States have mean (10, 20) and scale (2, 1/4)."""
    outcome = outcome_of(next_state=jnp.array([[12.0, 21.0], [0.0, 0.0]]))
    np.testing.assert_allclose(Extreme(jnp.array(direction))(outcome), pay, rtol=1e-6)


def test_it_looks_at_no_forecast():
    assert not Extreme(jnp.ones(2)).needs_forecast
