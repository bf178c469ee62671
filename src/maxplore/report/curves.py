"""Learning curves: one line a run, or the median and the quartiles of three runs or more that differ in their seed."""

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from maxplore.report import svg
from maxplore.report.html import figure, folded, table
from maxplore.report.story import Story, thinned
from maxplore.runs.figures import Curve

TITLES = {
    "utility": ("Utility that plans promise", "nats"),
    "saturation": ("Saturation of the utility", "share of ln N"),
    "error": ("Model error (held out)", "share of the variance"),
    "nll": ("Negative log likelihood (held out)", "nats"),
    "calibration": ("Truth inside the middle 80%", "share"),
    "coverage": ("Coverage", "bins a dimension"),
}
"""What is drawn, in which order, and in which unit."""

IN_PAIRS = "share of all pairs"
"""The unit of coverage where states and actions are numbered."""

ENOUGH = 3
"""Runs of a kind from which on a band says more than lines."""

POINTS = 200
"""Of a line, at the most."""

ROWS = 12
"""Of a table of numbers."""

COLOURS = 8
"""That the style sheet has; further lines repeat them, dashed."""

LEFT, RIGHT, TOP, BOTTOM = 62.0, 360.0, 12.0, 168.0


@dataclass(frozen=True)
class Line:
    """A run, or many of a kind."""

    name: str
    members: list[Story]

    @property
    def banded(self) -> bool:
        """Whether it is a median with a band."""
        return len(self.members) >= ENOUGH


def lines(stories: Sequence[Story]) -> list[Line]:
    """Runs that differ in nothing but their seed are one line, if there are enough of them."""
    kinds: defaultdict[str, list[Story]] = defaultdict(list)
    for story in stories:
        own = story.config
        kinds[json.dumps([own.env, own.env_kwargs, own.method, own.preset, own.settings], sort_keys=True)].append(story)
    envs = {story.config.env for story in stories}
    found: list[Line] = []
    for members in kinds.values():
        if len(members) < ENOUGH:
            found += [Line(story.name, [story]) for story in members]
            continue
        own = members[0].config
        name = own.method if len(envs) == 1 else f"{own.method} on {own.env}"
        taken = sum(line.name.startswith(name) for line in found)
        found.append(Line(f"{name} ({len(members)} seeds){f', {own.preset}' if taken else ''}", members))
    return found


def drawn(stories: Sequence[Story]) -> str:
    """All curves that there are, with a legend."""
    own = lines(stories)
    charts = [_chart(metric, own) for metric in TITLES]
    if not any(charts):
        return "<p>Nothing was measured yet.</p>"
    return f'{_legend(own) if len(own) > 1 else ""}<div class="charts">{"".join(charts)}</div>'


def _legend(own: Sequence[Line]) -> str:
    items = "".join(
        f'<li><svg viewBox="0 0 30 12" aria-hidden="true"><path class="line {_kind(k)}" d="M1 6H29"/></svg>'
        f"{svg.escape(line.name)}</li>"
        for k, line in enumerate(own)
    )
    banded = any(line.banded for line in own)
    note = '<p class="note">Of several seeds: the median, and a band from quartile to quartile.</p>' if banded else ""
    return f'<ul class="legend">{items}</ul>{note}'


def _kind(number: int) -> str:
    return f"c{number % COLOURS} d{number // COLOURS % 3}"


def _chart(metric: str, own: Sequence[Line]) -> str:
    """One metric of all lines; nothing if nobody has it."""
    found = {k: band for k, line in enumerate(own) if (band := _band([x.curves.get(metric, []) for x in line.members]))}
    if not found:
        return ""
    title, unit = TITLES[metric]
    if metric == "coverage" and all(line.members[0].finite for line in own):
        unit = IN_PAIRS
    values = [value for band in found.values() for row in band for value in row[1:]]
    log = metric in ("error", "utility") and min(values) > 0 and max(values) > 30 * min(values)
    aim = [0.8, 0.0, 1.0] if metric == "calibration" else [0.0, 1.0] if metric == "saturation" else []
    x = svg.scale([0, *(row[0] for band in found.values() for row in band)], LEFT, RIGHT)
    y = svg.scale([*values, *aim], BOTTOM, TOP, log=log, room=0.0 if aim else 0.05)
    parts = [svg.frame(x, y, "step", unit + (", log scale" if log else ""))]
    if metric == "calibration":
        parts.append(f'<path class="aim" d="M{LEFT} {y(0.8):.1f}H{RIGHT}"/>')
    for k, band in found.items():
        if own[k].banded:
            around = [(x(at), y(high)) for at, _, _, high in band] + [(x(at), y(low)) for at, low, _, _ in band[::-1]]
            parts.append(f'<path class="band {_kind(k)}" d="{svg.path(around)}Z"/>')
    for k, band in found.items():
        points = [(x(at), y(middle)) for at, _, middle, _ in band]
        parts.append(f'<path class="line {_kind(k)}" d="{svg.path(points)}"/>')
        if len(points) <= 3:
            parts += [f'<circle class="dot {_kind(k)}" cx="{a:.1f}" cy="{b:.1f}" r="3"/>' for a, b in points]
    if metric == "calibration":
        parts.append(svg.text(RIGHT, y(0.8) + 15, "0.8 is right", "tick end halo"))
    words = "; ".join(
        f"{own[k].name}: from {band[0][2]:.3g} at step {band[0][0]:.0f} to {band[-1][2]:.3g} at step {band[-1][0]:.0f}"
        for k, band in found.items()
    )
    rows = [
        (own[k].name, f"{at:.0f}", f"{middle:.4g}", *((f"{low:.4g} to {high:.4g}",) if own[k].banded else ("",)))
        for k, band in found.items()
        for at, low, middle, high in thinned(band, ROWS)
    ]
    heads = ("run", "step", f"{title.lower()} ({unit})", "quartiles")
    numbers = folded("numbers", table(heads, rows, "numbers"))
    return figure(title, svg.drawing(380, 208, "".join(parts), f"{title}, in {unit}. {words}."), numbers)


def _band(curves: Sequence[Curve]) -> list[tuple[float, float, float, float]]:
    """Step, lower quartile, median and upper quartile; of one curve, all the same."""
    there = [curve for curve in curves if curve]
    if not there:
        return []
    if len(there) == 1:
        return [(float(at), value, value, value) for at, value in thinned(there[0], POINTS)]
    steps = np.array(thinned(sorted({at for curve in there for at, _ in curve}), POINTS), np.float64)
    table = np.stack([_at(steps, curve) for curve in there])
    known = ~np.isnan(table).all(axis=0)
    low, middle, high = np.nanquantile(table[:, known], (0.25, 0.5, 0.75), axis=0)
    rows = zip(*(own.tolist() for own in (steps[known], low, middle, high)), strict=True)
    return [(at, q1, q2, q3) for at, q1, q2, q3 in rows]


def _at(steps: Float[np.ndarray, " steps"], curve: Curve) -> Float[np.ndarray, " steps"]:
    """A curve's values at these steps; NaN where it has not begun, or is over."""
    at, values = np.array(curve, np.float64).T
    return np.interp(steps, at, values, left=math.nan, right=math.nan)
