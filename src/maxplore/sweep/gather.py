"""What came of a study in one table, `results.csv`: a row a trial, for a notebook to read."""

import csv
import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from maxplore.errors import InputError
from maxplore.runs import files
from maxplore.runs.directory import Folder
from maxplore.runs.record import Record
from maxplore.sweep.status import DONE, Row, Status
from maxplore.sweep.trial import returns_of

FIRST = ("trial", "state", "env", "method", "preset", "seed", "steps")
"""Columns that every study has."""


def gather(status: Status, folder: Path) -> Path:
    """Write the table; where it is.

    Columns besides the first: what the environment is made with as `env.NAME`, settings as `settings.NAME`, the newest
    of each metric under its own name, and the mean return of a task as `TASK@STEPS`, by the steps of D that it was
    solved from. A trial that did not get to its end has as much as there is.
    """
    rows = [_row(row, folder / "runs" / row.name) for row in status.rows]
    names = dict.fromkeys(name for row in rows for name in row)
    others = sorted(name for name in names if name not in FIRST and not name.startswith(("env.", "settings.")))
    given = sorted(name for name in names if name.startswith(("env.", "settings.")))
    text = io.StringIO()
    table = csv.DictWriter(text, [*FIRST, *given, *others], restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    files.write_text(folder / "results.csv", text.getvalue())
    return folder / "results.csv"


def _row(own: Row, run: Path) -> dict[str, Any]:
    trial, steps = own.trial, min(own.done.steps, own.trial.steps)
    first = (own.name, own.state, trial.env, trial.method, trial.preset, trial.seed, steps)
    row: dict[str, Any] = {
        **dict(zip(FIRST, first, strict=True)),
        **_named("env", trial.env_kwargs),
        **_named("settings", trial.settings),
    }
    folder = Folder(run)
    if not folder.is_run or folder.written_elsewhere:
        return row
    try:
        with Record.read(folder.record) as record:
            row["steps"] = min(record.steps, trial.steps)
            for step, metric, value in record.metrics():
                if step < trial.steps and not math.isnan(value):
                    row[metric] = value
            for (task, steps), returns in returns_of(trial, record).items():
                row[f"{task}@{steps}"] = sum(returns) / len(returns)
    except InputError:
        if own.state == DONE:
            raise
    return row


def _named(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    plain = (bool, int, float, str)
    return {f"{prefix}.{name}": x if isinstance(x, plain) else json.dumps(x) for name, x in values.items()}
