"""Trials on this machine: processes side by side, one core and one XLA thread each."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from maxplore.errors import InputError
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
    """Bring all trials to their end, each in the folder of its name. One that fails stops no other.

    A trial that is done is not touched; one that was begun goes on. A `KeyboardInterrupt` ends the workers in good
    order first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    todo = [name for name, trial in trials.items() if not done(trial, folder / name).ends(trial)]
    outcomes = [Outcome(name, ended=True) for name in trials if name not in todo]
    if outcomes:
        say(f"{len(outcomes)} of {len(trials)} runs are there already")
    at_once, running = min(workers or _workers(), len(todo)), dict[str, subprocess.Popen[bytes]]()
    waiting, begun = list(todo), dict[str, float]()
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                name = waiting.pop(0)
                trials[name].write(folder / f"{name}.json")
                running[name], begun[name] = _started(folder / f"{name}.json"), time.monotonic()
            for name in [name for name, worker in running.items() if worker.poll() is not None]:
                status = running.pop(name).returncode
                outcome = Outcome(name, status == 0, "" if status == 0 else _reason(folder / f"{name}.log", status))
                outcomes.append(outcome)
                minutes = (time.monotonic() - begun[name]) / 60
                what = f"done in {minutes:.1f} minutes" if outcome.ended else f"FAILED: {outcome.reason}"
                say(f"{name}: {what} ({len(outcomes)} of {len(trials)})")
                if status == INTERRUPTED:
                    raise KeyboardInterrupt
            time.sleep(LOOK)
    finally:
        _end(list(running.values()))
    return sorted(outcomes, key=lambda outcome: list(trials).index(outcome.name))


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
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    except (ValueError, OSError, AttributeError):
        return cores
    return max(1, min(cores, int(free / GIGABYTES)))


def _started(file: Path) -> subprocess.Popen[bytes]:
    """A worker in a session of its own: Ctrl-C reaches it through its parent alone, and once."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} {ONE_THREAD}".strip()
    try:
        with file.with_suffix(".log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "maxplore.sweep.work", str(file)],
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
