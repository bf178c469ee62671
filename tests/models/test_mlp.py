"""The member's network, against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxplore import InputError
from maxplore.models.mlp import ACTIVATIONS, MLP, Activation


def network(inputs=5, outputs=3, depth=2, width=7, activation: str | Activation = "tanh"):
    return MLP(inputs, outputs, depth=depth, width=width, activation=activation, key=jax.random.key(0))


@pytest.mark.parametrize("depth", [0, 1, 4])
def test_it_is_affine_maps_with_an_activation_between_them(depth):
    net, x = network(depth=depth), np.linspace(-1, 1, 5).astype(np.float32)
    by_hand = x
    for layer in net.layers[:-1]:
        by_hand = np.tanh(by_hand @ np.asarray(layer.weight) + np.asarray(layer.bias))
    by_hand = by_hand @ np.asarray(net.layers[-1].weight) + np.asarray(net.layers[-1].bias)
    assert len(net.layers) == depth + 1
    np.testing.assert_allclose(net(jnp.asarray(x)), by_hand, rtol=1e-5, atol=1e-6)


def test_initialisation_is_glorot_uniform_then_normal():
    net = network(inputs=100, width=200, outputs=300, depth=1)
    hidden, last = (np.asarray(layer.weight) for layer in net.layers)
    np.testing.assert_allclose(hidden.std(), np.sqrt(2 / 300), rtol=0.02)
    np.testing.assert_allclose(np.abs(hidden).max(), np.sqrt(6 / 300), rtol=0.02)
    np.testing.assert_allclose(last.std(), np.sqrt(2 / 500), rtol=0.02)
    assert np.abs(last).max() > 3 * last.std(), "normal, so with tails"
    np.testing.assert_allclose([hidden.mean(), last.mean()], 0, atol=1e-3)
    assert all((np.asarray(layer.bias) == 0).all() for layer in net.layers)


def test_any_function_is_an_activation():
    x = jnp.linspace(-1.0, 1.0, 5)
    np.testing.assert_array_equal(network(activation=jnp.tanh)(x), network(activation="tanh")(x))
    assert not np.allclose(network(activation=jnp.sin)(x), network(activation="tanh")(x))
    assert all(np.isfinite(np.asarray(network(activation=name)(x))).all() for name in ACTIVATIONS)


def test_an_unknown_activation_is_refused():
    with pytest.raises(InputError, match="activation is 'swisch', expected one of swish, tanh"):
        network(activation="swisch")
