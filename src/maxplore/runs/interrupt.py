"""Ctrl-C: the first is noticed at the next good moment, the second obeyed at once."""

import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

INTERRUPTED = 130
"""Exit status of what was stopped by Ctrl-C."""


@contextmanager
def interruptible() -> Generator[Callable[[], bool]]:
    """Ctrl-C is noticed, not obeyed at once; the second time it is."""
    asked = False

    def notice(*_: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        sys.stderr.write("maxplore: finishing this step; Ctrl-C again ends at once, and the run can still be resumed\n")

    before = signal.signal(signal.SIGINT, notice)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
