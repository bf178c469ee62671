"""The Explorer on real states: Algorithm 1, in seconds (preset smoke)."""

from itertools import takewhile
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from maxplore import Explorer, InputError
from maxplore.entry import Entry
from maxplore.explorers.model_based import ModelAgent, ModelBasedConfig
from maxplore.explorers.steps import STRETCH, choice_keys, follow
from maxplore.methods import METHODS, PRESETS, model_based
from maxplore.solvers import Gradient, Icem, IcemConfig, Policy, Sac
from maxplore.utilities import JensenRenyi

CHEETAH = (Entry((19,)), Entry((6,)))
PLANS = Icem(IcemConfig(horizon=6, rounds=1, plans=8, elites=4, kept=2, followed=4))


def explorer_of(env: gym.Env[Any, Any], **settings: Any) -> Explorer:
    chosen: dict[str, Any] = {"preset": "smoke"} | settings
    return Explorer(env.observation_space, env.action_space, **chosen)


@pytest.fixture(scope="module")
def explored():
    env = gym.make("maxplore/MountainCar-v0")
    explorer = explorer_of(env, seed=3)
    return explorer, explorer.explore(env, 40)


def test_asked_and_told_it_does_what_it_does_in_explore(explored):
    explorer, summary = explored
    env = gym.make("maxplore/MountainCar-v0")
    other = explorer_of(env, seed=3)
    observation, _ = env.reset(seed=3)
    for _ in range(40):
        action = other.ask(observation)
        np.testing.assert_array_equal(action, other.ask(observation), "asking again gives the same")
        following, reward, terminated, truncated, _ = env.step(action)
        other.tell(observation, action, following, terminated=terminated, truncated=truncated, reward=float(reward))
        observation = following
    assert summary.steps == other.steps == explorer.steps == 40
    for own, told in zip(
        (explorer.history.transitions.action, explorer.history.transitions.next_state),
        (other.history.transitions.action, other.history.transitions.next_state),
        strict=True,
    ):
        np.testing.assert_array_equal(own, told)


def test_it_warms_up_then_fits_and_plans_every_so_many_steps(explored):
    explorer, _ = explored
    assert [row["step"] for row in explorer.figures] == [10.0, 35.0]
    for row in explorer.figures:
        assert np.isfinite([row[name] for name in ("utility", "nll", "error", "coverage", "clipped")]).all()
        assert 0 <= row["calibration"] <= 1
        assert row["nonfinite"] == 0
    actions = np.asarray(explorer.history.transitions.action)[:40]
    assert (np.abs(actions) <= 1).all()


def test_utility_and_model_are_there_to_be_asked(explored):
    explorer, _ = explored
    states, actions = np.zeros((7, 2)), np.zeros((7, 1))
    utility = explorer.utility(states, actions)
    assert utility.shape == (7,)
    assert np.isfinite(utility).all()
    assert explorer.model.predict(states, actions)[0].shape == (3, 7, 2)
    with pytest.raises(InputError, match=r"actions has shape \(6, 1\), expected \(7, 1\)"):
        explorer.utility(states, actions[:6])
    assert explorer.coverage > 1


def test_before_the_warm_up_is_over_there_is_no_model():
    explorer = explorer_of(gym.make("maxplore/MountainCar-v0"))
    with pytest.raises(InputError, match="there is no model yet: it is fitted after 10 steps"):
        _ = explorer.model


def test_numbered_actions_and_early_ends(explored):
    """CartPole: plans by trajectory optimisation, and learns where episodes end once one has."""
    env = gym.make("CartPole-v1")
    explorer = explorer_of(env, plan_every=10)
    explorer.explore(env, 45)
    assert isinstance(explorer._agent, ModelAgent)
    assert np.asarray(explorer.history.transitions.terminated).any()
    assert explorer._agent.ensemble.members.termination is not None
    assert set(np.unique(explorer.history.transitions.action[:45])) <= {0, 1}


def test_a_reward_is_in_the_environments_own_units_and_moves_the_utility():
    """Pendulum's torque is within +-2: a reward that is the torque itself adds twice the inner action."""
    env = gym.make("Pendulum-v1")
    plain, paid = (
        explorer_of(env, warm_up=20, reward=lambda s, a, s2: a[0], reward_weight=weight) for weight in (0.0, 1.0)
    )
    for explorer in (plain, paid):
        explorer.explore(env, 20)
    states, torques = np.zeros((5, 3)), np.linspace(-2, 2, 5)[:, None]
    # Before the first plan both have seen and learned the same.
    np.testing.assert_allclose(
        paid.utility(states, torques) - plain.utility(states, torques), torques[:, 0], rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_config_in_every_preset(method, preset):
    config = model_based(method, preset, {"members": 4}, *CHEETAH)
    assert config.model.members == 4
    assert config.utility == METHODS[method].utility


def test_the_preset_for_tasks_is_the_recipe_that_was_measured():
    """docs/exploitation.md has the settings as they were given to `fast`; in few dimensions, for numbered actions and
    where nothing is looked for, `fast` it is."""
    recipe = {"fresh_every": 20, "epochs": 5, "cooling": 1.0, "dither": 0.1, "dreams": 0.4}
    assert model_based("max", "tasks", {}, *CHEETAH) == model_based("max", "fast", recipe, *CHEETAH)
    assert model_based("max", "tasks", {"dreams": 0.0}, *CHEETAH).dreams == 0
    few, numbered = (Entry((2,)), Entry((1,))), (CHEETAH[0], Entry((), 3))
    for method, spaces in (("max", few), ("max", numbered), ("random", CHEETAH)):
        assert model_based(method, "tasks", {}, *spaces) == model_based(method, "fast", {}, *spaces)


def test_the_paper_preset_is_the_appendix():
    config = model_based("max", "paper", {}, *CHEETAH)
    assert (config.model.members, config.model.depth, config.model.width) == (32, 4, 512)
    assert (config.warm_up, config.plan_every, config.fresh_every, config.fit.epochs) == (256, 25, 1, 50)
    assert config.fit.held_out == 0
    # What the authors' code has, where the appendix is silent.
    fitted = config.fit
    assert (fitted.batch_size, fitted.learning_rate, fitted.clip, fitted.weight_decay) == (256, 1e-3, 5.0, 0.0)
    assert (fitted.steps, fitted.most_steps, fitted.bootstrap, fitted.patience) == (None, None, False, None)
    assert (config.model.log_variance, config.model.activation, config.margin) == ((-5.0, -1.0), "swish", np.inf)
    assert config.solve_at_reset
    assert config.utility == JensenRenyi(0.1)
    assert isinstance(config.solver, Sac)
    sac = config.solver.config
    assert (sac.history_updates, sac.episodes, sac.steps, sac.actors, sac.random_episodes) == (100, 50, 50, 128, 3)
    assert (sac.updates, sac.batch_size, sac.depth, sac.width, sac.activation) == (50, 4096, 2, 256, "leaky_relu")
    assert (sac.learning_rate, sac.clip, sac.discount, sac.tau, sac.penalty) == (1e-3, 5.0, 0.99, 0.005, 1e-3)
    assert (sac.log_std, sac.keep_history, sac.warm_start) == ((-20.0, 2.0), False, False)
    assert not sac.automatic
    assert not sac.twin_targets


@pytest.mark.parametrize(
    ("method", "active", "temperature"),
    [("max", True, 0.02), ("tvax", True, 0.2), ("jdrx", False, 0.02), ("perx", False, 0.2)],
)
def test_methods_of_the_paper_differ_in_what_they_look_for_and_how(method, active, temperature):
    solver = model_based(method, "paper", {}, *CHEETAH).solver
    assert isinstance(solver, Sac)
    assert (solver.config.active, solver.config.temperature) == (active, temperature)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"solver": "sacc"}, "solver is 'sacc', expected one of sac, gradient, icem"),
        ({"solver_horizon": 0}, "horizon is 0, expected at least 1"),
        ({"from_scratch": False}, "from_scratch is False, expected True: .* fresh_every"),
        ({"method": "maax"}, "method is 'maax', expected one of max, tvax"),
        ({"preset": "quick"}, "preset is 'quick', expected one of fast, tasks, paper, smoke"),
        ({"memmbers": 3}, "there is no setting 'memmbers' here, expected one of: members"),
        ({"warm_up": 0}, "warm_up is 0, expected at least 1"),
        ({"dither": 1.5}, "dither is 1.5, expected a share from 0 to 1"),
        ({"dreams": 2.0}, "dreams is 2.0, expected a share from 0 to 1"),
        ({"dream_steps": 0}, "dream_steps is 0, expected at least 1"),
        ({"fresh_growth": -0.1}, "fresh_growth is -0.1, expected 0 or more"),
        ({"rest": -0.5}, "rest is -0.5, expected a share from 0 to 1"),
        (
            {"method": "random", "reward": lambda s, a, s2: s[0], "reward_weight": 1.0},
            "random actions look for nothing",
        ),
        ({"reward": lambda s, a, s2: s[0], "reward_weight": np.inf}, "reward_weight is inf"),
    ],
)
def test_what_cannot_be_is_refused_by_name(settings, message):
    with pytest.raises(InputError, match=message):
        explorer_of(gym.make("maxplore/MountainCar-v0"), **settings)


class Firm(Policy):
    """Full force, or the last of the numbered actions, whatever the state."""

    action: Array

    def __call__(self, state, *, key=None):
        return self.action


@pytest.mark.parametrize("dither", [0.0, 0.25, 1.0])
def test_dither_draws_this_share_of_the_numbers_of_an_action_each_by_itself(dither):
    keys = jax.vmap(lambda now: choice_keys(jax.random.key(0), now))(jnp.arange(4000))
    real, numbered = Entry((3,)), Entry((), count=4)
    moved = np.asarray(jax.vmap(lambda key: follow(Firm(jnp.ones(3)), jnp.zeros(2), real, dither, 0.0, key))(keys))
    drawn = moved != 1
    np.testing.assert_allclose(drawn.mean(axis=0), dither, atol=0.03)
    np.testing.assert_allclose((drawn[:, 0] & drawn[:, 1]).mean(), dither**2, atol=0.03)
    if dither:
        np.testing.assert_allclose(np.quantile(moved[drawn], [0.1, 0.5, 0.9]), [-0.8, 0.0, 0.8], atol=0.1)
    chosen = jax.vmap(lambda key: follow(Firm(jnp.int32(3)), jnp.zeros(2), numbered, dither, 0.0, key))(keys)
    expected = np.array([dither / 4, dither / 4, dither / 4, 1 - 0.75 * dither])
    np.testing.assert_allclose(np.bincount(chosen, minlength=4) / 4000, expected, atol=0.03)


@pytest.mark.parametrize("rest", [0.0, 0.3, 1.0])
def test_at_rest_one_action_is_held_for_a_stretch(rest):
    keys = jax.vmap(lambda now: choice_keys(jax.random.key(0), now))(jnp.arange(800 * STRETCH))
    entry = Entry((2,))
    moved = np.asarray(jax.vmap(lambda key: follow(Firm(jnp.ones(2)), jnp.zeros(2), entry, 0.0, rest, key))(keys))
    stretches = moved.reshape(800, STRETCH, 2)
    np.testing.assert_array_equal(stretches, np.broadcast_to(stretches[:, :1], stretches.shape))
    held = stretches[:, 0][stretches[:, 0, 0] != 1]
    np.testing.assert_allclose(len(held) / 800, rest, atol=0.05)
    assert len(np.unique(held, axis=0)) == len(held)
    if rest:
        np.testing.assert_allclose(np.quantile(held, [0.1, 0.5, 0.9]), [-0.8, 0.0, 0.8], atol=0.12)


@pytest.mark.parametrize("method", ["jdrx", "perx", "tvax"])
def test_methods_that_learn_a_policy_by_sac_need_real_actions(method):
    with pytest.raises(InputError, match=f"method is '{method}', which needs real actions, got Discrete ones: use max"):
        explorer_of(gym.make("CartPole-v1"), method=method)


def test_fast_plans_where_there_are_few_dimensions_and_climbs_where_there_are_many():
    car = (Entry((2,)), Entry((1,)))
    assert isinstance(model_based("max", "fast", {}, *car).solver, Icem)
    assert isinstance(model_based("max", "fast", {}, *CHEETAH).solver, Gradient)
    assert isinstance(model_based("max", "fast", {}, Entry((8,)), Entry((), 4)).solver, Icem)
    assert isinstance(model_based("max", "paper", {}, *car).solver, Sac)
    for method in ("tvax", "jdrx"):
        assert isinstance(model_based(method, "fast", {}, *car).solver, Sac)


def test_a_solver_by_name_takes_its_own_settings():
    config = model_based("max", "fast", {"solver": "icem", "solver_horizon": 7}, *CHEETAH)
    assert config.solver == Icem(IcemConfig(horizon=7, rounds=3, plans=48, held=4, spread=2.0))


def test_a_plan_is_followed_for_as_long_as_it_is_good_and_no_longer_than_the_episode(monkeypatch):
    solved: list[int] = []
    original = Icem.solve

    def solve(self, *inputs, **named):
        solved.append(explorer.steps)
        return original(self, *inputs, **named)

    monkeypatch.setattr(Icem, "solve", solve)
    env = gym.make("maxplore/MountainCar-v0")
    explorer = explorer_of(env, solver=PLANS)
    observation, _ = env.reset(seed=0)
    for step in range(30):
        action = explorer.ask(observation)
        following, *_ = env.step(action)
        explorer.tell(observation, action, following, truncated=step == 19)
        observation = env.reset()[0] if step == 19 else following
    assert solved == [10, 14, 18, 20, 24, 28], "warm-up until 10, a new episode at 20"


@pytest.mark.parametrize("method", ["tvax", "jdrx", "opax"])
def test_every_kind_of_method_explores(method):
    env = gym.make("maxplore/MountainCar-v0")
    explorer = explorer_of(env, method=method)
    explorer.explore(env, 36)
    assert [row["step"] for row in explorer.figures] == [10.0, 35.0]
    assert all(np.isfinite(row["utility"]) == (method != "jdrx") for row in explorer.figures), (
        "only plans promise something"
    )


def test_a_solver_by_name_is_that_of_the_method_and_the_preset():
    jdrx = model_based("jdrx", "fast", {"solver": "sac"}, *CHEETAH)
    assert jdrx == model_based("jdrx", "fast", {}, *CHEETAH)
    perx = model_based("perx", "smoke", {"solver": "sac"}, *CHEETAH).solver
    assert isinstance(perx, Sac)
    assert (perx.config.active, perx.config.temperature, perx.config.batch_size) == (False, 0.2, 16)
    for method in ("jdrx", "perx", "tvax"):
        for solver in ("gradient", "icem"):
            with pytest.raises(
                InputError, match=f"solver is '{solver}', expected sac: {method} is learned by no other"
            ):
                model_based(method, "fast", {"solver": solver}, *CHEETAH)


def test_costs_do_not_end_exploration():
    """A reward may be negative throughout, and exploration goes on for as long as it was told to."""
    env = gym.wrappers.TimeLimit(gym.make("maxplore/MountainCar-v0").unwrapped, 15)
    explorer = explorer_of(env, reward=lambda s, a, s2: -10.0, reward_weight=1.0)
    assert explorer.explore(env, 50).steps == 50
    with pytest.raises(InputError, match="until_utility is given, expected none: with a reward"):
        explorer.explore(env, 50, until_utility=0.5)


@pytest.mark.parametrize("method", ["jdrx", "random"])
def test_methods_without_plans_have_nothing_to_stop_at(method):
    env = gym.make("maxplore/MountainCar-v0")
    with pytest.raises(InputError, match="until_utility is given, expected none: this method's plans promise nothing"):
        explorer_of(env, method=method).explore(env, 50, until_utility=0.5)


def test_the_model_is_asked_in_the_environments_units():
    """Pendulum's torque is within +-2; inside it is +-1."""
    env = gym.make("Pendulum-v1")
    explorer = explorer_of(env)
    explorer.explore(env, 10)
    model, states, torques = explorer.model, np.zeros((3, 3)), np.array([[-2.0], [0.5], [2.0]])
    outside, inside = model.predict(states, torques), model.ensemble.predict(states, torques / 2)
    assert model.size == 3
    for own, other in zip(outside, inside, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-5)
    with pytest.raises(InputError, match="actions"):
        model.predict(states, np.zeros((3, 2)))


def test_what_was_only_told_makes_a_model_too():
    env = gym.make("maxplore/MountainCar-v0")
    explorer, other = explorer_of(env), explorer_of(env)
    numbers = np.random.default_rng(0)
    for _ in range(12):
        row = (numbers.normal(size=2) * [0.3, 0.03] - [0.5, 0], numbers.uniform(-1, 1, 1))
        for each in (explorer, other):
            each.tell(*row, row[0] + [0.01, 0.001])
    assert explorer.model.predict(np.zeros((4, 2)), np.zeros((4, 1)))[0].shape == (3, 4, 2)
    assert np.isfinite(explorer.utility(np.zeros((4, 2)), np.zeros((4, 1)))).all()
    np.testing.assert_array_equal(explorer.ask([-0.5, 0.0]), other.ask([-0.5, 0.0]), "having looked changes nothing")


def test_solvers_look_no_farther_than_an_episode_goes():
    env = gym.make("maxplore/MountainCar-v0")
    for horizon, lifetime in ((4, 4), (500, 6)):
        agent = explorer_of(env, solver="gradient", horizon=horizon)._agent
        assert isinstance(agent, ModelAgent)
        assert isinstance(agent.config.solver, Gradient)
        assert agent.config.solver.config.lifetime == lifetime
    for solver, field in (("icem", "horizon"), ("sac", "steps")):
        agent = explorer_of(env, solver=solver, horizon=2)._agent
        assert isinstance(agent, ModelAgent)
        assert isinstance(agent.config.solver, Icem | Sac)
        assert getattr(agent.config.solver.config, field) == 2


def test_plans_are_made_for_the_state_that_is_asked_about():
    """After an episode's end it may be asked about several places, and answers each as if it were the first."""
    env = gym.make("maxplore/MountainCar-v0")

    def told() -> Explorer:
        explorer = explorer_of(env, solver=PLANS)
        observation, _ = env.reset(seed=0)
        for step in range(14):
            action = explorer.ask(observation)
            following, *_ = env.step(action)
            explorer.tell(observation, action, following, truncated=step == 13)
            observation = following
        return explorer

    here, there = np.array([-0.5, 0.0], np.float32), np.array([0.3, 0.05], np.float32)
    one, two = told(), told()
    answers = [one.ask(here), one.ask(there), one.ask(here)]
    np.testing.assert_array_equal(answers[0], answers[2])
    np.testing.assert_array_equal(answers[1], two.ask(there))


def test_to_tell_copies_nothing_of_d():
    """The arrays of D are made anew when somebody looks, not at every step; who looked before keeps what was seen."""
    box = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    explorer = Explorer(box, box, method="random", seed=0)
    numbers = np.random.default_rng(0).uniform(-1, 1, (30, 2)).astype(np.float32)
    explorer.tell(numbers[0], numbers[1], numbers[2])
    before = explorer.history
    for k in range(1, 28):
        explorer.tell(numbers[k], numbers[k + 1], numbers[k + 2])
        assert explorer._agent._history is before
        assert explorer.steps == k + 1
    assert int(before.size) == 1
    assert int(explorer.history.size) == 28
    np.testing.assert_array_equal(explorer.history.transitions.state[:28], numbers[:28])
    with pytest.raises(InputError, match="next_observation"):
        explorer.tell(numbers[0], numbers[1], [np.nan, 0.0])
    assert explorer.steps == 28


@pytest.mark.parametrize(
    ("settings", "anew"),
    [
        ({}, [*range(16)]),
        ({"fresh_every": 3}, [0, 3, 6, 9, 12, 15]),
        ({"fresh_growth": 1.0}, [0, 1, 2, 4, 8]),
        ({"fresh_every": 3, "fresh_growth": 1.0}, [0, 3, 6, 12]),
        ({"fresh_every": 3, "fresh_growth": 1e308}, [0, 3]),
    ],
)
def test_the_model_is_drawn_anew_every_so_many_rounds_and_when_there_were_more_of_them_by_a_share(settings, anew):
    config = ModelBasedConfig(**settings)
    assert [number for number in range(16) if config.draws_anew(number)] == anew
    assert [*takewhile(lambda number: number < 16, config.fresh_rounds())] == anew


def test_interrupted_between_fit_and_plan_it_answers_as_if_it_had_not_been(monkeypatch):
    """A model that is trained on must not be trained twice, nor an old plan be followed."""
    env = gym.make("maxplore/MountainCar-v0")
    steady, other = (explorer_of(env, preset="smoke", warm_up=10, plan_every=5, fresh_every=3) for _ in range(2))
    state, _ = env.reset(seed=0)
    for _ in range(15):
        action = steady.ask(state)
        np.testing.assert_array_equal(other.ask(state), action)
        following, *_ = env.step(action)
        for explorer in (steady, other):
            explorer.tell(state, action, following)
        state = following
    agent, (state, _) = other._agent, env.reset(seed=1)
    with monkeypatch.context() as patch:
        patch.setattr(agent, "_solve", interrupted)
        with pytest.raises(KeyboardInterrupt):
            other.ask(state)
    np.testing.assert_array_equal(other.ask(state), steady.ask(state))
    assert [row["step"] for row in other.figures] == [10.0, 15.0]


def interrupted(*_):
    raise KeyboardInterrupt
