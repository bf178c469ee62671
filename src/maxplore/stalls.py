"""Notices compiled programs that never return: asleep in XLA, where no exception reaches and Ctrl-C is not heard.

On the CPU backend a program that works uses the processor, or waits for it while others have it. One that did hardly
either in a minute of time awake is stuck: a library call warns, a command ends with a status of its own
(`ending_process`). A suspended process is not awake. What other threads of Python do (a progress bar, the user's own)
does not count as the program's work.
"""

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import jax

STUCK = 5
"""Exit status of a process that a stuck program ended: another try may get further."""

TICK = 1.0
"""Seconds between two looks."""
WINDOW = 60.0
"""Seconds awake, in which a program that works gets"""
LEAST = 1.0
"""so many seconds of the processor, at the least."""


class Call:
    """A call of a compiled program that has not returned yet."""

    def __init__(self, name: str) -> None:
        self.name, self.thread = name, threading.get_ident()
        self.awake, self.told = 0.0, False
        self.spent: float | None = None
        """Processor time that it may have had when the minute began."""


_under_way: dict[int, Call] = {}
"""By thread."""
_stuck: Callable[[str], None]
"""What to do about one."""
_watcher: int | None = None
"""The process that has a watcher."""


@contextmanager
def watched(name: str) -> Generator[None]:
    """Look after the compiled program of this name while the block runs."""
    if _watcher != os.getpid():
        _start()
    thread = threading.get_ident()
    before = _under_way.get(thread)
    _under_way[thread] = Call(name)
    try:
        yield
    finally:
        if before is None:
            _under_way.pop(thread, None)  # gone if this is a child, forked meanwhile
        else:
            _under_way[thread] = before


def look(passed: float, measured: Callable[[Call], tuple[float, bool]]) -> None:
    """Count the seconds that `passed` since the last look as time awake, and tell of calls that are stuck. Of a call is
    `measured` the processor time that it may have had so far, and whether it would run now."""
    for call in list(_under_way.values()):
        call.awake += min(passed, 2 * TICK)  # more than that, and this process was asleep itself
        if call.spent is not None and call.awake < WINDOW:
            continue
        spent, ready = measured(call)
        used = LEAST if call.spent is None else spent - call.spent
        if used < LEAST and not ready and not call.told:
            call.told = True
            _stuck(
                f"the compiled program {call.name} got {used:.1f} seconds of processor time in {call.awake:.0f}, "
                "expected more: it seems to wait for ever"
            )
        call.awake, call.spent = 0.0, spent


@contextmanager
def ending_process(advice: str) -> Generator[None]:
    """End this process with the status `STUCK` and this advice when a program is stuck while the block runs."""
    global _stuck

    def end(text: str) -> None:
        try:
            sys.stderr.write(f"maxplore: {text}; {advice}\n")
            sys.stderr.flush()
        finally:
            os._exit(STUCK)  # the main thread is where nothing else reaches it

    before, _stuck = _stuck, end
    try:
        yield
    finally:
        _stuck = before


def _warn(text: str) -> None:
    """Tell, and leave it at that: the process is the user's."""
    try:
        warnings.warn(
            f"{text}. Interrupting is not heard there: end the process from outside", RuntimeWarning, stacklevel=1
        )
    except RuntimeWarning as error:  # where warnings are errors, this thread has nobody to raise it to
        sys.stderr.write(f"maxplore: {error}\n")


_stuck = _warn


def _start() -> None:
    """Start the watcher of this process; after a fork the child has none."""
    global _watcher
    _watcher = os.getpid()
    _under_way.clear()
    if jax.default_backend() == "cpu":  # elsewhere the processor has little to do
        threading.Thread(target=_watch, name="maxplore-stalls", daemon=True).start()


def _watch() -> None:
    last = time.monotonic()
    while True:
        time.sleep(TICK)
        now = time.monotonic()
        look(now - last, _measured)
        last = now


def _measured(call: Call) -> tuple[float, bool]:
    """Seconds that this process was at work; and whether a thread of it has work to do now, with a processor or waiting
    for one: on a busy machine, and with a low priority, a program gets little and is not stuck. Python's other threads
    are left out where the system tells."""
    others = {
        own.native_id
        for own in threading.enumerate()
        if own.ident != call.thread and not own.name.startswith("Dummy-")  # a thread of XLA's that has called Python
    }
    spent, ready = time.process_time(), False
    for task in Path("/proc/self/task").glob("*/stat"):
        with suppress(OSError, ValueError):  # a thread that has just ended
            state, *numbers = task.read_text().rpartition(")")[2].split()
            if int(task.parent.name) in others:
                spent -= (int(numbers[10]) + int(numbers[11])) / TICKS
            else:
                ready |= state in "RD"
    return spent, ready


TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
"""In a second, of the clock that the system counts threads' time with."""
