"""Environments of other people: each is explored for a few rounds, and what was told is what happened."""

import warnings

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxplore import Explorer

ENVIRONMENTS = ["Acrobot-v1", "LunarLander-v3", "Reacher-v5", "Hopper-v5", "Swimmer-v5"]


def made(name: str) -> gym.Env:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of SWIG's, when Box2D is imported: as an error it ends the process
        return gym.make(name)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_it_is_explored_round_after_round(name):
    env = made(name)
    explorer = Explorer(env.observation_space, env.action_space, preset="smoke", seed=5)
    summary = explorer.explore(env, 40)
    assert summary.steps == 40
    assert [row["step"] for row in explorer.figures] == [10.0, 35.0]
    for row in explorer.figures:
        assert np.isfinite([row[key] for key in ("utility", "nll", "error", "calibration", "coverage")]).all()
    # The same actions from the same seed lead to the same states.
    again, rows = made(name), explorer.history.transitions
    observation, _ = again.reset(seed=5)
    for step in range(40):
        np.testing.assert_allclose(observation, rows.state[step], rtol=1e-5, atol=1e-5)
        action = explorer._actions.outward(rows.action[step])
        observation, _, terminated, truncated, _ = again.step(action)
        np.testing.assert_allclose(observation, rows.next_state[step], rtol=1e-5, atol=1e-5)
        assert bool(rows.terminated[step]) == bool(terminated)
        if terminated or truncated:
            observation, _ = again.reset()
    ends = bool(np.asarray(rows.terminated).any())
    assert (explorer.model.ensemble.members.termination is not None) == ends, "ends are imagined once one was seen"


def test_episodes_that_ended_in_the_data_end_in_imagination():
    """Hopper falls within some 20 random steps; a model that has seen it imagines shorter lives where it lies."""
    env = made("Hopper-v5")
    explorer = Explorer(env.observation_space, env.action_space, preset="smoke", seed=0, epochs=60, warm_up=150)
    explorer.explore(env, 150)  # it is fitted when it is asked for, and nothing is planned
    rows = explorer.history.transitions
    fell = np.asarray(rows.terminated)[:150]
    assert fell.sum() >= 2
    model, seen = explorer.model.ensemble, (rows.state[:150], rows.action[:150], rows.next_state[:150])
    drawn = [
        model.ends(*seen, jnp.full(150, member), jax.random.uniform(jax.random.key(draw), (150,)))
        for member in range(3)
        for draw in range(50)
    ]
    chance = np.mean(drawn, axis=0)
    assert chance[fell].mean() > 2 * chance[~fell].mean()
