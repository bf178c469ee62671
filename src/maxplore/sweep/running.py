"""All trials to their end, by whatever engine: which one is next, and what to do when a worker ends."""

import math
import signal
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from maxplore.errors import InputError
from maxplore.runs.directory import Folder, make_directory
from maxplore.sweep.engine import BUSY, Ended, Engine
from maxplore.sweep.journal import BEGAN, ENDED, FAILED, LOST, STOPPED, Journal, Past
from maxplore.sweep.local import Local
from maxplore.sweep.status import DONE, RUNNING, WAITING, Row, Status
from maxplore.sweep.status import FAILED as HAS_FAILED
from maxplore.sweep.trial import NOTHING, Done, Keeper, OtherRunError, Trial, done, whole

LOOK = 0.2
"""Seconds between two looks at the workers."""
SHOWN = 1.0
"""Seconds between two looks at how far they are."""
PAUSES = (0.5, 2.0, 10.0, 40.0, 120.0)
"""Seconds until a trial that lost its worker gets another: the first if that one got any further, the next each time in
a row that it did not; in the end it is given up. Together they outlast the lease of a lock that a dead machine held."""


TAIL = 4
"""Trials for each worker: when no more than these wait, long ones go first. Until then they go as the study has them, a
bit of everything; but long ones that are begun last are what everybody waits for in the end."""


class Outcome(NamedTuple):
    """What became of a trial."""

    name: str
    ended: bool
    reason: str = ""
    """Why not."""


def run_all(
    trials: Mapping[str, Trial],
    folder: Path,
    *,
    engine: Engine | None = None,
    workers: int | None = None,
    say: Callable[[str], None],
    show: Callable[[Status], None] | None = None,
    keeper: Keeper | None = None,
) -> list[Outcome]:
    """Bring all trials to their end, each a run in `folder/runs/NAME`. One that fails stops no other.

    A trial that is done is not touched; one that was begun goes on, and so does one that lost its worker. A
    `KeyboardInterrupt`, or a signal to end, ends the workers in good order first. Two of these commands in one folder
    would stand in each other's way: the second is refused. `show` is told about once a second how things are. What the
    `keeper` has is done, too, and it is told of every trial as soon as that has ended.
    """
    folder = folder.absolute()
    for each in (folder / "runs", folder / "trials"):
        make_directory(each)
    with Folder(folder / "trials").locked(), _interruptible():
        sweep = _Sweep(trials, folder, engine or Local(), workers, say, keeper)
        try:
            while sweep.waiting or sweep.running:
                sweep.look()
                if show is not None and time.monotonic() >= sweep.shown + SHOWN:
                    show(sweep.status())
                time.sleep(LOOK)
        finally:
            sweep.end()
        if show is not None:
            show(sweep.status())
    return [sweep.outcomes[name] for name in trials]


class _Running(NamedTuple):
    """An attempt."""

    worker: Any
    begun: float
    share: float
    """Of the trial, that was done before."""


class _Sweep:
    """Trials under way."""

    def __init__(
        self,
        trials: Mapping[str, Trial],
        folder: Path,
        engine: Engine,
        workers: int | None,
        say: Callable[[str], None],
        keeper: Keeper | None = None,
    ) -> None:
        self.trials, self.engine, self.most, self.say, self.keeper = trials, engine, workers, say, keeper
        self.runs, self.orders = folder / "runs", folder / "trials"
        self.outcomes: dict[str, Outcome] = {}
        self.running: dict[str, _Running] = {}
        self.waiting: dict[str, float] = {}
        """Trials, and not before when they are begun."""
        self.idle = dict.fromkeys(trials, 0)
        """Attempts in a row that got no further,"""
        self.barred = dict.fromkeys(trials, 0)
        """and that did not even get in: somebody, or somebody who died, has the lock."""
        self.known = dict[str, Done]()
        self.shown = 0.0
        self.journal = Journal(self.orders)
        self.took: dict[Any, tuple[float, float]] = {}
        """Seconds, and how much of a trial was done in them, by its kind."""
        for name, past in self.journal.past.items():
            if name in trials:
                self._learn(name, past.seconds, past.gained)
        broken: dict[str, str] = {}
        for name, trial in trials.items():
            try:
                has = keeper is not None and keeper.has(name, trial)
                self.known[name] = whole(trial) if has else done(trial, self.runs / name)
            except OtherRunError:
                raise
            except InputError as error:
                self.known[name], broken[name] = NOTHING, str(error)
        for name, trial in trials.items():
            if name in broken:
                self._fail(name, broken[name])
            elif self.known[name].ends(trial):
                self._keep(name, now=False)
            else:
                self.waiting[name] = 0.0
                if self.journal.past.get(name, Past()).event == BEGAN:
                    self.journal.note(name, STOPPED)  # its sweep was killed: nobody is at it now
        there = sum(outcome.ended for outcome in self.outcomes.values())
        if there:
            say(f"{there} of {len(trials)} runs are there already")

    def look(self) -> None:
        """See who has ended, and begin what there is room for."""
        for name, attempt in list(self.running.items()):
            if (ended := self.engine.ended(attempt.worker)) is not None:
                del self.running[name]
                self._ended(name, attempt, ended)
        now = time.monotonic()
        ready = [name for name, moment in self.waiting.items() if moment <= now]
        room = self.most or (self.engine.room() if ready else 0)
        free = max(0, room - len(self.running))
        if free and len(ready) <= TAIL * room:
            ready.sort(key=self._ahead, reverse=True)
        for name in ready[:free]:
            order = self.orders / f"{name}.json"
            self.trials[name].write(order)
            share = self.known[name].share(self.trials[name])
            self.journal.note(name, BEGAN, share=round(share, 4))
            self.running[name] = _Running(self.engine.start(order, self.runs / name), time.monotonic(), share)
            del self.waiting[name]

    def _ended(self, name: str, attempt: _Running, ended: Ended) -> None:
        seconds, trial = time.monotonic() - attempt.begun, self.trials[name]
        about: dict[str, Any] = {"seconds": round(seconds, 1), "where": ended.where}
        if ended.status == 0:
            self.known[name] = whole(trial)
            self._learn(name, seconds, 1 - attempt.share)
            self.journal.note(name, ENDED, gained=round(1 - attempt.share, 4), **about)
            if self._keep(name, now=True):
                self._tell(name, f"done in {seconds / 60:.1f} minutes")
            return
        gained, reason = self._seen(name) - attempt.share, ended.reason(self.orders / f"{name}.log")
        about["gained"] = round(max(gained, 0.0), 4)
        if ended.status == BUSY:
            self.barred[name] += 1
        else:
            self.idle[name], self.barred[name] = 0 if gained > 0 else self.idle[name] + 1, 0
        in_vain = self.barred[name] or self.idle[name]
        if not ended.may_go_on:
            self._fail(name, reason, **about)
        elif in_vain == len(PAUSES):
            self._fail(name, f"{reason}: given up, {len(PAUSES)} attempts in a row got no further", **about)
        else:
            self.journal.note(name, LOST, reason=reason, **about)
            self.waiting[name] = time.monotonic() + PAUSES[in_vain]
            self.say(f"{name}: {reason}; another goes on at step {self.known[name].steps}")

    def _learn(self, name: str, seconds: float, gained: float) -> None:
        """So long it took to do so much of this trial."""
        before = self.took.get(self.trials[name].kind, (0.0, 0.0))
        self.took[self.trials[name].kind] = (before[0] + seconds, before[1] + gained)

    def _ahead(self, name: str) -> float:
        """About how many seconds a trial takes yet, by others of its kind; infinitely many while nobody knows."""
        seconds, gained = self.took.get(self.trials[name].kind, (0.0, 0.0))
        return (1 - self.known[name].share(self.trials[name])) * seconds / gained if gained > 0 else math.inf

    def _keep(self, name: str, *, now: bool) -> bool:
        """A trial has ended: it is done once it is kept, too."""
        try:
            if self.keeper is not None:
                self.keeper.keep(name, self.trials[name], now=now)
        except InputError as error:
            self._fail(name, str(error))
            return False
        self.outcomes[name] = Outcome(name, ended=True)
        return True

    def _fail(self, name: str, reason: str, **about: Any) -> None:
        self.outcomes[name] = Outcome(name, False, reason)
        self.journal.note(name, FAILED, reason=reason, **about)
        self._tell(name, f"FAILED: {reason}")

    def _tell(self, name: str, what: str) -> None:
        self.say(f"{name}: {what} ({len(self.outcomes)} of {len(self.trials)})")

    def _seen(self, name: str) -> float:
        """Look how far a trial is; the share that is done. What cannot be read now is as it was."""
        with suppress(InputError):
            self.known[name] = done(self.trials[name], self.runs / name)
        return self.known[name].share(self.trials[name])

    def status(self) -> Status:
        """How things are now."""
        self.shown = time.monotonic()
        for name in self.running:
            self._seen(name)
        rows = [
            Row(name, self._state(name), trial, self.known[name], self.journal.past.get(name))
            for name, trial in self.trials.items()
        ]
        return Status(rows, max(len(self.running), 1))

    def _state(self, name: str) -> str:
        if name in self.outcomes:
            return DONE if self.outcomes[name].ended else HAS_FAILED
        return RUNNING if name in self.running else WAITING

    def end(self) -> None:
        """Stop who still runs; what they did counts."""
        if not self.running:
            return
        self.engine.stop([attempt.worker for attempt in self.running.values()])
        for name, attempt in self.running.items():
            gained = max(self._seen(name) - attempt.share, 0.0)
            seconds = time.monotonic() - attempt.begun
            self.journal.note(name, STOPPED, seconds=round(seconds, 1), gained=round(gained, 4))
            if self.known[name].ends(self.trials[name]):
                self._keep(name, now=True)  # it ended meanwhile


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
