"""How far exploring and exploiting are, for people who wait."""

import math
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from maxplore.pieces import Tell

Show = Callable[[int, dict[str, float] | None], None]
"""Says that so many steps are done, and what the newest figures are."""


@contextmanager
def shown(
    steps: int,
    *,
    wanted: bool | None,
    watch: Callable[[dict[str, float]], None] | None,
    known: dict[str, float] | None = None,
    begun: int = 0,
) -> Generator[Show]:
    """A bar on the error stream while the block runs (None: if that is a terminal), `watch` told of every round that
    comes after the one `known`. So many steps are done when it has `begun`."""
    console, told = Console(stderr=True), -1.0 if known is None else known["step"]
    bar = Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[news]}"),
        console=console,
        disable=not (console.is_terminal if wanted is None else wanted),
    )
    task = bar.add_task("", total=steps, completed=begun, news="", rate="")

    def show(done: int, figures: dict[str, float] | None) -> None:
        nonlocal told
        speed = bar.tasks[0].speed
        bar.update(task, completed=done, rate="" if speed is None else f"{speed:.0f} steps/s")
        if figures is not None and figures["step"] != told:
            told = figures["step"]
            bar.update(task, news=in_short(figures))
            if watch is not None:
                watch(dict(figures))

    with bar:
        yield show


@contextmanager
def solving(*, wanted: bool | None, watch: Tell | None) -> Generator[Tell]:
    """A bar on the error stream while a task is solved (None: if that is a terminal), and `watch` told the same."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description:8s}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[news]}"),
        console=console,
        disable=not (console.is_terminal if wanted is None else wanted),
        refresh_per_second=1,
        transient=True,
    )
    task = bar.add_task("", total=None, news="")

    def tell(doing: str, done: int, of: int, expects: float | None) -> None:
        if doing != bar.tasks[0].description:
            bar.reset(task, description=doing)
        bar.update(task, completed=done, total=of or None, news=expected(expects))
        if watch is not None:
            watch(doing, done, of, expects)

    with bar:
        yield tell


FIRST, EVERY = 1.5, 10.0
"""Seconds until the first line, and from line to line."""


@contextmanager
def lines(write: Callable[[str], None]) -> Generator[Tell]:
    """The latest told as a line now and then, also while compiled work is under way; of what takes moments, none."""
    begun, over, latest = time.monotonic(), threading.Event(), ""

    def tell(doing: str, done: int, of: int, expects: float | None) -> None:
        nonlocal latest
        latest = f"{doing}{f' {done} of {of}' if of else ''}{', ' if expects is not None else ''}{expected(expects)}"

    def run() -> None:
        wait = FIRST
        while not over.wait(wait):
            wait = EVERY
            if latest:
                write(f"{latest} ({time.monotonic() - begun:.0f} s)")

    thread = threading.Thread(target=run, name="maxplore-progress", daemon=True)
    thread.start()
    try:
        yield tell
    finally:
        over.set()
        thread.join()


def expected(returns: float | None) -> str:
    """A return that is expected, in a few words.

    >>> expected(12.345)
    'expects 12.3'
    """
    return "" if returns is None else f"expects {returns:.3g}"


def in_short(figures: Mapping[str, float]) -> str:
    """A round's figures, as far as there are any, in a few words.

    >>> in_short({"utility": 1.5, "saturation": 0.93, "error": 0.21, "coverage": 5.25})
    'utility 1.50 (93% of its ceiling), model error 0.21, coverage 5.25'
    >>> in_short({"coverage": 0.5})
    'coverage 0.50'
    """
    saturation = figures.get("saturation", math.nan)
    ceiling = "" if math.isnan(saturation) else f" ({saturation:.0%} of its ceiling)"
    words = {"utility": f"utility {{:.2f}}{ceiling}", "error": "model error {:.2g}", "coverage": "coverage {:.2f}"}
    return ", ".join(text.format(figures[name]) for name, text in words.items() if name in figures)
