"""The Ant Maze from above: where the ant has been, coloured by the time within its episode."""

from typing import Any

import numpy as np
from jaxtyping import Int

from maxplore.envs.maze import CELL, CELLS, WALLS, cell_at
from maxplore.report import svg
from maxplore.report.html import figure
from maxplore.report.story import Story, thinned

X, Y = 2, 3
"""Of an observation, the ant's place."""

SHADES, POINTS = 8, 2000
"""Colours of time; places that are drawn at most."""

LEFT, TOP, METRE = 44.0, 10.0, 25.2
SIDE = 5 * CELL * METRE


def is_maze(story: Story) -> bool:
    """Whether this run was in the maze."""
    return story.config.env == "maxplore/AntMaze-v0" and story.walk.states.shape[1:] == (31,)


def data(story: Story) -> dict[str, Any]:
    """For the script: places in tenths of the drawing's units, shades, and steps; and what to say at each moment."""
    places, shades, steps = _points(story)
    return {
        "x": places[:, 0].tolist(),
        "y": places[:, 1].tolist(),
        "shades": shades.tolist(),
        "steps": steps.tolist(),
        "notes": [told(story, frame.step) for frame in story.frames],
    }


def told(story: Story, step: int) -> str:
    """How far it got."""
    rows = story.walk.states[story.walk.steps <= step][:, [X, Y]]
    places = np.unique(np.rint(rows / CELL), axis=0).tolist()  # a few, of thousands
    cells = {cell_at(CELL * x, CELL * y) for x, y in places} - {None}
    return f"{len(cells)} of {len(CELLS)} cells were visited up to step {step}."


def drawn(story: Story) -> str:
    """The maze at the last moment."""
    upright = CELL * METRE
    walls = "".join(
        f'<rect class="wall" x="{_x(CELL * x) - upright / 2:g}" y="{_y(CELL * y) - upright / 2:g}" '
        f'width="{upright:g}" height="{upright:g}"/>'
        for x, y in WALLS
    )
    corners = [(_x(CELL * x), _y(CELL * y)) for x, y in CELLS]
    lines = "".join(
        f'<rect class="cell" x="{x - upright / 2:g}" y="{y - upright / 2:g}" width="{upright:g}" height="{upright:g}"/>'
        f'<text class="faint" x="{x + upright / 2 - 6:g}" y="{y - upright / 2 + 13:g}">{number + 1}</text>'
        for number, (x, y) in enumerate(corners)
    )
    places, shades, _ = _points(story)
    dots = "".join(
        f'<path class="dots" stroke="{svg.colour((k + 0.5) / SHADES)}" '
        f'd="{"".join(f"M{x / 10:g} {y / 10:g}h0" for x, y in places[shades == k].tolist())}"/>'
        for k in range(SHADES)
    )
    ticks = "".join(
        svg.text(_x(at), TOP + SIDE + 16, svg.short(at), "tick middle")
        + svg.text(LEFT - 6, _y(at) + 4, svg.short(at), "tick end")
        for at in (-2.0, 0.0, 2.0, 4.0, 6.0)
    )
    titles = svg.text(LEFT + SIDE / 2, TOP + SIDE + 34, "x (m)", "title middle")
    titles += svg.text(12, TOP + SIDE / 2, "y (m)", "title middle", turn=True)
    longest = int(story.walk.times.max(initial=0))
    labels = [svg.short(round(longest * k / 4)) for k in range(5)]
    colours = svg.bar(LEFT + SIDE + 12, TOP, TOP + SIDE, labels, "step of the episode")
    note = told(story, story.frames[-1].step)
    inside = f'{walls}{lines}<g class="places">{dots}</g>{ticks}{titles}{colours}'
    picture = svg.drawing(386, 304, inside, f"The maze from above. {note}", "maze")
    return figure("The maze from above", picture, f'<p class="note maze-note">{note}</p>')


def _x(metres: float) -> float:
    return LEFT + (metres + 1.5 * CELL) * METRE


def _y(metres: float) -> float:
    return TOP + SIDE - (metres + 1.5 * CELL) * METRE


def _points(
    story: Story,
) -> tuple[Int[np.ndarray, "points 2"], Int[np.ndarray, " points"], Int[np.ndarray, " points"]]:
    walk = story.walk
    kept = thinned(range(len(walk.states)), POINTS)
    rows = walk.states[kept]
    places = np.stack([_x(1.0) + (rows[:, X] - 1.0) * METRE, _y(1.0) - (rows[:, Y] - 1.0) * METRE], axis=1)
    longest = max(int(walk.times.max(initial=0)), 1)
    shades = np.minimum(walk.times[kept] * SHADES // (longest + 1), SHADES - 1)
    inside = np.clip(places, [LEFT, TOP], [LEFT + SIDE, TOP + SIDE])
    return np.rint(10 * inside).astype(np.int64), shades, walk.steps[kept]
