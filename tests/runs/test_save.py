"""Saved and loaded, an explorer goes on as if it had never been away."""

import json
import zipfile
from typing import Any

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import maxplore
from maxplore import Explorer, InputError
from maxplore.explorer import SAVED
from maxplore.explorers import dreams
from maxplore.runs import checkpoint
from maxplore.runs.plain import setting_from_plain, setting_to_plain, space_from_plain, space_to_plain
from maxplore.solvers import Gradient, GradientConfig, Icem, IcemConfig, Sac, SacConfig
from maxplore.utilities import JensenRenyi

TINY_SAC = Sac(SacConfig(batch_size=16, history_updates=2, episodes=4, steps=3, actors=4, updates=2, width=16))


def drive(explorer, env, observation, steps):
    """So many steps of ask and tell; where it ends."""
    for _ in range(steps):
        action = explorer.ask(observation)
        following, reward, terminated, truncated, _ = env.step(action)
        explorer.tell(observation, action, following, terminated=terminated, truncated=truncated, reward=float(reward))
        observation = env.reset()[0] if terminated or truncated else following
    return observation


def assert_same(one, two):
    """All arrays of two pytrees are equal to the last bit."""
    left, right = (jax.tree.leaves(eqx.filter(x, eqx.is_array)) for x in (one, two))
    assert len(left) == len(right)
    for a, b in zip(left, right, strict=True):
        np.testing.assert_array_equal(a, b)


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "gradient": ("maxplore/MountainCar-v0", {"preset": "smoke"}),
    "sac, warm model": (
        "maxplore/MountainCar-v0",
        {"preset": "smoke", "solver": TINY_SAC, "warm_start": True, "fresh_every": 3},
    ),
    "dreams": (
        "maxplore/MountainCar-v0",
        {"preset": "smoke", "dreams": 0.5, "dream_steps": 10},  # the pause is in the midst of one
    ),
    "icem, numbered, early ends": (
        "CartPole-v1",
        {"preset": "smoke", "warm_up": 20, "plan_every": 10, "followed": 3},  # the pole has fallen by then
    ),
    "random": ("maxplore/MountainCar-v0", {"method": "random"}),
    "max, finite": ("maxplore/Chain-v0", {"preset": "smoke", "members": 3}),
    "bootstrapped dqn": ("maxplore/Chain-v0", {"method": "bootstrapped-dqn"}),
}


@pytest.mark.parametrize("case", CASES)
def test_it_goes_on_as_if_it_had_never_been_away(case, tmp_path, monkeypatch):
    """Two explorers in two equal environments; one is saved, thrown away and loaded on the way."""
    monkeypatch.setattr(dreams, "DREAMER", Gradient(GradientConfig(iterations=3, actors=4, width=8)))
    (name, named), pause = CASES[case], 33
    envs = [gym.make(name) for _ in range(2)]
    steady, other = (Explorer(env.observation_space, env.action_space, seed=3, **named) for env in envs)
    places = [
        drive(explorer, env, env.reset(seed=1)[0], pause) for explorer, env in zip((steady, other), envs, strict=True)
    ]
    other.save(tmp_path / "run")
    restored = maxplore.load(tmp_path / "run")
    assert restored.figures == steady.figures or np.isnan([list(row.values()) for row in steady.figures]).any()
    assert restored.steps == pause
    drive(steady, envs[0], places[0], 28)
    drive(restored, envs[1], places[1], 28)
    assert_same(steady.history, restored.history)
    assert_same(vars(steady._agent).get("ensemble"), vars(restored._agent).get("ensemble"))
    assert_same(vars(steady._agent).get("mind"), vars(restored._agent).get("mind"))
    assert len(steady.figures) == len(restored.figures)
    for own, again in zip(steady.figures, restored.figures, strict=True):
        np.testing.assert_array_equal(list(own.values()), list(again.values()))


def test_before_anything_happened_it_can_be_saved_too(tmp_path):
    env = gym.make("maxplore/MountainCar-v0")
    Explorer(env.observation_space, env.action_space, preset="smoke", warm_up=11).save(tmp_path)
    restored = maxplore.load(tmp_path)
    assert restored.steps == 0
    drive(restored, env, env.reset(seed=0)[0], 12)
    assert restored.model.size == 3
    assert [row["step"] for row in restored.figures] == [11.0]


def test_asked_but_not_yet_told_it_still_gives_the_same_answer(tmp_path):
    """Saved between asking and telling; with nothing held out, calibration is no number, and is kept as such."""
    env = gym.make("maxplore/MountainCar-v0")
    explorer = Explorer(env.observation_space, env.action_space, preset="smoke", solver="icem", held_out=0.0)
    here = drive(explorer, env, env.reset(seed=0)[0], 12)
    answer = explorer.ask(here)
    explorer.save(tmp_path)
    restored = maxplore.load(tmp_path)
    np.testing.assert_array_equal(restored.ask(here), answer)
    other = here + np.array([0.1, 0.0], np.float32)
    np.testing.assert_array_equal(restored.ask(other), explorer.ask(other))
    assert np.isnan(restored.figures[0]["calibration"])


def test_a_reward_is_given_again(tmp_path):
    env = gym.make("maxplore/MountainCar-v0")

    def reward(s, a, s2):
        return s2[0]

    paid: dict[str, Any] = {"reward": reward, "reward_weight": 0.5, "solver": "icem"}
    explorer = Explorer(env.observation_space, env.action_space, preset="smoke", **paid)
    drive(explorer, env, env.reset(seed=0)[0], 11)
    explorer.save(tmp_path)
    with pytest.raises(InputError, match="reward is not given, expected the reward that it was made with"):
        maxplore.load(tmp_path)
    again = maxplore.load(tmp_path, reward=reward)
    states, actions = np.zeros((3, 2)), np.zeros((3, 1))
    np.testing.assert_array_equal(explorer.utility(states, actions), again.utility(states, actions))


# Bad files ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    env = gym.make("maxplore/MountainCar-v0")
    explorer = Explorer(env.observation_space, env.action_space, preset="smoke")
    drive(explorer, env, env.reset(seed=0)[0], 12)
    explorer.save(folder)
    return folder / SAVED


def altered(saved, path, change):
    """A copy of a saved explorer with something changed."""
    with np.load(saved) as file:
        arrays = {name: file[name] for name in file.files}
    about = json.loads(arrays["about"].tobytes())
    change(about, arrays)
    if "about" in arrays:
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
        arrays["digest"] = checkpoint.digest(arrays)  # by somebody who knows how
    np.savez(path / SAVED, **arrays)


def _retype(about, arrays):
    arrays["ensemble/0"] = arrays["ensemble/0"].astype(np.float64)


def _cut(about, arrays):
    arrays["history/0"] = arrays["history/0"][:-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda about, arrays: about.update(format=99), "has format 99, expected 2: it is from another version"),
        (lambda about, arrays: about.pop("format"), "no file of maxplore's, or damaged"),
        (lambda about, arrays: arrays.pop("about"), "no file of maxplore's, or damaged"),
        (lambda about, arrays: about.pop("agent"), "damaged .*agent"),
        (lambda about, arrays: about["agent"].pop("rounds"), "damaged .*rounds"),
        (lambda about, arrays: about.update(observation_space={"kind": "Cube"}), "there is no space of kind 'Cube'"),
        (lambda about, arrays: about.update(settings={"solver": {"part": "os", "settings": {}}}), "damaged .*'os'"),
        (lambda about, arrays: about.update(settings={"membres": 3}), "there is no setting 'membres'"),
        (lambda about, arrays: about.update(settings={"reward": 1}), "damaged .*reward"),
        (lambda about, arrays: about["made"].update(method=[]), r"damaged .*Type(Check)?Error"),
        (lambda about, arrays: about["agent"].update(steps="a"), "damaged"),
        (lambda about, arrays: about["made"].update(method="maxx"), "method is 'maxx', expected one of"),
        (lambda about, arrays: arrays.pop("ensemble/0"), "ensemble/0 is nothing, expected float32"),
        (lambda about, arrays: arrays["ensemble/0"].fill(np.nan), "ensemble/0 has NaN in it"),
        (_retype, "ensemble/0 is float64"),
        (_cut, r"history/0 is float32\[11, 2\], expected float32\[12, 2\]"),
    ],
)
def test_a_damaged_or_foreign_file_is_refused_in_one_line(saved, tmp_path, change, message):
    altered(saved, tmp_path, change)
    with pytest.raises(InputError, match=message) as caught:
        maxplore.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_what_is_no_such_file_at_all_is_refused(saved, tmp_path):
    with pytest.raises(InputError, match="nothing was saved there"):
        maxplore.load(tmp_path)
    path = tmp_path / SAVED
    for content in (b"", b"hello", saved.read_bytes()[:2000], saved.read_bytes()[:-100]):
        path.write_bytes(content)
        with pytest.raises(InputError, match="no file of maxplore's, or damaged") as caught:
            maxplore.load(tmp_path)
        assert "\n" not in str(caught.value)


def test_a_pickle_is_not_loaded(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was loaded",))

    np.savez(tmp_path / SAVED, about=np.array([Bomb()], dtype=object))
    with pytest.raises(InputError, match="damaged"):
        maxplore.load(tmp_path)


def test_a_failed_save_leaves_the_old_one(saved, tmp_path, monkeypatch):
    before = saved.read_bytes()

    def full(*inputs, **named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint.np, "savez", full)
    with pytest.raises(InputError, match="No space left on device"):
        maxplore.load(saved.parent).save(saved.parent)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [SAVED]


def test_nothing_in_the_file_is_an_object(saved):
    with zipfile.ZipFile(saved) as file:
        assert file.testzip() is None
    with np.load(saved, allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)


# Plain JSON --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1.2, 0.6, (2,)),
        spaces.Box(np.array([-np.inf, 0.1], np.float32), np.array([np.inf, 0.3], np.float32)),
        spaces.Box(0, 255, (3,), np.uint8),
        spaces.Box(-1, 1, (2, 3), np.float64),
        spaces.Discrete(5, start=-2),
        spaces.MultiBinary(4),
        spaces.MultiDiscrete([3, 4]),
        spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 1, (1,)))),
        spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Dict({"x": spaces.Box(0, 1, (1,))})}),
    ],
)
def test_spaces_come_back_equal(space):
    again = space_from_plain(json.loads(json.dumps(space_to_plain(space))))
    assert again == space
    assert again.dtype == space.dtype


@pytest.mark.parametrize(
    "value",
    [
        3,
        0.5,
        "tanh",
        None,
        True,
        (-10.0, 0.5),
        Icem(IcemConfig(horizon=9)),
        JensenRenyi(0.3),
        Gradient(GradientConfig()),
    ],
)
def test_settings_come_back_equal(value):
    assert setting_from_plain(json.loads(json.dumps(setting_to_plain("it", value)))) == value


def test_a_setting_of_ones_own_is_refused_by_name(tmp_path):
    env = gym.make("maxplore/MountainCar-v0")
    explorer = Explorer(env.observation_space, env.action_space, preset="smoke", solver_activation=jnp.tanh)
    with pytest.raises(InputError, match=r"solver_activation is .* cannot be saved"):
        explorer.save(tmp_path)
    assert not list(tmp_path.iterdir())
