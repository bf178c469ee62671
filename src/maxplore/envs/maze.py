"""The plan of the Ant Maze: seven cells in the shape of a U."""

CELL = 2.0
"""Side of a cell, in metres."""
CELLS = ((0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0))
"""Cells of the U in units of `CELL`, from the start to the far end."""
WALLS = tuple((x, y) for x in range(-1, 4) for y in range(-1, 4) if (x, y) not in CELLS)
"""Walls around and between them, each as large as a cell."""


def cell_at(x: float, y: float) -> int | None:
    """Which of the seven cells this place is in, counted from the start; None in a wall.

    >>> cell_at(0.3, 2.1), cell_at(2.0, 0.0)
    (1, None)
    """
    place = round(x / CELL), round(y / CELL)
    return CELLS.index(place) if place in CELLS else None
