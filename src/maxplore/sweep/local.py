"""Trials on this machine: processes side by side, one core and one XLA thread each."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from maxplore.errors import InputError
from maxplore.runs.directory import Folder
from maxplore.runs.interrupt import INTERRUPTED
from maxplore.sweep.trial import Trial, done

GIGABYTES = 2.0
"""Memory that a worker may need."""
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
LOOK = 0.2
"""Seconds between two looks at the workers."""


class Outcome(NamedTuple):
    """What became of a trial."""

    name: str
    ended: bool
    reason: str = ""
    """Why not."""


def run_all(
    trials: Mapping[str, Trial], folder: Path, *, workers: int | None = None, say: Callable[[str], None]
) -> list[Outcome]:
    """Bring all trials to their end, each a run in `folder/runs/NAME`. One that fails stops no other.

    A trial that is done is not touched; one that was begun goes on. A `KeyboardInterrupt`, or a signal to end, ends the
    workers in good order first. Two of these commands in one folder would stand in each other's way: the second is
    refused.
    """
    runs, orders = folder / "runs", folder / "trials"
    for each in (runs, orders):
        each.mkdir(parents=True, exist_ok=True)
    with Folder(orders).locked(), _interruptible():
        todo = [name for name, trial in trials.items() if not done(trial, runs / name).ends(trial)]
        outcomes = [Outcome(name, ended=True) for name in trials if name not in todo]
        if outcomes:
            say(f"{len(outcomes)} of {len(trials)} runs are there already")
        waiting, running = list(todo), dict[str, tuple[subprocess.Popen[bytes], float]]()
        at_once = min(workers or _workers(), len(todo))
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    name = waiting.pop(0)
                    trials[name].write(orders / f"{name}.json")
                    running[name] = _started(orders / f"{name}.json", runs / name), time.monotonic()
                for name in [name for name, (worker, _) in running.items() if worker.poll() is not None]:
                    worker, begun = running.pop(name)
                    outcome = _outcome(name, worker.returncode, orders / f"{name}.log")
                    outcomes.append(outcome)
                    minutes = (time.monotonic() - begun) / 60
                    what = f"done in {minutes:.1f} minutes" if outcome.ended else f"FAILED: {outcome.reason}"
                    say(f"{name}: {what} ({len(outcomes)} of {len(trials)})")
                time.sleep(LOOK)
        finally:
            _end([worker for worker, _ in running.values()])
    return sorted(outcomes, key=lambda outcome: list(trials).index(outcome.name))


def _outcome(name: str, status: int, log: Path) -> Outcome:
    """What became of a worker; one that was interrupted interrupts us, too."""
    if status == INTERRUPTED:
        raise KeyboardInterrupt
    return Outcome(name, status == 0, "" if status == 0 else _reason(log, status))


@contextmanager
def _interruptible() -> Generator[None]:
    """Signals to end are like Ctrl-C in here; outside the main thread nothing can be done about them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(workers: list[subprocess.Popen[bytes]]) -> None:
    """Have workers finish their step; whoever is impatient a second time ends them at once. Their runs go on later."""
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGKILL):
        for worker in workers:
            with suppress(ProcessLookupError):
                worker.send_signal(number)
        with suppress(KeyboardInterrupt):
            for worker in workers:
                worker.wait()
            return


def _workers() -> int:
    """As many as there are cores, and memory for."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        told = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(told["MemAvailable"].split()[0]) / 2**20
    except (OSError, ValueError, KeyError):
        return cores
    return max(1, min(cores, int(free / GIGABYTES)))


def _started(file: Path, run: Path) -> subprocess.Popen[bytes]:
    """A worker in a session of its own: Ctrl-C reaches it through its parent alone, and once."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} {ONE_THREAD}".strip()
    try:
        with file.with_suffix(".log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "maxplore.sweep.work", str(file), str(run)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "XLA_FLAGS": flags, "OMP_NUM_THREADS": "1"},
            )
    except OSError as error:
        raise InputError(f"a worker for {file} cannot be started ({error.strerror})") from error


def _reason(log: Path, status: int) -> str:
    """The last words of a worker."""
    lines = log.read_text(errors="replace").strip().splitlines()
    last = lines[-1] if lines else "it said nothing"
    return f"{last} (status {status}, {log})"
