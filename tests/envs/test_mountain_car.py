"""Mountain Car against numbers worked out by hand, and against Gymnasium's own."""

from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from maxplore import InputError
from maxplore.envs import MountainCar


def following(position, velocity, push):
    return np.asarray(MountainCar().step(jnp.array([position, velocity]), jnp.array([push]))[0])


def walk(seed, **kwargs):
    env: Any = gym.make("maxplore/MountainCar-v0", **kwargs)
    pushes = np.random.default_rng(0).uniform(-1, 1, (20, 1)).astype(np.float32)
    return np.array([env.reset(seed=seed)[0], *(env.step(push)[0] for push in pushes)])


def test_it_passes_gymnasiums_own_check_pictures_included():
    check_env(gym.make("maxplore/MountainCar-v0").unwrapped)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # v + 0.0015 a - 0.0025 cos(3 x), then x + v, worked out by hand
        ((-0.5, 0.0, 1.0), (-0.49867684, 0.00132316)),
        ((0.0, 0.01, -0.5), (0.00675, 0.00675)),
        # a push of 3 is a push of 1
        ((-0.5, 0.0, 3.0), (-0.49867684, 0.00132316)),
        # neither way faster than 0.07; cos(3 x) is -0.99
        ((-1.0, 0.07, 1.0), (-0.93, 0.07)),
        # the left wall stops the car, the right end only holds it
        ((-1.19, -0.07, 0.0), (-1.2, 0.0)),
        ((0.59, 0.07, 1.0), (0.6, 0.07)),
    ],
)
def test_one_step_by_hand(before, after):
    np.testing.assert_allclose(following(*before), after, atol=1e-7)


def test_it_moves_as_gymnasiums_does():
    theirs: Any = gym.make("MountainCarContinuous-v0").unwrapped
    theirs.reset(seed=0)
    state, theirs.state = np.array([-0.5, 0.0], np.float32), np.array([-0.5, 0.0], np.float32)
    step = jax.jit(MountainCar().step)
    for push in np.random.default_rng(1).uniform(-1, 1, (200, 1)).astype(np.float32):
        state = np.asarray(step(state, push)[0])
        np.testing.assert_allclose(state, theirs.step(push)[0], atol=2e-5)


def test_shell_and_core_take_the_same_steps():
    pushes = np.random.default_rng(2).uniform(-1, 1, (100, 1)).astype(np.float32)
    env: Any = gym.make("maxplore/MountainCar-v0")
    start, _ = env.reset(seed=3)
    shell = np.array([env.step(push)[0] for push in pushes])

    def step(state, push):
        state, _ = MountainCar().step(state, push)
        return state, state

    core = jax.lax.scan(step, jnp.asarray(start), jnp.asarray(pushes))[1]
    np.testing.assert_allclose(shell, core, atol=1e-5)


def test_an_episode_lasts_500_steps_the_flag_reached_or_not():
    env: Any = gym.make("maxplore/MountainCar-v0")
    state, _ = env.reset(seed=0)
    outcomes = []
    for _ in range(500):
        # pushing the way the car already rolls swings it up the hill
        state, *outcome, _ = env.step(np.sign(state[1:] + 1e-9))
        outcomes.append((float(state[0]), *outcome))
    assert max(position for position, *_ in outcomes) >= 0.45
    assert [outcome[1:] for outcome in outcomes] == [(0.0, False, False)] * 499 + [(0.0, False, True)]
    assert env.spec.max_episode_steps == MountainCar().horizon == 500


def test_starts_are_at_rest_in_the_valley_and_seeds_decide_them():
    starts = np.asarray(jax.vmap(lambda key: MountainCar().reset(key=key))(jax.random.split(jax.random.key(0), 500)))
    assert np.all(starts[:, 1] == 0)
    np.testing.assert_allclose([starts[:, 0].min(), starts[:, 0].max()], [-0.6, -0.4], atol=0.005)
    np.testing.assert_array_equal(walk(5), walk(5))
    assert not np.any(walk(5)[:, 0] == walk(6)[:, 0])


def test_noise_is_in_what_is_seen_and_not_in_the_car():
    noise = np.concatenate([walk(seed, noise=0.02) - walk(seed) for seed in range(20)])
    np.testing.assert_allclose(noise.std(axis=0), 0.02, rtol=0.1)
    assert gym.make("maxplore/MountainCar-v0", noise=0.02).reset(seed=0)[0].dtype == np.float32


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.array([np.nan], np.float32), r"action\[0\] is nan, expected a finite number"),
        (np.zeros(2, np.float32), r"action has shape \(2,\), expected \(1,\)"),
        (np.array(["left"]), "action has dtype <U4, expected numbers"),
    ],
)
def test_actions_that_are_none_are_refused(action, message):
    env: Any = gym.make("maxplore/MountainCar-v0").unwrapped
    env.reset(seed=0)
    with pytest.raises(InputError, match=message):
        env.step(action)


def test_the_picture_shows_the_car_where_it_is():
    env: Any = gym.make("maxplore/MountainCar-v0", render_mode="rgb_array").unwrapped
    state, _ = env.reset(seed=0)
    picture = env.render()
    assert picture.shape == (400, 600, 3)
    blue = np.nonzero((picture == (40, 90, 170)).all(axis=-1))[1]
    assert blue.mean() / 599 * 1.8 - 1.2 == pytest.approx(state[0], abs=0.01)
    assert gym.make("maxplore/MountainCar-v0").unwrapped.render() is None
