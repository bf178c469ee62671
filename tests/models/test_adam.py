"""Adam against Optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from maxplore.models.adam import Moments, adam


@pytest.mark.parametrize("weight_decay", [0.0, 1e-2])
def test_thirty_steps_equal_optax(weight_decay):
    parameters = {"a": jnp.linspace(-1.0, 1.0, 7), "b": jnp.ones((2, 3))}
    chain = optax.chain(optax.clip(2.0), optax.add_decayed_weights(weight_decay), optax.adam(1e-2))
    theirs, their_state = parameters, chain.init(parameters)
    ours, our_state = parameters, Moments.zero(parameters)
    step = jax.jit(lambda p, g, m: adam(p, g, m, learning_rate=1e-2, clip=2.0, weight_decay=weight_decay))
    for k in range(30):
        gradient = jax.tree.map(lambda x, k=k: jnp.asarray(jnp.sin(k + 5 * x) * 4), parameters)  # some are clipped
        updates, their_state = chain.update(gradient, their_state, theirs)
        theirs = optax.apply_updates(theirs, updates)
        ours, our_state = step(ours, gradient, our_state)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
    assert int(our_state.steps) == 30


def test_a_gradient_of_zero_moves_nothing():
    parameters = {"a": jnp.ones(3)}
    moved, _ = adam(parameters, {"a": jnp.zeros(3)}, Moments.zero(parameters))
    np.testing.assert_array_equal(moved["a"], parameters["a"])
