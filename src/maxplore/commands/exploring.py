"""`maxplore explore` and `maxplore resume`."""

import ast
import shlex
import sys
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import maxplore_cli as cli
from maxplore.commands.say import UnreadError, say, say_json, status_of, warn
from maxplore.errors import InputError
from maxplore.progress import shown
from maxplore.runs import run as running
from maxplore.runs.coded import decoded
from maxplore.runs.directory import Folder
from maxplore.runs.figures import draw
from maxplore.runs.interrupt import INTERRUPTED, interruptible
from maxplore.runs.record import Record, Step
from maxplore.runs.run import Progress, Run
from maxplore.runs.tensorboard import Scalars
from maxplore.runs.video import check_film, film, replayed
from maxplore.runs.wandb import Wandb, check_wandb

MISBEHAVED = 3
"""Exit status: stopped by the environment."""


def explore(asked: cli.Explore, settings: Mapping[str, Any]) -> int:
    """Begin a run."""
    if asked.steps < 0:
        raise InputError(f"steps is {asked.steps}, expected at least 0")
    kwargs, out = _kwargs(asked.env_kwarg), asked.out or _unused(asked)
    _check_extras(asked.env, kwargs, asked)
    with running.new(
        out,
        asked.env,
        env_kwargs=kwargs,
        method=asked.method,
        preset=asked.preset,
        seed=asked.seed,
        horizon=asked.horizon,
        settings=settings,
        until_utility=asked.until_utility,
        checkpoint_every=asked.checkpoint_every,
        step_limit=asked.step_limit,
        power_safe=asked.power_safe,
        command=shlex.join(["maxplore", *sys.argv[1:]]),
        steps=asked.steps,
        devices=asked.devices,
    ) as run:
        return _explored(run, asked.steps, asked)


def resume(asked: cli.Resume) -> int:
    """Go on with a run."""
    folder = Folder(asked.directory)
    config = folder.read_config()
    _check_extras(config.env, config.env_kwargs, asked)
    with Record.read(folder.record) as record:
        steps = record.aimed if asked.steps is None else asked.steps
        if steps < record.steps:
            raise InputError(f"steps is {steps}, expected at least {record.steps}, which the run has already")
    run = reopened(asked.directory, f"maxplore resume {asked.directory}", devices=asked.devices)
    if not isinstance(run, Run):
        return run
    with run:
        run.record.aim(steps)
        return _explored(run, steps, asked)


def reopened(path: Path, again: str, *, devices: int | None = None) -> Run | int:
    """The run, where it left off; or the exit status, if it cannot be had. `again` is what to type to go on."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: warn(str(message))
        warnings.simplefilter("always", UserWarning)
        try:
            run = running.resumed(path, devices=devices)
        except running.MisbehavedError as error:
            warn(str(error))
            return MISBEHAVED
        except KeyboardInterrupt as ended:
            return _interrupted(ended, again)
    run.again = again
    return run


def _explored(run: Run, steps: int, asked: cli.Explore | cli.Resume) -> int:
    """Explore until there are so many steps, or somebody has had enough."""
    path = run.folder.path
    run.sinks.append(Scalars(run.folder.writable(run.folder.tensorboard)))
    if asked.wandb is not None:
        run.sinks.append(Wandb(asked.wandb, path.resolve().name, asdict(run.config), resume_id=run.config.name))
    begun, unread = run.steps, False

    def told(progress: Progress) -> None:
        nonlocal unread
        try:
            show(progress)
        except UnreadError:
            unread = True

    try:
        with interruptible() as stopped, _showing(run, steps, asked.progress) as show:
            whole = run.explore(steps, show=told, stop=lambda: stopped() or unread)
    except running.MisbehavedError as error:
        warn(str(error))
        return MISBEHAVED
    except KeyboardInterrupt as ended:
        return _interrupted(ended, run.again)
    draw(run.record, run.folder.writable(run.folder.figures / "learning.png"))
    if asked.video:
        _film_last(run)
    summary = {"run": str(path), "steps": run.steps, "episodes": run.episode, "coverage": run.explorer.coverage}
    if not whole:
        why = "nobody reads the output any more: ended" if unread else "interrupted"
        warn(f"{why} after {run.steps} of {steps} steps, all kept: maxplore resume {path}")
        return cli.UNREAD if unread else INTERRUPTED
    if asked.progress == "json":
        say_json({"event": "done", **summary})
    else:
        done = f"{run.steps} steps ({run.steps - begun} of them now) in {run.episode} episodes"
        say(f"{path}: {done}, coverage {summary['coverage']:.3g}")
        if run.steps < steps:
            say(f"it ended before {steps} steps: plans promised too little")
    return 0


def _interrupted(ended: KeyboardInterrupt, again: str) -> int:
    warn(f"interrupted at once; every step is kept: {again}")
    return status_of(ended)


def _check_extras(env: str, kwargs: Mapping[str, Any], asked: cli.Explore | cli.Resume) -> None:
    """An `InputError` now, and not after hours, if there can be no film, or nobody to send metrics to."""
    if asked.video:
        check_film()
        running.made(env, kwargs).close()  # if it cannot be made at all, that is what should be said
        next(iter(replayed(env, kwargs, 0, [])))
    if asked.wandb is not None:
        check_wandb()


@contextmanager
def _showing(run: Run, steps: int, how: cli.Progress) -> Generator[Callable[[Progress], None]]:
    """How a run's progress is told."""
    if how == "quiet":
        yield lambda _: None
    elif how == "json":
        told: dict[str, float] | None = None

        def line(progress: Progress) -> None:
            nonlocal told
            if progress.figures is not None and str(progress.figures) != str(told):  # NaN is like NaN here
                told = progress.figures
                say_json({"event": "round", "episode": progress.episode, **progress.figures})

        yield line
    else:
        with shown(steps, wanted=True if how == "bar" else None, watch=None, begun=run.steps) as show:
            yield lambda progress: show(progress.step, progress.figures)


def _film_last(run: Run) -> None:
    """A film of the last episode that came to its end."""
    moves, ends = run.env.action_space, [step.episode for step in run.record.transitions() if _over(step)]
    if not ends:
        warn("no episode has come to its end yet: there is nothing to film")
        return
    own = next(run.record.episodes(ends[-1]))
    actions = [decoded(moves, s.action) for s in run.record.transitions(own.first_step) if s.episode == own.episode]
    path = run.folder.writable(run.folder.videos / f"explored-{own.episode:05d}.mp4")
    fps = int(run.env.metadata.get("render_fps") or 30)
    film(path, replayed(run.config.env, run.config.env_kwargs, own.seed, actions), fps)
    say(f"filmed episode {own.episode}: {path}")


def _over(step: Step) -> bool:
    return step.terminated or step.truncated


def _kwargs(given: tuple[str, ...]) -> dict[str, Any]:
    """`noise=0.1` by name."""
    kwargs: dict[str, Any] = {}
    for text in given:
        name, is_given, value = text.partition("=")
        if not is_given or not name.isidentifier():
            raise InputError(f"env-kwarg is {text!r}, expected name=value")
        try:
            kwargs[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            kwargs[name] = value
        _check_plain(text, kwargs[name])
    return kwargs


def _check_plain(text: str, value: Any) -> None:
    """What cannot be written down in a run's config is refused."""
    if isinstance(value, list | tuple):
        for each in value:  # pyright: ignore[reportUnknownVariableType]
            _check_plain(text, each)
    elif value is not None and not isinstance(value, bool | int | float | str):
        raise InputError(f"env-kwarg is {text!r}, expected a number, a word, True, False, None, or a list of these")


def _unused(asked: cli.Explore) -> Path:
    """A directory under runs/ that nobody uses yet."""
    base = f"{asked.env.rpartition('/')[2]}-{asked.method}-{asked.seed}"
    base = "".join(x if x.isalnum() or x in "-_." else "-" for x in base)
    number = 1
    while (path := Path("runs") / (base if number == 1 else f"{base}-{number}")).exists():
        number += 1
    return path
