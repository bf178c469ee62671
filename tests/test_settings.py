"""Settings by name: found however deep they are, refused by name when they cannot be."""

import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest

from maxplore.errors import InputError
from maxplore.explorers import PAPER_MAX, FiniteMaxConfig, MaxExplorer, RandomExplorer
from maxplore.models import FitConfig, GaussianConfig, MemberConfig
from maxplore.settings import names_of, overridden


@dataclass(frozen=True)
class Inner:
    discount: float = 0.9
    rounds: int = 3


@dataclass(frozen=True)
class Outer:
    discount: float = 0.5
    label: str = "a"
    loud: bool = False
    limit: int | None = None
    inner: Inner = Inner()
    other: Inner = Inner(rounds=9)


def refusal(config, **settings):
    with pytest.raises(InputError) as caught:
        overridden(config, settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_name_found_once_stands_alone_and_shared_ones_say_where_they_live():
    own, shared = {"discount", "label", "loud", "limit"}, {"discount", "rounds"}
    assert set(names_of(Outer())) == own | {f"{part}_{name}" for part in ("inner", "other") for name in shared}
    assert names_of(FiniteMaxConfig())["discount"] == ("planner", "discount")


def test_the_paths_of_an_explorer_begin_where_names_begin_to_differ():
    """The paper's MAX has a depth of its networks and one of its search."""
    names = names_of(MaxExplorer(PAPER_MAX))
    assert names["planner_depth"] == ("config", "planner", "depth")
    assert names["model_depth"] == ("config", "model", "depth")
    assert "depth" not in names
    changed = overridden(MaxExplorer(PAPER_MAX), {"planner_depth": 7}).config
    assert changed == overridden(PAPER_MAX, {"planner_depth": 7})
    assert changed.model == PAPER_MAX.model
    message = refusal(MaxExplorer(PAPER_MAX), depth=7)
    assert "model_depth" in message
    assert "planner_depth" in message


def test_no_name_is_lost():
    for config in (Outer(), FiniteMaxConfig(), MaxExplorer(PAPER_MAX), FitConfig()):
        names = names_of(config)
        assert len(set(names.values())) == len(names)
    assert len(names_of(Outer())) == 8


def test_nested_settings_change_their_own_field_and_nothing_else():
    config = Outer()
    changed = overridden(config, {"inner_rounds": 4, "label": "b", "other_discount": 0.1})
    assert changed == Outer(label="b", inner=Inner(rounds=4), other=Inner(0.1, 9))
    assert config == Outer()
    assert config.inner is Outer().inner


def test_no_settings_change_nothing():
    assert overridden(Outer(), {}) == Outer()
    assert overridden(RandomExplorer(), {}) == RandomExplorer()


def test_max_takes_settings_of_all_its_parts_at_once():
    before = MaxExplorer(FiniteMaxConfig())
    after = overridden(before, {"members": 7, "discount": 0.5, "tolerance": 0.1, "warm_up": 1, "once": True}).config
    assert after.model == MemberConfig(7, 2, 64, "tanh", first_gain=6.0)
    assert (after.warm_up, after.training.tolerance, after.training.iterations) == (1, 0.1, 60)  # pyright: ignore
    assert (after.planner.discount, after.planner.once) == (0.5, True)  # pyright: ignore
    assert before == MaxExplorer(FiniteMaxConfig())


@pytest.mark.parametrize(
    ("wrong", "near"), [("member", "members"), ("disount", "discount"), ("warmup", "warm_up"), ("lr_rate", "learning")]
)
def test_an_unknown_name_is_refused_with_those_near_it(wrong, near):
    message = refusal(MaxExplorer(), **{wrong: 1})
    assert repr(wrong) in message
    assert near in message


def test_a_name_near_to_nothing_is_refused_with_all_there_are():
    message = refusal(Outer(), zzzzzz=1)
    assert all(name in message for name in names_of(Outer()))


def test_where_there_are_no_settings_at_all_the_refusal_says_so():
    assert "none" in refusal(RandomExplorer(), members=3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("inner_rounds", True),
        ("inner_rounds", 3.0),
        ("inner_rounds", "3"),
        ("inner_rounds", None),
        ("inner_rounds", math.nan),
        ("discount", True),
        ("discount", "0.5"),
        ("discount", None),
        ("discount", math.nan),
        ("discount", np.float32(np.nan)),
        ("discount", [0.5]),
        ("discount", 1j),
        ("loud", 1),
        ("loud", "False"),
        ("loud", None),
        ("label", 3),
        ("label", None),
        ("limit", "3"),
        ("limit", False),
        ("limit", 2.5),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(name, value):
    assert refusal(Outer(), **{name: value}).startswith(f"{name} is {value!r}, expected ")


def test_whole_numbers_stand_for_real_ones_and_become_them():
    changed = overridden(Outer(), {"discount": 1, "inner_discount": np.int32(0), "other_discount": np.float32(0.25)})
    assert [type(x) for x in (changed.discount, changed.inner.discount, changed.other.discount)] == [float] * 3
    assert (changed.discount, changed.inner.discount, changed.other.discount) == (1.0, 0.0, 0.25)


def test_numpys_whole_numbers_and_truths_become_pythons():
    changed = overridden(Outer(), {"inner_rounds": np.int64(4), "loud": np.bool(True), "limit": np.uint8(2)})
    assert (changed.inner.rounds, changed.loud, changed.limit) == (4, True, 2)
    assert [type(x) for x in (changed.inner.rounds, changed.loud, changed.limit)] == [int, bool, int]


def test_none_is_taken_only_where_the_field_allows_it():
    assert overridden(Outer(limit=3), {"limit": None}).limit is None
    assert overridden(GaussianConfig(), {"initial_log_variance": None}).initial_log_variance is None
    assert refusal(GaussianConfig(), members=None).startswith("members is None")


def test_an_activation_is_a_name_or_a_function():
    assert overridden(MemberConfig(), {"activation": jnp.sin}).activation is jnp.sin
    assert overridden(MemberConfig(activation=jnp.sin), {"activation": "relu"}).activation == "relu"
    assert "activation is 'sinus'" in refusal(MemberConfig(), activation="sinus")
    assert "activation is 3" in refusal(MemberConfig(), activation=3)


def test_bounds_are_as_many_numbers_as_there_were():
    assert overridden(GaussianConfig(), {"log_variance": [-3, 1]}).log_variance == (-3.0, 1.0)
    for wrong in ((1.0,), (-1.0, 0.0, 1.0), (-1.0, "1"), 3.0, (math.nan, 1.0)):
        assert "log_variance" in refusal(GaussianConfig(), log_variance=wrong)


def test_settings_that_only_make_sense_together_may_come_in_any_order():
    for settings in ({"patience": 3, "held_out": 0.1}, {"held_out": 0.1, "patience": 3}):
        assert overridden(FitConfig(), settings) == FitConfig(patience=3, held_out=0.1)
    assert "held_out" in refusal(FitConfig(), patience=3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("members", 0),
        ("members", -2),
        ("width", 0),
        ("depth", -1),
        ("first_gain", 0),
        ("first_gain", math.inf),
        ("warm_up", -1),
        ("discount", 1.5),
        ("discount", -0.1),
        ("tolerance", -0.1),
        ("iterations", -1),
        ("learning_rate", -1e-3),
        ("learning_rate", math.inf),
        ("weight_decay", -1),
    ],
)
def test_an_impossible_value_is_refused_by_name(name, value):
    kind = float if isinstance(value, float) or name in ("first_gain", "weight_decay") else int
    assert refusal(MaxExplorer(), **{name: value}).startswith(f"{name} is {kind(value)}, expected ")


def test_a_longer_name_and_a_whole_part_will_do_too():
    assert overridden(FiniteMaxConfig(), {"planner_discount": 0.5}) == overridden(FiniteMaxConfig(), {"discount": 0.5})
    changed = overridden(Outer(), {"inner": Inner(rounds=7), "inner_discount": 0.25})
    assert changed == Outer(inner=Inner(0.25, 7)), "what is given beside a part changes the new part"
    assert refusal(Outer(), inner=3).startswith("inner is 3, expected")


def test_a_name_that_means_something_else_already_needs_a_longer_one():
    assert names_of(Inner(), taken=()) == {"discount": ("discount",), "rounds": ("rounds",)}
    assert set(names_of(FiniteMaxConfig(), taken=("discount",))) >= {"planner_discount"}
    assert "discount" not in names_of(FiniteMaxConfig(), taken=("discount",))
