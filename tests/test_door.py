"""What an environment, or a user, tells is copied and checked once: D holds what happened, or nothing of it."""

from typing import Any

import gymnasium as gym
import jaxtyping
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TransformObservation

from maxplore import Explorer, InputError, load
from maxplore.entry import LARGEST
from tests.systems import Reusing
from tests.test_explorer import Shelf, refusal


def f32(values: Any) -> Any:
    return np.asarray(values, np.float32)


BOX, PUSHES = spaces.Box(f32([-2, -1]), f32([2, 9])), spaces.Box(-4.0, 4.0, (1,))


@pytest.fixture(autouse=True)
def as_users_have_it():  # pyright: ignore[reportUnusedFunction]
    """Types are checked by nothing but the door."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def pendulum(form: str) -> gym.Env[Any, Any]:
    """Pendulum, whose three numbers are seen in another form."""
    env = gym.make("Pendulum-v1")
    one, two = spaces.Box(-1.0, 1.0, (2,)), spaces.Box(-8.0, 8.0, ())
    forms: dict[str, tuple[Any, gym.Space[Any]]] = {
        "box": (lambda x: x, env.observation_space),
        "dict": (lambda x: {"a": x[:2], "b": x[2]}, spaces.Dict({"a": one, "b": two})),
        "tuple": (lambda x: (x[:2], (x[2],)), spaces.Tuple((one, spaces.Tuple((two,))))),
        "discrete": (lambda x: np.int64(4 * (x[0] + 1)), spaces.Discrete(9)),
        "multi-discrete": (lambda x: (4 * (x[:2] + 1)).astype(np.int64), spaces.MultiDiscrete([9, 9])),
    }
    return TransformObservation(env, *forms[form])


def explorer_of(observations: gym.Space[Any] = BOX, actions: gym.Space[Any] = PUSHES, **settings: Any) -> Explorer:
    chosen: dict[str, Any] = {"method": "random", "preset": "smoke", **settings}
    return Explorer(observations, actions, **chosen)


def rows(explorer: Explorer) -> list[np.ndarray]:
    own = explorer.history.transitions
    return [np.asarray(x)[: explorer.steps] for x in (own.state, own.action, own.next_state)]


# Copies ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["box", "dict", "tuple", "discrete", "multi-discrete"])
def test_d_is_what_happened_whatever_becomes_of_the_buffers(form):
    env = Reusing(pendulum(form))
    explorer = explorer_of(env.observation_space, env.action_space)
    explorer.explore(env, 30)
    before, actions, after = zip(*env.happened, strict=True)
    flat: Any = [[spaces.flatten(env.observation_space, x) for x in own] for own in (before, after)]
    for own, told in zip((flat[0], np.stack(actions) / 2, flat[1]), rows(explorer), strict=True):
        np.testing.assert_allclose(told, own, rtol=1e-6)
    assert len(np.unique(np.stack(actions))) == 30, "none is what was written over it"


def test_numbers_in_a_buffer_are_copied_too():
    env = Reusing(Shelf())
    explorer = explorer_of(env.observation_space, env.action_space)
    explorer.explore(env, 30)
    np.testing.assert_array_equal(np.stack(rows(explorer), axis=1), np.array(env.happened))
    policy = explorer.exploit(lambda s, a, s2: s2 > s, horizon=5)
    assert policy.evaluate(env, 1) == policy.evaluate(Shelf(), 1) > 0, "a step forward is seen as one"


def test_whoever_owns_the_loop_may_change_what_was_told_and_what_was_given():
    explorer = explorer_of()
    state, action, following = np.zeros(2), np.full(1, 2.0), np.ones(2)
    explorer.tell(state, action, following)
    for own in (state, action, following):
        own[...] = 0.5
    np.testing.assert_array_equal(np.concatenate(rows(explorer), axis=1), [[0, 0, 0.5, 1, 1]])
    given = explorer.ask(following)
    kept = given.copy()
    given[...] = 3.0
    following[...] = 0.7
    np.testing.assert_array_equal(explorer.ask([0.5, 0.5]), kept)


# Refusals ----------------------------------------------------------------------------------------

MASKED = np.ma.masked_array([0.0, 0.0], [False, True])
GOOD: dict[str, Any] = {"observation": [0.0, 0.0], "action": [0.0], "next_observation": [0.0, 0.0]}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"observation": MASKED}, "observation is a masked array, expected a plain one"),
    ({"next_observation": [np.ma.masked_array(0.0, True), 0.0]}, "next_observation is a masked array"),
    ({"action": np.ma.masked_array([0.0])}, "action is a masked array"),
    ({"action": [5.0]}, "action[0] is 5.0, expected -4.0 to 4.0"),
    *(({name: value}, f"{name} is {said}, expected True or False") for name, value, said in (
        ("terminated", "no", "'no'"),
        ("truncated", None, "None"),
        ("terminated", 0, "0"),
        ("truncated", 1.0, "1.0"),
        ("terminated", [True], "[True]"),
        ("truncated", np.array([False]), "array([False])"),
    )),
    ({"reward": None}, "reward is None, expected numbers"),
    ({"reward": "much"}, "reward is 'much', expected numbers"),
    ({"reward": [1.0, 2.0]}, "reward is [1.0, 2.0], expected one number"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "why"), REFUSED, ids=[why[:40] for _, why in REFUSED])
def test_what_is_refused_is_refused_in_one_line_and_nothing_is_told(wrong, why, tmp_path):
    explorer = explorer_of()
    explorer.tell(**GOOD)
    explorer.save(tmp_path / "before")
    with pytest.raises(InputError) as caught:
        explorer.tell(**{**GOOD, **wrong})
    explorer.save(tmp_path / "after")
    before, after = ((tmp_path / name / "explorer.npz").read_bytes() for name in ("before", "after"))
    assert before == after, "as it was, to the last bit"
    assert str(caught.value).startswith(why)
    assert "\n" not in str(caught.value)


def test_truth_values_and_rewards_in_the_forms_that_environments_have():
    explorer = explorer_of()
    forms: list[Any] = [True, np.True_, np.array(True)]
    for yes in forms:
        explorer.tell(**GOOD, terminated=yes, truncated=yes, reward=f32(1.0))
    sized: dict[str, Any] = {**GOOD, "reward": np.array([1.0])}
    explorer.tell(**sized)
    own = explorer.history.transitions
    assert np.asarray(own.terminated)[:4].tolist() == np.asarray(own.truncated)[:4].tolist() == [True] * 3 + [False]


def test_noise_may_leave_the_bounds_by_a_tenth_of_their_range():
    explorer = explorer_of()
    explorer.tell([2.39, 9.9], [-4.7], [-2.39, -1.9])
    np.testing.assert_allclose(np.concatenate(rows(explorer), axis=1), [[2.39, 9.9, -1.175, -2.39, -1.9]])
    one_sided = explorer_of(spaces.Box(f32([0, -np.inf]), f32([np.inf, 50])))
    one_sided.tell([-0.09, 54.9], [0.0], [1e9, -1e9])
    for state, warned in (
        ([-0.2, 0.0], "0.* far out of bounds, expected 0.0 to inf"),
        ([0.0, 56.0], "1.* -inf to 50.0"),
    ):
        with pytest.warns(UserWarning, match=warned):
            one_sided.ask(state)
    whole = explorer_of(spaces.Box(0, 255, (2,), np.uint8))
    assert refusal(whole.ask, [0, 260]).startswith("observation[1] is 260, expected a whole number from 0 to 255")
    assert refusal(whole.ask, [0, 0.5]).startswith("observation[1] is 0.5, expected a whole number from 0 to 255")


def test_questions_about_batches_go_by_the_same_door():
    explorer = explorer_of(method="max", warm_up=5)
    explorer.explore(Steady(), 5)
    for ask in (explorer.utility, explorer.model.predict):
        assert refusal(ask, [[0, 0]], [[99]]).startswith("actions[0, 0] is 99, expected -4.0 to 4.0")
        with pytest.warns(UserWarning, match=r"observations\[1\] is far out of bounds, expected -1.0 to 9.0"):
            ask([[0, 0], [0, 99]], [[0], [0]])
        assert refusal(ask, [[0, 0]], [[np.nan]]).startswith("actions[0, 0] is nan, expected a finite number")
        assert refusal(ask, [MASKED], [[0]]).startswith("observations is a masked array")


class Steady(gym.Env[Any, Any]):
    """Goes nowhere; what it returns at the fourth step can be anything."""

    observation_space, action_space = BOX, PUSHES

    def __init__(self, at_reset: Any = None, **fourth: Any) -> None:
        self.at_reset, self.fourth, self.steps = at_reset, fourth, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return (np.zeros(2, np.float32), {}) if self.at_reset is None else self.at_reset

    def step(self, action: Any) -> Any:
        self.steps += 1
        told = {"observation": np.zeros(2, np.float32), "reward": None, "terminated": False, "truncated": False}
        told |= self.fourth if self.steps == 4 else {}
        return (*(value for value in told.values() if value is not ...), {})


@pytest.mark.parametrize(
    ("fourth", "why"),
    [
        (
            {"truncated": ...},
            "the environment's step returns 4 values, expected observation, reward, terminated, trunc",
        ),
        ({"terminated": "no"}, "terminated is 'no', expected True or False"),
        ({"truncated": {"TimeLimit": True}}, "truncated is {'TimeLimit': True}, expected True or False"),
        ({"observation": MASKED}, "observation is a masked array"),
        (
            {"observation": f32([1e30, 0])},
            "observation[0] is 1.0000000150474662e+30, expected a finite number of at most 1e+09",
        ),
        ({"reward": "much"}, "reward is 'much', expected numbers"),
    ],
)
def test_what_an_environment_should_not_return_ends_explore_and_is_not_told(fourth, why):
    explorer = explorer_of()
    assert refusal(explorer.explore, Steady(**fourth), 9).startswith(why)
    assert (explorer.steps, int(explorer.history.size)) == (3, 3)
    explorer.explore(Steady(), 5)
    assert explorer.steps == 8


def test_an_environment_that_leaves_its_declared_bounds_is_explored_with_a_warning():
    """As LunarLander does: to refuse it would end a run where novelty leads."""
    explorer = explorer_of()
    with pytest.warns(UserWarning, match=r"observation\[1\] is far out of bounds, expected -1.0 to 9.0, as its space"):
        explorer.explore(Steady(observation=f32([0, 20])), 9)
    assert explorer.steps == 9
    assert np.asarray(explorer.history.transitions.next_state)[:9, 1].max() == 20


@pytest.mark.parametrize("old", [np.zeros(2, np.float32), (np.zeros(2), np.zeros(2), {}), (0.0, 0.0)])
def test_a_reset_of_the_older_form_is_refused(old):
    explorer = explorer_of()
    why = refusal(explorer.explore, Steady(at_reset=old), 9)
    assert why.startswith("the environment's reset returns ")
    assert "expected observation, info (a dict), as in Gymnasium since 0.26: wrap it" in why
    assert explorer.steps == 0


# Sizes -------------------------------------------------------------------------------------------


class Larger(gym.ObservationWrapper[Any, Any, Any]):
    """Pendulum in units that are `times` as small, or with one number out of order."""

    def __init__(self, times: float = 1.0, order: float = 0.0) -> None:
        super().__init__(gym.make("Pendulum-v1"))
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
        self.times, self.order, self.seen = times, order, 0

    def observation(self, observation: Any) -> Any:
        self.seen += 1
        broken = self.order if self.seen == 20 else 0.0
        return self.times * observation.astype(np.float64) + [broken, 0, 0]


def planned(env: gym.Env[Any, Any]) -> Explorer:
    explorer = explorer_of(env.observation_space, env.action_space, method="max", solver="gradient")
    explorer.explore(env, 40)
    return explorer


def test_planning_is_the_same_in_any_units_below_the_largest_number():
    """Powers of two lose nothing: with numbers up to 8 x 2^26, half of the largest, every action is the same."""
    plain, larger = planned(Larger()), planned(Larger(2.0**26))
    assert 0.5 * LARGEST < 8 * 2.0**26 < LARGEST
    np.testing.assert_array_equal(rows(plain)[1], rows(larger)[1])
    assert len(np.unique(rows(plain)[1])) > 30


def test_one_number_as_large_as_can_be_leaves_numbers_to_plan_with():
    explorer = planned(Larger(order=0.99 * LARGEST))
    last = explorer.figures[-1]
    assert last["step"] == 35.0
    assert np.isfinite(list(last.values())).all()
    assert (last["nonfinite"], last["skipped"] < 4) == (0, True), "four gradients, some of which can be followed"
    assert "at most 1e+09" in refusal(explorer.explore, Larger(order=1.01 * LARGEST), 30)


# Other types -------------------------------------------------------------------------------------

THINGS = [
    None,
    ["max"],
    {"a": 1},
    {1},
    1j,
    "x",
    b"x",
    10**30,
    np.array([1, 2]),
    np.zeros(0),
    MASKED,
    object(),
    int,
    BOX,
]


def calls(explorer: Explorer) -> dict[str, Any]:
    """By name: what is given a thing of the wrong type."""
    made: dict[str, Any] = {
        f"Explorer({name}=)": lambda thing, name=name: explorer_of(**{name: thing})
        for name in ("method", "preset", "seed", "devices", "reward", "reward_weight", "warm_up", "solver", "members")
    }
    told = {
        f"tell({name}=)": lambda thing, name=name: explorer.tell(**{**GOOD, name: thing})
        for name in (*GOOD, "terminated", "truncated", "reward")
    }
    return {
        **made,
        **told,
        "Explorer(space)": lambda thing: explorer_of(thing),
        "Explorer(actions)": lambda thing: explorer_of(BOX, thing),
        "ask": explorer.ask,
        "explore(env)": lambda thing: explorer.explore(thing, 1),
        "explore(until_utility=)": lambda thing: explorer.explore(Steady(), 1, until_utility=thing),
        "explore(progress=)": lambda thing: explorer.explore(Steady(), 1, progress=thing),
        "explore(watch=)": lambda thing: explorer.explore(Steady(), 1, watch=thing),
        "exploit(reward)": explorer.exploit,
        "exploit(seed=)": lambda thing: explorer.exploit("running", seed=thing),
        "exploit(horizon=)": lambda thing: explorer.exploit("running", horizon=thing),
        "utility": lambda thing: explorer.utility(thing, [[0.0]]),
        "save": explorer.save,
        "load": load,
    }


@pytest.mark.parametrize("name", calls(explorer_of()))
def test_a_thing_of_any_other_type_is_refused_in_one_line_or_makes_sense(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    explorer = explorer_of()
    explorer.tell(**GOOD)
    lines: list[str] = []
    for thing in THINGS:
        try:
            calls(explorer)[name](thing)
        except InputError as error:
            lines.append(str(error))
    assert lines
    assert not any("\n" in line for line in lines)
