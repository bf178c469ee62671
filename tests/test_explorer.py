"""The user's object on numbered spaces: one answer under every loop, known counts, refusals in one line.

Worlds of 16 states and 4 actions share what is compiled; the oracle, a memory without a model, gives exact answers.
"""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from maxplore import Explorer, InputError
from maxplore.explorers import FiniteAgent

STATES, ACTIONS = 16, 4
LAKE = 44
"""Pairs of the 4 x 4 lake: 11 of its 16 fields are neither a hole nor the goal."""
CLIFF = 148
"""Pairs of the cliff: of 48 fields, 10 are cliff and one is the goal."""


class Shelf(gym.Env[Any, Any]):
    """A row of states to go along: forwards, backwards, to the beginning, or nowhere. Counted from `first`."""

    def __init__(self, first: int = 0, first_action: int = 0, length: int = 8) -> None:
        self.observation_space = spaces.Discrete(STATES, start=first)
        self.action_space = spaces.Discrete(ACTIONS, start=first_action)
        self.first, self.first_action, self.length = first, first_action, length
        self.place, self.steps, self.seeds = 0, 0, list[int | None]()
        self.moves: list[tuple[int, int]] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.place = self.steps = 0
        return np.int64(self.first), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action in self.action_space
        move = int(action) - self.first_action
        self.moves.append((self.place, move))
        self.place = [min(self.place + 1, STATES - 1), max(self.place - 1, 0), 0, self.place][move]
        self.steps += 1
        return np.int64(self.first + self.place), 0.0, False, self.steps >= self.length, {}


def lake():
    return gym.make("FrozenLake-v1", is_slippery=False)


def explorer_for(env, *, preset="smoke", **settings: Any) -> Explorer:
    return Explorer(env.observation_space, env.action_space, preset=preset, **settings)


def told(explorer):
    """Every transition told, as rows."""
    rows = explorer.history.transitions
    columns = (rows.state, rows.action, rows.next_state, rows.terminated, rows.truncated)
    return np.stack([np.asarray(column)[: explorer.steps] for column in columns], axis=1)


def pairs(explorer):
    return {(int(state), int(action)) for state, action in told(explorer)[:, :2]}


def own_loop(explorer, env, steps, seed=0):
    observation, _ = env.reset(seed=seed)
    for _ in range(steps):
        action = explorer.ask(observation)
        following, _, terminated, truncated, _ = env.step(action)
        explorer.tell(observation, action, following, terminated=terminated, truncated=truncated)
        observation = env.reset()[0] if terminated or truncated else following


def refusal(function, *arguments, **named):
    with pytest.raises(InputError) as caught:
        function(*arguments, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(scope="module")
def explored():
    """The lake after 250 steps: enough to have tried everything."""
    explorer = explorer_for(lake())
    return explorer, explorer.explore(lake(), 250)


@pytest.fixture(scope="module")
def begun():
    """The lake after 40 steps, with some pairs tried and some not."""
    explorer = explorer_for(lake())
    explorer.explore(lake(), 40)
    return explorer


# One answer under every loop ---------------------------------------------------------------------


def test_an_own_loop_takes_the_same_actions_as_explore(begun):
    """On ice that is slippery as well: the environment's luck is the same, too."""
    own = explorer_for(lake())
    own_loop(own, lake(), 40)
    np.testing.assert_array_equal(told(own), told(begun))

    slippery, other = (gym.make("FrozenLake-v1", is_slippery=True) for _ in range(2))
    one, two = explorer_for(slippery, seed=3), explorer_for(other, seed=3)
    one.explore(slippery, 30)
    own_loop(two, other, 30, seed=3)
    np.testing.assert_array_equal(told(one), told(two))


def test_a_run_is_a_function_of_its_seed_and_seeds_differ(begun):
    same, other = explorer_for(lake()), explorer_for(lake(), seed=1)
    same.explore(lake(), 40)
    other.explore(lake(), 40)
    np.testing.assert_array_equal(told(same), told(begun))
    assert (told(other) != told(begun)).any()


def test_asking_twice_gives_the_same_action_and_learns_nothing(begun):
    before = begun.steps
    for state in range(STATES):
        first, again = begun.ask(state), begun.ask(np.int64(state))
        assert first == again
        assert first in begun._spaces[1]
    assert begun.steps == before


def test_exploring_in_two_calls_tells_as_many_transitions_and_loses_none(begun):
    explorer = explorer_for(lake())
    first, second = explorer.explore(lake(), 15), explorer.explore(lake(), 25)
    assert (first.steps, second.steps, explorer.steps, int(explorer.history.size)) == (15, 25, 40, 40)
    np.testing.assert_array_equal(told(explorer)[:15], told(begun)[:15])


def test_rewards_do_not_matter_to_a_pure_explorer(begun):
    explorer = explorer_for(lake())
    explorer.explore(gym.wrappers.TransformReward(lake(), lambda reward: float(reward) + 100), 40)
    np.testing.assert_array_equal(told(explorer), told(begun))


# Known counts ------------------------------------------------------------------------------------


def test_the_lake_is_explored_whole_and_random_actions_do_not_get_far(explored):
    explorer, summary = explored
    assert len(pairs(explorer)) >= LAKE - 1
    assert summary.coverage == explorer.coverage == len(pairs(explorer)) / (STATES * ACTIONS)
    assert summary.steps == explorer.steps == 250
    assert summary.episodes == 1 + told(explorer)[:-1, 3:].any(axis=1).sum()
    by_chance = explorer_for(lake(), method="random")
    assert by_chance.explore(lake(), 250).promise is None
    assert len(pairs(by_chance)) <= LAKE - 4
    assert set(told(by_chance)[:, 1].tolist()) == set(range(ACTIONS)), "every step has a key of its own"


def test_the_cliff_is_explored_far_better_than_by_chance():
    def reached(method):
        env = gym.make("CliffWalking-v1")
        explorer = explorer_for(env, method=method)
        explorer.explore(env, 200)
        assert explorer.coverage == len(pairs(explorer)) / (48 * 4)
        return len(pairs(explorer))

    assert 0.8 * CLIFF <= reached("max") <= CLIFF
    assert reached("random") <= 0.5 * CLIFF


def test_coverage_counts_pairs_and_not_visits():
    explorer = explorer_for(Shelf(), method="random")
    assert explorer.coverage == 0
    for pair in ((0, 0), (0, 0), (0, 1), (3, 0)):
        explorer.tell(*pair, 5)
    assert (explorer.coverage, explorer.steps) == (3 / 64, 4)


# What was learned --------------------------------------------------------------------------------


def test_utility_is_small_for_pairs_tried_and_large_for_others(begun):
    tried = pairs(begun)
    states, actions = np.divmod(np.arange(STATES * ACTIONS), ACTIONS)
    known = np.array([pair in tried for pair in zip(states.tolist(), actions.tolist(), strict=True)])
    utility = begun.utility(states, actions)
    assert 10 < known.sum() < 44
    assert utility[known].mean() < 0.2 * utility[~known].mean()
    assert (utility > -1e-6).all()
    assert utility.max() <= np.log(3) + 1e-5, "three members cannot disagree by more"


def test_utility_keeps_the_shape_of_its_batch(begun):
    assert begun.utility([0, 1, 2], [3, 2, 1]).shape == (3,)
    assert begun.utility(np.zeros((2, 5), int), np.ones((2, 5), int)).shape == (2, 5)
    assert begun.utility([], []).shape == (0,)
    one = begun.utility(2, 3)
    assert one.shape == ()
    assert float(one) == begun.utility([2], [3])[0]


def test_utility_refuses_what_is_no_pair(begun):
    assert refusal(begun.utility, [0, 1], [0]).startswith("actions has shape (1,), expected (2,)")
    assert refusal(begun.utility, [0, STATES], [0, 0]).startswith("observations[1] is 16")
    assert refusal(begun.utility, [0, 1], [0, -1]).startswith("actions[1] is -1")
    assert refusal(begun.utility, [0.5], [0]).startswith("observations[0] is 0.5")


def test_the_model_knows_where_pairs_lead_in_probabilities(explored):
    explorer, _ = explored
    rows = told(explorer)
    probabilities = np.asarray(explorer.model.predict(rows[:, 0], rows[:, 1]))
    assert probabilities.shape == (3, 250, STATES)
    np.testing.assert_allclose(probabilities.sum(-1), 1, rtol=1e-5)
    assert (probabilities >= 0).all()
    right = np.take_along_axis(probabilities, rows[None, :, 2, None], axis=-1)
    assert right.mean() > 0.95


def test_exploring_ends_before_when_nothing_new_is_promised(explored):
    explorer = explorer_for(lake())
    summary = explorer.explore(lake(), 2_000, until_utility=0.1)
    assert summary.steps < 600
    assert summary.steps == explorer.steps
    assert len(pairs(explorer)) >= 0.9 * LAKE
    assert summary.promise is not None
    assert explored[1].promise is not None

    again = explorer.explore(lake(), 2_000, until_utility=0.1)
    assert (again.steps, again.episodes) == (0, 1), "a second call remembers what was promised at first"
    np.testing.assert_array_equal(told(explorer), told(explored[0])[: explorer.steps])


def test_methods_without_a_model_say_so():
    explorer = explorer_for(Shelf(), method="oracle")
    assert "method='max'" in refusal(lambda: explorer.model)
    assert "method='max'" in refusal(explorer.utility, [0], [0])
    assert explorer.explore(Shelf(), 3).promise is None
    assert "plans promise nothing" in refusal(explorer.explore, Shelf(), 3, until_utility=0.5)


# Episodes ----------------------------------------------------------------------------------------

LOG = [(0, 1, 0), (0, 2, 0), (0, 3, 0), (0, 0, 1)]
"""In state 0 all is known: action 0 leads on to state 1, of which nothing is known, and the others nowhere."""


def first_actions(horizon, log=LOG, **told_last):
    """What the oracle does in state 0 after the log, whichever of eight seeds it has."""
    chosen: set[int] = set()
    for seed in range(8):
        explorer = explorer_for(Shelf(), method="oracle", horizon=horizon, seed=seed)
        for row in log[:-1]:
            explorer.tell(*row)
        explorer.tell(*log[-1], **told_last)
        chosen.add(int(explorer.ask(0)))
    return chosen


def test_a_log_told_before_the_first_question_is_learned_from():
    assert first_actions(None) == {0}


def test_a_reset_that_nobody_told_about_begins_an_episode():
    """With two steps to go it pays to go on to state 1; with one left it would not matter."""
    assert first_actions(2) == {0}
    assert first_actions(2, truncated=True) == {0}
    assert len(first_actions(1)) > 1


def test_a_jump_within_a_log_begins_an_episode():
    """The log ends in state 1 and goes on in state 0: one step of that episode is done, so two of three are left."""
    log = [*LOG, (0, 1, 0)]
    assert first_actions(3, log) == {0}
    assert len(first_actions(2, log)) > 1


def test_an_episode_that_goes_on_has_fewer_steps_to_go():
    """After a jump from state 1, three steps without a break: of three the last is all there is to plan for."""
    log = [LOG[3], *LOG[:3]]
    assert first_actions(None, log) == {0}
    assert len(first_actions(3, log)) > 1


def test_nothing_is_planned_beyond_a_state_that_ended_an_episode():
    """Nothing to be had in state 1 either, if the episode is over there."""
    assert len(first_actions(None, terminated=True)) > 1


def test_the_environment_is_seeded_once_and_by_the_explorers_seed():
    env = Shelf()
    explorer = explorer_for(env, method="random", seed=7)
    explorer.tell(0, 0, 1)
    explorer.explore(env, 20)
    explorer.explore(env, 4)
    assert env.seeds == [7, None, None, None]


def test_an_episode_cut_off_by_the_end_of_a_call_is_begun_anew_by_the_next():
    explorer, env = explorer_for(Shelf(), method="oracle"), Shelf()
    explorer.explore(env, 5)
    assert explorer.explore(env, 2).episodes == 1
    assert isinstance(explorer._agent, FiniteAgent)
    assert (int(explorer._agent.mind.step), env.steps) == (2, 2)


def test_no_steps_are_no_steps():
    env = Shelf()
    explorer = explorer_for(env, method="oracle")
    summary = explorer.explore(env, 0)
    assert (summary.steps, summary.episodes, summary.coverage, env.seeds) == (0, 0, 0.0, [])


@pytest.mark.parametrize("method", ["max", "oracle"])
def test_spaces_that_begin_elsewhere_give_the_same_run_in_their_own_numbers(method):
    plain, shifted = Shelf(), Shelf(first=1, first_action=-2)
    explorers = [explorer_for(env, method=method) for env in (plain, shifted)]
    for explorer, env in zip(explorers, (plain, shifted), strict=True):
        explorer.explore(env, 40)
    assert plain.moves == shifted.moves
    assert len(set(plain.moves)) > 3 * ACTIONS, "a run that goes somewhere"
    for state in range(STATES):
        assert explorers[1].ask(state + 1) == explorers[0].ask(state) - 2
    if method == "max":
        states, actions = np.divmod(np.arange(STATES * ACTIONS), ACTIONS)
        np.testing.assert_array_equal(
            explorers[1].utility(states + 1, actions - 2), explorers[0].utility(states, actions)
        )
    assert refusal(explorers[1].ask, 0) == "observation is 0, expected a whole number from 1 to 16"
    assert refusal(explorers[1].tell, 1, 2, 1) == "action is 2, expected a whole number from -2 to 1"


# Refusals ----------------------------------------------------------------------------------------


def test_what_cannot_be_told_is_refused_and_nothing_is_learned_from_it():
    explorer = explorer_for(Shelf(), method="oracle")
    for row, wrong in (((16, 0, 0), "observation is 16"), ((0, 4, 0), "action is 4"), ((0, 0, -1), "next_observation")):
        assert refusal(explorer.tell, *row).startswith(wrong)
    assert "observation has shape (2,)" in refusal(explorer.tell, [0, 1], 0, 1)
    assert "action has shape (1,)" in refusal(explorer.tell, 0, [1], 1)
    assert refusal(explorer.ask, np.nan).startswith("observation is nan")
    assert (explorer.steps, int(explorer.history.size), explorer.coverage) == (0, 0, 0.0)


def test_a_reward_that_is_no_number_matters_only_to_those_who_learn_from_it():
    explorer = explorer_for(Shelf(), method="oracle")
    explorer.tell(0, 0, 1, reward=float("nan"))
    assert explorer.steps == 1
    paid = explorer_for(Shelf(), method="eb-dqn")
    assert refusal(paid.tell, 0, 0, 1, reward=float("nan")) == "reward is nan, expected a finite number"
    assert paid.steps == 0


def test_an_environment_of_other_spaces_is_refused():
    explorer = explorer_for(Shelf(), method="oracle")
    message = refusal(explorer.explore, Shelf(first=1), 5)
    assert "observation_space is Discrete(16, start=1), expected Discrete(16)" in message
    assert "action_space" in refusal(explorer.explore, Shelf(first_action=1), 5)
    assert "observation_space" in refusal(explorer.explore, gym.make("CliffWalking-v1"), 5)
    assert explorer.steps == 0


@pytest.mark.parametrize(
    ("named", "wrong"),
    [
        ({"method": "maxx"}, "method is 'maxx', expected one of max, random, oracle"),
        ({"preset": "quick"}, "preset is 'quick', expected one of fast, tasks, paper, smoke"),
        ({"membres": 3}, "there is no setting 'membres' here, expected one of: members"),
        ({"members": 0}, "members is 0, expected at least 1"),
        ({"members": 2.0}, "members is 2.0, expected int"),
        ({"discount": "0.9"}, "discount is '0.9', expected float"),
        ({"method": "random", "members": 3}, "there is no setting 'members' here"),
        ({"horizon": 0}, "horizon is 0, expected at least 1"),
        ({"seed": -1}, "seed is -1, expected"),
        ({"seed": 2**32}, "seed is 4294967296, expected"),
    ],
)
def test_what_there_is_not_is_refused_by_name(named, wrong):
    assert refusal(explorer_for, Shelf(), **named).startswith(wrong)


def test_steps_and_shares_that_make_no_sense_are_refused():
    explorer = explorer_for(Shelf(), method="oracle")
    assert refusal(explorer.explore, Shelf(), -1) == "steps is -1, expected a whole number of at least 0"
    for share in (-0.1, 1.0, float("nan")):
        assert refusal(explorer.explore, Shelf(), 1, until_utility=share).startswith("until_utility is ")


def test_the_chain_tells_how_long_its_episodes_are():
    env = gym.make("maxplore/Chain-v0", length=5)
    explorer = Explorer(env.observation_space, env.action_space, method="oracle")
    explorer.explore(env, 1)
    assert isinstance(explorer._agent, FiniteAgent)
    assert (explorer._agent.world.horizon, explorer._agent.world.known_end) == (14, True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"preset": "paper", "rounds": 0}, "rounds is 0, expected at least 1"),
        ({"preset": "paper", "planner_depth": 0}, "depth is 0, expected at least 1"),
    ],
)
def test_an_impossible_search_is_refused(settings: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        Explorer(spaces.Discrete(3), spaces.Discrete(2), **settings)


def test_nothing_is_promised_before_the_models_have_learned_anything():
    explorer = Explorer(spaces.Discrete(3), spaces.Discrete(2), preset="smoke", warm_up=1, horizon=4)
    for _ in range(3):
        explorer.tell(0, 0, 1)
        assert explorer._agent.promise(1) is None
    explorer.tell(0, 0, 1)
    promised = explorer._agent.promise(1)
    assert promised is not None
    assert promised >= 0
