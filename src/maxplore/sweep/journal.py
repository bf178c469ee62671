"""What happened to trials that their folders do not tell: attempts, losses, failures, how long it took.

A line of JSON for each event, in one file that one process writes and any number read. A line that was not written to
its end is passed over.
"""

import json
import time
from pathlib import Path
from typing import Any, NamedTuple

from maxplore.errors import InputError
from maxplore.runs import files

BEGAN, ENDED, LOST, FAILED, STOPPED = "began", "ended", "lost", "failed", "stopped"


class Past(NamedTuple):
    """What became of a trial so far."""

    event: str = ""
    """The last that happened to it."""
    time: float = 0.0
    """When that was."""
    reason: str = ""
    """Why it was lost, or failed."""
    share: float = 0.0
    """How much was done when the last attempt began, from 0 to 1."""
    resumed: int = 0
    """Attempts that went on where another had ended."""
    seconds: float = 0.0
    """What all attempts took that have ended,"""
    gained: float = 0.0
    """and the share of the trial that was done in this time."""

    def after(self, line: dict[str, Any]) -> "Past":
        """The same with another event."""
        event, at = str(line["event"]), float(line["time"])
        if event == BEGAN:
            share = float(line["share"])
            return self._replace(event=event, time=at, reason="", share=share, resumed=self.resumed + (share > 0))
        return self._replace(
            event=event,
            time=at,
            reason=str(line.get("reason", "")),
            seconds=self.seconds + float(line.get("seconds", 0.0)),
            gained=self.gained + float(line.get("gained", 0.0)),
        )


class Journal:
    """The file, open at its end."""

    def __init__(self, orders: Path) -> None:
        self.path = orders / "journal.jsonl"
        self.past = read(orders)
        self._torn = self.path.exists() and files.read(self.path)[-1:] not in (b"\n", b"")

    def note(self, trial: str, event: str, **about: Any) -> None:
        """Keep what happened to a trial."""
        line = {"trial": trial, "event": event, "time": round(time.time(), 1), **about}
        try:
            with open(self.path, "a", opener=files.plain) as file:
                file.write(("\n" if self._torn else "") + json.dumps(line) + "\n")
        except OSError as error:
            raise InputError(f"{self.path} cannot be written ({error.strerror}): make room, then try again") from error
        self._torn = False
        self.past[trial] = self.past.get(trial, Past()).after(line)


def read(orders: Path) -> dict[str, Past]:
    """What became of each trial."""
    past: dict[str, Past] = {}
    try:
        lines = files.read(orders / "journal.jsonl").decode(errors="replace").splitlines()
    except FileNotFoundError:
        return past
    except OSError as error:
        path = orders / "journal.jsonl"
        raise InputError(
            f"{path} cannot be read ({error.strerror}): expected the file of a sweep, give another --out"
        ) from None
    for text in lines:
        try:
            line = json.loads(text)
            past[line["trial"]] = past.get(line["trial"], Past()).after(line)
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    return past
