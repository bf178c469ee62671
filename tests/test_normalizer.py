"""Statistics against float64, on easy and on nasty data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxplore.normalizer import Normalizer

statistics_of = jax.jit(lambda rows, chosen: Normalizer.of(rows, chosen))


def statistics(rows, chosen=None):
    rows = np.asarray(rows, np.float32)
    chosen = np.ones(len(rows), bool) if chosen is None else chosen
    return statistics_of(jnp.asarray(rows), jnp.asarray(chosen))


@settings(deadline=None, max_examples=50, derandomize=True)
@given(st.integers(0, 10**6), st.floats(-5, 5), st.floats(-12, 30))
def test_mean_and_scale_match_float64_whatever_the_offset_and_the_scale(seed, offset, log_scale):
    scale = 10.0**log_scale
    rows = (scale * (10.0**offset + np.random.default_rng(seed).normal(size=(64, 3)))).astype(np.float32)
    normalizer = statistics(rows)
    exact = rows.astype(np.float64)
    np.testing.assert_allclose(normalizer.mean, exact.mean(0), rtol=1e-6, atol=scale * 1e-5)
    np.testing.assert_allclose(normalizer.scale, exact.std(0), rtol=1e-3)


@pytest.mark.parametrize("value", [0.0, 0.1, -3.3, 1e-20, 1e6 + 0.0625, 3e37])
def test_a_constant_dimension_gets_scale_one(value):
    rows = np.stack([np.full(1000, value), np.linspace(-1, 1, 1000)], axis=1)
    normalizer = statistics(rows)
    assert float(normalizer.scale[0]) == 1.0
    np.testing.assert_array_equal(normalizer.varies, [False, True])
    np.testing.assert_array_equal(normalizer.normalize(jnp.asarray(rows[5], jnp.float32))[0], 0.0)
    # and it comes back as what it always was, whatever a network says of it
    np.testing.assert_array_equal(normalizer.denormalize(jnp.array([7.0, 0.0]))[0], np.float32(value))


def test_rounding_noise_is_no_variation():
    value = np.float32(1e6)
    rows = np.where(np.arange(100) % 2, value, np.nextafter(value, np.float32(2e6)))[:, None]
    assert float(statistics(rows).scale[0]) == 1.0


def test_only_chosen_rows_count():
    rows = np.array([[1.0], [3.0], [1e9], [1e9]])
    normalizer = statistics(rows, np.array([True, True, False, False]))
    np.testing.assert_allclose([normalizer.mean[0], normalizer.scale[0]], [2.0, 1.0])


def test_normalize_and_denormalize_are_inverse():
    rows = np.random.default_rng(0).normal(3, 7, size=(50, 4))
    normalizer = statistics(rows)
    row = jnp.asarray(rows[0], jnp.float32)
    np.testing.assert_allclose(normalizer.denormalize(normalizer.normalize(row)), row, rtol=1e-5)
    standard = jax.vmap(normalizer.normalize)(jnp.asarray(rows, jnp.float32))
    np.testing.assert_allclose(standard.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(standard.std(0), 1, atol=1e-5)


def test_nothing_chosen_is_harmless():
    normalizer = statistics(np.zeros((4, 2)), np.zeros(4, bool))
    assert np.isfinite(np.asarray(normalizer.mean)).all()
    np.testing.assert_array_equal(normalizer.scale, 1.0)
