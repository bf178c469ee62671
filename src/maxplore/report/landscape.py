"""The uncertainty landscape of real states over any two of their dimensions, and how far models can be believed.

What is drawn here is the last moment, over the two dimensions that matter most; the script on the page redraws it for
others, from the same numbers and in the same way.
"""

import base64
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from maxplore.report import svg, words
from maxplore.report.html import figure, folded, table
from maxplore.report.story import Story, thinned

CELLS = 24
"""On a side of the map."""

REACH = 2
"""Cells around its own that a probe tells of, ever less (a Gaussian of one cell)."""

LEAST = 0.05
"""Weight that a cell needs to be coloured."""

BYTES = 300_000
"""That all landscapes of a page may take, before they are written as text."""

FEWEST, POINTS = 6, 1500
"""Moments that are kept at least; places of the way that are kept at most, fewer on a page of many runs."""

MANY = 500
"""Places from which on the way is drawn fainter, so that it does not hide what is under it."""

NONE = 2**16 - 1
"""In the place of a utility that is not a number."""

LEFT, RIGHT, TOP, BOTTOM = 66.0, 318.0, 10.0, 262.0


class Land(NamedTuple):
    """A run's landscape through time, in whole numbers as they are embedded."""

    dims: list[int]
    """Dimensions that are kept, of all."""
    names: list[str]
    ranges: Float[np.ndarray, "dims 2"]
    steps: list[int]
    states: Int[np.ndarray, "frames probes dims"]
    """From 0 to 255, from one end of the range to the other."""
    utility: Int[np.ndarray, "frames probes"]
    """From 0 to 65534, from 0 to `most`."""
    most: float
    scales: list[tuple[float, float]]
    """The ends of the colours at each moment, as shares of `most`."""
    everywhere: tuple[float, float]
    """The ends of colours that serve all moments."""
    way: Int[np.ndarray, "points dims"]
    """From 0 to 65535, where the run went."""
    way_steps: Int[np.ndarray, " points"]
    starts: Int[np.ndarray, " starts"]
    """Points of the way at which an episode begins."""
    first: tuple[int, int]
    """Of the dimensions kept, the two that are shown first."""


def charted(story: Story, runs: int) -> Land | None:
    """The landscape of a run that shares its page with so many; None if there is nothing to draw it over."""
    walk, frames = story.walk, story.frames
    count = walk.states.shape[1] if walk.states.ndim == 2 else 0
    if count < 2 or not frames:
        return None
    last = frames[-1].tables
    order = [own.dimension for own in words.shifts(*_finite(last))] if last else []
    order += [k for k in range(count) if k not in order]
    probes = len(last.get("states", ())) or 1
    most_dims = max(2, BYTES // runs // (FEWEST * probes))
    dims = sorted(order[:most_dims])
    if story.config.env == "maxplore/AntMaze-v0" and {2, 3} <= set(dims):
        first = (2, 3)
    else:
        first = (order[0], order[1]) if order[0] < order[1] else (order[1], order[0])
    frames = thinned(frames, max(FEWEST, BYTES // runs // (probes * len(dims))))
    kept = thinned(np.flatnonzero(walk.steps <= frames[-1].step).tolist(), max(POINTS // runs, 300))
    ranges = _ranges([walk.states, *(frame.tables["states"] for frame in frames if frame.tables)])[dims]
    utilities = [frame.tables["utility"][:, 0] for frame in frames if frame.tables]
    known = np.concatenate([own[np.isfinite(own)] for own in utilities]) if utilities else np.zeros(0)
    most = float(known.max(initial=0.0)) or 1.0
    tops = [(_quantile(own, 0.02) / most, _quantile(own, 0.98) / most) for own in utilities]
    return Land(
        dims=dims,
        names=[story.dimensions[k] for k in dims],
        ranges=ranges,
        steps=[frame.step for frame in frames],
        states=np.array([_whole(f.tables["states"][:, dims], ranges, 255) for f in frames if f.tables], np.int64),
        utility=np.array([_levels(own / most) for own in utilities], np.int64),
        most=most,
        scales=tops,
        everywhere=(0.0, max((high for _, high in tops), default=1.0)),
        way=_whole(walk.states[np.ix_(kept, dims)], ranges, 2**16 - 1),
        way_steps=walk.steps[kept],
        starts=_starts(walk.times, kept),
        first=(dims.index(first[0]), dims.index(first[1])),
    )


def data(land: Land) -> dict[str, Any]:
    """For the script."""
    labels = [svg.bar_labels(low * land.most, high * land.most) for low, high in [*land.scales, land.everywhere]]
    return {
        "cells": CELLS,
        "reach": REACH,
        "least": LEAST,
        "plot": [LEFT, RIGHT, TOP, BOTTOM],
        "dims": [
            {"name": name, "ticks": [[(at - low) / (high - low), svg.short(at)] for at in svg.round_numbers(low, high)]}
            for name, (low, high) in zip(land.names, land.ranges.tolist(), strict=True)
        ],
        "probes": land.states.shape[1] if land.states.size else 0,
        "states": _packed(land.states, "<u1"),
        "utility": _packed(land.utility, "<u2"),
        "scales": [*land.scales, land.everywhere],
        "labels": labels,
        "way": _packed(land.way, "<u2"),
        "waySteps": land.way_steps.tolist(),
        "starts": land.starts.tolist(),
        "first": land.first,
    }


def drawn(story: Story, land: Land) -> str:
    """The map at the last moment."""
    across, up = land.first
    x, y = (svg.Scale(0.0, 1.0, LEFT, RIGHT), svg.Scale(0.0, 1.0, BOTTOM, TOP))
    parts = ['<g class="cells" aria-hidden="true">', *_cells(land, across, up), "</g>"]
    parts.append(f'<rect class="plot" x="{LEFT}" y="{TOP}" width="{RIGHT - LEFT}" height="{BOTTOM - TOP}"/>')
    line, many = _way(land, across, up), " many" if len(land.way) > MANY else ""
    parts.append(f'<path class="way under{many}" d="{line}"/><path class="way{many}" d="{line}"/>')
    here = land.way[-1] / 65535
    parts.append(f'<circle class="here" cx="{x(here[across]):.1f}" cy="{y(here[up]):.1f}" r="4.5"/>')
    ticks = data(land)["dims"]
    at_x = [svg.text(x(at), BOTTOM + 16, label, "tick middle") for at, label in ticks[across]["ticks"]]
    at_y = [svg.text(LEFT - 6, y(at) + 4, label, "tick end") for at, label in ticks[up]["ticks"]]
    parts.append(f'<g class="x-ticks">{"".join(at_x)}</g><g class="y-ticks">{"".join(at_y)}</g>')
    parts.append(svg.text((LEFT + RIGHT) / 2, BOTTOM + 34, land.names[across], "title middle x-title"))
    parts.append(svg.text(12, (TOP + BOTTOM) / 2, land.names[up], "title middle y-title", turn=True))
    if land.scales:
        labels = svg.bar_labels(*(end * land.most for end in land.scales[-1]))
        parts.append(svg.bar(RIGHT + 12, TOP, BOTTOM, labels, "mean utility (nats)"))
    label = f"Map of {land.names[up]} over {land.names[across]} at step {land.steps[-1]}, with the way up to it. "
    picture = svg.drawing(406, 304, "".join(parts), label + told(story, land.steps[-1]), "map")
    title = "Where the models disagree" if land.scales else "Where it has been"
    return figure(title, picture, _note(land), "landscape")


def _note(land: Land) -> str:
    seen = "The line is the way up to this step, the dot is where it was then."
    if not land.scales:
        return f'<p class="note">{seen} This method has no models that could disagree.</p>'
    return f'<p class="note">Colour: how much the models disagree, the mean over what is not shown. {seen}</p>'


def told(story: Story, step: int) -> str:
    """What is most uncertain at a moment, in words; nothing where there are no models."""
    tables = next(frame.tables for frame in story.frames if frame.step == step)
    if not tables:
        return ""
    states, utility = _finite(tables)
    seen = story.walk.states[story.walk.steps <= step]
    anywhere = words.region(states, utility, seen, story.dimensions)
    half = np.isfinite(tables["utility"][: len(tables["utility"]) // 2, 0]).sum()
    visited = words.region(states[:half], utility[:half], seen, story.dimensions)
    return f"Most uncertain: {anywhere} Among states like those that were visited: {visited}"


def reliability(story: Story) -> str:
    """The reliability diagram at the last moment; nothing where there are no models."""
    tables = story.frames[-1].tables if story.frames else {}
    if "reliability" not in tables:
        return ""
    x, y = svg.Scale(0.0, 1.0, LEFT, RIGHT), svg.Scale(0.0, 1.0, BOTTOM, TOP)
    points = [(float(a), float(b)) for a, b in tables["reliability"]]
    title = "Can the models be believed?"
    if not any(math.isfinite(found) for _, found in points):
        return figure(title, '<p class="note">No rows were held out to tell.</p>')
    last = reliabilities(story, [story.frames[-1].step])[0]
    known = [(x(a), y(b)) for a, b in points if math.isfinite(b)]
    parts = [svg.frame(x, y, "chance that the models give an interval", "share of the truth inside it")]
    parts.append(f'<path class="aim" d="M{LEFT} {BOTTOM}L{RIGHT} {TOP}"/>')
    parts.append(f'<path class="line c0 reliable" d="{svg.path(known)}"/>')
    for (level, _), place in zip(points, last["places"], strict=True):  # of what is not known, too: others may be
        seen = f'cy="{place:.1f}"' if place is not None else f'cy="{BOTTOM}" visibility="hidden"'
        parts.append(f'<circle class="dot c0" cx="{x(level):.1f}" {seen} r="3.5"/>')
    rows = [(f"{level:.0%}", found) for (level, _), found in zip(points, last["found"], strict=True)]
    numbers = folded("numbers", table(("expected", "found"), rows, "numbers believed"))
    note = '<p class="note">On the dashed line the models are right about how wrong they are; below it they are too '
    note += "sure of themselves, above it too timid. The latest rows held out.</p>"
    return figure(title, svg.drawing(330, 304, "".join(parts), last["label"], "reliability"), note + numbers)


def reliabilities(story: Story, steps: Sequence[int]) -> list[dict[str, Any]]:
    """For the script: at every moment the places of the diagram's points, their numbers, and all in words."""
    y, tables = svg.Scale(0.0, 1.0, BOTTOM, TOP), {frame.step: frame.tables for frame in story.frames}
    told: list[dict[str, Any]] = []
    for step in (own for own in steps if "reliability" in tables[own]):  # all of them, or none
        points = [(float(a), float(b)) for a, b in tables[step]["reliability"]]
        words_ = "; ".join(f"{a:.0%} expected, {b:.0%} found" for a, b in points if math.isfinite(b))
        told.append(
            {
                "places": [round(y(b), 1) if math.isfinite(b) else None for _, b in points],
                "found": [f"{b:.1%}" if math.isfinite(b) else "" for _, b in points],
                "label": f"Reliability diagram at step {step}. {words_ or 'nothing is known'}.",
            }
        )
    return told


def _finite(tables: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    known = np.isfinite(tables["utility"][:, 0]) & np.isfinite(tables["states"]).all(axis=1)
    return tables["states"][known], tables["utility"][known, 0]


def _quantile(values: np.ndarray, share: float) -> float:
    known = values[np.isfinite(values)]
    return float(np.quantile(known, share)) if known.size else 0.0


def _ranges(tables: Sequence[np.ndarray]) -> Float[np.ndarray, "dims 2"]:
    """The least and the most of every dimension, never the same."""
    low = np.min([np.nanmin(own, axis=0) for own in tables], axis=0).astype(np.float64)
    high = np.max([np.nanmax(own, axis=0) for own in tables], axis=0).astype(np.float64)
    room = np.where(high > low, 0.0, np.maximum(np.abs(low), 1.0) / 2)
    return np.stack([low - room, high + room], axis=1)


def _whole(values: np.ndarray, ranges: np.ndarray, most: int) -> Int[np.ndarray, "rows dims"]:
    share = (values - ranges[:, 0]) / (ranges[:, 1] - ranges[:, 0])
    return np.rint(np.clip(np.nan_to_num(share), 0, 1) * most).astype(np.int64)


def _levels(share: np.ndarray) -> Int[np.ndarray, " probes"]:
    own = np.rint(np.clip(np.nan_to_num(share), 0, 1) * (NONE - 1)).astype(np.int64)
    return np.where(np.isfinite(share), own, NONE)


def _starts(times: np.ndarray, kept: Sequence[int]) -> Int[np.ndarray, " starts"]:
    """Kept points whose episode is not that of the point before."""
    episode = np.cumsum(times == 0)[list(kept)]
    return np.flatnonzero(np.diff(episode, prepend=0))


def _packed(values: np.ndarray, kind: str) -> str:
    return base64.b64encode(values.astype(kind).tobytes()).decode()


def _cells(land: Land, across: int, up: int) -> list[str]:
    """The squares of the map at the last moment, row by row from the top."""
    side = (RIGHT - LEFT) / CELLS
    shown = smoothed(land, len(land.scales) - 1, across, up) if land.scales else np.full((CELLS, CELLS), math.nan)
    low, high = land.scales[-1] if land.scales else (0.0, 1.0)
    width = (high - low) or 1.0
    return [
        f'<rect x="{LEFT + column * side:g}" y="{TOP + row * side:g}" '
        f'fill="{"none" if math.isnan(value) else svg.colour((value - low) / width)}"/>'
        for row, values in enumerate(shown[::-1].tolist())
        for column, value in enumerate(values)
    ]


def smoothed(land: Land, moment: int, across: int, up: int) -> Float[np.ndarray, "up across"]:
    """Mean utility in every cell, as a share of `most`, from the bottom up; NaN where nobody was asked."""
    known = land.utility[moment] != NONE
    place = land.states[moment][known][:, [up, across]] / 255 * CELLS - 0.5
    utility = land.utility[moment][known] / (NONE - 1)
    total, weight = np.zeros((CELLS, CELLS)), np.zeros((CELLS, CELLS))
    for (row, column), own in zip(place, utility, strict=True):
        for i in range(math.floor(row + 0.5) - REACH, math.floor(row + 0.5) + REACH + 1):
            for j in range(math.floor(column + 0.5) - REACH, math.floor(column + 0.5) + REACH + 1):
                if 0 <= i < CELLS and 0 <= j < CELLS:
                    share = math.exp(-((i - row) ** 2 + (j - column) ** 2) / 2)
                    total[i, j] += share * own
                    weight[i, j] += share
    return np.where(weight >= LEAST, total / np.where(weight > 0, weight, 1.0), math.nan)


def _way(land: Land, across: int, up: int) -> str:
    """The line through all points, broken where an episode begins."""
    begins = set(land.starts.tolist())
    x = LEFT + (RIGHT - LEFT) * land.way[:, across] / 65535
    y = BOTTOM + (TOP - BOTTOM) * land.way[:, up] / 65535
    places = zip(x.tolist(), y.tolist(), strict=True)
    return "".join(f"{'M' if k in begins else 'L'}{a:.1f} {b:.1f}" for k, (a, b) in enumerate(places))
