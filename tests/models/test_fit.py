"""What an ensemble learns, on systems whose truth is known."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from maxplore import CategoricalEnsemble, FitConfig, GaussianConfig, GaussianEnsemble, History, InputError, fit
from maxplore.history import held_out
from maxplore.mdp import ExplorationMDP
from maxplore.utilities import JensenRenyi, PredictionError
from tests.counting import compilations
from tests.systems import history_of, linear_gaussian

CONFIG = GaussianConfig(members=4, depth=2, width=48)
NOISE = 0.1


def ensemble(config=CONFIG, seed=0):
    return GaussianEnsemble(2, 1, config, key=jax.random.key(seed))


def fitted_to(noise, n=3000, epochs=40, **settings):
    history = history_of(*linear_gaussian(n, noise)[:3])
    return history, fit(ensemble(), history, FitConfig(epochs=epochs, **settings), key=jax.random.key(1))


@pytest.fixture(scope="module")
def linear():
    return fitted_to(NOISE)


def test_a_linear_gaussian_system_is_recovered(linear):
    states, actions, _, exact = linear_gaussian(1000, NOISE, seed=7)
    mean, variance = linear[1].ensemble.predict(states, actions)
    rms = np.sqrt(np.mean((exact - states) ** 2))
    errors = np.sqrt(np.mean((np.asarray(mean) - exact) ** 2, axis=(1, 2)))
    assert (errors < 0.07 * rms).all(), f"mean off by {errors / rms} of the signal"
    np.testing.assert_allclose(np.sqrt(variance).mean(axis=(1, 2)), NOISE, rtol=0.1)


def test_its_variance_is_calibrated_on_held_out_points(linear):
    states, actions, next_states, _ = linear_gaussian(4000, NOISE, seed=8)
    mean, variance = (np.asarray(x) for x in linear[1].ensemble.predict(states, actions))
    for level in (0.5, 0.9):
        inside = np.abs(next_states - mean) < stats.norm.ppf((1 + level) / 2) * np.sqrt(variance)
        np.testing.assert_allclose(inside.mean(axis=(1, 2)), level, atol=0.04)


def test_members_disagree_more_where_no_data_was(linear):
    mdp = ExplorationMDP(linear[1].ensemble, JensenRenyi())
    states, actions, next_states, _ = (jnp.asarray(x, jnp.float32) for x in linear_gaussian(500, NOISE, seed=9))
    at_data, far = mdp.worth(states, actions, next_states), mdp.worth(states * 8, actions, next_states)
    assert np.median(far) > 5 * np.median(at_data)
    assert np.mean(np.asarray(far) > np.quantile(at_data, 0.95)) > 0.8


def test_risk_is_not_mistaken_for_uncertainty(linear):
    """Twice the noise, with enough data: the divergence stays at nothing, the prediction error rises fourfold."""
    worth = {}
    for noise, (history, fitted) in {NOISE: linear, 2 * NOISE: fitted_to(2 * NOISE)}.items():
        rows = history[jnp.arange(1000)]
        for name, utility in {"divergence": JensenRenyi(), "error": PredictionError()}.items():
            mdp = ExplorationMDP(fitted.ensemble, utility)
            worth[name, noise] = np.mean(mdp.worth(rows.state, rows.action, rows.next_state))
    far = linear[0][jnp.arange(1000)]
    unknown = np.median(ExplorationMDP(linear[1].ensemble, JensenRenyi()).worth(far.state * 8, far.action, far.state))
    assert worth["divergence", 2 * NOISE] - worth["divergence", NOISE] < 0.005 * unknown
    np.testing.assert_allclose(worth["error", 2 * NOISE] / worth["error", NOISE], 4.0, rtol=0.25)


def test_the_report_is_the_likelihood_of_the_data_in_its_own_units(linear):
    report = linear[1].report
    entropy = 2 * (0.5 + 0.5 * np.log(2 * np.pi) + np.log(NOISE))  # of the true noise, in two dimensions
    np.testing.assert_allclose(report.train.nll, entropy, atol=0.15)
    assert int(report.rows) == 3000
    assert int(report.steps) == 40 * (3000 // 256)
    assert np.isnan(np.asarray(report.held_out.nll)).all(), "nothing was held out"


def test_early_stopping_stops_before_overfitting_and_keeps_the_best():
    history, patient = fitted_to(0.5, n=150, epochs=400, held_out=0.3, patience=20, batch_size=64, learning_rate=3e-3)
    stubborn = fit(
        ensemble(),
        history,
        FitConfig(epochs=400, held_out=0.3, batch_size=64, learning_rate=3e-3),
        key=jax.random.key(1),
    )
    assert int(patient.report.epochs) < 400 == int(stubborn.report.epochs)
    assert int(patient.report.rows) + int(patient.report.held_out_rows) == 150
    assert np.mean(patient.report.held_out.nll) < np.mean(stubborn.report.held_out.nll)
    assert np.mean(stubborn.report.train.nll) < np.mean(stubborn.report.held_out.nll), "there was something to overfit"


def test_held_out_rows_are_never_trained_on():
    states, actions, next_states, _ = linear_gaussian(200, NOISE)
    history = history_of(states, actions, next_states)
    aside = np.asarray(held_out(history, 0.2))[:200]
    deltas = next_states - states
    deltas[aside] = deltas[aside][::-1]  # other targets, the same statistics
    spoiled = states + deltas
    config = FitConfig(epochs=2, held_out=0.2, batch_size=32)
    results = [
        fit(ensemble(), h, config, key=jax.random.key(1)).report
        for h in (history, history_of(states, actions, spoiled))
    ]
    np.testing.assert_allclose(results[0].train.error, results[1].train.error, rtol=1e-3)
    assert not np.allclose(results[0].held_out.error, results[1].held_out.error, rtol=0.3)


def test_a_warm_start_goes_on_where_the_last_fit_stopped(linear):
    history, before = linear
    warm = FitConfig(steps=1, from_scratch=False, learning_rate=1e-6)
    after = fit(before.ensemble, history, warm, key=jax.random.key(2), moments=before.moments)
    np.testing.assert_allclose(after.report.train.nll, before.report.train.nll, atol=0.1)
    assert int(after.moments.steps) == int(before.moments.steps) + 1
    cold = fit(before.ensemble, history, FitConfig(steps=1), key=jax.random.key(2))
    assert np.mean(cold.report.train.nll) > np.mean(before.report.train.nll) + 1


def test_a_warm_start_survives_a_change_of_statistics():
    """D suddenly ten times wider: the members still know what they knew."""
    history, before = fitted_to(NOISE, n=1000)
    known = [jnp.asarray(x[:200], jnp.float32) for x in linear_gaussian(1000, NOISE)[:2]]
    wider = history.append(*linear_gaussian(1000, NOISE, seed=3, spread=10.0)[:3])
    warm = fit(
        before.ensemble, wider, FitConfig(steps=1, from_scratch=False, learning_rate=1e-7), key=jax.random.key(2)
    )
    assert not np.allclose(warm.ensemble.state.scale, before.ensemble.state.scale, rtol=0.5)
    np.testing.assert_allclose(warm.ensemble.predict(*known).mean, before.ensemble.predict(*known).mean, atol=2e-2)


def test_the_same_key_gives_the_same_ensemble_and_another_key_another():
    history = history_of(*linear_gaussian(300, NOISE)[:3])
    means = [
        fit(ensemble(), history, FitConfig(epochs=1), key=jax.random.key(k))
        .ensemble.predict([[1.0, 1.0]], [[0.0]])
        .mean
        for k in (1, 1, 2)
    ]
    np.testing.assert_array_equal(means[0], means[1])
    assert not np.allclose(means[0], means[2])
    assert not np.allclose(means[0][0], means[0][1], atol=1e-4), "members differ"


def test_a_growing_history_compiles_fit_once():
    history = History.continuous(2, 1, capacity=512).append(*linear_gaussian(100, NOISE)[:3])
    config, small = FitConfig(epochs=2, held_out=0.1, batch_size=64), ensemble(GaussianConfig(members=2, width=8))
    jax.block_until_ready(fit(small, history, config, key=jax.random.key(0)))
    more = [history.append(*linear_gaussian(n, NOISE)[:3]) for n in (50, 300)]
    key = jax.random.key(1)
    with compilations() as compiled:
        for grown in more:
            jax.block_until_ready(fit(small, grown, config, key=key))
    assert compiled == []


@pytest.mark.parametrize("n", [1, 3, 20])
def test_a_handful_of_transitions_is_enough_to_fit(n):
    history = History.continuous(2, 1, capacity=64).append(*linear_gaussian(n, NOISE)[:3])
    report = fit(
        ensemble(GaussianConfig(members=2, width=8)),
        history,
        FitConfig(epochs=3, held_out=0.5, patience=2),
        key=jax.random.key(0),
    ).report
    assert np.isfinite(np.asarray(report.train.nll)).all()
    assert int(report.rows) + int(report.held_out_rows) == n
    assert int(report.rows) >= 1


def test_bootstrapped_members_learn_from_different_data():
    history, shared = fitted_to(0.5, n=60, epochs=200)
    resampled = fit(ensemble(), history, FitConfig(epochs=200, bootstrap=True), key=jax.random.key(1))
    rows = history[jnp.arange(60)]
    spread = [
        np.std(np.asarray(f.ensemble.predict(rows.state, rows.action).mean), axis=0).mean() for f in (shared, resampled)
    ]
    assert spread[1] > 1.2 * spread[0]


def test_members_trained_in_groups_are_the_members_trained_at_once(monkeypatch):
    """Five members, two at a time: the last group is not full."""
    history = History.continuous(2, 1, capacity=128).append(*linear_gaussian(100, NOISE)[:3])
    many = ensemble(GaussianConfig(members=5, width=8))
    at_once = fit(many, history, FitConfig(epochs=3, batch_size=32), key=jax.random.key(0)).ensemble
    monkeypatch.setattr(sys.modules[fit.__module__], "GROUP_BYTES", 2 * many.member_bytes)
    in_groups = fit(many, history, FitConfig(epochs=3, batch_size=32, report_rows=99), key=jax.random.key(0)).ensemble
    for a, b in zip(jax.tree.leaves(at_once.members), jax.tree.leaves(in_groups.members), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def small_deltas():
    """Deltas of a thousandth, as Mountain Car has them, and no noise at all."""
    states, actions, next_states, _ = linear_gaussian(600, noise=0.0)
    return states, actions, states + 1e-3 * (next_states - states)


def test_from_scratch_depends_on_nothing_that_was_before():
    history = history_of(*small_deltas())
    untouched = ensemble()
    elsewhere = fit(ensemble(), history_of(*linear_gaussian(200, 5.0)[:3]), FitConfig(epochs=1), key=jax.random.key(5))
    reports = [
        fit(start, history, FitConfig(epochs=30), key=jax.random.key(1)).report
        for start in (untouched, elsewhere.ensemble)
    ]
    np.testing.assert_allclose(reports[0].train.nll, reports[1].train.nll, rtol=1e-3)


def test_members_start_as_drawn_whatever_the_scale_of_the_data():
    """A fit too short to move: the last layer's weights are still Glorot's, also for a first warm start."""
    history = history_of(*small_deltas())
    for from_scratch in (True, False):
        config = FitConfig(steps=1, learning_rate=1e-9, from_scratch=from_scratch)
        members = fit(ensemble(), history, config, key=jax.random.key(1)).ensemble.members
        last = np.asarray(members.dynamics.layers[-1].weight)
        np.testing.assert_allclose(last.std(), np.sqrt(2 / (48 + 4)), rtol=0.1)
        np.testing.assert_allclose(members.dynamics.layers[-1].bias[:, :2], 0, atol=1e-6)


def test_the_best_epoch_is_kept_and_not_the_last():
    """With patience for all epochs, the same training: no member may end worse than at the last of them."""
    history = history_of(*linear_gaussian(120, 0.5)[:3])
    best, last = (
        np.asarray(
            fit(
                ensemble(),
                history,
                FitConfig(epochs=60, patience=patience, held_out=0.3, batch_size=64, learning_rate=1e-2),
                key=jax.random.key(1),
            ).report.held_out.nll
        )
        for patience in (60, None)
    )
    assert (best <= last + 1e-4).all()
    assert (best < last - 0.05).any()


def test_adams_memory_changes_the_next_warm_step(linear):
    history, before = linear
    warm = FitConfig(steps=1, from_scratch=False)
    with_memory, without = (
        fit(before.ensemble, history, warm, key=jax.random.key(2), moments=moments).ensemble.members
        for moments in (before.moments, None)
    )
    pairs = zip(jax.tree.leaves(with_memory), jax.tree.leaves(without), strict=True)
    assert any(not np.allclose(a, b, atol=1e-5) for a, b in pairs)


def test_a_history_of_another_kind_is_refused():
    with pytest.raises(InputError, match="the history's states are"):
        fit(ensemble(), History.continuous(3, 1).append([0.0] * 3, [0.0], [0.0] * 3), key=jax.random.key(0))
    discrete = CategoricalEnsemble(5, 2, key=jax.random.key(0))
    with pytest.raises(InputError, match=r"the history's states are .*10"):
        fit(discrete, History.discrete(10, 4).append(0, 0, 9), key=jax.random.key(0))


def test_an_empty_history_is_refused():
    with pytest.raises(InputError, match="history is empty"):
        fit(ensemble(), History.continuous(2, 1), key=jax.random.key(0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs is 0, expected at least 1"),
        ({"steps": 0}, "steps is 0"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"held_out": 1.0}, "held_out is 1.0"),
        ({"learning_rate": -1.0}, "learning_rate is -1.0, expected more than 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"clip": 0.0}, "clip is 0.0"),
        ({"weight_decay": -1e-3}, "weight_decay is -0.001"),
        ({"patience": 3}, "early stopping needs"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        FitConfig(**settings)
