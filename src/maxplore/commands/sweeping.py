"""`maxplore sweep`, and the engine of `maxplore reproduce`."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live

import maxplore_cli as cli
from maxplore.checks import counted
from maxplore.commands.say import say, status_of, warn
from maxplore.errors import InputError
from maxplore.sweep import Engine, Keeper, Local, run_all, status, study
from maxplore.sweep.gather import gather
from maxplore.sweep.status import FAILED, Status

SOME_FAILED = 3
"""Exit status of what was done without some of its runs."""
FRAME = 6
"""Lines of a terminal that are left to others than trials."""


def sweep(asked: cli.Sweep) -> int:
    """Bring a study to its end, or show how it is doing."""
    if asked.workers is not None:
        counted("workers", asked.workers)
    planned, out, keeper = _planned(asked)
    if asked.status:
        _show(status.read(planned.trials, out, keeper))
        return 0
    if asked.study.endswith(SUFFIX):
        study.check(planned.trials)
    try:
        with engine_named(asked.engine, asked.address) as engine, _live() as show:
            outcomes = run_all(
                planned.trials, out, engine=engine, workers=asked.workers, say=say, show=show, keeper=keeper
            )
    except KeyboardInterrupt as ended:
        warn(f"interrupted; every step is kept in {out}: the same command goes on")
        return status_of(ended)
    now = status.read(planned.trials, out, keeper)
    say(f"{now.summary}; gathered in {gather(now, out)}")
    return 0 if all(outcome.ended for outcome in outcomes) else SOME_FAILED


SUFFIX = ".toml"
"""How the name of a file ends that is a study."""


def _planned(asked: cli.Sweep) -> tuple[study.Study, Path, Keeper | None]:
    """What is to be run, where to, and who keeps what a figure reads of it."""
    sizes: dict[str, Any] = {name: getattr(asked, name) for name in ("preset", "seeds", "steps", "methods")}
    given = {name: value for name, value in sizes.items() if value is not None}
    if asked.study.endswith(SUFFIX):
        if given:
            name = next(iter(given))
            raise InputError(f"--{name} is given, expected none with a file: say it in {asked.study}")
        own = study.read(Path(asked.study))
        return own, asked.out or Path("runs") / own.name, None
    from maxplore.experiments import EXPERIMENTS, Asked
    from maxplore.experiments.kept import Kept
    from maxplore.experiments.reproduce import made_of_runs

    if asked.study not in EXPERIMENTS:
        raise InputError(f"study is {asked.study!r}, expected a file whose name ends in {SUFFIX}, or a figure")
    preset = given.pop("preset", "fast")
    figure = made_of_runs(asked.study, Asked(preset, **given))
    out = asked.out or usual_out(asked.study, preset)
    return study.Study(asked.study, figure.trials), out, Kept(out, figure.columns)


def usual_out(figure: str, preset: str) -> Path:
    """Where a figure goes if nobody says otherwise."""
    return Path("runs") / (figure if preset == "fast" else f"{figure}-{preset}")


@contextmanager
def engine_named(name: str, address: str | None) -> Generator[Engine]:
    """The engine of this name, as long as it is needed."""
    if name == "local" and address is not None:
        raise InputError(f"address is {address!r} with the engine {name}, expected --engine ray with it")
    if name == "local":
        yield Local()
    else:
        from maxplore.sweep.cluster import connected

        with connected(address) as cluster:
            yield cluster


@contextmanager
def _live() -> Generator[Callable[[Status], None] | None]:
    """The table of a sweep on the terminal while it goes on; nothing where there is none."""
    console = Console()
    if not console.is_terminal:
        yield None
        return
    with Live(console=console, transient=True, auto_refresh=False) as live:
        yield lambda now: live.update(now.table(most=console.height - FRAME), refresh=True)


def _show(now: Status) -> None:
    """The whole table."""
    console = Console()
    if console.is_terminal:
        console.print(now.table())
        for row in now.rows:
            if row.state == FAILED and row.past is not None:
                warn(f"{row.name} failed: {row.past.reason}")  # the table has no room for all of it
    else:
        for line in now.lines():
            say(line)
