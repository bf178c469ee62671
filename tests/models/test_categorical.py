"""Categorical members against tables of known probabilities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxplore import CategoricalEnsemble, FitConfig, History, InputError, MemberConfig, fit

TABLE = np.array([[[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]], [[0.1, 0.2, 0.7], [1.0, 0.0, 0.0]], [[0.0, 0.0, 1.0]] * 2])
SMALL = MemberConfig(members=3, depth=1, width=32, activation="tanh")


def walk(n, seed=0):
    numbers = np.random.default_rng(seed)
    states, actions = numbers.integers(3, size=n), numbers.integers(2, size=n)
    next_states = np.array([numbers.choice(3, p=TABLE[s, a]) for s, a in zip(states, actions, strict=True)])
    return states, actions, next_states


def test_a_stochastic_table_is_learned_and_sampled():
    states, actions, next_states = walk(2000)
    ends = next_states == 2
    history = History.discrete(3, 2, capacity=2048).append(states, actions, next_states, ends)
    config = MemberConfig(members=3, depth=1, width=32, activation="tanh", termination=True)
    ensemble = CategoricalEnsemble(3, 2, config, key=jax.random.key(0))
    fitted = fit(ensemble, history, FitConfig(epochs=80, learning_rate=5e-3), key=jax.random.key(1))
    pairs = np.array([(s, a) for s in range(3) for a in range(2)])
    probabilities = fitted.ensemble.predict(jnp.asarray(pairs[:, 0]), jnp.asarray(pairs[:, 1]))
    assert probabilities.shape == (3, 6, 3)
    np.testing.assert_allclose(probabilities, np.broadcast_to(TABLE.reshape(6, 3), (3, 6, 3)), atol=0.06)

    rows = jnp.full(3000, 1), jnp.full(3000, 0)
    drawn, ended = jax.jit(lambda key: fitted.ensemble.sample(*rows, key=key))(jax.random.key(2))
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 3000, TABLE[1, 0], atol=0.07)
    assert np.mean(np.asarray(ended) == (np.asarray(drawn) == 2)) > 0.97

    entropy = -np.sum(TABLE * np.log(np.where(TABLE > 0, TABLE, 1)), axis=-1).mean()
    np.testing.assert_allclose(fitted.report.train.nll, entropy, atol=0.06)


def test_predictions_are_distributions():
    probabilities = CategoricalEnsemble(3, 2, SMALL, key=jax.random.key(0)).predict(
        jnp.array([0, 2]), jnp.array([1, 1])
    )
    np.testing.assert_allclose(probabilities.sum(-1), 1, rtol=1e-6)


def test_members_differ():
    probabilities = CategoricalEnsemble(3, 2, SMALL, key=jax.random.key(0)).predict(jnp.array([0]), jnp.array([1]))
    assert not np.allclose(probabilities[0], probabilities[1], atol=1e-3)


def test_predict_names_the_argument_of_the_wrong_shape():
    with pytest.raises(InputError, match=r"actions has shape \(2,\), expected \(3,\)"):
        CategoricalEnsemble(3, 2, SMALL, key=jax.random.key(0)).predict(jnp.array([0, 1, 2]), jnp.array([0, 1]))


def test_predict_refuses_a_state_that_does_not_exist():
    with pytest.raises(InputError, match=r"states\[1\] is 3, expected a whole number from 0 to 2"):
        CategoricalEnsemble(3, 2, SMALL, key=jax.random.key(0)).predict([0, 3], [0, 1])


def test_the_table_is_what_predict_says_of_every_pair():
    model = CategoricalEnsemble(5, 3, MemberConfig(members=2, depth=2, width=8), key=jax.random.key(0))
    states, actions = np.divmod(np.arange(15), 3)
    said = np.asarray(model.predict(states, actions)).reshape(2, 5, 3, 5)
    np.testing.assert_allclose(jax.nn.softmax(model.table()), said, rtol=1e-5)


def test_a_larger_first_layer_makes_untrained_members_differ_more_between_the_actions_of_a_state():
    def interaction(gain):
        """How far members are from adding up what state and action say on their own."""
        config = MemberConfig(members=8, depth=2, width=64, activation="tanh", first_gain=gain)
        logits = CategoricalEnsemble(20, 2, config, key=jax.random.key(0)).table()
        both = (
            logits - logits.mean(1, keepdims=True) - logits.mean(2, keepdims=True) + logits.mean((1, 2), keepdims=True)
        )
        return float(jnp.std(both) / jnp.std(logits))

    assert interaction(6.0) > 3 * interaction(1.0)


@pytest.mark.parametrize("gain", [0.0, -1.0, float("inf"), float("nan")])
def test_an_impossible_gain_is_refused(gain):
    with pytest.raises(InputError, match="first_gain"):
        MemberConfig(first_gain=gain)
