"""What an engine is: somewhere that workers run. What to do about one that ended is up to `running`."""

import os
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from maxplore.errors import InputError
from maxplore.runs import files
from maxplore.runs.interrupt import INTERRUPTED
from maxplore.stalls import STUCK

GIGABYTES = 2.0
"""Memory that a worker may need."""
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
WORK = "maxplore.sweep.work"
"""The module that a worker runs."""
FAILED = 3
"""Exit status of a worker whose trial cannot come to its end."""
FULL = 2**20
"""Bytes that a disk has left at the most of which that is said."""
BUSY = 4
"""Exit status of a worker that found another one at its run."""


class Ended(NamedTuple):
    """How a worker came to its end."""

    status: int | None
    """What it returned, less than 0 for the signal that killed it; None if it was lost together with its machine."""
    where: str = ""
    """The machine that it was on."""
    loss: str = ""
    """What the engine knows of a loss."""

    @property
    def may_go_on(self) -> bool:
        """Whether another worker may get further: this one was ended from outside, kept out, or stuck in a compiled
        program. What fails on its own would fail again."""
        return self.status is None or self.status < 0 or self.status in (INTERRUPTED, BUSY, STUCK)

    def reason(self, log: Path) -> str:
        """Why it did not get to the end of its trial, in a line."""
        if self.status is None:
            return self.loss
        if self.status < 0:
            names = {number.value: number.name for number in signal.Signals}
            return f"its worker was killed by {names.get(-self.status, f'signal {-self.status}')} ({log})"
        if self.status == INTERRUPTED:
            return f"its worker was asked to stop ({log})"
        return f"{_last_words(log)} (status {self.status}, {log})"


@runtime_checkable
class Engine(Protocol):
    """Somewhere that workers run."""

    def room(self) -> int:
        """How many may run now, those that do included."""
        ...

    def start(self, order: Path, run: Path) -> Any:
        """A worker for the trial that is written down in `order`, whose run is in the folder `run`."""
        ...

    def ended(self, worker: Any) -> Ended | None:
        """How it ended; None as long as it runs."""
        ...

    def stop(self, workers: Sequence[Any]) -> None:
        """Have them finish their step; who is impatient a second time ends them at once. Their runs go on later."""
        ...


def surroundings() -> dict[str, str]:
    """What a worker has in its environment besides what its machine has: all that decides about numbers, and speed."""
    own = {name: value for name, value in os.environ.items() if name.startswith(("JAX_", "XLA_"))}
    return {**own, "XLA_FLAGS": f"{own.get('XLA_FLAGS', '')} {ONE_THREAD}".strip(), "OMP_NUM_THREADS": "1"}


def _last_words(log: Path) -> str:
    try:
        lines = files.read(log).decode(errors="replace").strip().splitlines()
    except (OSError, InputError):
        lines = []
    if not lines and shutil.disk_usage(log.parent).free < FULL:
        return "it said nothing: the disk is full"
    return lines[-1] if lines else "it said nothing"
