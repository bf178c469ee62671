"""Lines for people, and for programs that read what people would."""

import json
import math
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import maxplore_cli as cli
from maxplore.runs.interrupt import INTERRUPTED


class UnreadError(KeyboardInterrupt):
    """Nobody reads the output any more, as when it goes to `head`: the command ends, as by Ctrl-C."""


def status_of(ended: KeyboardInterrupt) -> int:
    """The exit status of a command that this has ended."""
    return cli.UNREAD if isinstance(ended, UnreadError) else INTERRUPTED


def say(line: str) -> None:
    """A line of the result."""
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise UnreadError from None


def warn(line: str) -> None:
    """A line beside the result."""
    with suppress(OSError):  # where stderr has gone the way of stdout
        sys.stderr.write(f"maxplore: {' '.join(line.split())}\n")
        sys.stderr.flush()


def say_json(values: Mapping[str, Any]) -> None:
    """A line of JSON; what is not a number is null there."""
    say(json.dumps({name: _finite(value) for name, value in values.items()}))


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
