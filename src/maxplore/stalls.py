"""Notices compiled programs that never return: asleep in XLA, where no exception reaches and Ctrl-C is not heard.

On the CPU backend a program that works uses the processor. One that did hardly so in a minute of time awake is stuck: a
library call warns, a command ends with a status of its own (`end_process`). A suspended process is not awake.
What other threads of Python do (a progress bar, the user's own) does not count as the program's work.
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
"""so many seconds of it, at the least."""


class Call:
    """A call of a compiled program that has not returned yet."""

    def __init__(self, name: str) -> None:
        self.name, self.thread = name, threading.get_ident()
        self.awake, self.spent = 0.0, -1.0
        self.told = False


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
            del _under_way[thread]
        else:
            _under_way[thread] = before


def look(passed: float, spent: Callable[[Call], float]) -> None:
    """Count the seconds that `passed` since the last look as time awake, and tell of calls that are stuck; `spent` is
    the processor time that a call may have had so far."""
    for call in list(_under_way.values()):
        if call.spent < 0:
            call.spent = spent(call)
        call.awake += min(passed, 2 * TICK)  # more than that, and this process was asleep itself
        if call.awake >= WINDOW:
            used = spent(call) - call.spent
            if used < LEAST and not call.told:
                call.told = True
                _stuck(
                    f"the compiled program {call.name} got {used:.1f} seconds of processor time in {call.awake:.0f}, "
                    "expected more: it seems to wait for ever"
                )
            call.awake, call.spent = 0.0, spent(call)


def end_process(advice: str) -> None:
    """From here on, end this process with the status `STUCK` and this advice when a program is stuck."""
    global _stuck

    def end(text: str) -> None:
        sys.stderr.write(f"maxplore: {text}; {advice}\n")
        sys.stderr.flush()
        os._exit(STUCK)  # the main thread is where nothing else reaches it

    _stuck = end


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
        look(now - last, _spent)
        last = now


def _spent(call: Call) -> float:
    """Seconds that this process was at work, or waited for a processor that others had: on a busy machine, and with a
    low priority, a program gets little and is not stuck. Python's other threads are left out where the system tells."""
    others = {own.native_id for own in threading.enumerate() if own.ident != call.thread}
    spent = time.process_time()
    for task in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(OSError, ValueError):  # a thread that has just ended
            ran, waited, _ = (int(number) / 1e9 for number in task.read_text().split())
            # Sleepers that wake now and then wait a little too: of what is waited, a tenth tells them apart.
            spent += -ran if int(task.parent.name) in others else waited / 10
    return spent
