"""What came of tasks: the return that was forecast, with its interval, beside what was really paid."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from maxplore.report import svg
from maxplore.report.html import figure, folded, table
from maxplore.report.story import Story

LEFT, RIGHT, ROW = 20.0, 360.0, 40.0


class Tried(NamedTuple):
    """A task that one run was given."""

    run: str
    step: int
    forecast: tuple[float, float, float] | None
    """Low, mean and high; None if it cannot be told."""
    returns: list[float]


def drawn(stories: Sequence[Story]) -> str:
    """A chart for each task, all runs in it; nothing if there were no tasks."""
    found: dict[str, list[Tried]] = {}
    for story in stories:
        for row in story.tasks:
            found.setdefault(str(row["task"]), []).append(_tried(story.name, row))
    return f'<div class="charts">{"".join(_chart(*each) for each in found.items())}</div>' if found else ""


def _tried(run: str, row: dict[str, Any]) -> Tried:
    try:
        own = row["report"]["forecast"]
        forecast = tuple(float(own[name]) for name in ("low", "mean", "high"))
        known = all(map(math.isfinite, forecast))
    except (KeyError, TypeError, ValueError):
        forecast, known = (), False
    given = row["returns"] if isinstance(row["returns"], list) else []
    returns = [float(x) for x in given if isinstance(x, int | float) and math.isfinite(x)]  # pyright: ignore
    return Tried(run, int(row["step"]), forecast if known and len(forecast) == 3 else None, returns)


def _chart(task: str, rows: Sequence[Tried]) -> str:
    values = [x for row in rows for x in (*(row.forecast or ()), *row.returns)]
    title = f"Task: {task}"
    if not values:
        return figure(title, '<p class="note">No return that is a number is known.</p>')
    bottom = 22 + ROW * len(rows)
    low, high = min(values), max(values)
    room = (high - low) * 0.05
    x = svg.scale([low - room, high + room], LEFT, RIGHT)
    parts = [_axis(x, bottom)]
    for k, row in enumerate(rows):
        y = 30 + ROW * k
        parts.append(svg.text(LEFT, y - 12, f"{row.run}, after step {row.step:,}", "tick halo"))
        if row.forecast is not None:
            a, b, c = map(x, row.forecast)
            parts.append(f'<path class="interval" d="M{a:.1f} {y}H{c:.1f}M{a:.1f} {y - 5}v10M{c:.1f} {y - 5}v10"/>')
            parts.append(f'<path class="expected" d="M{b:.1f} {y - 6}l5 6l-5 6l-5 -6Z"/>')
        parts += [f'<circle class="paid" cx="{x(paid):.1f}" cy="{y}" r="4"/>' for paid in row.returns]
    told = [
        (row.run, row.step, _forecast(row), ", ".join(f"{x:.4g}" for x in row.returns) or "not tried", _inside(row))
        for row in rows
    ]
    label = "; ".join(f"{run}: forecast {forecast}, real returns {paid}" for run, _, forecast, paid, _ in told)
    note = '<p class="note">The diamond is the forecast, the bar holds the real return with a chance of 80%, dots are '
    note += "real episodes.</p>"
    heads = ("run", "after step", "forecast (80% interval)", "real returns", "inside")
    picture = svg.drawing(380, bottom + 42, "".join(parts), f"Returns of the task {task}. {label}.")
    return figure(title, picture, note + folded("numbers", table(heads, told, "numbers")))


def _axis(x: svg.Scale, bottom: float) -> str:
    ticks = "".join(
        f'<path class="across" d="M{x(value):.1f} 14V{bottom:.1f}"/>'
        + svg.text(x(value), bottom + 17, svg.short(value), "tick middle")
        for value in x.ticks
    )
    title = svg.text((LEFT + RIGHT) / 2, bottom + 34, "return of an episode", "title middle")
    return f'{ticks}<path class="axis" d="M{LEFT} {bottom}H{RIGHT}"/>{title}'


def _forecast(row: Tried) -> str:
    if row.forecast is None:
        return "none"
    low, mean, high = row.forecast
    return f"{mean:.4g} ({low:.4g} to {high:.4g})"


def _inside(row: Tried) -> str:
    if row.forecast is None or not row.returns:
        return ""
    low, _, high = row.forecast
    return f"{sum(low <= paid <= high for paid in row.returns)} of {len(row.returns)}"
