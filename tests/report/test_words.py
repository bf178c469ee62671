"""Where the models disagree most: constructed cases with a known answer."""

import numpy as np

from maxplore.report import words
from maxplore.report.svg import Scale, bar_labels, round_numbers, scale

GRID = np.linspace(0.0, 1.0, 100)


def test_the_dimension_that_matters_is_named_with_its_numbers():
    """Utility is 1 where x is in its highest tenth, wherever y is."""
    states = np.stack([GRID, np.tile(GRID[::10], 10)], axis=1)
    utility = np.where(np.arange(100) >= 90, 1.0, 0.1)
    text = words.region(states, utility, states, ["x (m)", "y (m)"])
    where = "x (m) from 0.932 to 0.977 (93rd to 97th percentile of what was seen)"
    assert text == f"{where}; mean utility 1 nats against 0.1 elsewhere."


def test_the_largest_shift_comes_first_in_units_of_the_spread():
    states = np.stack([GRID, np.where(np.arange(100) >= 90, 1e3, 0.0)], axis=1)
    utility = np.where(np.arange(100) >= 90, 1.0, 0.1)
    first, second = words.shifts(states, utility)
    assert (first.dimension, second.dimension) == (1, 0)
    assert first.size > second.size > 1


def test_what_nobody_has_seen_is_said_so():
    states = GRID[:, None]
    utility = np.where(np.arange(100) >= 90, 1.0, 0.1)
    assert "above all that was seen" in words.region(states, utility, states[:50], ["x"])
    assert "below all that was seen" in words.region(states, utility, states[:50] + 2.0, ["x"])


def test_where_it_is_all_the_same_no_place_is_named():
    text = words.region(GRID[:, None], np.full(100, 0.5), GRID[:, None], ["x"])
    assert text.startswith("about the same everywhere")
    scattered = np.where(np.arange(100) % 10 == 0, 1.0, 0.1)
    assert words.region(GRID[:, None], scattered, GRID[:, None], ["x"]).startswith("no dimension by itself")


def test_dimensions_that_never_vary_tell_nothing():
    states = np.stack([GRID, np.full(100, 3.0)], axis=1)
    assert [shift.dimension for shift in words.shifts(states, GRID)] == [0]


def test_the_most_uncertain_pairs():
    utility = np.array([[0.0, 0.7], [0.1, 0.2]])
    tried = np.array([[5, 0], [1, 2]])
    assert words.pairs(utility, tried, first=3) == (
        "action 1 in state 3 (0.7 nats, never tried), action 1 in state 4 (0.2 nats, tried 2 times) and action 0 in "
        "state 4 (0.1 nats, tried once); 1 of 4 pairs were never tried, with a mean utility of 0.7 nats against 0.1."
    )


def test_ticks_are_round_and_within():
    assert round_numbers(0.0, 400.0) == [0.0, 100.0, 200.0, 300.0, 400.0]
    assert round_numbers(-0.07, 0.07) == [-0.05, 0.0, 0.05]
    assert round_numbers(2.0, 2.0) == [2.0]
    for low, high in ((1e-7, 3e-7), (-1e9, 5e9), (0.999, 1.001)):
        slack = 1e-9 * (high - low)
        assert all(low - slack <= tick <= high + slack for tick in round_numbers(low, high))


def test_a_scale_has_room_for_one_value_and_for_many_orders():
    assert scale([5.0], 0.0, 100.0)(5.0) == 50.0
    assert scale([0.02, 30.0], 0.0, 100.0, log=True) == Scale(0.01, 100.0, 0.0, 100.0, log=True)
    assert scale([0.02, 30.0], 0.0, 100.0, log=True)(1.0) == 50.0
    assert bar_labels(0.0, 1.0) == ["0.00", "0.25", "0.50", "0.75", "≥1.00"]
