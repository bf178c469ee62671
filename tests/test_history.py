"""D keeps what it is given, refuses what it cannot use, and never recompiles inside a capacity."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxplore import InputError
from maxplore.history import History, Transition, held_out, member_bags, shuffled
from tests.counting import compilations


def rows(n, dims=2, actions=1):
    numbers = np.random.default_rng(n)
    return numbers.normal(size=(n, dims)), numbers.normal(size=(n, actions)), numbers.normal(size=(n, dims))


def contents(history):
    return [np.asarray(column)[: int(history.size)] for column in jax.tree.leaves(history.transitions)]


@settings(deadline=None, max_examples=25, derandomize=True)
@given(st.lists(st.integers(0, 9), max_size=8), st.sampled_from([1, 6]))
def test_any_way_of_appending_keeps_every_row_in_order(chunks, capacity):
    states, actions, next_states = rows(sum(chunks))
    flags = np.arange(sum(chunks)) % 3 == 0
    history, begin = History.continuous(2, 1, capacity=capacity), 0
    for count in chunks:
        part = slice(begin, begin + count)
        history = history.append(states[part], actions[part], next_states[part], flags[part], ~flags[part])
        begin += count
    wanted = [states, actions, next_states, flags, ~flags]
    for got, want in zip(contents(history), wanted, strict=True):
        np.testing.assert_array_equal(got, want.astype(got.dtype))
    assert history.capacity >= begin
    assert history.capacity % capacity == 0
    assert np.log2(history.capacity // capacity) % 1 == 0, "it grows by doubling"


def test_one_transition_needs_no_leading_axis():
    history = History.continuous(2, 1).append([1.0, 2.0], [3.0], [4.0, 5.0], True)
    assert int(history.size) == 1
    np.testing.assert_array_equal(history[jnp.array(0)].next_state, [4.0, 5.0])
    assert bool(history[jnp.array(0)].terminated)
    assert not bool(history[jnp.array(0)].truncated)


def test_inside_a_capacity_nothing_recompiles():
    traces = []

    @eqx.filter_jit
    def user(history):
        traces.append(history.capacity)
        return jnp.sum(history.transitions.state) + history.size

    history = History.continuous(2, 1, capacity=16)
    for count in (1, 2):
        history = history.append(*rows(count))
        user(history)
    with compilations() as compiled:
        for count in (3, 1, 5, 1, 2):  # 15 of 16
            history = history.append(*rows(count))
            user(history)
    assert compiled == [], "however many rows come at a time"
    assert traces == [16]
    with compilations() as compiled:
        user(history.append(*rows(10)))
    assert compiled, "the counter does count"
    assert traces == [16, 32]


NAN_ROW = np.array([[0.0, 0.0], [0.0, np.nan]])
REFUSED = [
    ("next_state", NAN_ROW, r"next_state\[1, 1\] is nan, expected a finite"),
    ("state", np.array([[np.inf, 0.0], [0.0, 0.0]]), r"state\[0, 0\] is inf"),
    ("state", np.array([[1e300, 0.0], [0.0, 0.0]]), r"state\[0, 0\] is 1e\+300"),
    ("action", np.zeros((2, 3)), r"action has shape \(2, 3\), expected \(1,\) for one transition or \(n, 1\)"),
    ("action", np.zeros((3, 1)), r"action has 3 rows, expected 2"),
    ("state", np.array([["a", "b"], ["c", "d"]]), "state has dtype"),
    ("state", [[1.0, 2.0], [3.0]], "state is not a rectangular array"),
    ("terminated", np.array([True]), "terminated has 1 rows, expected 2"),
    ("terminated", np.array([0.5, 0.0]), r"terminated\[0\] is 0.5, expected True or False"),
    ("next_state", np.array([[0.0, 0.0], [1e10, 0.0]]), r"next_state\[1, 0\] is 10000000000.0, .* at most 1e\+09"),
    ("state", np.ma.masked_array(np.zeros((2, 2)), False), "state is a masked array, expected a plain one"),
    ("truncated", np.zeros((2, 1), bool), r"truncated has shape \(2, 1\)"),
]


@pytest.mark.parametrize(("name", "value", "message"), REFUSED)
def test_what_cannot_be_used_is_refused_and_nothing_is_added(name, value, message):
    history = History.continuous(2, 1).append(*rows(3))
    before = contents(history)
    arguments = {
        "state": np.array([[0.0, 0.0], [-1e9, 0.0]]),
        "action": np.zeros((2, 1)),
        "next_state": np.zeros((2, 2)),
        name: value,
    }
    with pytest.raises(InputError, match=message):
        history.append(**arguments)
    for old, now in zip(before, contents(history), strict=True):
        np.testing.assert_array_equal(old, now)


def test_one_bad_number_is_named_without_a_row():
    with pytest.raises(InputError, match=r"next_state\[1\] is nan"):
        History.continuous(2, 1).append([0.0, 0.0], [0.0], [0.0, np.nan])


@pytest.mark.parametrize("value", [5, -1, 2.5, np.nan])
def test_discrete_entries_are_whole_numbers_in_range(value):
    history = History.discrete(states=5, actions=2)
    with pytest.raises(InputError, match=r"next_state is .*, expected a whole number from 0 to 4"):
        history.append(0, 1, value)
    with pytest.raises(InputError, match=r"action\[1\] is 2, expected a whole number from 0 to 1"):
        history.append([0, 1], [0, 2], [1, 2])
    assert int(history.append(0, 1, 4).size) == 1


def test_a_capacity_below_one_is_refused():
    with pytest.raises(InputError, match="capacity is 0"):
        History.continuous(2, 1, capacity=0)


def test_write_inside_compiled_code_equals_append_and_drops_what_has_no_room():
    states, actions, next_states = (x.astype(np.float32) for x in rows(5))
    flags = np.zeros(5, bool)
    transitions = Transition(*map(jnp.asarray, (states, actions, next_states, flags, flags)))
    empty = History.continuous(2, 1, capacity=3)
    full = jax.jit(lambda h, t: jax.lax.scan(lambda h, t: (h.write(t), None), h, t)[0])(empty, transitions)
    assert int(full.size) == 3
    for got, want in zip(contents(full), contents(empty.append(states[:3], actions[:3], next_states[:3])), strict=True):
        np.testing.assert_array_equal(got, want)


def filled(n, capacity=32):
    return History.continuous(2, 1, capacity=capacity).append(*rows(n))


def test_every_member_sees_all_of_d_in_an_order_of_its_own():
    history = filled(20)
    bags, count = member_bags(history, 3, key=jax.random.key(0), chosen=history.filled)
    assert int(count) == 20
    order = np.asarray(shuffled(bags, count, key=jax.random.key(1)))[:, :20]
    for member in order:
        np.testing.assert_array_equal(np.sort(member), np.arange(20))
    assert not (order[0] == order[1]).all()
    assert not (order == np.asarray(shuffled(bags, count, key=jax.random.key(2)))[:, :20]).all(), "epochs differ"


def test_shuffles_are_uniform():
    history = filled(4, capacity=8)
    bags, count = member_bags(history, 6000, key=jax.random.key(0), chosen=history.filled)
    first = np.asarray(shuffled(bags, count, key=jax.random.key(1)))[:, 0]
    np.testing.assert_allclose(np.bincount(first, minlength=4) / 6000, 0.25, atol=0.03)


def test_the_first_places_of_a_shuffle_are_those_of_all_of_it():
    """So many rows that some draw the same number: ties, too, are the same."""
    history = History.continuous(1, 1, capacity=2**16)
    chosen = jnp.arange(2**16) % 3 > 0
    bags, count = member_bags(history, 2, key=jax.random.key(0), chosen=chosen)
    np.testing.assert_array_equal(bags[0], np.argsort(~np.asarray(chosen), stable=True))
    whole = shuffled(bags, count, key=jax.random.key(1))
    assert len(np.unique(jax.random.uniform(jax.random.key(1), whole.shape)[0])) < 2**16, "there are ties"
    np.testing.assert_array_equal(shuffled(bags, count, key=jax.random.key(1), first=30_000), whole[:, :30_000])


def test_a_bootstrap_draws_with_replacement_and_stays_the_same_in_every_epoch():
    history = filled(1000, capacity=1024)
    bags, count = member_bags(history, 4, key=jax.random.key(0), chosen=history.filled, bootstrap=True)
    epochs = [np.sort(np.asarray(shuffled(bags, count, key=jax.random.key(k)))[:, :1000], axis=1) for k in (1, 2)]
    np.testing.assert_array_equal(epochs[0], epochs[1])
    shares = [len(np.unique(member)) / 1000 for member in epochs[0]]
    np.testing.assert_allclose(shares, 1 - np.exp(-1), atol=0.04)  # the bootstrap's 63.2%
    assert epochs[0].max() < 1000
    assert not (epochs[0][0] == epochs[0][1]).all(), "each member has a resample of its own"


def test_held_out_rows_stay_held_out_as_d_grows():
    small, large = filled(100, capacity=128), filled(1000, capacity=1024)
    aside_small, aside_large = np.asarray(held_out(small, 0.1)), np.asarray(held_out(large, 0.1))
    np.testing.assert_array_equal(aside_small[:100], aside_large[:100])
    assert abs(aside_large.sum() - 100) <= 2, "evenly spread"
    assert not aside_large[1000:].any(), "only filled rows"
    assert not np.asarray(held_out(large, 0.0)).any()


def test_each_member_is_dealt_its_own_share_in_whole_stretches():
    """1,000 rows are 66 stretches of 15 and one of 10; a quarter of them are 17."""
    history = filled(1000)
    bags, count = member_bags(history, 6, key=jax.random.key(0), chosen=history.filled, own_share=0.25)
    assert int(count) == 1000
    parts = [set(np.asarray(bag[:1000]).tolist()) for bag in bags]
    assert len(set(map(frozenset, parts))) == 6
    for bag, part in zip(bags, parts, strict=True):
        stretches = {row // 15 for row in part}
        assert len(stretches) == 17
        assert part == {row for row in range(1000) if row // 15 in stretches}
        times = np.unique(np.asarray(bag[:1000]), return_counts=True)[1]
        assert times.max() - times.min() <= 1, "every row as often as any other"


def test_a_share_of_next_to_nothing_is_still_something():
    history = filled(3)
    bags, _ = member_bags(history, 4, key=jax.random.key(0), chosen=history.filled, own_share=0.01)
    for bag in bags:
        assert len(set(np.asarray(bag[:3]).tolist())) == 1
