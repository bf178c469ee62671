"""One page about runs: what was asked, how it went, what is known and what is not, what came of it."""

import base64
import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from maxplore.report import curves, finite, landscape, maze, svg, tasks
from maxplore.report.html import document, embedded, figure, folded, table
from maxplore.report.story import Story, told
from maxplore.report.words import joined
from maxplore.runs import files
from maxplore.runs.directory import Folder, check_out

DETAILED = 12
"""Runs of which a page has pictures of their own."""

LARGEST, LARGEST_OF_ALL = 3_000_000, 9_000_000
"""Bytes of a film, and of all films, that are put into the page itself."""

MOST_EVENTS = 100
"""The latest ones that are shown."""


def write_page(folders: Sequence[Folder], out: Path) -> None:
    """Write the page about these runs."""
    check_out(out)
    files.write_text(out, page(folders, out.parent))


def page(folders: Sequence[Folder], place: Path | None = None) -> str:
    """The page about these runs, to be put in this place; without one it is live, and knows its own version."""
    stories = told(folders)
    data: list[dict[str, Any]] = []
    room = LARGEST_OF_ALL
    sections: list[str] = []
    downstream = tasks.drawn(stories)
    came = f"<section><h2>What came of tasks</h2>{downstream}</section>" if downstream else ""
    alone = len(stories) == 1
    for number, story in enumerate(stories):
        pictures, own = _pictures(story, len(stories)) if number < DETAILED else (_LEFT_OUT, {})
        films, room = _films(story, place, room)
        data.append({"name": story.name, **own})
        inside = f"{'' if alone else _asked(story)}{pictures}{came if alone else ''}{films}{_events(story)}"
        sections.append(_section(number, story.name, inside, alone))
    names = [story.name for story in stories]
    title = joined(names) if len(names) <= 3 else f"{len(names)} runs"
    main = (
        f"<main><header><p class=brand>maxplore</p><h1>{escape(title)}</h1><p class=lead>{_lead(stories)}</p></header>"
        f"{_asked(stories[0]) if alone else _overview(stories)}"
        f"<section><h2>How it learned</h2>{curves.drawn(stories)}</section>{'' if alone else came}{''.join(sections)}"
        f"{embedded('data', {'palette': svg.PALETTE, 'runs': data})}</main>"
    )
    version = hashlib.sha256(main.encode(errors="backslashreplace")).hexdigest()[:16] if place is None else ""
    return document(f"maxplore: {title}", main, version=version)


_LEFT_OUT = f'<p class="note">Only the first {DETAILED} runs have pictures of their own: report on this one alone.</p>'


def _lead(stories: Sequence[Story]) -> str:
    if len(stories) == 1:
        own = stories[0]
        episodes = int((own.walk.times == 0).sum())
        return (
            f"{escape(own.config.method)} explored {escape(own.config.env)} for {own.steps:,} of {own.aimed:,} steps, "
            f"in {episodes:,} episode{'' if episodes == 1 else 's'}."
        )
    envs = sorted({story.config.env for story in stories})
    methods = sorted({story.config.method for story in stories})
    steps = sum(story.steps for story in stories)
    return f"{len(stories)} runs of {escape(joined(methods))} on {escape(joined(envs))}, {steps:,} steps in all."


def _overview(stories: Sequence[Story]) -> str:
    """All runs in one table: the last of each curve."""
    heads = ("run", "environment", "method", "preset", "seed", "steps", *curves.TITLES)
    rows: list[list[Any]] = []
    for own in stories:
        last = [f"{own.curves[name][-1][1]:.3g}" if name in own.curves else "" for name in curves.TITLES]
        config = own.config
        rows.append([own.name, config.env, config.method, config.preset, config.seed, f"{own.steps:,}", *last])
    return f"<section><h2>The runs, as they stand</h2>{table(heads, rows, 'overview')}</section>"


def _section(number: int, name: str, inside: str, alone: bool) -> str:
    if alone:
        return f'<section class="run" data-run="{number}">{inside}</section>'
    opened = " open" if number == 0 else ""
    head = f"<summary><h2>{escape(name)}</h2></summary>"
    return f'<details class="run" data-run="{number}"{opened}>{head}{inside}</details>'


def _asked(story: Story) -> str:
    own = story.config
    plain = {
        "environment": own.env + (f" with {_listed(own.env_kwargs)}" if own.env_kwargs else ""),
        "method": f"{own.method}, preset {own.preset}, seed {own.seed}",
        "settings": _listed(own.settings) or "the usual ones",
        "steps": f"{story.steps:,} of {story.aimed:,}; a checkpoint every {own.checkpoint_every:,}",
        "command": own.command or "none: begun from Python",
        "versions": _listed(own.versions),
    }
    every = folded("every setting in force", table(("setting", "value"), sorted(own.in_force.items()), "numbers"))
    terms = "".join(f"<div><dt>{escape(term)}</dt><dd>{escape(words)}</dd></div>" for term, words in plain.items())
    return f'<h3>What was asked</h3><dl class="asked">{terms}</dl>{every}'


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items())


def _pictures(story: Story, runs: int) -> tuple[str, dict[str, Any]]:
    """What is known and what is not, at every moment; and the same for the script."""
    if not story.frames:
        return "", {}
    parts: list[str] = []
    data: dict[str, Any] = {}
    land = None
    if story.finite:
        world = finite.known(story)
        assert world is not None
        parts.append(finite.drawn(world))
        data["world"] = finite.data(world)
        sayings = [finite.told(world, k) for k in range(len(world.steps))]
    else:
        land = landscape.charted(story, min(runs, DETAILED))
        if land is not None:
            kept = set(land.steps)
            story = replace(story, frames=[frame for frame in story.frames if frame.step in kept])
            parts.append(landscape.drawn(story, land))
            data["land"] = landscape.data(land)
        if maze.is_maze(story):
            parts.append(maze.drawn(story))
            data["maze"] = maze.data(story)
        parts.append(landscape.reliability(story))
        data["reliable"] = landscape.reliabilities(story, [frame.step for frame in story.frames])
        sayings = [landscape.told(story, frame.step) for frame in story.frames]
    data["steps"], data["words"] = [frame.step for frame in story.frames], sayings
    words = f'<p class="words">{escape(sayings[-1])}</p>' if sayings[-1] else ""
    head = "What is known, and what is not" if story.surveyed else "Where it has been"
    head = f"<h2>{head}</h2>" if runs == 1 else f"<h3>{head}</h3>"
    charts = f'<div class="charts wide">{"".join(parts)}</div>'
    return f"{head}{_controls(story, land)}{words}{charts}", data


def _controls(story: Story, land: landscape.Land | None) -> str:
    """A slider through time, and what to draw; the script shows them, since they are its own."""
    last = len(story.frames) - 1
    parts = [
        f'<label class="time">Step <input type="range" name="moment" min="0" max="{last}" value="{last}">'
        f"<output>{story.frames[last].step:,}</output></label>"
    ]
    if land is not None:
        for name, chosen in zip(("across", "up"), land.first, strict=True):
            options = _options(list(enumerate(land.names)), chosen)
            parts.append(f'<label>{name.capitalize()} <select name="{name}">{options}</select></label>')
        if len(land.dims) < len(story.dimensions):
            parts.append(f"<small>{len(land.dims)} of {len(story.dimensions)} dimensions, those that tell most</small>")
        ways = _options([(0, "all of it"), (1, "the last episode"), (2, "none")], 0)
        parts.append(f'<label>Way <select name="way">{ways}</select></label>')
        if land.scales:
            states = _options([(0, "all"), (1, "like those visited"), (2, "anywhere in their range")], 0)
            colours = _options([(0, "of this step"), (1, "of all steps")], 0)
            parts.append(f'<label>States <select name="states">{states}</select></label>')
            parts.append(f'<label>Colours <select name="colours">{colours}</select></label>')
    return f'<form class="controls" hidden>{"".join(parts)}</form>'


def _options(choices: Sequence[tuple[int, str]], chosen: int) -> str:
    return "".join(
        f'<option value="{value}"{" selected" if value == chosen else ""}>{escape(words)}</option>'
        for value, words in choices
    )


def _films(story: Story, place: Path | None, room: int) -> tuple[str, int]:
    """Films inside the page, or where they are; and how many bytes of them still have room."""
    parts: list[str] = []
    for file in story.videos:
        size, name = file.stat().st_size, escape(file.stem)
        if size <= min(LARGEST, room):
            room -= size
            source = f"data:video/mp4;base64,{base64.b64encode(files.read(file)).decode()}"
            kind = 'controls muted playsinline preload="metadata"'
            parts.append(figure(file.stem, f'<video {kind} aria-label="Film: {name}" src="{source}"></video>'))
            continue
        where = escape(str(file))
        if place is not None:
            relative = os.path.relpath(file.resolve(), place.resolve())
            where = f'<a href="{escape(quote(relative))}">{escape(relative)}</a>'
        parts.append(figure(file.stem, f'<p class="note">{size / 1e6:.1f} MB, too large for this page: {where}</p>'))
    return (f'<h3>Films</h3><div class="charts">{"".join(parts)}</div>' if parts else ""), room


def _events(story: Story) -> str:
    rows = [(event.time, event.step, event.kind, event.text) for event in story.events[-MOST_EVENTS:]]
    return f"<h3>Events</h3>{table(('when', 'step', 'what', ''), rows)}" if rows else ""
