"""History D: every transition seen so far, as a pytree of fixed capacity.

Arrays keep their shape while D fills up, so whatever is compiled for a capacity stays compiled.
When D is full its capacity doubles: a run of n steps compiles about log2(n) times in all.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from maxplore.compiling import compiled
from maxplore.entry import Entry, Numbers, as_array, refuse
from maxplore.errors import InputError

LEAST_ROWS = 64
"""Many rows that come at once are padded to a power of two of at least this, so that few numbers of them compile code
of their own; most often, as many come as are told between two plans."""


class Transition(eqx.Module):
    """One step of an environment, or many along a leading axis.

    `terminated` says that the episode ended in `next_state`, `truncated` that it was merely cut off there.
    """

    state: Array
    action: Array
    next_state: Array
    terminated: Bool[Array, "*rows"]
    truncated: Bool[Array, "*rows"]


class History(eqx.Module):
    """D, the transitions seen so far: `capacity` rows, of which the first `size` are filled.

    >>> history = History.continuous(state_dims=2, action_dims=1)
    >>> history = history.append([0.0, 0.0], [1.0], [0.1, 0.0])
    >>> int(history.size)
    1
    """

    transitions: Transition
    size: Int[Array, ""]
    state_entry: Entry
    action_entry: Entry

    @classmethod
    def continuous(cls, state_dims: int, action_dims: int, *, capacity: int = 1024) -> "History":
        """An empty D of real vectors."""
        return cls.empty(Entry((state_dims,)), Entry((action_dims,)), capacity=capacity)

    @classmethod
    def discrete(cls, states: int, actions: int, *, capacity: int = 1024) -> "History":
        """An empty D of numbered states and actions."""
        return cls.empty(Entry((), states), Entry((), actions), capacity=capacity)

    @classmethod
    def empty(cls, state: Entry, action: Entry, *, capacity: int = 1024) -> "History":
        if capacity < 1:
            raise InputError(f"capacity is {capacity}, expected at least 1")
        flags = jnp.zeros(capacity, bool)
        states = jnp.zeros((capacity, *state.shape), state.dtype)
        actions = jnp.zeros((capacity, *action.shape), action.dtype)
        return cls(Transition(states, actions, states, flags, flags), jnp.zeros((), jnp.int32), state, action)

    @property
    def capacity(self) -> int:
        return self.transitions.terminated.shape[0]

    @property
    def filled(self) -> Bool[Array, " capacity"]:
        """Which rows hold a transition."""
        return jnp.arange(self.capacity) < self.size

    def append(
        self,
        state: Numbers,
        action: Numbers,
        next_state: Numbers,
        terminated: Numbers = False,
        truncated: Numbers = False,
    ) -> "History":
        """D with one transition more, or with many (a leading axis on each argument).

        What cannot be used is refused with an `InputError`; D itself never changes, a new one is returned.
        """
        return self.extended(self.checked(state, action, next_state, terminated, truncated))

    def extended(self, columns: Sequence[np.ndarray]) -> "History":
        """`append` for rows that were `checked`."""
        count = len(columns[0])
        if count == 0:
            return self
        history = self._with_room(int(self.size) + count)
        if count == 1:
            return _write_one(history, Transition(*(jnp.asarray(column[0]) for column in columns)))
        padding = max(1 << (count - 1).bit_length(), LEAST_ROWS) - count
        padded = (np.pad(column, [(0, padding)] + [(0, 0)] * (column.ndim - 1)) for column in columns)
        return _write_many(history, Transition(*map(jnp.asarray, padded)), jnp.int32(count))

    def write(self, transition: Transition) -> "History":
        """`append` for one transition inside compiled code: no checks, and the caller sees to room.

        With no room left the transition is not stored and `size` stays: compare it with `capacity`.
        """
        transitions = jax.tree.map(
            lambda rows, row: rows.at[self.size].set(row, mode="drop"), self.transitions, transition
        )
        return History(transitions, jnp.minimum(self.size + 1, self.capacity), self.state_entry, self.action_entry)

    def __getitem__(self, index: Int[Array, "*rows"]) -> Transition:
        """The transitions in those rows."""
        return jax.tree.map(lambda rows: rows[index], self.transitions)

    def checked(
        self, state: Numbers, action: Numbers, next_state: Numbers, terminated: Numbers, truncated: Numbers
    ) -> tuple[np.ndarray, ...]:
        """One transition or many as rows of our own types, or an `InputError` that says which entry is wrong."""
        states = self.state_entry.checked("state", state)
        count = len(states)
        columns = {
            "state": states,
            "action": self.action_entry.checked("action", action),
            "next_state": self.state_entry.checked("next_state", next_state),
            "terminated": _checked_flags("terminated", terminated, count),
            "truncated": _checked_flags("truncated", truncated, count),
        }
        for name, column in columns.items():
            if len(column) != count:
                raise InputError(f"{name} has {len(column)} rows, expected {count}, as many as state")
        return tuple(columns.values())

    def room_for(self, needed: int) -> int:
        """The capacity that D will have once so many rows are in it."""
        capacity = self.capacity
        while capacity < needed:
            capacity *= 2
        return capacity

    def _with_room(self, needed: int) -> "History":
        extra = self.room_for(needed) - self.capacity
        if extra == 0:
            return self
        grown = jax.tree.map(
            lambda x: jnp.concatenate([x, jnp.zeros((extra, *x.shape[1:]), x.dtype)]), self.transitions
        )
        return History(grown, self.size, self.state_entry, self.action_entry)


STRETCHES, LONGEST_STRETCH = 64, 100
"""Into how many stretches, at least, D is cut to be dealt out to members, and how long one is at the most."""


def member_bags(
    history: History,
    members: int,
    *,
    key: PRNGKeyArray,
    chosen: Bool[Array, " capacity"],
    bootstrap: bool = False,
    own_share: float = 1.0,
) -> tuple[Int[Array, "members capacity"], Int[Array, ""]]:
    """The rows that each member learns from, and how many they are: all `chosen` ones, in the first places.

    With `bootstrap`, each member gets as many rows drawn with replacement, its own fixed resample of D. With an
    `own_share` below 1, it gets only the rows of stretches drawn for it, over and over: neighbours tell the same story.
    """
    rows, count = _first(chosen), jnp.sum(chosen).astype(jnp.int32)
    if own_share < 1:
        dealt = jax.vmap(lambda key: _dealt(history, chosen, own_share, key))(jax.random.split(key, members))
        return dealt, count
    if not bootstrap:
        return jnp.broadcast_to(rows, (members, history.capacity)), count
    draws = jax.random.randint(key, (members, history.capacity), 0, jnp.maximum(count, 1))
    return rows[draws], count


def _dealt(
    history: History, chosen: Bool[Array, " capacity"], share: float, key: PRNGKeyArray
) -> Int[Array, " capacity"]:
    """Chosen rows of a random share of all stretches, repeated until the places are full."""
    length = jnp.clip(history.size // STRETCHES, 1, LONGEST_STRETCH)
    places = jnp.arange(history.capacity, dtype=jnp.int32)
    stretches = -(-history.size // length)
    order = jnp.argsort(jnp.where(places < stretches, jax.random.uniform(key, (history.capacity,)), 2.0))
    rank = jnp.zeros_like(places).at[order].set(places)
    drawn = rank[places // length] < jnp.maximum(jnp.round(share * stretches), 1)
    own = chosen & drawn
    own = jnp.where(jnp.any(own), own, chosen)  # a share with nothing in it to learn from is no share
    return _first(own)[places % jnp.maximum(jnp.sum(own), 1)]


def _first(chosen: Bool[Array, " capacity"]) -> Int[Array, " capacity"]:
    """The chosen rows, then all others, each in their order: a stable sort, but by counting."""
    place = jnp.where(chosen, jnp.cumsum(chosen), jnp.sum(chosen) + jnp.cumsum(~chosen)) - 1
    rows = jnp.arange(chosen.shape[0], dtype=jnp.int32)
    return jnp.zeros_like(rows).at[place].set(rows, unique_indices=True)


def shuffled(
    bags: Int[Array, "members capacity"], count: Int[Array, ""], *, key: PRNGKeyArray, first: int | None = None
) -> Int[Array, "members places"]:
    """Each member's first `count` rows in an order of its own, for one epoch.

    Only the `first` so many places of it, if that is all that is needed: to sort all of a large D takes longer than a
    short training on it.
    """
    order = jax.random.uniform(key, bags.shape)
    in_use = jnp.broadcast_to(jnp.arange(bags.shape[1]) < count, bags.shape)
    order = jnp.where(in_use, order, 2.0)
    if first is None or first >= bags.shape[1]:
        places = jnp.argsort(order, axis=1)
    else:
        _, places = jax.lax.top_k(-order, first)  # of equal ones the earlier, like a stable sort
    return jnp.take_along_axis(bags, places, axis=1)


def held_out(history: History, share: float) -> Bool[Array, " capacity"]:
    """The rows kept aside for validation: about `share` of D, evenly spread, and for good.

    Row i is kept aside by the golden-ratio sequence of i alone, so a row once held out is never
    trained on in a later fit of a larger D.
    """
    spread = jnp.arange(history.capacity, dtype=jnp.uint32) * jnp.uint32(2654435769)
    return (spread < jnp.uint32(round(share * (2**32 - 1)))) & history.filled


@compiled
def _write_one(history: History, transition: Transition) -> History:
    return history.write(transition)


@compiled
def _write_many(history: History, rows: Transition, count: Int[Array, ""]) -> History:
    places = jnp.arange(rows.terminated.shape[0])
    # The padding lands beyond the end, where it is dropped.
    index = jnp.where(places < count, history.size, history.capacity) + places
    transitions = jax.tree.map(
        lambda old, new: old.at[index].set(new, mode="drop", unique_indices=True, indices_are_sorted=True),
        history.transitions,
        rows,
    )
    return History(transitions, history.size + count, history.state_entry, history.action_entry)


def _checked_flags(name: str, value: Numbers, count: int) -> np.ndarray:
    flags = as_array(name, value)
    if flags.ndim > 1:
        raise InputError(f"{name} has shape {flags.shape}, expected () for one transition or (n,) for many")
    refuse(name, flags, ~np.isin(flags, (0, 1)), "True or False")
    return np.broadcast_to(flags.astype(bool), (count,)) if flags.ndim == 0 else flags.astype(bool)
