"""Named tasks against rewards worked out by hand, and against the environments' own."""

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
import pytest

from maxplore import InputError, tasks
from maxplore.entry import Entry
from maxplore.envs.maze import CELL, CELLS


@pytest.mark.parametrize(("name", "paid"), [("running", 3.0), ("flipping", 5.0)])
def test_half_cheetahs_tasks_pay_a_velocity_minus_the_effort(name, paid):
    following = jnp.zeros(19).at[0].set(3.0).at[12].set(5.0)
    reward = tasks.named(name, Entry((19,)), Entry((6,)))(jnp.ones(19), jnp.full(6, 0.5), following)
    np.testing.assert_allclose(reward, paid - 0.1 * 6 * 0.25, rtol=1e-6)


@pytest.mark.parametrize(("position", "paid"), [(0.449, 0.0), (0.45, 100.0), (0.6, 100.0)])
def test_the_flag_pays_at_its_place_and_beyond(position, paid):
    assert tasks.capture_flag(jnp.zeros(2), jnp.zeros(1), jnp.array([position, 0.01])) == paid


@pytest.mark.parametrize("length", [2, 50])
def test_the_chains_reward_is_its_environments(length):
    env = gym.make("maxplore/Chain-v0", length=length, seed=2)
    reward = tasks.chain(length)
    numbers, (state, _) = np.random.default_rng(0), env.reset(seed=0)
    for _ in range(200):
        action = int(numbers.integers(2))
        following, paid, _, over, _ = env.step(action)
        np.testing.assert_allclose(
            reward(jnp.int32(state), jnp.int32(action), jnp.int32(following)), float(paid), rtol=1e-6
        )
        state = env.reset()[0] if over else following


def test_the_way_along_the_maze():
    """2 m from cell to cell; beside the middle of a corridor counts as the middle."""
    middles = [tasks.along(CELL * jnp.asarray(cell, jnp.float32)) for cell in CELLS]
    np.testing.assert_allclose(middles, CELL * np.arange(len(CELLS)), atol=1e-5)
    np.testing.assert_allclose(tasks.along(jnp.array([0.7, 2.5])), 2.5, atol=1e-5)
    np.testing.assert_allclose(tasks.along(jnp.array([4.3, 1.0])), 11.0, atol=1e-5)
    np.testing.assert_allclose(tasks.along(jnp.array([0.0, -0.9])), 0.0, atol=1e-5)


def test_the_far_end_pays_progress_and_being_there():
    at = lambda x, y: jnp.zeros(31).at[2].set(x).at[3].set(y)  # noqa: E731
    np.testing.assert_allclose(tasks.far_end(at(0, 1), jnp.zeros(8), at(0, 1.5)), 0.5, atol=1e-5)
    np.testing.assert_allclose(tasks.far_end(at(4, 0.5), jnp.zeros(8), at(4, 0.5)), 1.0, atol=1e-5)
    np.testing.assert_allclose(tasks.far_end(at(4, 2), jnp.zeros(8), at(4, 2.5)), -0.5, atol=1e-5)


def test_every_task_names_an_environment_and_says_what_it_is():
    for task in tasks.TASKS.values():
        assert gym.spec(task.env)
        assert task.about.endswith(".")
    with pytest.raises(InputError, match="'walking', expected a function, or one of running, flipping"):
        tasks.named("walking", Entry((19,)), Entry((6,)))
    with pytest.raises(InputError, match="expected the spaces of maxplore/HalfCheetah-v0, got 2 and 1 numbers"):
        tasks.named("running", Entry((2,)), Entry((1,)))
    with pytest.raises(InputError, match="expected the spaces of maxplore/Chain-v0, got 19 and 6 numbers"):
        tasks.named("chain", Entry((19,)), Entry((6,)))
