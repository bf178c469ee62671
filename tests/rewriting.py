"""A record as if a run had written something else: what is merely edited is found to be damaged."""

from collections.abc import Callable, Mapping
from pathlib import Path

from maxplore.runs.record import Record, Step


def rewritten(
    run: Path,
    *,
    row: Callable[[Step], Step] = lambda step: step,
    metrics: Mapping[int, Mapping[str, float]] | None = None,
    surveyed: int = 10**6,
) -> None:
    """Write a run's record anew, with other transitions or metrics, and landscapes up to a step. No event is kept."""
    path, before = run / "run.sqlite", run / "before.sqlite"
    with Record.read(path):
        pass  # so that all is in the one file
    path.rename(before)
    with Record.read(before) as old, Record.create(path, old.config) as new:
        begins, steps = {episode.first_step: episode for episode in old.episodes()}, old.surveyed
        kept = list(old.metrics())
        for step in old.transitions():
            own = (
                {name: value for at, name, value in kept if at == step.step}
                if metrics is None
                else metrics.get(step.step)
            )
            new.write(row(step), episode=begins.get(step.step), metrics=own)
        for at in (at for at in steps if at <= surveyed):
            new.survey(at, old.landscapes(at))
        new.aim(old.aimed)
    for file in run.glob("before.sqlite*"):
        file.unlink()
