"""Where the models still disagree most, in words and numbers."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

SHARE = 0.1
"""Of the probes, those with the highest utility, that are held against the others."""

NAMED = 3
"""Dimensions that are named at the most."""

STANDS_OUT = 0.5
"""Spreads by which a dimension's median has to shift to be worth a word."""

ALIKE = 1.2
"""As long as the highest tenth pays less than so many times the rest, it is the same everywhere."""


class Shift(NamedTuple):
    """How the most uncertain states differ from the others in one dimension."""

    dimension: int
    size: float
    """Between the medians, in standard deviations of all probes."""
    low: float
    high: float
    """The middle half of the most uncertain states."""


def shifts(states: Float[np.ndarray, "probes dims"], utility: Float[np.ndarray, " probes"]) -> list[Shift]:
    """Of every dimension that varies, those that shift most first; none if there are too few states to tell."""
    if len(utility) < 2:
        return []
    top = highest(utility)
    spread = states.std(axis=0, dtype=np.float64)
    apart = np.abs(np.median(states[top], axis=0) - np.median(states[~top], axis=0))
    size = np.divide(apart, spread, out=np.zeros_like(spread), where=spread > 0)
    low, high = np.quantile(states[top], (0.25, 0.75), axis=0)
    order = sorted(np.flatnonzero(spread > 0), key=lambda k: -size[k])
    return [Shift(int(k), float(size[k]), float(low[k]), float(high[k])) for k in order]


def highest(utility: Float[np.ndarray, " probes"]) -> Bool[np.ndarray, " probes"]:
    """Which probes are in the highest tenth: at least one of them, and never all."""
    count = max(1, round(SHARE * len(utility)))
    top = np.zeros(len(utility), bool)
    top[np.argsort(-utility, kind="stable")[:count]] = True
    return top


def region(
    states: Float[np.ndarray, "probes dims"],
    utility: Float[np.ndarray, " probes"],
    seen: Float[np.ndarray, "rows dims"],
    names: Sequence[str],
) -> str:
    """The most uncertain region of real states."""
    if len(utility) < 2:
        return "too few states were asked about to tell."
    top = highest(utility)
    most, rest = float(utility[top].mean()), float(utility[~top].mean())
    if most <= ALIKE * rest:
        return f"about the same everywhere: mean utility {most:.3g} nats in the highest tenth, {rest:.3g} elsewhere."
    stands_out = [shift for shift in shifts(states, utility)[:NAMED] if shift.size >= STANDS_OUT]
    where = [
        f"{names[own.dimension]} from {own.low:.3g} to {own.high:.3g} ({_among(seen[:, own.dimension], own)})"
        for own in stands_out
    ]
    place = joined(where) if where else "no dimension by itself tells where"
    return f"{place}; mean utility {most:.2g} nats against {rest:.2g} elsewhere."


def pairs(utility: Float[np.ndarray, "states actions"], tried: Int[np.ndarray, "states actions"], first: int) -> str:
    """The most uncertain pairs of numbered states and actions; states count from `first`."""
    named: list[str] = []
    for flat in np.argsort(-utility, axis=None, kind="stable")[:NAMED].tolist():
        state, action = divmod(flat, utility.shape[1])
        pays, count = utility[state, action], int(tried[state, action])
        named.append(f"action {action} in state {state + first} ({pays:.2g} nats, {times(count)})")
    never = tried == 0
    text = f"{joined(named)}; {int(never.sum())} of {never.size} pairs were never tried"
    if never.any() and not never.all():
        text += f", with a mean utility of {utility[never].mean():.2g} nats against {utility[~never].mean():.2g}"
    return text + "."


def times(count: int) -> str:
    """How often.

    >>> times(0), times(1), times(7)
    ('never tried', 'tried once', 'tried 7 times')
    """
    return {0: "never tried", 1: "tried once"}.get(count, f"tried {count} times")


def joined(parts: Sequence[str]) -> str:
    """In a row, as people say it.

    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _among(seen: Float[np.ndarray, " rows"], own: Shift) -> str:
    """Where the middle half lies among what was seen."""
    if own.low > seen.max():
        return "above all that was seen"
    if own.high < seen.min():
        return "below all that was seen"
    low, high = (_ordinal(100 * float(np.mean(seen <= value))) for value in (own.low, own.high))
    return f"{low} to {high} percentile of what was seen" if low != high else f"{low} percentile of what was seen"


def _ordinal(percent: float) -> str:
    """A percentile, from the 1st to the 99th.

    >>> _ordinal(2.2), _ordinal(11.0), _ordinal(99.9)
    ('2nd', '11th', '99th')
    """
    number = min(max(round(percent), 1), 99)
    ending = "th" if number in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
