"""Where episodes begin and end in D, which is one row after the other."""

import jax
import numpy as np

from maxplore.errors import InputError
from maxplore.history import History, Transition


def rows(history: History) -> Transition:
    """D without the room that is left in it, as NumPy arrays."""
    return jax.tree.map(lambda x: np.asarray(x)[: int(history.size)], history.transitions)


def begins(history: History) -> np.ndarray:
    """Which rows of D begin an episode: the first, those after an end, and those that do not go on where the one before
    arrived."""
    own = rows(history)
    jumps = np.any(own.state[1:] != own.next_state[:-1], axis=tuple(range(1, own.state.ndim)))
    return np.concatenate([[True], jumps | own.terminated[:-1] | own.truncated[:-1]])


def longest(history: History) -> int:
    """Steps of the longest episode of D that was seen to its end; an `InputError` if D does not tell."""
    own, first = rows(history), begins(history)
    over, step = own.terminated | own.truncated, np.arange(len(first))
    jumps = int(np.sum(first[1:] & ~over[:-1]))
    # A cut here and there is the end of a call of `explore`; where cuts are the rule, rows have no order to go by.
    if not over.any() or jumps > over.sum():
        raise InputError(
            f"horizon is not given, and the explorer's {len(over)} transitions do not tell it ({over.sum()} ends, "
            f"{jumps} breaks without one): give horizon=, the steps of an episode"
        )
    since = np.maximum.accumulate(np.where(first, step, 0))
    return int(np.max((step - since + 1)[over]))
