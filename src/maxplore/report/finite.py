"""Numbered states and actions: a chain as a graph, anything else as a table of colours."""

import math
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from jaxtyping import Float, Int

from maxplore.report import svg, words
from maxplore.report.html import figure, folded, table
from maxplore.report.story import Story

MOST_PAIRS = 4000
"""That are drawn."""

MOST_ROWS = 200
"""Of the table below."""

IN_ROW, GAP, ROW, RADIUS, LANE = 10, 39.0, 58.0, 9.5, 4.5
"""Nodes of a row, how far they and their rows are apart, how large they are, and how far an edge is off their line."""

LONGEST_CHAIN, MOST_ACTIONS = 120, 4


class World(NamedTuple):
    """What is known of the pairs at every moment."""

    first: tuple[int, int]
    """The numbers of the first state and the first action."""
    steps: list[int]
    edges: list[tuple[int, int, int]]
    """Every transition that was seen: state, action, next state."""
    seen: Int[np.ndarray, "frames edges"]
    """How often."""
    tried: Int[np.ndarray, "frames states actions"]
    utility: Float[np.ndarray, "frames states actions"] | None
    """None without models."""

    @property
    def is_chain(self) -> bool:
        """Whether every step led to a neighbour, or nowhere."""
        _, states, actions = self.tried.shape
        return (
            states <= LONGEST_CHAIN
            and actions <= MOST_ACTIONS
            and all(abs(following - state) <= 1 for state, _, following in self.edges)
        )

    @property
    def most(self) -> float:
        """The highest utility of all moments, where colours end."""
        return 1.0 if self.utility is None else float(np.nanmax(self.utility)) or 1.0


def known(story: Story) -> World | None:
    """The pairs of a run; None if there is nothing to tell yet."""
    space, moves = story.spaces
    assert isinstance(space, spaces.Discrete)
    assert isinstance(moves, spaces.Discrete)
    if not story.frames:
        return None
    walk, shape = story.walk, (int(space.n), int(moves.n))
    came = np.flatnonzero(walk.actions >= 0)
    triples = np.stack([walk.states[came - 1], walk.actions[came], walk.states[came]], axis=1)
    edges, which = np.unique(triples, axis=0, return_inverse=True)
    steps = [frame.step for frame in story.frames]
    seen = np.zeros((len(steps), len(edges)), np.int64)
    tried = np.zeros((len(steps), *shape), np.int64)
    for k, step in enumerate(steps):
        upto = walk.steps[came] <= step
        np.add.at(seen[k], which.reshape(-1)[upto], 1)
        np.add.at(tried[k], (triples[upto, 0], triples[upto, 1]), 1)
    tables = [frame.tables["pairs"] for frame in story.frames if frame.tables]
    utility = np.nan_to_num(np.stack(tables)).astype(np.float64) if tables else None
    first = int(space.start), int(moves.start)
    return World(first, steps, [(int(s), int(a), int(f)) for s, a, f in edges], seen, tried, utility)


def data(world: World) -> dict[str, Any]:
    """For the script: numbers of every moment, pairs in one row."""
    frames = len(world.steps)
    utility = None
    if world.utility is not None:
        utility = np.clip(np.floor(world.utility / world.most * 64), 0, 63).astype(int).reshape(frames, -1).tolist()
    return {
        "actions": world.tried.shape[2],
        "tried": world.tried.reshape(frames, -1).tolist(),
        "seen": world.seen.tolist(),
        "utility": utility,
    }


def told(world: World, moment: int) -> str:
    """What is most uncertain at a moment, in words; without models, what was tried."""
    tried = world.tried[moment]
    if world.utility is None:
        return f"{int((tried == 0).sum())} of {tried.size} pairs of state and action were never tried."
    return f"Most uncertain: {words.pairs(world.utility[moment], tried, world.first[0])}"


def drawn(world: World) -> str:
    """The graph, or the table of colours, at the last moment."""
    _, states, actions = world.tried.shape
    drawn_ = states * actions <= MOST_PAIRS
    label = f"At step {world.steps[-1]}, {states} states and {actions} actions. {told(world, -1)}"
    if not drawn_:
        picture, note = "", f"{states * actions:,} pairs are too many to draw."
    elif world.is_chain:
        picture, note = _graph(world, f"The chain as a graph. {label}"), _GRAPH_NOTE
    else:
        picture, note = _grid(world, f"Table of states and actions. {label}"), _GRID_NOTE
    title = "Where the models disagree" if world.utility is not None else "What was tried"
    return figure(title, picture, f'<p class="note">{note}</p>{_numbers(world)}', "graph")


_GRAPH_NOTE = (
    "A circle is a state, an arrow a transition that was seen, the wider the more often: solid for the first action, "
    "dashed for the second. A small ring is a pair that was never tried. Colour: how much the models disagree about an "
    "action, in a circle about the worst of its actions."
)
_GRID_NOTE = "A column is a state, a row an action; a ring is a pair that was never tried."


def _numbers(world: World) -> str:
    """The pairs, the most uncertain first (or the least tried), and where they led."""
    tried = world.tried[-1]
    worth = -tried.astype(float) if world.utility is None else world.utility[-1]
    led: dict[tuple[int, int], list[str]] = {}
    for (state, action, following), count in zip(world.edges, world.seen[-1].tolist(), strict=True):
        if count:
            led.setdefault((state, action), []).append(f"{following + world.first[0]} ({count})")
    rows: list[tuple[Any, ...]] = []
    for flat in np.argsort(-worth, axis=None, kind="stable")[:MOST_ROWS].tolist():
        state, action = divmod(flat, tried.shape[1])
        pays = () if world.utility is None else (f"{worth[state, action]:.3g}",)
        leads = ", ".join(led.get((state, action), ["unknown"]))
        rows.append((state + world.first[0], action + world.first[1], int(tried[state, action]), *pays, leads))
    pays = () if world.utility is None else ("utility (nats)",)
    heads = ("state", "action", "tried", *pays, "led to (times)")
    return folded("numbers", table(heads, rows, "numbers"))


def _fill(world: World, state: int, action: int | None = None) -> str:
    if world.utility is None:
        return svg.PALETTE[0]
    own = world.utility[-1, state]
    return svg.colour((own.max() if action is None else own[action]) / world.most)


def _spot(state: int) -> tuple[float, float]:
    """Where a state's circle is: rows run to and fro, so that neighbours stay neighbours."""
    row, column = divmod(state, IN_ROW)
    return 28 + GAP * (column if row % 2 == 0 else IN_ROW - 1 - column), 34 + ROW * row


def _width(count: int) -> float:
    return round(1.2 + 0.8 * math.log10(1 + count), 2)


def _graph(world: World, label: str) -> str:
    _, states, actions = world.tried.shape
    parts: list[str] = []
    for number, (state, action, following) in enumerate(world.edges):
        pair, count = state * actions + action, int(world.seen[-1, number])
        for kind, line in zip((f"edge a{action}", "edge"), _arrow(state, action, following), strict=True):
            parts.append(
                f'<path class="{kind}" data-edge="{number}" data-pair="{pair}" d="{line}" '
                f'stroke="{_fill(world, state, action)}" stroke-width="{_width(count)}"/>'
            )
    for state in range(states):
        x, y = _spot(state)
        parts.append(f'<circle class="node" data-node="{state}" cx="{x:g}" cy="{y:g}" r="{RADIUS}" ')
        parts.append(f'fill="{_fill(world, state)}"/>')
        parts.append(f'<text class="number" x="{x:g}" y="{y + 3.5:g}">{state + world.first[0]}</text>')
        for action in range(actions):
            a, b = _beside(x, y, action, actions, RADIUS + 7)
            hidden = ' visibility="hidden"' if world.tried[-1, state, action] else ""
            place = f'data-untried="{state * actions + action}" cx="{a:.1f}" cy="{b:.1f}" r="3.4"'
            parts.append(f'<circle class="untried" {place}{hidden}/>')
    height = 34 + ROW * ((states - 1) // IN_ROW) + 40
    if world.utility is not None:
        parts.append(svg.bar(402, 20, 20 + 170, svg.bar_labels(0, world.most), "utility (nats)"))
    return svg.drawing(480, max(height, 215), "".join(parts), label, "pairs")


def _beside(x: float, y: float, action: int, actions: int, away: float) -> tuple[float, float]:
    """A place around a circle: the first action is above, the others follow clockwise."""
    turn = 2 * math.pi * action / actions
    return x + away * math.sin(turn), y - away * math.cos(turn)


def _arrow(state: int, action: int, following: int) -> tuple[str, str]:
    """The shaft and the head of an arrow; one that goes nowhere is a loop, above for the first action."""
    (x, y), (p, q) = _spot(state), _spot(following)
    if state == following:
        up = -1 if action == 0 else 1
        a = y + up * (RADIUS - 1.5)
        return (
            f"M{x - 4:.1f} {a:.1f}A5.5 6 0 1 {int(up < 0)} {x + 4:.1f} {a:.1f}",
            f"M{x + 7:.1f} {a + up * 3.5:.1f}L{x + 4:.1f} {a:.1f}L{x + 2.5:.1f} {a + up * 4.5:.1f}",
        )
    length = math.hypot(p - x, q - y)
    u, v = (p - x) / length, (q - y) / length
    begin, end = RADIUS, length - RADIUS - 0.5
    off = -LANE  # to the left of the way it goes, so that two ways do not lie on each other
    a, b = x + u * begin - v * off, y + v * begin + u * off
    c, d = x + u * end - v * off, y + v * end + u * off
    (e, f), (g, h) = [(c - 4.5 * u - 3.2 * side * v, d - 4.5 * v + 3.2 * side * u) for side in (1, -1)]
    return f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}", f"M{e:.1f} {f:.1f}L{c:.1f} {d:.1f}L{g:.1f} {h:.1f}"


def _grid(world: World, label: str) -> str:
    _, states, actions = world.tried.shape
    side = 14.0 if states <= 100 else 7.0
    wide = int(350 // side)
    block = actions * side + 24
    parts: list[str] = []
    for state in range(states):
        left, top = 30 + state % wide * side, 18 + state // wide * block
        if state % wide % 5 == 0:
            parts.append(svg.text(left + side / 2, top - 5, str(state + world.first[0]), "tick middle"))
        for action in range(actions):
            y, pair = top + action * side, state * actions + action
            parts.append(
                f'<rect class="pair" data-pair="{pair}" x="{left:g}" y="{y:g}" width="{side - 1:g}" '
                f'height="{side - 1:g}" fill="{_fill(world, state, action)}"/>'
            )
            hidden = ' visibility="hidden"' if world.tried[-1, state, action] else ""
            middle = f'cx="{left + side / 2 - 0.5:g}" cy="{y + side / 2 - 0.5:g}" r="{side / 4.5:.1f}"'
            parts.append(f'<circle class="untried on" data-untried="{pair}" {middle}{hidden}/>')
            if state % wide == 0:
                parts.append(svg.text(24, y + side / 2 + 3.5, str(action + world.first[1]), "tick end"))
    height = 18 + block * (-(-states // wide))
    if world.utility is not None:
        right = 30 + min(states, wide) * side + 14
        parts.append(svg.bar(right, 18, 18 + 170, svg.bar_labels(0, world.most), "utility (nats)"))
    return svg.drawing(476, max(height, 200), "".join(parts), label, "pairs")
