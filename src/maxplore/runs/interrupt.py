"""Ctrl-C: while a run explores, the first is noticed at the next good moment, the second obeyed at once."""

import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

from maxplore_start import INTERRUPTED as INTERRUPTED  # where nothing heavy is imported

TOLD = "maxplore: finishing this step; Ctrl-C again ends at once, and the run can still be resumed\n"

_asked = False
"""Whether there was a Ctrl-C since `heard` began."""


@contextmanager
def heard() -> Generator[None]:
    """Ctrl-C raises a `KeyboardInterrupt`, and is remembered: a callback, a finaliser or the user's code may swallow
    that, and then `obey` raises another."""
    global _asked
    _asked = False

    def interrupt(*_: Any) -> None:
        global _asked
        _asked = True
        raise KeyboardInterrupt

    with _handled(interrupt):
        yield


def obey() -> None:
    """Raise a `KeyboardInterrupt` if one was swallowed."""
    if _asked:
        raise KeyboardInterrupt


@contextmanager
def interruptible() -> Generator[Callable[[], bool]]:
    """Ctrl-C is noticed, not obeyed at once; the second time it is."""
    asked = False

    def notice(*_: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        # Nobody may read it any more, as where `tee` has ended by the same Ctrl-C; or a line may be half written there.
        with suppress(OSError, RuntimeError):
            sys.stderr.write(TOLD)

    with _handled(notice):
        obey()
        yield lambda: asked


@contextmanager
def _handled(handler: Callable[..., None]) -> Generator[None]:
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
