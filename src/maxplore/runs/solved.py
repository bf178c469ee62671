"""What came of a task, kept in the run that it was solved from."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from maxplore.exploit import Report
from maxplore.runs.directory import Folder
from maxplore.runs.record import Record


def kept(
    folder: Folder,
    task: str,
    report: Report,
    returns: Sequence[float],
    *,
    seed: int,
    settings: Mapping[str, Any],
    step: int | None = None,
) -> None:
    """Keep in the run what came of a task."""
    told = {key: _plain(value) for key, value in asdict(report).items()}
    paid = [_plain(x) for x in returns]
    with Record.open(folder.record) as record:
        record.solved(task, seed=seed, settings=dict(settings), report=told, returns=paid, step=step)


def _plain(value: Any) -> Any:
    """As JSON has it: what is not a number is null."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}  # pyright: ignore
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]  # pyright: ignore
    return None if isinstance(value, float) and not math.isfinite(value) else value
