"""`maxplore rehearse`."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import maxplore_cli as cli
from maxplore.commands.exploring import MISBEHAVED, reopened
from maxplore.commands.say import say, status_of, warn
from maxplore.errors import InputError
from maxplore.exploit import Rehearsed
from maxplore.exploit import rehearse as rehearsals
from maxplore.runs.directory import Folder
from maxplore.runs.record import Record
from maxplore.runs.run import MisbehavedError, Run

NOT_SETTINGS = ("explorer", "env", "begun", "live", "reward", "terminated")
"""What rehearsals take besides settings, or cannot have."""

KIND = "rehearsed"
"""Of events: a wish that was tried, or a round that is over."""


def rehearse(asked: cli.Rehearse, settings: Mapping[str, Any]) -> int:
    """Try what the run's model promises beyond its D, on record."""
    for name in settings:
        if name in NOT_SETTINGS:
            raise InputError(f"there is no setting {name!r}, expected one of exploitation's own")
    if asked.rounds < 1:
        raise InputError(f"rounds is {asked.rounds}, expected at least 1")
    path = asked.directory
    Folder(path).read_config()  # whatever is wrong with it is said now
    with Record.read(Folder(path).record) as record:
        begun = over(record)
    if begun >= asked.rounds:
        say(f"{path}: it has had {begun} rounds; for more of them: maxplore rehearse {path} --rounds {begun + 4}")
        return 0
    run = reopened(path, f"maxplore rehearse {path}")
    if not isinstance(run, Run):
        return run
    with run:
        first, begun = run.steps, over(run.record)
        own = {"wishes": asked.wishes, "episodes": asked.episodes, "horizon": asked.horizon, "seed": asked.seed}
        try:
            told = rehearsals(run.explorer, run.env, rounds=asked.rounds, begun=begun, live=run.live, **own, **settings)
            _kept(run, told, asked.rounds)
        except MisbehavedError as error:
            warn(str(error))
            return MISBEHAVED
        except KeyboardInterrupt as ended:
            warn(f"interrupted; every step is kept, the round that was under way begins anew: {run.again}")
            return status_of(ended)
        say(f"{path}: {run.steps} steps ({run.steps - first} of them now), {asked.rounds} rounds in all")
    return 0


def _kept(run: Run, told: Iterator[Rehearsed], rounds: int) -> None:
    """All of it, on record as it comes."""
    run.record.note(KIND, f"{rounds} rounds are asked for")
    latest = None
    for each in told:
        if latest is not None and each.round != latest:
            _ended(run, latest)
        latest, wish = each.round, each.wish
        had, promised, real = (f"{wish.number(x):.4g}" for x in (wish.record, wish.promise, float(each.paid.mean())))
        text = f"{wish}: {had} at best so far, {promised} promised, {real} in the mean of {len(each.paid)} episodes"
        run.record.note(KIND, text)
        say(f"round {latest + 1} of {rounds}, {text}")
    if latest is None:
        say("nothing is promised beyond what was seen: there is nothing to try")
    _ended(run, rounds - 1)


def _ended(run: Run, number: int) -> None:
    run.checkpoint()
    run.record.note(KIND, f"round {number + 1} is over")


def over(record: Record) -> int:
    """Rounds that a run has had."""
    found = [re.fullmatch(r"round (\d{1,6}) is over", event.text) for event in record.events() if event.kind == KIND]
    return max((int(each[1]) for each in found if each), default=0)
