"""A limit on the time that somebody else's code may take."""

import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

GRACE = 5.0
"""Seconds after the limit in which code that runs Python can still be stopped in good order."""

STUCK = 4
"""Exit status of a process that was ended because nothing else could stop what it was in."""


@contextmanager
def time_limit(seconds: float | None) -> Generator[None]:
    """A `TimeoutError` if the block takes longer than this. Should it be deaf even to that (stuck outside of Python),
    the process is ended, with one line, after a time of grace. In threads other than the main one, it is ended at once.
    """
    if seconds is None:
        yield
        return
    in_main = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    last = threading.Timer(seconds + (GRACE if in_main else 0.0), _end, (seconds,))
    last.daemon = True

    def late(*_: Any) -> None:
        raise TimeoutError(f"it took longer than the {seconds:g} seconds that a step may take")

    before = signal.signal(signal.SIGALRM, late) if in_main else None
    last.start()
    try:
        if in_main:
            signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        if in_main:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        last.cancel()


def _end(seconds: float) -> None:
    sys.stderr.write(
        f"maxplore: the environment is stuck: a step took longer than {seconds:g} seconds and cannot be interrupted; "
        "every step before it is kept, resume the run to go on\n"
    )
    sys.stderr.flush()
    os._exit(STUCK)
