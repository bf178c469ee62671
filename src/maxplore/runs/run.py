"""A run: exploration that survives whatever happens to its process.

Every step is on record before the next action is chosen. To resume is to take the newest checkpoint, to live through
the recorded steps after it again (the explorer is asked and told, the environment is not), and to bring the environment
back to where it was by replaying the actions of the current episode from its seed.
"""

import json
import re
import uuid
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import gymnasium as gym
import jax
import numpy as np

from maxplore.errors import InputError
from maxplore.exploit import TaskPolicy
from maxplore.explorer import Explorer
from maxplore.interaction import reset_env, step_env
from maxplore.runs.coded import decoded, encoded
from maxplore.runs.directory import Folder, RunConfig, as_text, make_directory, versions
from maxplore.runs.plain import setting_to_plain, space_to_plain
from maxplore.runs.record import Episode, Record, Step
from maxplore.runs.reliving import known, newest, relived
from maxplore.runs.watchdog import Watchdog, check_limit

KEPT = 3
"""Checkpoints that are kept, the newest."""

AT_ONCE = 100
"""Episodes in a row that may end at their first step."""


Stop = Callable[[], bool]
"""Whether that is enough for now."""


class MisbehavedError(InputError):
    """The environment did what no environment should. The run can be resumed."""


class Sink(Protocol):
    """Somewhere else that metrics go to."""

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Take these of this step."""
        ...

    def close(self) -> None:
        """There are no more."""
        ...


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    step: int
    episode: int
    figures: dict[str, float] | None
    """The newest, with the `step` that they belong to; None before the first."""


def made(env: str, kwargs: Mapping[str, Any]) -> gym.Env[Any, Any]:
    """The environment of this id, or an `InputError`."""
    try:
        return gym.make(env, **kwargs)
    except (Exception, SystemExit) as error:  # an environment's own code may raise anything
        others = [] if env.rpartition(":")[2] in gym.registry else list(gym.registry)
        near = ", ".join(get_close_matches(env, others, n=3, cutoff=0.6))
        hint = f"; is it one of {near}?" if near else ""
        raise InputError(f"the environment {env!r} cannot be made ({type(error).__name__}: {error}){hint}") from error


def new(
    directory: Path,
    env: str,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    method: str = "max",
    preset: str = "fast",
    seed: int = 0,
    horizon: int | None = None,
    settings: Mapping[str, Any] | None = None,
    until_utility: float = 0.0,
    checkpoint_every: int = 500,
    step_limit: float | None = None,
    power_safe: bool = False,
    command: str = "",
    steps: int = 0,
    devices: int = 1,
) -> "Run":
    """A new run in a directory that is new, or empty; it is to have so many `steps`. Nothing is written unless
    everything asked for makes sense.

    On how many `devices` it is computed is no part of what it is: an event of the record, and not in its config.
    """
    if checkpoint_every < 1:
        raise InputError(f"checkpoint_every is {checkpoint_every}, expected at least 1")
    check_limit(step_limit)
    kwargs = _plain_kwargs(env_kwargs or {})
    for name in settings or {}:
        if name in NOT_SETTINGS:
            raise InputError(f"there is no setting {name!r}, expected one of the method's own")
    folder = Folder(directory)
    folder.check_free()
    with ExitStack() as stack:
        world = _opened(stack, env, kwargs)
        own = dict(settings or {})
        named: dict[str, Any] = {"method": method, "preset": preset, "seed": seed, "horizon": horizon}
        explorer = Explorer(world.observation_space, world.action_space, **named, devices=devices, **own)
        explorer.check_sating(until_utility)
        explorer.meet(world)
        config = RunConfig(
            env=env,
            env_kwargs=kwargs,
            method=method,
            preset=preset,
            seed=seed,
            horizon=horizon,
            settings={name: setting_to_plain(name, value) for name, value in own.items()},
            until_utility=until_utility,
            checkpoint_every=checkpoint_every,
            step_limit=step_limit,
            power_safe=power_safe,
            observation_space=space_to_plain(world.observation_space),
            action_space=space_to_plain(world.action_space),
            versions=versions(),
            in_force=explorer.settings,
            command=command,
            name=uuid.uuid4().hex,
        )
        make_directory(directory)
        stack.enter_context(folder.locked())
        folder.clear_unborn()  # others may have been here before there was the lock
        return Run(folder, config, world, explorer, stack, steps=steps, devices=devices)


def resumed(directory: Path, *, devices: int | None = None) -> "Run":
    """The run in this directory, where it left off; by default on as many `devices` as the last time, if there are."""
    folder = Folder(directory)
    folder.read_config()  # what is no run gets no lock
    with ExitStack() as stack:
        stack.enter_context(folder.locked())
        config = folder.read_config()
        return Run(folder, config, _opened(stack, config.env, config.env_kwargs), None, stack, devices=devices)


class Run:
    """An open run, for writing. Use it as a context: that ends it in good order."""

    def __init__(
        self,
        folder: Folder,
        config: RunConfig,
        env: gym.Env[Any, Any],
        explorer: Explorer | None,
        opened: ExitStack,
        *,
        steps: int = 0,
        devices: int | None = None,
    ) -> None:
        """Use `new` or `resumed`. What was `opened` for it, the environment and the lock, is the run's to close."""
        self.folder, self.config, self.env = folder, config, env
        self.again = f"maxplore resume {folder.path}"
        """What to type to go on."""
        self.sinks: list[Sink] = []
        self._observation: Any = None
        self._episode: Episode | None = None
        self._first: Episode | None = None
        self._promise: float | None = None
        self._at_once = 0
        self._closing = ExitStack()
        with opened as stack:
            self._watchdog = Watchdog(config.step_limit)
            stack.callback(self._watchdog.close)
            own = {"power_safe": config.power_safe}
            record = (
                Record.open(folder.record, **own)
                if explorer is None
                else Record.create(folder.record, as_text(config), **own)
            )
            self.record = stack.enter_context(record)
            stack.enter_context(folder.held(self._on_record))
            if explorer is not None:
                self.explorer, self._kept = explorer, 0
                self.record.aim(steps)
                self._note_devices(devices or 1)
                start = folder.writable(folder.checkpoint(0))
                explorer.save_file(start, known=known(config, self.record, 0))
                folder.write_config(config)  # last of all: a folder with a config is a run
            else:
                self.explorer, self._kept = self._return(devices)
            self._told = self.explorer.latest
            self._closing = stack.pop_all()

    def __enter__(self) -> "Run":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of everything."""
        for sink in self.sinks:
            sink.close()
        self._closing.close()

    @property
    def steps(self) -> int:
        """Transitions so far."""
        return self.explorer.steps

    @property
    def episode(self) -> int:
        """Episodes begun, as far as they are on record."""
        return 0 if self._episode is None else self._episode.episode + 1

    def _on_record(self) -> int:
        """How many steps the record has, in its own file: that may be all that is left."""
        with suppress(InputError):
            self.record.settle()
        return self.record.steps

    def explore(
        self,
        steps: int,
        *,
        show: Callable[[Progress], None] | None = None,
        stop: Stop | None = None,
    ) -> bool:
        """Go on until the run has so many steps; whether it came to its end.

        `stop` is asked after every step whether that is enough for now. A checkpoint is left in any case, unless the
        environment misbehaves: then there is the one before, and the record.
        """
        came_to_end = True
        while self.steps < steps:
            if self._observation is None and self._begun():
                break
            self._step()
            self.folder.check()
            if self.steps % self.config.checkpoint_every == 0:
                self.checkpoint()
            if show is not None:
                show(Progress(self.steps, self.episode, self._told))
            if stop is not None and stop():
                came_to_end = self.steps >= steps
                break
        self.checkpoint()
        return came_to_end

    def live(self, policy: TaskPolicy, seed: int) -> float:
        """One real episode of a policy, on record like any other; the explorer is told of it, and not asked. What it
        pays."""
        number, first = self.episode, self.steps
        space, moves = self.env.observation_space, self.env.action_space
        self._observation = self._first = None  # an episode that was under way is over

        def tell(before: Any, action: Any, following: Any, *, terminated: bool, truncated: bool, reward: float) -> None:
            begin = Episode(number, first, seed, encoded(space, before)) if self.steps == first else None
            move, seen = encoded(moves, action), encoded(space, following)
            row = Step(self.steps, number, move, seen, reward, terminated, truncated)
            self.record.write(row, episode=begin, told=True)
            self._episode = begin or self._episode
            self.explorer.tell(before, action, following, terminated=terminated, truncated=truncated, reward=reward)
            self.folder.check()
            if self.steps % self.config.checkpoint_every == 0:
                self.checkpoint()

        paid = policy.run(_Watched(self, number), seed, tell)
        self.record.settle()
        return paid

    def checkpoint(self) -> None:
        """Keep the explorer as it is now, and what its models know; of older ones, a few are left. D is on record, and
        not kept again: a checkpoint is as large at the end of a run as in the beginning."""
        self.folder.check()
        if self.steps != self._kept:
            self.record.survey(self.steps, self.explorer.survey())
        self.record.settle()  # a checkpoint never knows more than the record
        if self.steps != self._kept:
            own = known(self.config, self.record, self.steps)
            self.explorer.save_file(self.folder.writable(self.folder.checkpoint(self.steps)), known=own)
            self._kept = self.steps
        for _, old in self.folder.all_checkpoints()[KEPT:]:
            old.unlink(missing_ok=True)

    def _begun(self) -> bool:
        """Begin another episode. Whether its plans promise too little to go on."""
        number = self.episode
        seed = _seed(self.config.seed, number)
        with self.blamed("reset", number):
            self._observation = reset_env(self.env, seed)
        space = self.env.observation_space
        self._first = Episode(number, self.steps, seed, encoded(space, self._observation))
        self._promise = self.explorer.begin(self._observation)
        return self.explorer.sated(self._promise, self.config.until_utility)

    def _step(self) -> None:
        before, number = self._observation, self.steps
        action = self.explorer.ask(before)
        first = self._first if self._first is not None and self._first.first_step == number else None
        here = first or self._episode
        assert here is not None
        space, move = self.env.observation_space, encoded(self.env.action_space, action)
        with self.blamed("step", here.episode):
            following, paid, ended, cut = step_env(self.env, action, learns_reward=self.explorer.minds_reward)
        row = Step(number, here.episode, move, encoded(space, following), paid, ended, cut)
        metrics = self._metrics(number)
        self.record.write(row, episode=first, metrics=metrics)
        self._episode, self._first = here, None
        for sink in self.sinks if metrics else ():
            sink.write(number, metrics)
        self.explorer.tell(before, action, following, terminated=ended, truncated=cut, reward=paid)
        self._observation = None if ended or cut else following
        if ended or cut:
            self._at_once = self._at_once + 1 if here.first_step == number else 0
            if self._at_once >= AT_ONCE:
                why = f"its last {AT_ONCE} episodes ended at their first step: nothing can be explored"
                raise self._misbehaved(why, here.episode)

    def _metrics(self, number: int) -> dict[str, float]:
        """What there is to tell that was not told yet."""
        latest = self.explorer.latest
        if latest is None:  # there are no rounds, or none yet
            latest = {"step": float(number)}
            if self._promise is not None:
                latest["utility"], self._promise = self._promise, None
            if number % EVERY == 0:
                latest["coverage"] = self.explorer.coverage
            if len(latest) == 1:
                return {}
        if str(latest) == str(self._told):  # NaN is like NaN here
            return {}
        self._told = latest
        return {name: value for name, value in latest.items() if name != "step"}

    def _note_devices(self, count: int) -> None:
        """Keep on how many devices the run goes on, if that is news."""
        if count != self._devices_before():
            self.record.note("devices", f"{count} from here on")

    def _devices_before(self) -> int:
        """On how many devices the run was computed the last time."""
        noted = [event.text for event in self.record.events() if event.kind == "devices"]
        found = re.match(r"[1-9][0-9]{0,5}(?= )", noted[-1]) if noted else None
        return int(found[0]) if found else 1

    def _as_before(self) -> int:
        """As many devices as the last time, or one if here are fewer."""
        before, here = self._devices_before(), jax.local_device_count()
        if before <= here:
            return before
        warnings.warn(f"the run was computed on {before} devices, here are {here}: it goes on with one", stacklevel=2)
        return 1

    def _return(self, devices: int | None) -> tuple[Explorer, int]:
        """Be where the record ends: the explorer, and the step of the checkpoint that it was made from."""
        record, folder = self.record, self.folder
        spaces = folder.spaces(self.config)
        if (self.env.observation_space, self.env.action_space) != spaces:
            raise InputError(
                f"{self.config.env} has other spaces now than when the run began (observation_space "
                f"{self.env.observation_space}, expected {spaces[0]}): it cannot go on"
            )
        texts: list[str] = []
        count = self._as_before() if devices is None else devices
        explorer, first = newest(folder, self.config, record, texts.append, devices=count)
        self._note_devices(count)
        explorer.meet(self.env)
        folder.check()
        for draft in folder.drafts():
            draft.unlink(missing_ok=True)
        for text in texts:
            warnings.warn(text, stacklevel=2)
            record.note("damaged", text)
        for step, file in folder.all_checkpoints():
            if step > record.steps:
                file.unlink()  # of a time that the record knows nothing of
        differ = 0
        for same in relived(explorer, record, spaces, first):
            differ += not same
            if explorer.steps % self.config.checkpoint_every == 0:  # where it may have died before this was kept
                record.survey(explorer.steps, explorer.survey())
        if differ:
            record.note("differs", f"{differ} of the actions on record are not what is chosen now: another machine?")
        self.explorer = explorer
        self._episode = record.last_episode()
        if self._episode is not None:
            self._observation = self._replayed(self._episode)
        record.note("resumed", f"from the checkpoint at step {first}")
        return explorer, first

    def _replayed(self, episode: Episode) -> Any:
        """What is observed now in the episode that was under way; None if it is over, or a policy's, or cannot be had
        again."""
        steps = list(self.record.transitions(episode.first_step))
        if not steps or steps[-1].terminated or steps[-1].truncated or episode.episode in self.record.told:
            return None
        space, moves, number = self.env.observation_space, self.env.action_space, episode.episode
        with self.blamed("reset", number):
            observation = reset_env(self.env, episode.seed)
        same = encoded(space, observation) == episode.observation
        for step in steps:
            if not same:
                break
            with self.blamed("step", number):
                observation, _, terminated, truncated = step_env(self.env, decoded(moves, step.action))
            same = encoded(space, observation) == step.next_observation and not (terminated or truncated)
        if same:
            return decoded(space, steps[-1].next_observation)
        text = f"episode {number} went otherwise when it was replayed, another begins: is the environment random?"
        self.record.note("diverged", text)
        return None

    @contextmanager
    def blamed(self, what: str, episode: int) -> Generator[None]:
        """Whatever goes wrong in here is the environment's."""
        place = f"{self.config.env} at step {self.explorer.steps}, in episode {episode}"
        stuck = (
            f"maxplore: {place}: its {what} is stuck beyond the limit of {self.config.step_limit} seconds; every step "
            f"before is kept: {self.again}"
        )
        try:
            with self._watchdog.limited(stuck):
                yield
        except (Exception, SystemExit) as error:
            reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
            raise self._misbehaved(f"its {what} failed: {reason}", episode) from error

    def _misbehaved(self, reason: str, episode: int) -> MisbehavedError:
        text = f"{self.config.env} misbehaved at step {self.explorer.steps}, in episode {episode}: {reason}"
        self.record.note("misbehaved", text)
        return MisbehavedError(f"{text}; every step before is kept: {self.again}")


class _Watched(gym.Wrapper[Any, Any, Any, Any]):
    """The environment of a run as a policy has it: what goes wrong in it is its own fault, and said to be."""

    def __init__(self, run: Run, episode: int) -> None:
        super().__init__(run.env)
        self._run, self._number = run, episode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        with self._run.blamed("reset", self._number):
            return reset_env(self.env, seed), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        with self._run.blamed("step", self._number):
            told = step_env(self.env, action, learns_reward=self._run.explorer.minds_reward)
            return told.observation, told.reward, told.terminated, told.truncated, {}


NOT_SETTINGS = ("self", "observation_space", "action_space", "reward", "reward_weight", "devices")
"""What an `Explorer` is made with besides settings, and a run is not."""

EVERY = 100
"""Steps between two figures of those who learn at every step."""


def _seed(run: int, episode: int) -> int:
    """What the environment is reset with: every episode can be had again by itself."""
    return int(np.random.SeedSequence([run, episode]).generate_state(1)[0])


def _opened(stack: ExitStack, env: str, kwargs: Mapping[str, Any]) -> gym.Env[Any, Any]:
    """The environment of this id, until the stack is closed."""
    world = made(env, kwargs)
    stack.callback(_closed, world)
    return world


def _closed(env: gym.Env[Any, Any]) -> None:
    """Let go of an environment, whatever it says to that."""
    with suppress(Exception, SystemExit):
        env.close()


def _plain_kwargs(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """As they will be read again: what is made now and what is made on resuming is the same."""
    try:
        return json.loads(json.dumps(dict(kwargs), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(f"env_kwargs is {kwargs!r}, expected numbers, words and lists of them ({error})") from None
