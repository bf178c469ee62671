"""What people type: `maxplore explore`, `resume`, `rehearse`, `exploit`, `reproduce`, `sweep`, `report`, `export` and
`list`.

This module stands beside the package, so that `maxplore --help` answers before anything heavy is imported.
"""

import ast
import contextlib
import io
import os
import re
import shutil
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import Positional, UseAppendAction, subcommand

from maxplore_start import INTERRUPTED

Progress = Literal["auto", "bar", "json", "quiet"]
Engine = Literal["local", "ray"]

ABOUT = "Model-Based Active Exploration: learn how an environment works, with no reward. --version prints the version."


@dataclass(frozen=True)
class Explore:
    """Explore an environment with no reward, in a run directory that survives anything.

    Any setting of the method can be given by its name: --members 7, --plan-every 50.
    """

    env: Positional[str]
    """Id of a Gymnasium environment, such as maxplore/MountainCar-v0."""
    method: str = "max"
    """How to explore; see `maxplore list`."""
    preset: str = "fast"
    """Sizes: fast (a laptop), tasks (fast, with tasks to come in mind), paper, or smoke (seconds)."""
    steps: int = 2000
    """Steps in the environment."""
    seed: int = 0
    """Of everything random."""
    out: Path | None = None
    """Directory of the run; by default a new one under runs/."""
    horizon: int | None = None
    """Length of an episode, where the environment does not tell."""
    env_kwarg: UseAppendAction[tuple[str, ...]] = ()
    """What the environment is made with: --env-kwarg noise=0.1 (any number of times)."""
    until_utility: float = 0.0
    """End when plans promise less than this share of the most that they ever promised."""
    checkpoint_every: int = 500
    """Steps between two checkpoints."""
    step_limit: float | None = None
    """Seconds that the environment may take for one step."""
    power_safe: bool = False
    """Have the disk confirm every step before the next: no power cut loses one. It takes milliseconds a step."""
    devices: int = 1
    """Devices that the ensemble's members are dealt out to. It changes nothing but rounding."""
    video: bool = False
    """Film the last whole episode, too."""
    wandb: str | None = None
    """Project of Weights & Biases that metrics go to as well."""
    progress: Progress = "auto"
    """A bar, JSON lines, or nothing but the end; auto is a bar on a terminal, else quiet."""


@dataclass(frozen=True)
class Resume:
    """Go on with a run: after a crash, a kill, a power cut, Ctrl-C, or for longer than was planned."""

    directory: Positional[Path]
    """Of the run."""
    steps: int | None = None
    """Steps in all; by default those that the run was begun for."""
    devices: int | None = None
    """Devices that the ensemble's members are dealt out to; by default as many as the last time."""
    video: bool = False
    """Film the last whole episode, too."""
    wandb: str | None = None
    """Project of Weights & Biases that metrics go to as well."""
    progress: Progress = "auto"
    """A bar, JSON lines, or nothing but the end; auto is a bar on a terminal, else quiet."""


@dataclass(frozen=True)
class Rehearse:
    """Try what the run's model promises beyond anything it has seen, before there is a task. No reward is looked at.

    It makes the run's data good for tasks to come, where states and actions are real numbers. Any setting of
    exploitation can be given by its name (the rounds of looking ahead as --lookahead-rounds). Stopped, it goes on with
    the rounds that are left.
    """

    directory: Positional[Path]
    """Of the run."""
    rounds: int = 4
    """Rounds in all: in each, a model is fitted, and policies are learned and tried."""
    wishes: int = 3
    """Policies of a round, at the most."""
    episodes: int = 5
    """Real episodes of each."""
    horizon: int | None = None
    """Length of an episode, where it is not known."""
    seed: int = 0
    """Of what is dreamt, and of where episodes begin; models and policies go by that of the run."""


@dataclass(frozen=True)
class Exploit:
    """Solve a task from the data of a run alone, and try the policy in the environment.

    Any setting of exploitation can be given by its name: --penalty 2.
    """

    directory: Positional[Path]
    """Of the run."""
    task: str | None = None
    """A named task; see `maxplore list`."""
    reward: str | None = None
    """A reward of your own, reward(state, action, next_state), as module:function or FILE.py:function."""
    after: int | None = None
    """Use the first so many steps of the run alone, as if it had ended there."""
    episodes: int = 3
    """Episodes that the policy is tried for in the environment; 0 for none."""
    horizon: int | None = None
    """Length of an episode, where it is not known."""
    seed: int = 0
    """Of everything random."""
    video: bool = False
    """Film the first of the episodes."""
    progress: Progress = "auto"
    """A bar, JSON lines, or nothing but the end; auto is a bar on a terminal, else a line on the error stream every ten
    seconds."""


@dataclass(frozen=True)
class Reproduce:
    """Run a figure of the paper, and judge its claims. One that is made of runs goes on where it was stopped."""

    figure: Positional[str]
    """A name from `maxplore list`, or all."""
    preset: str = "fast"
    """Size: fast (a laptop's), paper, or smoke (only to see that everything works)."""
    seeds: int | None = None
    """How many; by default the figure's own number. Runs that are there already are not run again."""
    episodes: int | None = None
    """Of a figure of the Chain: how many; by default its own number."""
    steps: int | None = None
    """Of a figure that is made of runs: how long each is; by default its own number."""
    methods: tuple[str, ...] | None = None
    """Of a figure that compares methods: which; by default the paper's."""
    configs: int | None = None
    """Of a grid: settings of each method, 0 for all of them."""
    out: Path | None = None
    """Where to; by default runs/FIGURE, or runs/FIGURE-PRESET."""
    engine: Engine = "local"
    """Of a figure that is made of runs: where these run. local is this machine, ray a cluster."""
    address: str | None = None
    """HOST:PORT of the head of that cluster; by default the one that this machine is part of, or else a new one."""


@dataclass(frozen=True)
class Sweep:
    """Bring all runs of a study to their end, and gather what came of them. It goes on where it was stopped."""

    study: Positional[str]
    """A TOML file of environments, methods, seeds and settings, or a figure made of runs, such as half-cheetah."""
    status: bool = False
    """Only show how it is doing: while it runs, from another terminal, or after."""
    engine: Engine = "local"
    """Where to: local is this machine, ray a cluster."""
    address: str | None = None
    """HOST:PORT of the head of that cluster; by default the one that this machine is part of, or else a new one."""
    workers: int | None = None
    """Runs side by side; by default as many as there are cores, and memory for."""
    out: Path | None = None
    """Where to; by default runs/STUDY, and for a figure where `maxplore reproduce` looks for it."""
    preset: str | None = None
    """Of a figure: its size."""
    seeds: int | None = None
    """Of a figure: how many."""
    steps: int | None = None
    """Of a figure: how long each run is."""
    methods: tuple[str, ...] | None = None
    """Of a figure: which."""


@dataclass(frozen=True)
class Report:
    """Write one self-contained HTML page about runs."""

    directories: Positional[tuple[Path, ...]]
    """Of the runs."""
    out: Path | None = None
    """The page; by default report.html in the (first) run's directory."""
    watch: bool = False
    """Serve the page on this machine instead, and refresh it while the run goes on, until Ctrl-C."""
    port: int = 0
    """Of that server; 0 is any that is free."""


@dataclass(frozen=True)
class Export:
    """Hand a run's data to other tools."""

    directory: Positional[Path]
    """Of the run."""
    to: Literal["minari", "npz"]
    """What kind."""
    out: Path | None = None
    """The .npz file, or the folder of Minari data sets; by default in the run's directory."""
    name: str | None = None
    """Of the Minari data set, such as cheetah/max-v0."""


@dataclass(frozen=True)
class List:
    """Show environments, methods, presets, tasks and figures."""


Command = (
    Annotated[Explore, subcommand("explore")]
    | Annotated[Resume, subcommand("resume")]
    | Annotated[Rehearse, subcommand("rehearse")]
    | Annotated[Exploit, subcommand("exploit")]
    | Annotated[Reproduce, subcommand("reproduce")]
    | Annotated[Sweep, subcommand("sweep")]
    | Annotated[Report, subcommand("report")]
    | Annotated[Export, subcommand("export")]
    | Annotated[List, subcommand("list")]
)


WRONG = 2
"""Exit status of what cannot be done as asked."""


UNREAD = 141
"""Exit status of what ended because nobody read its output any more: that of other programs in a pipe."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Bad input gets one line and a non-zero exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a folder may have any name
    try:
        status = _main(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        status = UNREAD
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            # Python tries once more when it ends, and then has a status of its own.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            status = status or UNREAD
    return status


def _main(typed: list[str]) -> int:
    if typed == ["--version"]:
        from importlib.metadata import version

        sys.stdout.write(version("maxplore") + "\n")
        return 0
    try:
        command, settings = parsed(typed or ["--help"])
    except WrongError as wrong:
        return _refused(str(wrong))
    except SystemExit:  # help was shown
        return 0

    try:
        from maxplore import commands  # from here on things are heavy
        from maxplore.errors import InputError
        from maxplore.runs.interrupt import heard, obey
    except Exception as error:
        if os.environ.get("MAXPLORE_DEBUG"):
            raise
        return _refused(f"it cannot start here ({type(error).__name__}: {error})")

    try:
        with heard():
            status = commands.run(command, settings)
            obey()
        return status
    except (InputError, OSError) as error:
        return _refused(str(error))
    except (Exception, SystemExit) as error:  # nobody is shown a traceback that did not ask for one
        if os.environ.get("MAXPLORE_DEBUG"):
            raise
        _refused(f"{type(error).__name__}: {error} (a mistake of maxplore's own? MAXPLORE_DEBUG=1 shows where)")
        return BROKEN


BROKEN = 1
"""Exit status of what should never happen."""


class WrongError(Exception):
    """What was typed cannot be understood."""


def parsed(typed: Sequence[str]) -> tuple[Any, dict[str, Any]]:
    """The command and the method's own settings; a `WrongError` if there is no sense in it."""
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint), _wide_enough():
            command, rest = tyro.cli(
                Command, args=list(typed), prog="maxplore", description=ABOUT, return_unknown_args=True
            )
    except SystemExit as ended:
        if not ended.code:
            raise
        raise WrongError(_in_one_line(complaint.getvalue())) from None
    settings = _settings(rest)
    if settings and not isinstance(command, Explore | Rehearse | Exploit):
        name = next(iter(settings)).replace("_", "-")
        raise WrongError(f"--{name} is not an option of `maxplore {type(command).__name__.lower()}`: see its --help")
    return command, settings


@contextlib.contextmanager
def _wide_enough() -> Generator[None]:
    """Have help laid out for some columns at the least: in very few, tyro never ends."""
    given = os.environ.get("COLUMNS")
    if shutil.get_terminal_size().columns >= NARROWEST:
        yield
        return
    os.environ["COLUMNS"] = str(NARROWEST)
    try:
        yield
    finally:
        del os.environ["COLUMNS"]
        if given is not None:
            os.environ["COLUMNS"] = given


NARROWEST = 40
"""Columns that help is laid out for at the least."""


def _settings(rest: Sequence[str]) -> dict[str, Any]:
    """`--plan-every 50 --warm-start` as settings by name."""
    settings: dict[str, Any] = {}
    words = list(rest)
    while words:
        word = words.pop(0)
        if not re.fullmatch(r"--[A-Za-z][\w-]*(=.*)?", word, re.DOTALL):
            raise WrongError(f"{word!r} was not expected here: settings are given as --name value")
        name, given, value = word[2:].partition("=")
        if not given and words and not words[0].startswith("--"):
            given, value = "=", words.pop(0)
        name = name.replace("-", "_")
        if name in settings:
            raise WrongError(f"--{name.replace('_', '-')} is given twice, expected once")
        settings[name] = _value(value) if given else True
    return settings


def _value(text: str) -> Any:
    """A number, a tuple, True, None, or else the word itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _in_one_line(box: str) -> str:
    """What is wrong, out of the box that tyro draws around it."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box)
    rows = [row.strip("│|╭╮╰╯ ") for row in plain.splitlines()]
    said: list[str] = []
    for row in rows[1:]:
        if not re.fullmatch(r"[─-]*", row):
            said.append(row)
        elif said:  # a line under what was said; advice follows
            break
    return " ".join(" ".join(said).split()) + ": see --help" if said else "this cannot be understood: see --help"


def _refused(reason: str) -> int:
    sys.stderr.write(f"maxplore: {' '.join(reason.split())}\n")
    return WRONG
