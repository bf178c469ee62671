"""Guards on a task's reward, against values worked out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxplore import CategoricalEnsemble, ExplorationMDP, InputError
from maxplore.models.gaussian import Gaussian
from maxplore.utilities import ActionPenalty, Cautious, Task, WithReward
from tests.systems import known_ensemble

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
    beyond = Cautious(TASK, penalty=2.0, usual=1.0)  # over both dimensions
    paid = beyond(outcome_of(FORECAST, next_state=NEXT))
    np.testing.assert_allclose(paid, [10 - 2 * np.sqrt(2) + 1, -10], rtol=1e-5)
    counted = Cautious(TASK, penalty=2.0, unit=4.0)  # the price is in the same unit
    np.testing.assert_allclose(counted(outcome_of(FORECAST, next_state=NEXT)), [2.5 - 2 * np.sqrt(2), -2.5], rtol=1e-5)


def test_pessimism_follows_the_member_that_expects_least(outcome_of):
    """From 0 they expect 1/2, 2 and 1/2 of the first transition, and 1 of the second. Of equals, from the draw on."""
    outcome, least = outcome_of(FORECAST), Task(lambda s, a, s2: -s2[0])
    assert Cautious(TASK, pessimistic=True).needs_forecast
    for drawn, of_two, of_three in ((0, 0, 0), (1, 2, 1), (2, 2, 2)):
        chance = jnp.full(2, drawn)
        decided = Cautious(TASK, pessimistic=True).decides(outcome, chance)
        np.testing.assert_array_equal(decided, [of_two, of_three])
        np.testing.assert_array_equal(Cautious(least, pessimistic=True).decides(outcome, chance), [1, of_three])
        np.testing.assert_array_equal(Cautious(TASK, penalty=1.0).decides(outcome, chance), chance, "left to chance")


def test_where_all_expect_the_same_the_draw_counts():
    """A reward for being alive tells members apart in nothing: all of them are asked, as without pessimism."""
    ensemble = known_ensemble(np.array([[0.4], [-0.4], [-0.4]]), variance=1e-4, key=jax.random.key(0))
    for around in (lambda task: task, lambda task: ActionPenalty(task, 0.1)):
        mdp = ExplorationMDP(ensemble, around(Cautious(Task(lambda s, a, s2: jnp.ones(())), pessimistic=True)))
        step = mdp.step(jnp.zeros((900, 1)), jnp.zeros((900, 1)), key=jax.random.key(1))
        np.testing.assert_allclose((np.asarray(step.next_state) > 0).mean(), 1 / 3, atol=0.05)


def test_what_is_put_around_it_leaves_the_decision_to_it():
    ensemble = known_ensemble(np.array([[0.4], [-0.4], [0.1]]), variance=1e-4, key=jax.random.key(0))
    wary = Cautious(TASK, pessimistic=True)
    for utility in (wary, ActionPenalty(wary, 0.1), WithReward(wary, TASK, 0.5)):
        step = ExplorationMDP(ensemble, utility).step(jnp.zeros((50, 1)), jnp.zeros((50, 1)), key=jax.random.key(1))
        np.testing.assert_allclose(step.next_state, -0.4, atol=0.06)


def test_a_price_needs_gaussian_members():
    ensemble = CategoricalEnsemble(3, 2, key=jax.random.key(0))
    mdp = ExplorationMDP(ensemble, Cautious(Task(lambda s, a, s2: jnp.ones(())), penalty=1.0))
    with pytest.raises(InputError, match="needs a GaussianEnsemble"):
        mdp.step(jnp.zeros(2, int), jnp.zeros(2, int), key=jax.random.key(1))


def test_a_member_that_expects_no_number_decides_nothing(outcome_of):
    task = Task(lambda s, a, s2: jnp.where(s2[0] < 1, jnp.nan, s2[0]))
    decided = Cautious(task, pessimistic=True).decides(outcome_of(FORECAST), jnp.array([0, 2]))
    np.testing.assert_array_equal(decided, [1, 2])


def test_in_imagination_the_worst_happens_at_every_step():
    """Members move by 0.2, 0.4 and -0.3 along the first dimension: after 6 steps of 0.1, whoever wants it large is at
    6 (0.1 - 0.3), and whoever wants it small at 6 (0.1 + 0.4)."""
    offsets = np.array([[0.2, -0.1], [0.4, 0.3], [-0.3, 0.1]])
    ensemble = known_ensemble(offsets, variance=1e-4, key=jax.random.key(0))
    for sign, worst in ((1.0, 2), (-1.0, 1)):
        task = Task(lambda s, a, s2, sign=sign: sign * s2[0])
        mdp = ExplorationMDP(ensemble, Cautious(task, pessimistic=True))
        walk = mdp.rollout(lambda s, _: jnp.full(s.shape, 0.1), jnp.zeros((5, 2)), 6, key=jax.random.key(1))
        np.testing.assert_allclose(walk.next_state[-1], np.tile(6 * (0.1 + offsets[worst]), (5, 1)), atol=0.15)
        own = mdp.step(jnp.zeros((3, 2)), jnp.zeros((3, 2)), key=jax.random.key(2), member=jnp.arange(3))
        np.testing.assert_allclose(own.next_state, offsets, atol=0.06, err_msg="a member that is given counts")
