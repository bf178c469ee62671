"""A reward as users write it."""

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
import pytest

from maxplore import Explorer, InputError, spaces
from maxplore.rewards import every_reward, inner

BOX, TURN = gym.spaces.Box(-1, 1, (3,)), gym.spaces.Box(-2, 2, (1,))
THREE, TWO = gym.spaces.Discrete(3, start=5), gym.spaces.Discrete(2, start=1)


def in_if(s, a, s2):
    return 1.0 if s[0] > 0 else 0.0


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (in_if, r"reward cannot be compiled \(TracerBoolConversionError: .*jnp.where in place of if"),
        (lambda s, a, s2: s, r"reward gives an array of shape \(3,\), expected one number"),
        (lambda s, a: 0.0, r"reward cannot be compiled \(TypeError"),
    ],
)
def test_a_reward_that_cannot_be_compiled_is_refused_in_one_line(reward, message):
    with pytest.raises(InputError, match=message) as caught:
        Explorer(BOX, TURN, preset="smoke", reward=reward, reward_weight=1.0)
    assert "\n" not in str(caught.value)


def test_it_sees_the_environments_own_numbers():
    """States count from 5 and actions from 1 outside; the table is indexed from 0."""
    own = inner(lambda s, a, s2: 100 * s + 10 * a + s2, spaces.observations(THREE), spaces.actions(TWO))
    table = every_reward(own, 3, 2)
    assert table.shape == (3, 2, 3)
    assert float(table[0, 0, 0]) == 515
    assert float(table[2, 1, 1]) == 726


def test_a_reward_that_is_not_finite_says_where():
    own = inner(lambda s, a, s2: 1.0 / (s2 - 6), spaces.observations(THREE), spaces.actions(TWO))
    with pytest.raises(InputError, match=r"not finite for state, action, next state = \[0, 0, 1\]"):
        every_reward(own, 3, 2)


def test_it_is_added_to_the_utility_of_discrete_spaces():
    plain, paid = (
        Explorer(THREE, TWO, members=3, reward=lambda s, a, s2: jnp.where(s == 6, a, 0.0), reward_weight=weight)
        for weight in (0.0, 2.0)
    )
    states, actions = np.array([5, 6, 6, 7]), np.array([1, 1, 2, 2])
    gained = paid.utility(states, actions) - plain.utility(states, actions)
    np.testing.assert_allclose(gained, [0, 2, 4, 0], atol=1e-5)


def test_a_reward_leads_max_astray_on_purpose():
    """Both actions lead home, one is paid for: once there is nothing to learn, MAX takes that one."""
    for wanted in (1, 2):
        explorer = Explorer(
            THREE,
            TWO,
            members=3,
            horizon=3,
            warm_up=0,
            reward=lambda s, a, s2, wanted=wanted: jnp.where(a == wanted, 1.0, 0.0),
            reward_weight=100.0,
        )
        for _ in range(3):
            for state in (5, 6, 7):
                for action in (1, 2):
                    explorer.tell(state, action, 5, truncated=True)
        assert [explorer.ask(state) for state in (5, 6, 7)] == [wanted] * 3


@pytest.mark.parametrize("method", ["random", "eb-dqn"])
def test_methods_that_look_for_nothing_take_no_reward(method):
    with pytest.raises(InputError, match="reward is given, expected none"):
        Explorer(THREE, TWO, method=method, reward=lambda s, a, s2: 0.0, reward_weight=1.0)


def test_the_weight_is_a_number():
    with pytest.raises(InputError, match="reward_weight is nan, expected a finite number"):
        Explorer(BOX, TURN, preset="smoke", reward=lambda s, a, s2: 0.0, reward_weight=float("nan"))


def test_reward_and_weight_come_together():
    with pytest.raises(InputError, match="reward is given without reward_weight, expected both"):
        Explorer(BOX, TURN, preset="smoke", reward=lambda s, a, s2: 0.0)
    with pytest.raises(InputError, match="reward_weight is given without reward, expected both"):
        Explorer(BOX, TURN, preset="smoke", reward_weight=1.0)


def test_too_many_discrete_states_are_refused_before_memory_is():
    with pytest.raises(InputError, match="10000 states and 4 actions are too many to write out"):
        Explorer(gym.spaces.Discrete(10_000), gym.spaces.Discrete(4))
