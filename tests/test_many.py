"""Many seeds in one compiled program: each is what it is alone, and what the plain loop gives."""

from typing import Any

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import maxplore
from maxplore import Explorer, InputError, explore_many
from maxplore.envs import MountainCar
from maxplore.explorers import dreams
from maxplore.solvers import Gradient, GradientConfig

STEPS, HORIZON = 19, 8
QUICK: dict[str, Any] = {"preset": "smoke", "solver": "icem", "warm_up": 6, "plan_every": 5, "fresh_every": 2}


class Block(eqx.Module):
    """A block on a table, pushed about; friction makes all errors fade. Episodes may end at an edge."""

    edge: float = eqx.field(static=True, default=np.inf)
    horizon: int = eqx.field(static=True, default=HORIZON)

    @property
    def observation_space(self):
        return gym.spaces.Box(-2.0, 2.0, (2,))

    @property
    def action_space(self):
        return gym.spaces.Box(-3.0, 3.0, (1,))

    def reset(self, *, key):
        return jax.random.uniform(key, (2,), minval=-0.1, maxval=0.1)

    def step(self, state, action, *, key):
        place, speed = state
        return jnp.stack([0.9 * place + 0.1 * speed, 0.7 * speed + 0.1 * action[0]]), jnp.zeros(())


class Table(Block):
    """The same, with an edge to fall from."""

    def terminated(self, state, action, next_state):
        return next_state[0] > self.edge


def rows(explorer, name):
    return np.asarray(getattr(explorer.history.transitions, name))[: explorer.steps]


def by_hand(env, seed, **settings):
    """The plain loop: asked and told, in the same episodes."""
    explorer = Explorer(env.observation_space, env.action_space, seed=seed, horizon=env.horizon, **settings)
    key_reset, key_step = jax.random.split(jax.random.fold_in(jax.random.key(seed), 2**32 - 1))
    state, age = env.reset(key=jax.random.fold_in(key_reset, 0)), 0
    for now in range(STEPS):
        action = explorer.ask(np.asarray(state))
        following, _ = env.step(state, jnp.asarray(action), key=jax.random.fold_in(key_step, now))
        cut = age + 1 == env.horizon
        explorer.tell(np.asarray(state), action, np.asarray(following), truncated=cut)
        state = env.reset(key=jax.random.fold_in(key_reset, now + 1)) if cut else following
        age = 0 if cut else age + 1
    return explorer


@pytest.fixture(scope="module")
def many():
    return explore_many(Block(), STEPS, seeds=(3, 4), **QUICK)


def test_each_seed_is_what_the_plain_loop_gives(many):
    alone = by_hand(Block(), 3, **QUICK)
    for name in ("state", "action", "next_state", "truncated"):
        np.testing.assert_allclose(rows(many[0], name), rows(alone, name), atol=1e-4)
    np.testing.assert_array_equal(rows(many[0], "action")[:6], rows(alone, "action")[:6], "warm-up, to the last bit")
    assert [own["step"] for own in many[0].figures] == [6.0, 11.0, 16.0]
    for own, other in zip(many[0].figures, alone.figures, strict=True):
        np.testing.assert_allclose(list(own.values()), list(other.values()), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "method",
    [
        {"solver": "gradient", "dither": 0.5, "rest": 0.3, "fresh_every": 1, "fresh_growth": 2.0},
        {"method": "jdrx", "solver": "sac"},
        {"solver": "gradient", "dreams": 0.5, "dream_steps": 4},
    ],
    ids=["gradient, dithered, at rest, drawn anew less and less", "sac", "dreams"],
)
def test_whatever_learns_the_policy_it_chooses_what_it_chooses_in_the_plain_loop(method, monkeypatch):
    monkeypatch.setattr(dreams, "DREAMER", Gradient(GradientConfig(iterations=3, actors=4, width=8)))
    settings = {**QUICK, **method}
    (one,), alone = explore_many(Block(), STEPS, seeds=(3,), **settings), by_hand(Block(), 3, **settings)
    for name in ("state", "action", "next_state"):
        np.testing.assert_allclose(rows(one, name), rows(alone, name), atol=1e-3)
    assert np.ptp(rows(one, "action")[7:]) > 0


def test_a_seed_is_the_same_in_any_company_and_seeds_differ(many):
    same, other = explore_many(Block(), STEPS, seeds=(4, 9), **QUICK)
    for name in ("state", "action", "next_state"):
        np.testing.assert_array_equal(rows(many[1], name), rows(same, name))
    for one in (many[0], other):
        assert np.abs(rows(one, "action") - rows(same, "action"))[:6].min() > 1e-4, "of warm-up"


def test_what_comes_back_are_explorers_like_any_other(many, tmp_path):
    explorer, here = many[1], np.array([0.1, 0.2], np.float32)
    explorer.save(tmp_path)
    back = maxplore.load(tmp_path)
    np.testing.assert_array_equal(explorer.ask(here), back.ask(here))
    np.testing.assert_array_equal(explorer.utility(here[None], [[0.0]]), back.utility(here[None], [[0.0]]))
    explorer.tell(here, explorer.ask(here), here)
    assert explorer.steps == STEPS + 1


def test_episodes_that_end_early_begin_anew_and_the_end_is_learned():
    """Each seed falls off the table at times of its own."""
    settings: dict[str, Any] = {**QUICK, "fresh_every": 1}
    fell = explore_many(Table(0.0), 12, seeds=3, **settings)
    for own in fell:
        ended = rows(own, "next_state")[:, 0] > 0
        np.testing.assert_array_equal(rows(own, "terminated"), ended)
        over = ended | rows(own, "truncated")
        goes_on = ~over[:-1]
        np.testing.assert_array_equal(rows(own, "state")[1:][goes_on], rows(own, "next_state")[:-1][goes_on])
        assert (np.abs(rows(own, "state")[1:][~goes_on]) <= 0.1).all(), "where episodes begin"
        assert own.model.ensemble.members.termination is not None
    assert len({rows(own, "terminated").tobytes() for own in fell}) > 1


def test_mountain_car_at_random():
    """The functional core is the environment that Gymnasium has: nothing is fitted, so this is quick."""
    one, two = explore_many(MountainCar(), 30, seeds=2, method="random")
    step = jax.jit(jax.vmap(lambda state, push: MountainCar().step(state, push)[0]))
    for own in (one, two):
        np.testing.assert_allclose(step(rows(own, "state"), rows(own, "action")), rows(own, "next_state"), atol=1e-6)
        assert own.observation_space == gym.make("maxplore/MountainCar-v0").observation_space
    assert not np.array_equal(rows(one, "action"), rows(two, "action"))


class Wrong(Block):
    def reset(self, *, key):
        return jnp.zeros(3)

    def step(self, state, action, *, key):
        return state[:2], jnp.zeros(())


class Concrete(Block):
    def step(self, state, action, *, key):
        return jnp.asarray(np.sin(float(state[0])) * np.ones(2)), jnp.zeros(())


class Broken(Block):
    def step(self, state, action, *, key):
        return jnp.full(2, jnp.nan), jnp.zeros(())


@pytest.mark.parametrize(
    ("env", "changed", "said"),
    [
        (Block(), {"seeds": ()}, "seeds has none, expected at least one"),
        (Block(), {"seeds": 0}, "seeds has none, expected at least one"),
        (Block(), {"horizon": 5}, "horizon is given, expected none"),
        (Block(), {"seeds": (0, -1)}, "seed is -1, expected a whole number"),
        (Block(), {"steps": 0}, "steps is 0, expected a whole number of at least 1"),
        (Block(), {"membres": 3}, "there is no setting 'membres'"),
        (Block(), {"devices": 2}, "devices is 2, expected at most 1, the cpu devices found here"),
        (gym.make("maxplore/MountainCar-v0").unwrapped, {}, "env is a MountainCarEnv .*expected pure functions"),
        (3, {}, "env is a int without observation_space, action_space, horizon, reset, step"),
        (Wrong(), {}, r"env's reset gives shape \(3,\), expected \(2,\)"),
        (Concrete(), {}, "env cannot be compiled .*expected pure functions in jax.numpy"),
        (Broken(), {"method": "random"}, "the state after step 0 of seed 1 is not finite"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(env, changed, said):
    asked: dict[str, Any] = {"steps": 4, "seeds": (1,), **QUICK, "solver": "gradient", **changed}
    with pytest.raises(InputError, match=said):
        explore_many(env, **asked)
