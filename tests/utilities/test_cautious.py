"""Guards on a task's reward, against values worked out by hand."""

import jax.numpy as jnp
import numpy as np

from maxplore.models.gaussian import Gaussian
from maxplore.utilities import Cautious, Task

TASK = Task(lambda s, a, s2: s2[0])
# Three members, two transitions, two dimensions; in normalised-delta space, whose scale is (1/2, 2), mean (1/2, -1/2).
MEANS = jnp.array([[[0.0, 0.0], [1.0, 0.0]], [[3.0, 0.0], [1.0, 0.0]], [[0.0, 3.0], [1.0, 0.0]]])
FORECAST = Gaussian(MEANS, jnp.ones_like(MEANS))
NEXT = jnp.array([[10.0, 0.0], [-10.0, 0.0]])


def test_without_a_guard_it_is_the_reward_in_its_unit(outcome_of):
    plain = Cautious(TASK, unit=4.0)
    assert not plain.needs_forecast
    np.testing.assert_allclose(plain(outcome_of(next_state=NEXT)), [2.5, -2.5])


def test_the_price_is_the_mean_disagreement_of_dimensions(outcome_of):
    """Means of 0, 3, 0 in both dimensions of the first transition: a standard deviation of sqrt(2)."""
    priced = Cautious(TASK, penalty=2.0)
    assert priced.needs_forecast
    np.testing.assert_allclose(priced(outcome_of(FORECAST, next_state=NEXT)), [10 - 2 * np.sqrt(2), -10], rtol=1e-5)


def test_the_most_pessimistic_member_counts_but_never_more_than_what_was_drawn(outcome_of):
    """From 0 they expect 1/2, 2 and 1/2 of the first transition, and 1 of the second, where -10 was drawn."""
    wary = Cautious(TASK, pessimistic=True)
    np.testing.assert_allclose(wary(outcome_of(FORECAST, next_state=NEXT)), [0.5, -10.0], rtol=1e-5)
