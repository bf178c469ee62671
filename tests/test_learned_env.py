"""What was learned as a Gymnasium environment: a linear system and a frozen lake, whose answers are known."""

import itertools
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from maxplore import Explorer, InputError, LearnedEnv, LearnedVectorEnv
from tests.counting import compilations
from tests.systems import DRIFT, PUSH

EPISODE, EPISODES = 15, 20
BOX, PUSHES = spaces.Box(-2.0, 2.0, (2,)), spaces.Box(-1.0, 1.0, (1,))
GOAL = 15


def explorer_of(space: gym.Space[Any], actions: gym.Space[Any] = PUSHES) -> Explorer:
    """All alike, so that they share what is compiled."""
    return Explorer(space, actions, preset="smoke", epochs=100, learning_rate=1e-2)


def square(state, action, next_state):
    return -(next_state[0] ** 2) - 0.1 * action[0] ** 2 + state[1]


def total(state, action, next_state):
    return next_state.sum()


def arrived(state, action, next_state):
    return next_state == GOAL


def truth(state, action):
    return state + DRIFT @ state + PUSH @ action


def tell_linear(explorer: Explorer, episodes: int = EPISODES, length: int = EPISODE, *, scale: float = 1.0) -> None:
    numbers = np.random.default_rng(0)
    for _ in range(episodes):
        state = numbers.uniform(-1, 1, 2)
        for step in range(length):
            action = numbers.uniform(-1, 1, 1)
            following = truth(state, action)
            explorer.tell(state, scale * action, following, truncated=step == length - 1)
            state = following


@pytest.fixture(scope="module")
def linear() -> Explorer:
    explorer = explorer_of(BOX)
    tell_linear(explorer)
    return explorer


@pytest.fixture(scope="module")
def lake() -> Explorer:
    """Every pair of the lake, thrice, each a path of its own from the first field on."""
    real: Any = gym.make("FrozenLake-v1", is_slippery=False).unwrapped
    explorer = Explorer(real.observation_space, real.action_space, preset="smoke")
    ends = {to for moves in real.P.values() for ((_, to, _, over),) in moves.values() if over}
    for state, action in itertools.product([0, *range(16)] * 3, range(4)):
        if state not in ends:
            ((_, following, _, over),) = real.P[state][action]
            explorer.tell(state, action, following, terminated=over, truncated=not over)
    return explorer


def test_spaces_are_those_of_the_explorer(linear, lake):
    for explorer in (linear, lake):
        env = LearnedEnv(explorer, lambda s, a, s2: 0.0)
        assert env.observation_space is explorer.observation_space
        assert env.action_space is explorer.action_space


def test_gymnasium_finds_no_fault(linear, lake):
    for explorer, reward in ((linear, square), (lake, arrived)):
        env = LearnedEnv(explorer, reward, horizon=9)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(env, skip_render_check=True)


def walk(env: Any, seed: int | None, steps: int = 12) -> list[np.ndarray]:
    seen = [env.reset(seed=seed)[0]]
    for step in range(steps):
        seen.append(env.step(np.array([np.sin(step)], np.float32))[0])
    return seen


def test_a_seed_settles_everything(linear):
    env, other = LearnedEnv(linear, square), LearnedEnv(linear, square, seed=4)
    first = walk(env, 4)
    np.testing.assert_array_equal(first, walk(env, 4))
    np.testing.assert_array_equal(first, walk(other, None), "the seed given to the constructor")
    assert not np.array_equal(first, walk(env, None))
    assert not np.array_equal(first, walk(env, 5))


def test_a_step_lands_near_the_true_next_state(linear):
    env, numbers = LearnedEnv(linear, square), np.random.default_rng(1)
    off, moved = [], []
    for seed in range(20):
        state, _ = env.reset(seed=seed)
        action = numbers.uniform(-1, 1, 1)
        following, *_ = env.step(action)
        off.append(np.abs(following - truth(state, action)).max())
        moved.append(np.abs(truth(state, action) - state).max())
    assert np.median(off) < 0.1 * np.median(moved)


def test_the_lake_is_walked_as_it_is(lake):
    """Right, right, down, down, down, right leads around all holes to the goal, which ends the episode."""
    env = LearnedEnv(lake, arrived, horizon=50)
    assert env.reset(seed=0)[0] in range(16)
    env = LearnedEnv(lake, arrived, horizon=50, starts=[0])
    observation, _ = env.reset(seed=0)
    assert observation == 0
    fields, rewards, ends = [], [], []
    for action in (2, 2, 1, 1, 1, 2):
        observation, reward, terminated, truncated, info = env.step(action)
        assert not truncated
        assert 0 <= info["disagreement"] <= np.log(3)
        fields.append(int(observation))
        rewards.append(reward)
        ends.append(terminated)
    assert fields == [1, 2, 6, 10, 14, GOAL]
    assert rewards == [0, 0, 0, 0, 0, 1]
    assert ends == [False] * 5 + [True]


def test_a_state_that_ended_an_episode_ends_it_here(lake):
    env = LearnedEnv(lake, arrived, horizon=50, starts=[4])
    env.reset(seed=1)
    assert env.step(2)[:4] == (5, 0.0, True, False), "a hole"


def test_the_reward_is_the_users_function_of_the_transition_in_its_own_units():
    torques = spaces.Box(-2.0, 2.0, (1,))
    explorer = explorer_of(BOX, torques)
    tell_linear(explorer, 2, scale=2.0)
    env = LearnedEnv(explorer, square)
    state, _ = env.reset(seed=0)
    for action in (-2.0, 0.3, 1.7):
        following, reward, *_ = env.step([action])
        assert reward == pytest.approx(float(square(state, np.array([action], np.float32), following)), rel=1e-6)
        state = following
    following, reward, *_ = env.step([7.0])
    assert reward == pytest.approx(float(square(state, np.array([2.0], np.float32), following)), rel=1e-6), "clipped"


def test_the_horizon_cuts_off(linear):
    for given, expected in ((None, EPISODE), (4, 4)):
        env = LearnedEnv(linear, square, horizon=given)
        env.reset(seed=0)
        flags = [env.step([0.1])[2:4] for _ in range(expected)]
        assert flags == [(False, False)] * (expected - 1) + [(False, True)]


def test_an_episode_left_unfinished_lengthens_no_other():
    """As `explore` leaves one behind when its steps are done."""
    explorer = explorer_of(BOX)
    tell_linear(explorer, 2, 8)
    for state, following in (([0.5, 0.5], [0.4, 0.4]), ([0.4, 0.4], [0.3, 0.3])):
        explorer.tell(state, [0.0], following)
    tell_linear(explorer, 1, 8)
    env = LearnedEnv(explorer, square)
    env.reset(seed=0)
    assert [env.step([0.0])[3] for _ in range(8)] == [False] * 7 + [True]
    starts = np.unique([env.reset()[0] for _ in range(40)], axis=0)
    assert len(starts) == 3, "the third episode of eight steps begins like the first"


def test_terminated_ends(linear):
    env = LearnedEnv(linear, square, terminated=lambda s, a, s2: s2[1] > 0.5)
    ended = 0
    for seed in range(10):
        env.reset(seed=seed)
        over = False
        while not over:
            observation, _, terminated, truncated, _ = env.step([1.0])
            assert terminated == (observation[1] > 0.5)
            ended, over = ended + terminated, terminated or truncated
    assert ended > 0


def test_episodes_begin_where_those_of_the_data_did(linear):
    env = LearnedEnv(linear, square)
    began = np.asarray(linear.history.transitions.state)[: linear.steps : EPISODE]
    seen = [env.reset(seed=0 if k == 0 else None)[0] for k in range(60)]
    assert all((state == began).all(axis=1).any() for state in seen)
    assert len(np.unique(seen, axis=0)) > EPISODES / 2


def test_episodes_begin_where_they_are_told_to(linear):
    starts = [[0.5, 0.5], [-0.5, 0.25]]
    env = LearnedEnv(linear, square, starts=starts)
    seen = [env.reset()[0].tolist() for _ in range(20)]
    assert sorted(map(list, {tuple(state) for state in seen})) == sorted(starts)


def test_members_disagree_far_from_the_data(linear):
    known, strange = (LearnedEnv(linear, square, starts=[s]) for s in ([0.0, 0.0], [2.0, -2.0]))
    near, far = (
        np.mean([(env.reset(seed=seed), env.step([0.0])[4]["disagreement"])[1] for seed in range(5)])
        for env in (known, strange)
    )
    assert far > 2 * near > 0


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-0.1, 0.1, (2,), np.float64),
        spaces.Box(np.array([-0.1, -np.inf]), np.array([0.7, 0.3]), dtype=np.float64),
        spaces.Box(-0.1, 0.1, (1, 2), np.float16),
        spaces.Box(0, 7, (2,), np.uint8),
        spaces.Discrete(2, start=3),
    ],
    ids=str,
)
def test_observations_lie_in_their_space_whatever_its_numbers(space):
    """Random elements told as transitions; Discrete ones with real actions are seen one-hot inside."""
    explorer = explorer_of(space)
    space.seed(0)
    for _ in range(12):
        explorer.tell(space.sample(), [0.5], space.sample())
    env = LearnedVectorEnv(explorer, total, 16, horizon=5)
    observations, _ = env.reset(seed=0)
    for _ in range(8):
        assert observations in env.observation_space
        assert all(row in space for row in observations)
        observations, rewards, *_ = env.step(env.action_space.sample())
        if isinstance(space, spaces.Discrete):
            np.testing.assert_array_equal(rewards, rewards.astype(int))


def test_rows_side_by_side_are_environments_of_their_own(linear):
    rows = LearnedVectorEnv(linear, square, 3, horizon=4)
    assert isinstance(rows, gym.vector.VectorEnv)
    assert rows.single_observation_space == BOX
    assert rows.single_action_space == PUSHES
    assert rows.observation_space.shape == (3, 2)
    assert rows.action_space.shape == (3, 1)
    assert rows.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    alone = gym.vector.SyncVectorEnv([lambda: LearnedEnv(linear, square, horizon=4)] * 3)
    assert rows.observation_space == alone.observation_space
    assert_alike(rows, alone)


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_they_reset_as_gymnasiums_own_do(lake, mode):
    rows = LearnedVectorEnv(lake, arrived, 3, horizon=4, autoreset_mode=mode)
    assert_alike(
        rows, gym.vector.SyncVectorEnv([lambda: LearnedEnv(lake, arrived, horizon=4)] * 3, autoreset_mode=mode)
    )


def assert_alike(rows: Any, alone: Any) -> None:
    """Step for step the same, with ends of episodes on the way."""
    rows.action_space.seed(0)
    np.testing.assert_allclose(rows.reset(seed=7)[0], alone.reset(seed=7)[0])
    ends = 0
    for _ in range(14):
        actions = rows.action_space.sample()
        own, other = rows.step(actions), alone.step(actions)
        for mine, his in zip(own[:4], other[:4], strict=True):
            np.testing.assert_allclose(mine, his, rtol=1e-4, atol=1e-5)
            assert mine.dtype == his.dtype
        for name in other[4].keys() | own[4].keys():
            if name not in ("final_obs", "final_info"):
                np.testing.assert_allclose(own[4][name], other[4].get(name, 0 * own[4][name]), rtol=1e-3, atol=1e-5)
        if "final_obs" in other[4]:
            assert list(own[4]["final_obs"]) == list(other[4]["final_obs"])
            mine, his = (each[4]["final_info"]["disagreement"] for each in (own, other))
            np.testing.assert_allclose(mine, his, rtol=1e-4, atol=1e-7)  # a batch is compiled otherwise than a row
        assert own[0] in rows.observation_space
        ends += int((own[2] | own[3]).sum())
    assert ends >= 6


def test_with_resets_of_ones_own_a_finished_row_waits(linear):
    rows = LearnedVectorEnv(linear, square, 2, horizon=2, autoreset_mode="Disabled", seed=1)
    with pytest.raises(gym.error.ResetNeeded):
        rows.step(np.zeros((2, 1)))
    rows.reset()
    for expected in (False, True):
        before, _, _, truncated, _ = rows.step(np.zeros((2, 1)))
        assert truncated.tolist() == [expected] * 2
    with pytest.raises(gym.error.ResetNeeded):
        rows.step(np.zeros((2, 1)))
    after, _ = rows.reset(options={"reset_mask": np.array([True, False])})
    np.testing.assert_array_equal(after[1], before[1])
    assert not np.array_equal(after[0], before[0])


def test_another_environment_compiles_nothing_anew(linear):
    walk(LearnedEnv(linear, square), 0, 1)
    again = LearnedEnv(linear, square, horizon=3)
    with compilations() as found:
        walk(again, 0, 3)
    assert found == []


def test_step_needs_reset(linear):
    with pytest.raises(gym.error.ResetNeeded):
        LearnedEnv(linear, square).step([0.0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"reward": lambda s, a, s2: s2}, r"reward gives an array of shape \(2,\), expected one number"),
        ({"reward": lambda s, a: 0.0}, r"reward cannot be compiled \(TypeError"),
        ({"terminated": lambda s, a, s2: s2 > 0}, r"terminated gives an array of shape \(2,\)"),
        ({"horizon": 0}, "horizon is 0, expected a whole number of at least 1"),
        ({"horizon": True}, "horizon is True, expected a whole number"),
        ({"starts": [0.0, 0.0]}, r"starts has shape \(2,\), expected rows of observations, each of shape \(2,\)"),
        ({"starts": np.zeros((0, 2))}, r"starts has shape \(0, 2\), expected rows"),
        ({"starts": [[0.0, 3.0]]}, r"starts\[0, 1\] is 3.0, expected a number within the bounds"),
        ({"starts": [[0.0, np.nan]]}, r"starts\[0, 1\] is nan"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(linear, given, message):
    with pytest.raises(InputError, match=message) as caught:
        LearnedEnv(**{"explorer": linear, "reward": square} | given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_envs": 0}, "num_envs is 0, expected a whole number of at least 1"),
        ({"autoreset_mode": "never"}, "autoreset_mode is 'never', expected one of NextStep, SameStep, Disabled"),
    ],
)
def test_rows_that_cannot_be_are_refused_too(linear, given, message):
    with pytest.raises(InputError, match=message):
        LearnedVectorEnv(**{"explorer": linear, "reward": square, "num_envs": 2} | given)


def test_seeds_are_as_many_as_rows(linear):
    rows = LearnedVectorEnv(linear, square, 2)
    np.testing.assert_array_equal(rows.reset(seed=[5, 6])[0], rows.reset(seed=5)[0])
    with pytest.raises(InputError, match="seed has 1 entries, expected one number, or one for each of 2"):
        rows.reset(seed=[1])


def test_actions_that_cannot_be_are_refused(linear):
    env, rows = LearnedEnv(linear, square), LearnedVectorEnv(linear, square, 2)
    env.reset()
    rows.reset()
    with pytest.raises(InputError, match=r"action has shape \(2,\), expected \(1,\)"):
        env.step([0.0, 0.0])
    with pytest.raises(InputError, match=r"actions has shape \(3, 1\), expected one action for each of 2 rows"):
        rows.step(np.zeros((3, 1)))


def test_a_reward_that_is_not_finite_is_refused(linear):
    env = LearnedEnv(linear, lambda s, a, s2: 1.0 / (0.0 * a[0]))
    env.reset(seed=0)
    with pytest.raises(InputError, match=r"reward is inf for the next state .*, expected a finite number"):
        env.step([1.0])


def test_without_a_model_there_is_nothing_to_step():
    lost = Explorer(spaces.Discrete(4), spaces.Discrete(2), method="random")
    lost.tell(0, 0, 1)
    with pytest.raises(InputError, match="this method has no model: use method='max'"):
        LearnedEnv(lost, arrived)
    with pytest.raises(InputError, match="there is no model yet"):
        LearnedEnv(explorer_of(BOX), square)
    with pytest.raises(InputError, match="the explorer has seen no transition"):
        LearnedEnv(Explorer(spaces.Discrete(4), spaces.Discrete(2), preset="smoke"), arrived)


def test_what_no_model_can_make_is_refused():
    space = spaces.Dict({"place": BOX, "lamp": spaces.Discrete(2)})
    explorer = explorer_of(space)
    with pytest.raises(InputError, match=r"expected a Box or Discrete.*FlattenObservation"):
        LearnedEnv(explorer, lambda s, a, s2: 0.0)


def test_data_that_do_not_tell_how_long_an_episode_is():
    explorer = explorer_of(BOX)
    numbers = np.random.default_rng(0)
    for _ in range(12):
        explorer.tell(numbers.uniform(-1, 1, 2), [0.0], numbers.uniform(-1, 1, 2))
    with pytest.raises(InputError, match=r"12 transitions do not tell it \(0 ends, 11 breaks.*give horizon="):
        LearnedEnv(explorer, square)
