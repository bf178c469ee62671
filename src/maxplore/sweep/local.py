"""Workers on this machine: processes side by side, one core and one XLA thread each."""

import os
import platform
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from maxplore.errors import InputError
from maxplore.runs import files
from maxplore.sweep.engine import GIGABYTES, WORK, Ended, surroundings

Process = subprocess.Popen[bytes]


class Local:
    """As many workers as there are cores, and memory for."""

    _room = 0

    def room(self) -> int:
        """As many as there were cores, and memory for, when the first was asked for: those that run use it."""
        self._room = self._room or _room()
        return self._room

    def start(self, order: Path, run: Path) -> Process:
        """A worker in a session of its own: Ctrl-C reaches it through its parent alone, and once."""
        try:
            with open(order.with_suffix(".log"), "wb", opener=files.plain) as log:
                return subprocess.Popen(
                    [sys.executable, "-m", WORK, str(order), str(run), str(os.getpid())],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    env={**os.environ, **surroundings()},
                )
        except OSError as error:
            raise InputError(f"a worker for {order} cannot be started ({error.strerror})") from error

    def ended(self, worker: Process) -> Ended | None:
        """How it ended; None as long as it runs."""
        return None if worker.poll() is None else Ended(worker.returncode, platform.node())

    def stop(self, workers: Sequence[Process]) -> None:
        """Have them finish their step; who is impatient a second time ends them at once."""
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGKILL):
            for worker in workers:
                with suppress(ProcessLookupError):
                    worker.send_signal(number)
            with suppress(KeyboardInterrupt):
                for worker in workers:
                    worker.wait()
                return


def _room() -> int:
    """As many as there are cores, and memory for."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        told = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(told["MemAvailable"].split()[0]) / 2**20
    except (OSError, ValueError, KeyError):
        return cores
    return max(1, min(cores, int(free / GIGABYTES)))
