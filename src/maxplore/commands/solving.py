"""`maxplore exploit`."""

import importlib
import importlib.util
import re
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import gymnasium as gym

import maxplore_cli as cli
from maxplore.commands.say import say, say_json, warn
from maxplore.errors import InputError
from maxplore.exploit import TaskPolicy
from maxplore.explorer import Explorer
from maxplore.pieces import Tell, quietly
from maxplore.progress import lines, solving
from maxplore.rewards import Reward
from maxplore.runs import run as running
from maxplore.runs.directory import Folder, RunConfig
from maxplore.runs.interrupt import obey
from maxplore.runs.plain import setting_to_plain
from maxplore.runs.record import Record
from maxplore.runs.reliving import restored, told
from maxplore.runs.solved import kept
from maxplore.runs.video import check_film, film, replayed


def exploit(asked: cli.Exploit, settings: Mapping[str, Any]) -> int:
    """Solve a task from D alone, try the policy, and keep what came of it in the run."""
    folder = Folder(asked.directory)
    folder.read_config()
    with Record.peek(folder.record) as record, folder.held(lambda: record.steps):
        return _exploited(folder, asked, settings)


def _exploited(folder: Folder, asked: cli.Exploit, settings: Mapping[str, Any]) -> int:
    if (asked.task is None) == (asked.reward is None):
        raise InputError("give either --task or --reward, expected one of them: see `maxplore list` for tasks")
    if asked.episodes < 0:
        raise InputError(f"episodes is {asked.episodes}, expected at least 0")
    if asked.video and not asked.episodes:
        raise InputError("video is asked for with 0 episodes, expected at least 1 to film")
    for name in settings:
        if name in NOT_SETTINGS:
            raise InputError(f"there is no setting {name!r}, expected one of exploitation's own")
    config = folder.read_config()
    plain = {name: setting_to_plain(name, value) for name, value in settings.items()}
    env = running.made(config.env, config.env_kwargs) if asked.episodes else None
    if asked.video:
        check_film()
        next(iter(replayed(config.env, config.env_kwargs, asked.seed, [])))
    reward = asked.task if asked.task is not None else _own(str(asked.reward))
    name = asked.task or str(asked.reward)
    try:
        with _telling(asked.progress) as tell:
            tell("load", 0, 0, None)
            explorer = _knowing(folder, asked.after)
            quiet: dict[str, Any] = {"progress": False, "watch": tell}
            policy = explorer.exploit(reward, horizon=asked.horizon, seed=asked.seed, **quiet, **settings)
            report = policy.report
            if asked.progress != "json":
                say(f"{name}: {report}")
                if policy.seed != asked.seed:
                    say(f"the forecast of seed {asked.seed} warned; solved again, seed {policy.seed} is kept")
            returns: list[float] = []
            if env is not None:
                with _blamed(config.env):
                    returns = _tried(policy, env, asked, tell)
                    env.close()
    except KeyboardInterrupt:
        warn(f"interrupted: nothing is kept of {name} yet, and the same command begins anew")
        raise
    folder.check()
    kept(folder, name, report, returns, seed=asked.seed, settings=plain, step=asked.after)
    if asked.progress == "json":
        say_json({"event": "done", "task": name, "seed": policy.seed, **asdict(report), "returns": returns})
    elif returns:
        say(f"{'episode':>8s} {'return':>12s}   in the forecast")
        for number, paid in enumerate(returns):
            inside = "yes" if report.forecast.low <= paid <= report.forecast.high else "no"
            say(f"{number:8d} {paid:12.4g}   {inside}")
        say(f"{'mean':>8s} {sum(returns) / len(returns):12.4g}")
    if asked.video:
        path = folder.writable(folder.videos / f"{re.sub(r'[^A-Za-z0-9-]+', '-', name)}.mp4")
        with _blamed(config.env):
            film(path, *_frames(config, policy, asked.seed))
        if asked.progress != "json":
            say(f"filmed episode 0: {path}")
    return 0


def _tried(policy: TaskPolicy, env: gym.Env[Any, Any], asked: cli.Exploit, tell: Tell) -> list[float]:
    """What real episodes pay."""
    returns: list[float] = []
    steps, of = 0, asked.episodes * policy.report.steps

    def step(*_: Any, **__: Any) -> None:
        nonlocal steps
        steps += 1
        tell("try", steps, of, sum(returns) / len(returns) if returns else None)

    tell("try", 0, of, None)
    for number in range(asked.episodes):
        returns.append(float(policy.run(env, asked.seed + number, step)))
        steps = (number + 1) * policy.report.steps
    return returns


@contextmanager
def _telling(how: cli.Progress) -> Generator[Tell]:
    """How the progress of a task is told."""
    bar = how == "bar" or (how == "auto" and sys.stderr.isatty())
    with solving(wanted=bar, watch=None) as show, _lines(how, bar) as line:

        def tell(doing: str, done: int, of: int, expects: float | None) -> None:
            obey()
            show(doing, done, of, expects)
            line(doing, done, of, expects)

        yield tell


@contextmanager
def _lines(how: cli.Progress, bar: bool) -> Generator[Tell]:
    if how == "json":
        latest, begun, told = "", time.monotonic(), -1.0

        def line(doing: str, done: int, of: int, expects: float | None) -> None:
            nonlocal latest, told
            now = time.monotonic() - begun
            if doing != latest or now - told >= 1:
                latest, told = doing, now
                values = {"doing": doing, "done": done, "of": of, "expects": expects, "seconds": round(now, 1)}
                say_json({"event": "progress", **values})

        yield line
    elif how == "auto" and not bar:
        with lines(warn) as tell:
            yield tell
    else:
        yield quietly


def _knowing(folder: Folder, after: int | None) -> Explorer:
    """Who knows all of D, or its first steps alone."""
    if after is None:
        return restored(folder.path)
    with Record.read(folder.record) as record:
        explorer = told(folder, record, after)
    config = folder.read_config()
    env = running.made(config.env, config.env_kwargs)
    explorer.meet(env)
    env.close()
    return explorer


NOT_SETTINGS = ("self", "reward", "terminated", "watch")
"""What `Explorer.exploit` takes besides settings."""


@contextmanager
def _blamed(env: str) -> Generator[None]:
    """Whatever goes wrong in here is the environment's."""
    try:
        yield
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"{env} failed when the policy was tried ({type(error).__name__}: {error})") from error


class Filmed(gym.Wrapper[Any, Any, Any, Any]):
    """Keeps a picture of everything that happens."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.frames: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        told = super().reset(seed=seed, options=options)
        self.frames.append(self.render())
        return told

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        told = super().step(action)
        self.frames.append(self.render())
        return told


def _frames(config: RunConfig, policy: TaskPolicy, seed: int) -> tuple[list[Any], int]:
    """Pictures of one episode under the policy, and how many are shown in a second."""
    env = Filmed(running.made(config.env, {**config.env_kwargs, "render_mode": "rgb_array"}))
    try:
        policy.run(env, seed)
        return env.frames, int(env.metadata.get("render_fps") or FPS)
    finally:
        env.close()


FPS = 20
"""Pictures in a second where the environment does not say."""


def _own(text: str) -> Reward:
    """The function that `module:function`, or `FILE.py:function`, names."""
    place, _, name = text.rpartition(":")
    if not place or not name.isidentifier():
        raise InputError(f"reward is {text!r}, expected module:function or FILE.py:function")
    try:
        if place.endswith(".py"):
            spec = importlib.util.spec_from_file_location(f"maxplore_reward_{Path(place).stem}", place)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module  # where dataclasses, and others, look for it
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, "")  # as `python -m` has it: modules of the working directory
            try:
                module = importlib.import_module(place)
            finally:
                sys.path.remove("")
    except (Exception, SystemExit) as error:  # the user's own code may raise anything
        raise InputError(
            f"reward is {text!r}, and {place} cannot be imported ({type(error).__name__}: {error})"
        ) from error
    found: Any = getattr(module, name, None)
    if not callable(found):
        raise InputError(f"reward is {text!r}, expected a function {name} in {place}, which has none")
    return cast(Reward, found)
