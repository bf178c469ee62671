"""What Gymnasium's spaces become inside, and back; what cannot be used is refused in one line."""

import numpy as np
import pytest
from gymnasium import spaces

from maxplore.errors import InputError
from maxplore.spaces import actions, observations

DICT = spaces.Dict(
    {
        "position": spaces.Box(-np.inf, np.inf, (2,), np.float64),
        "gear": spaces.Discrete(3, start=-1),
        "lights": spaces.MultiBinary(2),
        "nested": spaces.Tuple((spaces.MultiDiscrete([2, 2]), spaces.Box(0, 9, (1, 2), np.float32))),
    }
)


def element(**changes):
    value = {
        "position": np.array([0.5, -2.0]),
        "gear": np.int64(1),
        "lights": np.array([1, 0], np.int8),
        "nested": (np.array([1, 0]), np.array([[3.0, 4.0]], np.float32)),
    }
    return {**value, **changes}


def refusal(function, *arguments):
    with pytest.raises(InputError) as caught:
        function(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Discrete ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0, 1, -3, 100])
def test_a_discrete_space_is_counted_from_0_inside(start):
    space = spaces.Discrete(4, start=start)
    for codec in (observations(space), actions(space)):
        for number in range(4):
            inside = codec.inward("action", np.int64(start + number))
            assert (int(inside), inside.shape, inside.dtype) == (number, (), np.int32)
            assert codec.outward(inside) == start + number
            assert codec.outward(inside) in space
        assert codec.batch("actions", [[start, start + 3]]).tolist() == [[0, 3]]


@pytest.mark.parametrize("start", [0, 1, -3])
@pytest.mark.parametrize("outside", [-1, 4, 10**6])
def test_a_number_out_of_range_is_refused_in_the_users_own_numbers(start, outside):
    codec = observations(spaces.Discrete(4, start=start))
    expected = f"is {start + outside}, expected a whole number from {start} to {start + 3}"
    assert refusal(codec.inward, "observation", start + outside) == f"observation {expected}"
    assert refusal(codec.batch, "states", [start, start + outside]) == f"states[1] {expected}"


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int32, np.float32])
@pytest.mark.parametrize("start", [1, -1])
def test_small_types_do_not_wrap_around(kind, start):
    codec = observations(spaces.Discrete(3, start=start))
    assert int(codec.inward("observation", kind(1))) == 1 - start
    if start == 1:
        assert "observation is 0" in refusal(codec.inward, "observation", kind(0))


@pytest.mark.parametrize("wrong", [0.5, np.nan, np.inf, "1", None, 1j, {"a": 1}])
def test_what_is_no_whole_number_is_refused_by_name(wrong):
    for start in (0, 1):
        assert refusal(actions(spaces.Discrete(4, start=start)).inward, "action", wrong).startswith("action ")


@pytest.mark.parametrize("wrong", [[0], [1, 2], [], [[1]], np.zeros((2, 2), int)])
def test_several_numbers_are_not_one(wrong):
    assert "shape" in refusal(actions(spaces.Discrete(4)).inward, "action", wrong)


# Box actions -------------------------------------------------------------------------------------


def lopsided(dtype=np.float32):
    low, high = np.array([[-1, 0], [2, -30]], dtype), np.array([[3, 1], [2.5, -10]], dtype)
    return spaces.Box(low, high, dtype=dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_an_action_is_between_minus_one_and_one_inside_and_in_its_own_units_outside(dtype):
    space = lopsided(dtype)
    codec = actions(space)
    for inside, outside in ((-1, space.low), (1, space.high), (0, [[1, 0.5], [2.25, -20]]), (7, space.high)):
        action = codec.outward(np.full(4, inside, np.float32))
        np.testing.assert_array_equal(action, outside)
        assert (action.dtype, action.shape) == (dtype, (2, 2))
        assert action in space
        np.testing.assert_array_equal(codec.inward("action", action), np.full(4, np.clip(inside, -1, 1), np.float32))
    np.testing.assert_array_equal(codec.outward(np.array([-1, 1, -1, 1])), [[-1, 1], [2, -10]])


def test_actions_come_back_as_they_went():
    space = lopsided()
    space.seed(0)
    codec = actions(space)
    for _ in range(20):
        action = space.sample()
        inside = codec.inward("action", action)
        assert (inside.shape, inside.dtype, bool((np.abs(inside) <= 1).all())) == ((4,), np.float32, True)
        np.testing.assert_allclose(codec.outward(inside), action, rtol=1e-5, atol=1e-5)


def test_a_batch_of_actions_is_each_of_them():
    space = lopsided()
    space.seed(1)
    codec, rows = actions(space), np.stack([space.sample() for _ in range(6)])
    each = np.stack([codec.inward("action", row) for row in rows])
    np.testing.assert_allclose(codec.batch("actions", rows), each, rtol=1e-6)
    np.testing.assert_allclose(codec.batch("actions", rows.reshape(2, 3, 2, 2)), each.reshape(2, 3, 4), rtol=1e-6)
    assert "(6, 4)" in refusal(codec.batch, "actions", rows.reshape(6, 4))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rounding_never_carries_an_action_out_of_its_space(dtype):
    ends = np.sort(np.random.default_rng(0).normal(size=(2, 2000)).astype(dtype), axis=0)
    ends = ends[:, ends[0] < ends[1]]
    space = spaces.Box(ends[0], ends[1], dtype=dtype)
    codec = actions(space)
    for inside in (-1, 1, np.nextafter(np.float32(1), 0), -2):
        assert codec.outward(np.full(ends.shape[1], inside, np.float32)) in space


def test_the_widest_finite_bounds_do_not_overflow():
    for dtype in (np.float32, np.float64):
        most = float(np.finfo(dtype).max)
        space = spaces.Box(-most, most, (1,), dtype)
        assert actions(space).outward(np.ones(1)) == most
        assert actions(space).outward(np.zeros(1)) == 0


def test_an_action_of_a_single_number_without_axes():
    codec = actions(spaces.Box(0.0, 4.0, (), np.float32))
    action = codec.outward(np.array([0.5]))
    assert (float(action), action.shape, action.dtype) == (3.0, (), np.float32)
    assert codec.inward("action", 3.0).tolist() == [0.5]


@pytest.mark.parametrize(("low", "high"), [(-np.inf, np.inf), (0, np.inf), (-np.inf, 0)])
def test_infinite_bounds_are_refused_with_what_to_do(low, high):
    message = refusal(actions, spaces.Box(low, high, (2,), np.float32))
    assert "finite" in message
    assert "TransformAction" in message


def test_bounds_of_which_one_alone_is_infinite_or_without_room_are_refused():
    high = np.array([1, np.inf], np.float32)
    assert "finite" in refusal(actions, spaces.Box(np.array([-1, -1], np.float32), high))
    same = np.array([1, 0], np.float32)
    assert "above" in refusal(actions, spaces.Box(np.zeros(2, np.float32), same))


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(0, 5, (2,), np.int64),
        spaces.Box(0, 255, (2,), np.uint8),
        spaces.Box(-1, 1, (0,), np.float32),
        spaces.MultiDiscrete([2, 3]),
        spaces.MultiBinary(2),
        spaces.Tuple((spaces.Discrete(2), spaces.Discrete(2))),
        spaces.Dict({"a": spaces.Discrete(2)}),
    ],
    ids=str,
)
def test_other_actions_are_refused_with_what_to_do(space):
    message = refusal(actions, space)
    assert message.startswith("action_space is ")
    assert "TransformAction" in message


def test_an_action_that_is_no_element_is_refused_by_entry():
    codec = actions(lopsided())
    assert refusal(codec.inward, "action", [[0, 0], [2, np.nan]]).startswith("action[1, 1] is nan")
    for wrong in (np.zeros(4), np.zeros((1, 2, 2)), 0.0, [[0.0], [1.0, 2.0]], "left"):
        assert refusal(codec.inward, "action", wrong).startswith("action ")


# Observations ------------------------------------------------------------------------------------


def test_dict_and_tuple_are_flattened_as_gymnasium_does_it():
    codec = observations(DICT)
    inside = codec.inward("observation", element())
    np.testing.assert_array_equal(inside, np.asarray(spaces.flatten(DICT, element()), np.float32))
    assert (inside.shape, inside.dtype) == (codec.entry.shape, np.float32)
    gear, lights, nested, position = [0, 0, 1], [1, 0], [0, 1, 1, 0, 3, 4], [0.5, -2]
    np.testing.assert_array_equal(inside, [*gear, *lights, *nested, *position])
    pair = spaces.Tuple((spaces.Discrete(2, start=5), spaces.Box(-1, 1, (1,), np.float32)))
    np.testing.assert_array_equal(observations(pair).inward("observation", (6, np.array([0.5]))), [0, 1, 0.5])


def test_a_flattened_observation_comes_back():
    codec = observations(DICT)
    back = codec.outward(codec.inward("observation", element()))
    assert back in DICT
    np.testing.assert_array_equal(spaces.flatten(DICT, back), spaces.flatten(DICT, element()))


def test_samples_of_every_part_are_flattened_as_gymnasium_does_it():
    DICT.seed(0)
    codec = observations(DICT)
    for _ in range(10):
        value = DICT.sample()
        np.testing.assert_array_equal(
            codec.inward("observation", value), np.asarray(spaces.flatten(DICT, value), np.float32)
        )


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"position": [0.0, np.nan]}, "observation['position'][1] is nan"),
        ({"position": [np.inf, 0.0]}, "observation['position'][0] is inf"),
        ({"position": [1e300, 0.0]}, "observation['position'][0] is 1e+300"),
        ({"position": [0.0]}, "observation['position'] has shape (1,), expected (2,)"),
        ({"gear": 2}, "observation['gear'] is 2, expected a whole number from -1 to 1"),
        ({"gear": -2}, "observation['gear'] is -2"),
        ({"gear": 0.5}, "observation['gear'] is 0.5"),
        ({"lights": [0, 2]}, "observation['lights'][1] is 2"),
        ({"nested": ([0, -1], [[0, 0]])}, "observation['nested'][0][1] is -1"),
        ({"nested": ([0, 0], [[0, np.nan]])}, "observation['nested'][1][0, 1] is nan"),
        ({"nested": ([0, 0],)}, "observation['nested'] is a tuple"),
        ({"nested": ([0, 0], [[0, 0]], 1)}, "observation['nested'] is a tuple"),
        ({"nested": None}, "observation['nested'] is a NoneType"),
        ({"more": 1}, "observation is a dict, expected one with exactly the parts"),
    ],
)
def test_a_wrong_part_of_an_observation_is_refused_by_name(changes, where):
    assert refusal(observations(DICT).inward, "observation", element(**changes)).startswith(where)


@pytest.mark.parametrize("wrong", [None, 3, "abc", {}, {"position": [0.0, 0.0]}, np.zeros(13)])
def test_what_is_no_dict_of_these_parts_is_refused(wrong):
    assert refusal(observations(DICT).inward, "observation", wrong).startswith("observation is a ")


def test_a_box_of_any_shape_becomes_a_vector_in_its_own_units():
    codec = observations(spaces.Box(-np.inf, np.inf, (2, 3), np.float64))
    value = np.arange(6.0).reshape(2, 3) * 1e6
    inside = codec.inward("observation", value)
    np.testing.assert_array_equal(inside, value.reshape(-1))
    assert inside.dtype == np.float32
    assert codec.batch("observations", np.stack([value] * 5)).shape == (5, 6)
    assert refusal(codec.inward, "observation", np.where(value == 5e6, np.nan, value)).startswith("observation[1, 2] ")
    assert observations(spaces.Box(0, 1, ())).inward("observation", 0.5).tolist() == [0.5]


@pytest.mark.parametrize("shape", [(3, 2), (6,), (4, 6), (1, 2, 3), (), (0, 6), (0, 2, 3)])
def test_a_box_of_another_shape_is_refused(shape):
    codec = observations(spaces.Box(-1, 1, (2, 3)))
    expected = f"observation has shape {shape}, expected (2, 3)"
    assert refusal(codec.inward, "observation", np.zeros(shape)).startswith(expected)


def test_ragged_and_wordy_observations_are_refused():
    codec = observations(spaces.Box(-1, 1, (2,)))
    for wrong in ([[1.0], [1.0, 2.0]], ["a", "b"], [None, 1.0], None):
        assert refusal(codec.inward, "observation", wrong).startswith("observation ")


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(0, 255, (84, 84, 3), np.uint8),
        spaces.Box(0, 255, (8, 8), np.uint8),
        spaces.Box(0, 1, (84, 84), np.float32),
        spaces.Dict({"state": spaces.Discrete(2), "camera": spaces.Box(0, 255, (8, 8, 3), np.uint8)}),
        spaces.Tuple((spaces.Tuple((spaces.Box(0, 255, (8, 8, 3), np.uint8),)),)),
    ],
    ids=["colour", "grey", "real", "dict", "tuple"],
)
def test_an_image_is_refused_with_what_to_do(space):
    message = refusal(observations, space)
    assert "image" in message
    assert "TransformObservation" in message


def test_a_vector_of_bytes_is_no_image():
    assert observations(spaces.Box(0, 255, (128,), np.uint8)).entry.shape == (128,)


@pytest.mark.parametrize(
    "space", [spaces.Box(-1, 1, (0,)), spaces.Box(-1, 1, (3, 0)), spaces.Dict({}), spaces.Tuple(())], ids=str
)
def test_a_space_with_nothing_in_it_is_refused(space):
    assert "at least one number" in refusal(observations, space)


@pytest.mark.parametrize(
    "space",
    [spaces.Text(3), spaces.Sequence(spaces.Discrete(2)), spaces.Dict({"a": spaces.Text(3)})],
    ids=["text", "sequence", "inside"],
)
def test_observations_of_another_kind_are_refused_with_what_to_do(space):
    assert "TransformObservation" in refusal(observations, space)
