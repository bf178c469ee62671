"""Lines for people, and for programs that read what people would."""

import json
import math
import sys
from collections.abc import Mapping
from typing import Any


def say(line: str) -> None:
    """A line of the result."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def warn(line: str) -> None:
    """A line beside the result."""
    sys.stderr.write(f"maxplore: {' '.join(line.split())}\n")
    sys.stderr.flush()


def say_json(values: Mapping[str, Any]) -> None:
    """A line of JSON; what is not a number is null there."""
    say(json.dumps({name: _finite(value) for name, value in values.items()}))


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
