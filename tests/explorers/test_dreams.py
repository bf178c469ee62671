"""Dreams that are put to the test: when, which, and what of them is followed."""

import functools

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxplore import Explorer, InputError
from maxplore.explorers import dreams
from maxplore.explorers.dreams import Dream, boldest, dream_mdp, dreamer, records, scheduled
from maxplore.explorers.model_based import ModelAgent
from maxplore.solvers import Gradient, GradientConfig
from tests.solvers.landscape import known
from tests.systems import history_of

QUICK = Gradient(GradientConfig(iterations=200, actors=16, horizon=5, lifetime=60, width=32, discount=0.9))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.4, 0.999, 1.0])
def test_a_share_of_the_stretches_is_for_dreams_evenly_spread(share):
    tested = np.array([scheduled(now, 10, share) for now in range(20_000)]).reshape(-1, 10)
    np.testing.assert_array_equal(tested, np.broadcast_to(tested[:, :1], tested.shape), "a stretch is of one kind")
    for length in (20, 500, 2000):
        assert abs(tested[:length, 0].sum() - share * length) < 1, "at any time as many as the share says"
    compiled = jax.vmap(lambda now: scheduled(now, 10, share))(jnp.arange(20_000))
    np.testing.assert_array_equal(np.asarray(compiled).reshape(-1, 10), tested)


@pytest.mark.parametrize("parts", [2, 3, 5, 10])
@pytest.mark.parametrize("share", [0.1, 0.2, 0.25, 0.4, 0.5])
def test_dreams_are_in_no_fixed_part_of_episodes(share, parts):
    tested = np.array([scheduled(number * 7, 7, share, 7 * parts) for number in range(6000)])
    assert abs(tested.mean() - share) < 0.01
    phases = tested.reshape(-1, parts).mean(axis=0)
    np.testing.assert_allclose(phases, share, atol=0.1 * share)


def test_stretches_are_counted_alike_to_the_end_of_any_run():
    for now in (2**31 - 1, 2**31 - 2):
        assert scheduled(now, 1, 1.0) == bool(scheduled(jnp.int32(now), 1, 1.0)) is True
        assert scheduled(now, 3, 0.4, 12) == bool(scheduled(jnp.int32(now), 3, 0.4, 12))


def test_a_record_is_the_best_mean_of_a_whole_stretch_up_and_down():
    seen = np.array([[0, 0], [2, -4], [6, 0], [8, 1], [100, 100]], float)
    history = history_of(seen, np.zeros((5, 1)), seen)
    found = np.asarray(records(known(np.zeros((2, 2)), np.zeros((2, 1))), history, 2))
    np.testing.assert_allclose(found, [[7.0, 0.5], [-1.0, 2.0]], err_msg="the fifth row is of no whole stretch")


def world():
    """Two numbers: the first is pushed for good, the second leans where it is pushed and comes back."""
    rng = np.random.default_rng(0)
    states, actions = rng.uniform(-3, 3, (400, 2)), rng.uniform(-1, 1, (400, 1))
    drift, push = np.array([[0.0, 0.0], [0.0, -0.5]]), np.array([[0.2], [0.5]])
    following = states + states @ drift.T + actions @ push.T
    return known(drift, push), history_of(states, actions, following)


@functools.cache
def dreaming(wishes):
    """Compiled once for all tests that draw so many."""
    ensemble, history = world()

    def dreamt(record, moves):
        own = eqx.tree_at(lambda own: own.delta.varies, ensemble, moves)
        return tuple(boldest(QUICK, dream_mdp(own, history, None), record, jnp.zeros(2), key=jax.random.key(0)))

    return jax.jit(dreamt)


def dream(record, moves=(True, True)):
    return Dream(*dreaming(dreams.WISHES)(jnp.asarray(record, jnp.float32), jnp.asarray(moves)))


@pytest.mark.parametrize("wanted", [(0, 0), (0, 1), (1, 0), (1, 1)], ids=["+first", "+second", "-first", "-second"])
def test_the_wish_that_promises_most_beyond_its_record_is_dreamt_and_its_policy_pursues_it(wanted):
    sign, place = wanted
    record = np.full((2, 2), 100.0)
    record[sign, place] = 0.0
    found, way = dream(record), 1.0 - 2.0 * sign
    expected = np.zeros(2)
    expected[place] = way
    np.testing.assert_array_equal(found.direction, expected)
    np.testing.assert_allclose(found.policy(jnp.zeros(2)), [way], atol=0.15, err_msg="full force in that direction")
    # The second comes to rest at 1; the first goes to where imagination ends, 3.6 and more, 0.2 at a step.
    np.testing.assert_allclose(found.promise, [3.17, 0.96][place], atol=0.06)


def test_where_all_records_are_alike_the_boldest_dream_is_of_what_grows_for_ever():
    assert abs(float(dream(np.zeros((2, 2))).direction[0])) == 1, "the first number goes to 3, the second to 1"


def test_a_promise_that_is_no_number_is_never_the_boldest():
    record = np.zeros((2, 2))
    record[:, 0] = np.nan
    assert float(dream(record).direction[0]) == 0


def test_what_never_moves_is_not_dreamt_of(monkeypatch):
    """Its promise is 0 and so is its record: no honest dream might promise as much."""
    monkeypatch.setattr(dreams, "WISHES", 2)
    still = dream(np.full((2, 2), 100.0) * [[1.0, 0.0]], moves=(True, False))
    assert abs(float(still.direction[0])) == 1


def test_dreams_are_as_long_as_records_and_end_where_episodes_do():
    assert dreamer(70, None).config.lifetime == 70
    assert dreamer(70, 500).config.lifetime == 70
    assert dreamer(70, 30).config.lifetime == 30


def explorer_of(env, **settings):
    return Explorer(env.observation_space, env.action_space, preset="smoke", seed=0, **settings)


def test_a_stretch_follows_one_dream_and_novelty_is_planned_for_again_after_it(monkeypatch):
    monkeypatch.setattr(dreams, "DREAMER", Gradient(GradientConfig(iterations=3, actors=4, width=8)))
    env = gym.make("maxplore/MountainCar-v0")
    explorer = explorer_of(env, warm_up=5, plan_every=8, dream_steps=10, dreams=0.5, solver="gradient")
    agent, state = explorer._agent, env.reset(seed=0)[0]
    assert isinstance(agent, ModelAgent)
    dreamt, solved = [], []
    for now in range(40):
        action = explorer.ask(state)
        dreamt.append(None if agent._dream is None else id(agent._dream))
        solved.append(agent._solved)
        if now // 10 in (1, 3):
            assert agent._dream is not None
            np.testing.assert_allclose(action, agent._dream.policy(jnp.asarray(state)), atol=1e-6)
        following, _, terminated, truncated, _ = env.step(action)
        explorer.tell(state, action, following, terminated=terminated, truncated=truncated)
        state = following
    assert len(set(dreamt[10:20])) == len(set(dreamt[30:])) == 1, "one dream for each stretch"
    assert dreamt[:10] == [None] * 10
    assert dreamt[10] != dreamt[30]
    # Rounds are at 5, 13, 21, 29, 37; those in a dream plan nothing, and the first step after it does.
    assert sorted(set(solved)) == [0, 5, 20, 21, 29]
    assert [row["step"] for row in explorer.figures] == [5.0, 13.0, 21.0, 29.0, 37.0]
    planned = np.isfinite([row["utility"] for row in explorer.figures])
    np.testing.assert_array_equal(planned, [True, True, True, True, False], "the second at the end of its dream")
    assert agent.promise(state) is None, "the latest round has none"


def test_without_dreams_nothing_is_dreamt():
    env = gym.make("maxplore/MountainCar-v0")
    explorer = explorer_of(env, dream_steps=5)
    explorer.explore(env, 20)
    assert vars(explorer._agent)["_dream"] is None


def test_numbered_actions_cannot_be_dreamt_of():
    with pytest.raises(InputError, match=r"dreams is 0\.5, expected 0: dreams are of real actions, got Discrete ones"):
        explorer_of(gym.make("CartPole-v1"), dreams=0.5)
