"""Trajectory variance: the spread of the actors, by hand and for any deltas."""

import math
from collections.abc import Callable

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings

from maxplore.models.gaussian import Gaussian
from maxplore.utilities import Disagreement, Outcome, TrajectoryVariance, trajectory_variance

repeatable = settings(deadline=None, derandomize=True, max_examples=60)
fast = jax.jit(trajectory_variance)
slope = jax.jit(jax.grad(lambda deltas: trajectory_variance(deltas)[0]))


def deltas(batch: int = 5, dims: int = 3) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(np.float32, (batch, dims), elements=st.floats(-1e6, 1e6, width=32))


def rounding(rows: np.ndarray) -> float:
    """What float32 may lose: a millionth of the largest number, and squares below 1e-38."""
    return 1e-6 * float(np.abs(rows).max()) + 1e-18


def test_by_hand():
    """Standard deviations over the batch, of the population: 1 and 4."""
    np.testing.assert_allclose(trajectory_variance(jnp.array([[1.0, 0.0], [3.0, 8.0]])), [5.0, 5.0])


@repeatable
@given(deltas())
def test_every_row_gets_the_sum_of_population_standard_deviations(rows: np.ndarray):
    expected = np.full(5, rows.astype(np.float64).std(0).sum())
    np.testing.assert_allclose(fast(rows), expected, rtol=1e-5, atol=rounding(rows))


@repeatable
@given(deltas())
def test_finite_with_finite_gradient_and_never_negative(rows: np.ndarray):
    assert np.isfinite(fast(rows)).all()
    assert (fast(rows) >= 0).all()
    assert np.isfinite(slope(rows)).all()


@repeatable
@given(deltas(), st.permutations(range(5)))
def test_order_of_actors_is_nothing_to_it(rows: np.ndarray, order: list[int]):
    np.testing.assert_allclose(fast(rows[order]), fast(rows), rtol=1e-5, atol=rounding(rows))


@repeatable
@given(deltas(batch=1))
def test_a_batch_of_one_gives_0_and_no_slope(row: np.ndarray):
    assert (fast(row) == 0).all()
    assert (slope(row) == 0).all()


@repeatable
@given(deltas(batch=1))
def test_actors_that_move_alike_give_exactly_0(row: np.ndarray):
    rows = np.repeat(row, 5, axis=0)
    assert (fast(rows) == 0).all()
    assert np.isfinite(slope(rows)).all()


def test_utility_measures_in_standard_deviations_of_the_delta(outcome_of: Callable[..., Outcome]):
    """Deltas (2, 0) and (0, 6) have standard deviations (1, 3) over the batch; the scales are (1/2, 2)."""
    state = jnp.array([[1.0, 2.0], [-3.0, 4.0]])
    next_state = state + jnp.array([[2.0, 0.0], [0.0, 6.0]])
    pay = TrajectoryVariance()(outcome_of(state=state, next_state=next_state))
    np.testing.assert_allclose(pay, [3.5, 3.5], rtol=1e-6)


def test_noise_alone_raises_it_though_members_agree(outcome_of: Callable[..., Outcome]):
    """Actors at one place whom all members send the same way: only the sampled noise parts them."""
    noise = np.array([[0.7, -1.1], [-0.4, 0.2]], np.float32)
    agreed = Gaussian(jnp.zeros((3, 2, 2)), jnp.ones((3, 2, 2)))

    def pay(utility: TrajectoryVariance | Disagreement, scale: float) -> float:
        return float(utility(outcome_of(agreed, next_state=jnp.asarray(scale * noise)))[0])

    calm, loud = pay(TrajectoryVariance(), 0.1), pay(TrajectoryVariance(), 1.0)
    assert calm > 0.1
    assert math.isclose(loud, 10 * calm, rel_tol=1e-5)
    assert pay(Disagreement(), 1.0) == 0.0
