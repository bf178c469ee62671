"""A limit on the time that somebody else's code may take."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

from maxplore.errors import InputError

GRACE = 5.0
"""Seconds after the limit in which code that runs Python can still be stopped in good order."""

MOST = 1e6
"""Seconds that a limit may be."""

# The watcher is a process of its own: nothing that the environment holds, not even Python's lock, can stop it.
WATCHER = """
import os, select, signal, sys, time
owner, end, text = int(sys.argv[1]), None, ""
while True:
    ready, _, _ = select.select([0], [], [], None if end is None else max(0.0, end - time.monotonic()))
    if not ready:
        sys.stderr.write(text + "\\n")
        sys.stderr.flush()
        os.kill(owner, signal.SIGKILL)
        break
    told = os.read(0, 65536)
    if not told:
        break
    seconds, _, text = told.decode(errors="replace").split("\\n")[-2].partition(" ")
    end = time.monotonic() + float(seconds) if seconds else None
"""


def check_limit(seconds: float | None) -> None:
    """An `InputError` if this is no limit."""
    if seconds is not None and not 0 < seconds <= MOST:
        raise InputError(f"step_limit is {seconds}, expected seconds above 0 and up to {MOST:g}, or none")


class Watchdog:
    """Looks after blocks of code, one after the other. Without a limit it lets everything take its time."""

    def __init__(self, seconds: float | None) -> None:
        check_limit(seconds)
        self.seconds, self._watcher = seconds, None
        if seconds is not None:
            command = [sys.executable, "-I", "-c", WATCHER, str(os.getpid())]
            self._watcher = subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0)

    @contextmanager
    def limited(self, what: str) -> Generator[None]:
        """A `TimeoutError` if the block takes longer than the limit. Should it be deaf even to that, the watcher says
        `what` happened and ends this process after a time of grace."""
        if self.seconds is None:
            yield
            return
        self._tell(f"{self.seconds + GRACE} {what}")
        try:
            with _alarm(self.seconds):
                yield
        finally:
            self._tell("")

    def close(self) -> None:
        """Nothing more to look after."""
        if self._watcher is not None:
            assert self._watcher.stdin is not None
            with suppress(OSError):
                self._watcher.stdin.close()
            self._watcher.wait()

    def _tell(self, line: str) -> None:
        assert self._watcher is not None
        assert self._watcher.stdin is not None
        with suppress(OSError):  # it is gone: then nobody watches
            self._watcher.stdin.write(" ".join(line.split()).encode() + b"\n")
            self._watcher.stdin.flush()


@contextmanager
def _alarm(seconds: float) -> Generator[None]:
    """A `TimeoutError` in a block that takes too long, where signals can be had: in the main thread."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def late(*_: Any) -> None:
        raise TimeoutError(f"it took longer than the {seconds:g} seconds that a step may take")

    before = signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
