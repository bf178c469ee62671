"""What a figure has done already, a row of JSON each: a crash costs the row that was being made, and no other."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from maxplore.runs import files


def read(record: Path) -> Iterator[dict[str, Any]]:
    """The rows that are whole; one that was cut short, or is none, is to be done again."""
    for line in files.read(record).decode(errors="replace").splitlines() if record.exists() else ():
        with contextlib.suppress(json.JSONDecodeError):
            if isinstance(row := json.loads(line), dict):
                yield row


def append(record: Path, row: dict[str, Any]) -> None:
    """Put down one more, on a line of its own whatever is there."""
    cut = record.exists() and record.stat().st_size > 0 and not files.read(record).endswith(b"\n")
    with open(record, "a", opener=files.plain) as file:
        file.write("\n" * cut + json.dumps(row) + "\n")
