"""How a sweep is doing, read off its folder at any time: done, running, failed, resumed, and the time that is left."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Group
from rich.table import Table
from rich.text import Text

from maxplore.errors import InputError
from maxplore.runs.directory import Folder
from maxplore.sweep import journal
from maxplore.sweep.trial import NOTHING, Done, Keeper, Trial, done, whole

DONE, RUNNING, FAILED, WAITING = "done", "running", "failed", "waiting"
STYLES = {DONE: "green", RUNNING: "bold", FAILED: "red", WAITING: "dim"}


class Row(NamedTuple):
    """A trial now."""

    name: str
    state: str
    trial: Trial
    done: Done
    past: journal.Past | None = None

    @property
    def share(self) -> float:
        """How much of it is done, from 0 to 1."""
        return 1.0 if self.state == DONE else self.done.share(self.trial)

    @property
    def effort(self) -> tuple[float, float]:
        """Seconds that were spent on it, and the share of it that they brought."""
        past = self.past or journal.Past()
        now = (time.time() - past.time, max(self.share - past.share, 0.0)) if self.state == RUNNING else (0.0, 0.0)
        return past.seconds + now[0], past.gained + now[1]

    @property
    def cells(self) -> tuple[str, ...]:
        """As it stands in the table."""
        past, asked = self.past or journal.Past(), self.trial.asked
        seconds = self.effort[0]
        return (
            self.name,
            self.state,
            f"{min(self.done.steps, self.trial.steps)}/{self.trial.steps}",  # a run may be longer than asked
            f"{len(self.done.solved & {*asked})}/{len(asked)}" if asked else "",
            str(past.resumed or ""),
            in_words(seconds) if seconds else "",
            past.reason if self.state != DONE else "",
        )


HEADINGS = ("trial", "state", "steps", "tasks", "resumed", "took", "reason")
NUMBERS = ("steps", "tasks", "resumed", "took")
ALWAYS = 3
"""Columns that are shown whether there is anything in them or not."""


class Status:
    """All trials now, and how many are run at once."""

    def __init__(self, rows: list[Row], at_once: int) -> None:
        self.rows, self.at_once = rows, at_once

    @cached_property
    def left(self) -> float | None:
        """About how many seconds it takes yet, by what trials of the same kind took; None if nobody can know."""
        took = defaultdict[Any, Counter[str]](Counter)
        for row in self.rows:
            seconds, gained = row.effort
            for kind in (None, row.trial.kind):
                took[kind].update({"seconds": seconds, "gained": gained})  # pyright: ignore[reportArgumentType]
        if not took[None]["gained"]:
            return None
        each = [
            (1 - row.share) * own["seconds"] / own["gained"]
            for row in self.rows
            if row.state in (RUNNING, WAITING)
            for own in (took[row.trial.kind] if took[row.trial.kind]["gained"] else took[None],)
        ]
        return max(sum(each) / self.at_once, *each) if each else 0.0

    @property
    def summary(self) -> str:
        """Counts, in a line."""
        states = Counter(row.state for row in self.rows)
        resumed = sum(bool(row.past and row.past.resumed) for row in self.rows)
        told = [f"{states[state]} {state}" for state in (DONE, RUNNING, FAILED, WAITING)]
        going = states[RUNNING] and self.left is not None
        left = f"; about {in_words(self.left)} left" if going and self.left is not None else ""
        return f"{len(self.rows)} trials: {', '.join(told)}; {resumed} resumed{left}"

    def lines(self) -> Iterator[str]:
        """The table as plain lines, every trial in one."""
        columns = _columns(self.rows)
        widths = [max(map(len, column)) for column in columns]
        for cells in zip(*columns, strict=True):
            yield "  ".join(f"{cell:{width}s}" for cell, width in zip(cells, widths, strict=True)).rstrip()
        yield self.summary

    def table(self, most: int | None = None) -> Group:
        """The table for a terminal; if there is room for so many rows only, those that something is to be said of."""
        told = self.rows
        if most is not None and len(told) > most:
            order = (RUNNING, FAILED, WAITING, DONE)
            told = sorted(told, key=lambda row: order.index(row.state))[: max(most, 1)]
        columns = _columns(told)
        table = Table(box=None, header_style="bold", pad_edge=False)
        for heading, *_ in columns:
            last = heading == HEADINGS[-1]  # which gives way where there is not room for all
            table.add_column(heading, no_wrap=not last, justify="right" if heading in NUMBERS else "left")
        for row, cells in zip(told, zip(*(column[1:] for column in columns), strict=True), strict=True):
            table.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in cells), style=STYLES[row.state])
        more = len(self.rows) - len(told)
        return Group(table, *([Text(f"and {more} more", style="dim")] if more else []), Text(self.summary))


def _columns(rows: list[Row]) -> list[tuple[str, ...]]:
    """Columns that say anything, below their headings."""
    columns = zip(HEADINGS, *(row.cells for row in rows), strict=True)
    return [column for number, column in enumerate(columns) if number < ALWAYS or any(column[1:])]


def read(trials: Mapping[str, Trial], folder: Path, keeper: Keeper | None = None) -> Status:
    """How the trials in this folder are, whoever is at them; what the keeper has is done."""
    orders, past = folder / "trials", journal.read(folder / "trials")
    at_work = Folder(orders).writer is not None
    rows = [
        _row(name, trial, folder / "runs" / name, past.get(name), at_work, keeper) for name, trial in trials.items()
    ]
    return Status(rows, max(1, sum(row.state == RUNNING for row in rows)))


def _row(name: str, trial: Trial, run: Path, past: journal.Past | None, at_work: bool, keeper: Keeper | None) -> Row:
    try:
        found = whole(trial) if keeper is not None and keeper.has(name, trial) else done(trial, run)
    except InputError as error:
        return Row(name, FAILED, trial, NOTHING, (past or journal.Past())._replace(reason=str(error)))
    last = past.event if past is not None else ""
    if found.ends(trial):
        state = DONE
    elif at_work and last == journal.BEGAN:
        state = RUNNING
    else:
        state = FAILED if last == journal.FAILED else WAITING
    return Row(name, state, trial, found, past)


def in_words(seconds: float) -> str:
    """How long that is.

    >>> in_words(42.0), in_words(600.0), in_words(9e3), in_words(4e5)
    ('42 s', '10 min', '2.5 h', '4.6 days')
    """
    for unit, size, most in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172_800)):
        if seconds < most:
            return f"{seconds / size:.{1 if unit == 'h' else 0}f} {unit}"
    return f"{seconds / 86_400:.1f} days"
