"""Gaussian members: units, moments, and a change of statistics that changes no prediction."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxplore import FitConfig, GaussianConfig, GaussianEnsemble, History, InputError, fit
from maxplore.entry import Entry
from maxplore.history import Transition
from maxplore.utilities import information_ratio, jensen_renyi
from tests.systems import history_of, known_ensemble, linear_gaussian, rescaled

SMALL = GaussianConfig(members=3, depth=2, width=16)


@pytest.mark.parametrize("batch", [(), (7,), (2, 3)])
def test_predict_speaks_in_the_units_of_the_environment(batch):
    ensemble = rescaled(known_ensemble([[1.0, 2.0], [3.0, 4.0]], variance=0.25, key=jax.random.key(0)), scale=10.0)
    mean, variance = ensemble.predict(jnp.full((*batch, 2), 5.0), jnp.full((*batch, 2), 0.5))
    assert mean.shape == variance.shape == (2, *batch, 2)
    wanted = np.broadcast_to([[20.0, 30.0], [40.0, 50.0]], (*batch, 2, 2))  # 5 + 10 (0.5 + offset)
    np.testing.assert_allclose(np.moveaxis(mean, 0, -2), wanted, rtol=1e-5)
    np.testing.assert_allclose(variance, 25.0, rtol=1e-4)


def test_log_variance_is_bounded_whatever_the_input():
    ensemble = GaussianEnsemble(2, 1, GaussianConfig(members=2, log_variance=(-3.0, -1.0)), key=jax.random.key(0))
    _, variance = ensemble.predict(jnp.array([[1e6, -1e6], [0.0, 0.0]]), jnp.zeros((2, 1)))
    log_variance = np.log(np.asarray(variance))
    assert (log_variance >= -3 - 1e-5).all()
    assert (log_variance <= -1 + 1e-5).all()


@pytest.mark.parametrize(("initial", "wanted"), [(0.0, 1.0), (-2.0, np.exp(-2)), (None, np.exp(-4.75))])
def test_the_variance_begins_where_it_is_told_to(initial, wanted):
    config = GaussianConfig(members=50, depth=2, width=64, initial_log_variance=initial)
    ensemble = GaussianEnsemble(2, 1, config, key=jax.random.key(0))
    _, variance = ensemble.predict(np.zeros((1, 2)), np.zeros((1, 1)))
    np.testing.assert_allclose(variance, wanted, rtol=1e-4)


@pytest.mark.parametrize("batch", [999, 1000])
def test_samples_have_the_moments_of_the_mixture(batch):
    offsets = np.array([[0.0, 0.0], [1.0, -1.0], [5.0, 2.0]])
    ensemble = known_ensemble(offsets, variance=0.5, key=jax.random.key(0))
    states, actions = jnp.zeros((batch, 2)), jnp.full((batch, 2), 0.5)
    draw = jax.jit(lambda key: ensemble.sample(states, actions, key=key)[0])
    drawn = np.concatenate([draw(key) for key in jax.random.split(jax.random.key(1), 40)])
    np.testing.assert_allclose(drawn.mean(0), offsets.mean(0) + 0.5, atol=0.05)
    np.testing.assert_allclose(drawn.var(0), 0.5 + offsets.var(0), rtol=0.03)


def test_every_row_draws_its_member_uniformly_even_when_rows_are_fewer_than_members():
    ensemble = known_ensemble(10.0 * np.arange(5)[:, None], variance=1e-4, key=jax.random.key(0))
    draw = jax.vmap(lambda key: ensemble.sample(jnp.zeros((2, 1)), jnp.zeros((2, 1)), key=key)[0])
    drawn = np.asarray(draw(jax.random.split(jax.random.key(1), 5000)))[..., 0]
    members = np.rint(drawn / 10).astype(int)
    for row in members.T:
        np.testing.assert_allclose(np.bincount(row, minlength=5) / 5000, 0.2, atol=0.02)


@pytest.mark.parametrize("depth", [0, 2])
def test_new_statistics_leave_the_predictions_as_they_were(depth):
    config = GaussianConfig(members=3, depth=depth, width=16, termination=True)
    ensemble = GaussianEnsemble(2, 1, config, key=jax.random.key(0))
    first = history_of(*linear_gaussian(500, noise=0.1)[:3])
    ensemble = fit(ensemble, first, FitConfig(epochs=5), key=jax.random.key(1)).ensemble
    states, actions, next_states, _ = linear_gaussian(500, noise=0.1, seed=1, spread=3.0)
    adapted = ensemble.adapted(history_of(states * [1, 20] + 4, actions * 2, next_states * [1, 20] + 4))
    assert not np.allclose(adapted.state.scale, ensemble.state.scale)
    some = jnp.asarray(states[:50], jnp.float32), jnp.asarray(actions[:50], jnp.float32)
    before, after = ensemble.predict(*some), adapted.predict(*some)
    np.testing.assert_allclose(after.mean, before.mean, rtol=1e-3, atol=1e-4)
    ratio = np.asarray(after.variance / before.variance)
    assert 0.5 < np.median(ratio) < 2.0, "the variance is kept roughly"
    flags = jnp.zeros(50, bool)
    rows = Transition(*some, jnp.asarray(next_states[:50], jnp.float32), flags, flags)

    def log_odds(model):
        features = jax.vmap(model.end_features)(rows)
        return jax.vmap(lambda member: jax.vmap(member.ends)(features))(model.members)

    np.testing.assert_allclose(log_odds(adapted), log_odds(ensemble), rtol=1e-3, atol=1e-2)


def test_new_statistics_keep_a_constant_noise():
    ensemble = known_ensemble(np.zeros((2, 1)), variance=0.3, key=jax.random.key(0))
    numbers = np.random.default_rng(0)
    states = numbers.normal(size=(500, 1))
    adapted = ensemble.adapted(history_of(states, np.zeros((500, 1)), states + 2.0 * numbers.normal(size=(500, 1))))
    _, variance = adapted.predict(jnp.zeros((1, 1)), jnp.zeros((1, 1)))
    np.testing.assert_allclose(variance, 0.3, rtol=1e-3)


def test_a_dimension_that_begins_to_move_is_folded_by_what_it_is():
    """A pressure that stood at 101325, and a delta that was always 0: their scale of 1 was only a placeholder."""
    states, actions, next_states, _ = linear_gaussian(400, noise=0.05)
    still = np.full((400, 1), 101325.0)
    before = history_of(np.hstack([states, still]), actions, np.hstack([next_states, still]))
    ensemble = GaussianEnsemble(3, 1, GaussianConfig(members=3, depth=1, width=32), key=jax.random.key(0))
    fitted = fit(ensemble, before, FitConfig(epochs=30), key=jax.random.key(1)).ensemble
    moving = still + 500 * np.random.default_rng(0).normal(size=(400, 1))
    after = before.append(np.hstack([states, moving]), actions, np.hstack([next_states, moving + 4e-1]))
    warm = FitConfig(epochs=5, from_scratch=False)
    report = fit(fitted, after, warm, key=jax.random.key(2)).report
    assert (np.asarray(report.train.error) < 10.0).all(), "millions, if the placeholder were taken for a scale"


def test_two_public_functions_compose_even_where_a_dimension_never_moved():
    states, actions, next_states, _ = linear_gaussian(100, noise=0.1)
    still = np.ones((100, 1))
    history = history_of(np.hstack([states, still]), actions, np.hstack([next_states, still]))
    model = fit(
        GaussianEnsemble(3, 1, SMALL, key=jax.random.key(0)), history, FitConfig(epochs=2), key=jax.random.key(1)
    )
    prediction = model.ensemble.predict(np.hstack([states, still])[:5], actions[:5])
    assert (np.asarray(prediction.variance)[..., 2] == 0).all()
    for utility in (jensen_renyi, information_ratio):
        assert np.isfinite(np.asarray(utility(*prediction))).all()


def test_a_dimension_that_never_moved_is_imagined_at_rest():
    states, actions, next_states, _ = linear_gaussian(300, noise=0.1)
    goal = np.random.default_rng(5).normal(size=(300, 1))  # differs between episodes, never within one
    history = history_of(np.hstack([states, goal]), actions, np.hstack([next_states, goal]))
    fitted = fit(
        GaussianEnsemble(3, 1, SMALL, key=jax.random.key(0)), history, FitConfig(epochs=3), key=jax.random.key(1)
    )
    rows = jnp.asarray(np.hstack([states, goal])[:20], jnp.float32)
    drawn, _ = fitted.ensemble.sample(rows, jnp.zeros((20, 1)), key=jax.random.key(2))
    np.testing.assert_array_equal(drawn[:, 2], rows[:, 2])
    assert not np.allclose(drawn[:, 0], rows[:, 0])


def test_where_episodes_end_is_learned():
    states, actions, next_states, _ = linear_gaussian(2000, noise=0.05)
    history = history_of(states, actions, next_states)
    ends = next_states[:, 0] > 0.8
    history = history.__class__.continuous(2, 1, capacity=2048).append(states, actions, next_states, ends)
    config = GaussianConfig(members=3, depth=1, width=64, termination=True)
    fitted = fit(
        GaussianEnsemble(2, 1, config, key=jax.random.key(0)), history, FitConfig(epochs=60), key=jax.random.key(1)
    )
    rows = jnp.asarray(states, jnp.float32), jnp.asarray(actions, jnp.float32)
    drawn, ended = fitted.ensemble.sample(*rows, key=jax.random.key(2))
    clear = np.abs(np.asarray(drawn)[:, 0] - 0.8) > 0.15
    agreement = np.asarray(ended)[clear] == (np.asarray(drawn)[clear, 0] > 0.8)
    assert agreement.mean() > 0.98
    assert np.all(np.asarray(fitted.report.train.termination_nll) < 0.1)


def test_without_a_termination_head_nothing_ends():
    _, ended = GaussianEnsemble(2, 1, SMALL, key=jax.random.key(0)).sample(
        jnp.zeros((9, 2)), jnp.zeros((9, 1)), key=jax.random.key(1)
    )
    assert not np.asarray(ended).any()


def test_an_untrained_termination_head_rarely_ends_an_episode():
    config = GaussianConfig(members=3, depth=1, width=64, termination=True)
    _, ended = GaussianEnsemble(2, 1, config, key=jax.random.key(0)).sample(
        jnp.zeros((1000, 2)), jnp.zeros((1000, 1)), key=jax.random.key(1)
    )
    assert np.asarray(ended).mean() < 0.05


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"members": 0}, "members is 0, expected at least 1"),
        ({"depth": -1}, "depth is -1"),
        ({"width": 0}, "width is 0"),
        ({"activation": "sinus"}, "activation is 'sinus'"),
        ({"log_variance": (1.0, -1.0)}, "log_variance is"),
        ({"log_variance": (float("-inf"), 0.0)}, "log_variance is"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        GaussianConfig(**settings)


def test_predict_names_the_argument_of_the_wrong_shape():
    ensemble = GaussianEnsemble(3, 1, SMALL, key=jax.random.key(0))
    with pytest.raises(InputError, match=r"states has shape \(7, 2\), expected \(3,\) with any number of axes"):
        ensemble.predict(jnp.zeros((7, 2)), jnp.zeros((7, 1)))
    with pytest.raises(InputError, match=r"actions has shape \(6, 1\), expected \(7, 1\)"):
        ensemble.predict(jnp.zeros((7, 3)), jnp.zeros((6, 1)))


def test_predict_takes_what_people_have_and_refuses_what_is_not_finite():
    ensemble = GaussianEnsemble(2, 1, SMALL, key=jax.random.key(0))
    from_lists = ensemble.predict([[0.0, 1.0]], [[2]])
    from_numpy = ensemble.predict(np.array([[0.0, 1.0]]), np.array([[2.0]]))
    np.testing.assert_array_equal(from_lists.mean, from_numpy.mean)
    inside = jax.jit(lambda states: ensemble.predict(states, jnp.full((1, 1), 2.0)).mean)(jnp.array([[0.0, 1.0]]))
    np.testing.assert_allclose(inside, from_lists.mean, rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match=r"states\[0, 1\] is nan"):
        ensemble.predict([[0.0, np.nan]], [[2.0]])
    with pytest.raises(InputError, match=r"states\[1\] is nan"):
        ensemble.predict([0.0, np.nan], [2.0])


def test_numbered_actions_are_seen_one_hot():
    """Three actions of which the middle one pushes the other way: no function of the number that a line could be."""
    numbers = np.random.default_rng(0)
    states, actions = numbers.normal(size=(400, 2)), numbers.integers(0, 3, size=400)
    pushes = np.array([1.0, -1.0, 1.0])[actions]
    history = History.empty(Entry((2,)), Entry((), 3)).append(states, actions, states + pushes[:, None])
    ensemble = GaussianEnsemble(2, 3, GaussianConfig(members=2, width=16), numbered=True, key=jax.random.key(0))
    assert ensemble.action_entry == history.action_entry
    fitted = fit(ensemble, history, FitConfig(epochs=150, batch_size=64), key=jax.random.key(1)).ensemble
    mean, _ = fitted.predict(np.zeros((3, 2)), np.arange(3))
    np.testing.assert_allclose(mean, np.broadcast_to([[1.0], [-1.0], [1.0]], (2, 3, 2)), atol=0.2)
    with pytest.raises(InputError, match=r"actions\[0\] is 3"):
        fitted.predict(np.zeros((1, 2)), [3])
