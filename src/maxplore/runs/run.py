"""A run: exploration that survives whatever happens to its process.

Every step is on record before the next action is chosen. To resume is to take the newest checkpoint, to live through
the recorded steps after it again (the explorer is asked and told, the environment is not), and to bring the environment
back to where it was by replaying the actions of the current episode from its seed.
"""

import uuid
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from maxplore.errors import InputError
from maxplore.explorer import Explorer, load_file
from maxplore.runs.coded import checked, decoded, encoded
from maxplore.runs.directory import Folder, RunConfig, versions
from maxplore.runs.plain import setting_to_plain, space_from_plain, space_to_plain
from maxplore.runs.record import Episode, Record, Step
from maxplore.runs.watchdog import time_limit

KEPT = 3
"""Checkpoints that are kept, the newest."""

AT_ONCE = 100
"""Episodes in a row that may end at their first step."""


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
    except Exception as error:  # an environment's own code may raise anything
        near = ", ".join(_near(env))
        hint = f"; is it one of {near}?" if near else ""
        raise InputError(f"the environment {env!r} cannot be made ({type(error).__name__}: {error}){hint}") from error


def _near(env: str) -> list[str]:
    from difflib import get_close_matches

    return get_close_matches(env, list(gym.registry), n=3, cutoff=0.6)


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
) -> "Run":
    """A new run in a directory that is new, or empty. Nothing is written unless everything asked for makes sense."""
    if checkpoint_every < 1:
        raise InputError(f"checkpoint_every is {checkpoint_every}, expected at least 1")
    if step_limit is not None and not step_limit > 0:
        raise InputError(f"step_limit is {step_limit}, expected a number of seconds above 0, or none")
    folder = Folder(directory)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        what = "a run already" if folder.is_run else "something else in it"
        raise InputError(f"{directory} has {what}: resume it, or give a new directory with --out")
    world = made(env, env_kwargs or {})
    try:
        own = dict(settings or {})
        explorer = Explorer(
            world.observation_space, world.action_space, method=method, preset=preset, seed=seed, horizon=horizon, **own
        )
        explorer.check_sating(until_utility)
        explorer.meet(world)
        config = RunConfig(
            env=env,
            env_kwargs=dict(env_kwargs or {}),
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
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{directory} cannot be made a directory ({error.strerror}): give another --out"
            ) from error
        return Run(folder, config, world, explorer, fresh=True)
    except BaseException:
        world.close()
        raise


def resumed(directory: Path) -> "Run":
    """The run in this directory, where it left off."""
    folder = Folder(directory)
    config = folder.read_config()
    if not folder.record.is_file():
        raise InputError(f"there is no {folder.record}: expected the record of a run there")
    world = made(config.env, config.env_kwargs)
    try:
        return Run(folder, config, world, None, fresh=False)
    except BaseException:
        world.close()
        raise


def restored(directory: Path) -> Explorer:
    """The explorer of a run as of its last recorded step. No environment is made, nothing is written."""
    folder = Folder(directory)
    config = folder.read_config()
    with Record.read(folder.record) as record:
        explorer, first = _newest(folder, record.steps, warnings.warn)
        for _ in _relived(explorer, record, config, first):
            pass
    return explorer


class Run:
    """An open run, for writing. Use it as a context: that ends it in good order."""

    def __init__(
        self, folder: Folder, config: RunConfig, env: gym.Env[Any, Any], explorer: Explorer | None, *, fresh: bool
    ) -> None:
        """Use `new` or `resumed`."""
        self.folder, self.config, self.env = folder, config, env
        self.sinks: list[Sink] = []
        self._observation: Any = None
        self._episode: Episode | None = None
        self._first: Episode | None = None
        self._promise: float | None = None
        self._at_once = 0
        self._closing = ExitStack()
        with ExitStack() as stack:
            stack.enter_context(folder.locked())
            opened = Record.create if fresh else Record.open
            self.record = stack.enter_context(opened(folder.record, power_safe=config.power_safe))
            if explorer is not None:
                self.explorer = explorer
                explorer.save_file(folder.checkpoint(0))
                folder.write_config(config)  # last of all: a folder with a config is a run
            else:
                self._return()
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
        self.env.close()

    @property
    def steps(self) -> int:
        """Transitions so far."""
        return self.explorer.steps

    @property
    def episode(self) -> int:
        """Episodes begun, as far as they are on record."""
        return 0 if self._episode is None else self._episode.episode + 1

    def explore(
        self,
        steps: int,
        *,
        show: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
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
            if self.steps % self.config.checkpoint_every == 0:
                self.checkpoint()
            if show is not None:
                show(Progress(self.steps, self.episode, self._told))
            if stop is not None and stop():
                came_to_end = self.steps >= steps
                break
        self.checkpoint()
        return came_to_end

    def checkpoint(self) -> None:
        """Keep the explorer as it is now; of older ones, a few are left."""
        self.record.settle()  # a checkpoint never knows more than the record
        file = self.folder.checkpoint(self.steps)
        if not file.exists():
            self.explorer.save_file(file)
        for _, old in self.folder.all_checkpoints()[KEPT:]:
            old.unlink(missing_ok=True)

    def _begun(self) -> bool:
        """Begin another episode. Whether its plans promise too little to go on."""
        number = self.episode
        seed = _seed(self.config.seed, number)
        with self._blamed("reset"):
            observation, _ = self.env.reset(seed=seed)
            self._observation = checked(self.env.observation_space, "observation", observation)
        space = self.env.observation_space
        self._first = Episode(number, self.steps, seed, encoded(space, self._observation))
        self._promise = self.explorer.begin(self._observation)
        return self.explorer.sated(self._promise, self.config.until_utility)

    def _step(self) -> None:
        before, number = self._observation, self.steps
        action = self.explorer.ask(before)
        with self._blamed("step"):
            following, reward, terminated, truncated, _ = self.env.step(action)
            following = checked(self.env.observation_space, "observation", following)
            paid, ended, cut = _paid(reward), bool(terminated), bool(truncated)
        first = self._first if self._first is not None and self._first.first_step == number else None
        here = first or self._episode
        assert here is not None
        space = self.env.observation_space, self.env.action_space
        row = Step(number, here.episode, encoded(space[1], action), encoded(space[0], following), paid, ended, cut)
        metrics = self._metrics(number)
        self.record.write(row, episode=first, metrics=metrics)
        self._episode, self._first = here, None
        for at, values in metrics.items():
            for sink in self.sinks:
                sink.write(at, values)
        self.explorer.tell(before, action, following, terminated=ended, truncated=cut, reward=paid)
        self._observation = None if ended or cut else following
        if ended or cut:
            self._at_once = self._at_once + 1 if here.first_step == number else 0
            if self._at_once >= AT_ONCE:
                raise self._misbehaved(
                    f"its last {AT_ONCE} episodes ended at their first step: nothing can be explored"
                )

    def _metrics(self, number: int) -> dict[int, dict[str, float]]:
        """What there is to tell that was not told yet, by the step that it belongs to."""
        latest = self.explorer.latest
        if latest is None:  # there are no rounds, or none yet
            latest = {"step": float(number)}
            if self._promise is not None:
                latest["utility"], self._promise = self._promise, None
            if number % EVERY == 0:
                latest["coverage"] = self.explorer.coverage
            if len(latest) == 1:
                return {}
        if latest == self._told:
            return {}
        self._told = latest
        return {int(latest["step"]): {name: value for name, value in latest.items() if name != "step"}}

    def _return(self) -> None:
        """Be where the record ends."""
        for draft in (*self.folder.path.glob(".*.*"), *self.folder.checkpoints.glob(".*.npz.*")):
            draft.unlink(missing_ok=True)  # of a process that died while it wrote
        record = self.record

        def warn(text: str) -> None:
            warnings.warn(text, stacklevel=2)
            record.note("damaged", text)

        self.explorer, first = _newest(self.folder, record.steps, warn)
        self.explorer.meet(self.env)
        if (self.env.observation_space, self.env.action_space) != _spaces(self.config):
            raise InputError(f"{self.config.env} has other spaces now than when the run began: it cannot go on")
        differ = sum(not same for same in _relived(self.explorer, record, self.config, first))
        if differ:
            record.note("differs", f"{differ} of the actions on record are not what is chosen now: another machine?")
        self._episode = record.last_episode()
        if self._episode is not None:
            self._observation = self._replayed(self._episode)
        record.note("resumed", f"from the checkpoint at step {first}")

    def _replayed(self, episode: Episode) -> Any:
        """What is observed now in the episode that was under way; None if it is over, or cannot be had again."""
        steps = list(self.record.transitions(episode.first_step))
        if steps[-1].terminated or steps[-1].truncated:
            return None
        space, moves = self.env.observation_space, self.env.action_space
        with self._blamed("reset"):
            observation, _ = self.env.reset(seed=episode.seed)
        same = _same(space, observation, episode.observation)
        for step in steps:
            if not same:
                break
            with self._blamed("step"):
                observation, _, terminated, truncated, _ = self.env.step(decoded(moves, step.action))
            same = _same(space, observation, step.next_observation) and not (terminated or truncated)
        if same:
            return decoded(space, steps[-1].next_observation)
        text = (
            f"episode {episode.episode} went otherwise when it was replayed, another begins: is the environment random?"
        )
        self.record.note("diverged", text)
        return None

    @contextmanager
    def _blamed(self, what: str) -> Generator[None]:
        """Whatever goes wrong in here is the environment's."""
        try:
            with time_limit(self.config.step_limit):
                yield
        except Exception as error:
            reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
            raise self._misbehaved(f"its {what} failed: {reason}") from error

    def _misbehaved(self, reason: str) -> MisbehavedError:
        number = self._first.episode if self._first is not None else max(self.episode - 1, 0)
        text = f"{self.config.env} misbehaved at step {self.steps}, in episode {number}: {reason}"
        self.record.note("misbehaved", text)
        return MisbehavedError(f"{text}; every step before is kept: maxplore resume {self.folder.path}")


EVERY = 100
"""Steps between two figures of those who learn at every step."""


def _seed(run: int, episode: int) -> int:
    """What the environment is reset with: every episode can be had again by itself."""
    return int(np.random.SeedSequence([run, episode]).generate_state(1)[0])


def _paid(reward: Any) -> float:
    return 0.0 if reward is None else float(reward)


def _same(space: gym.Space[Any], observation: Any, kept: bytes) -> bool:
    try:
        return encoded(space, checked(space, "observation", observation)) == kept
    except InputError:
        return False


def _spaces(config: RunConfig) -> tuple[gym.Space[Any], gym.Space[Any]]:
    try:
        return space_from_plain(config.observation_space), space_from_plain(config.action_space)
    except (KeyError, TypeError, ValueError, AttributeError, AssertionError) as error:
        raise InputError(f"config.json has no spaces that can be read ({type(error).__name__}: {error})") from None


def _newest(folder: Folder, steps: int, warn: Callable[[str], Any]) -> tuple[Explorer, int]:
    """The explorer of the newest checkpoint that can be read and is no newer than the record, and its step."""
    passed: list[str] = []
    for step, file in folder.all_checkpoints():
        try:
            if step > steps:
                raise InputError(f"{file} is of step {step}, and the record ends at {steps}")
            explorer = load_file(file)
            if explorer.steps != step:
                raise InputError(f"{file} has {explorer.steps} steps, expected {step}")
        except InputError as error:
            passed.append(f"{error}: the checkpoint before is taken")
            continue
        for text in passed:
            warn(text)
        return explorer, step
    raise InputError(f"{folder.checkpoints} has no checkpoint that can be read: the run cannot go on")


def _relived(explorer: Explorer, record: Record, config: RunConfig, first: int) -> Iterable[bool]:
    """Ask and tell what is on record, from a step on; of each step, whether the action would be the same today."""
    space, moves = _spaces(config)
    begins = {own.first_step: decoded(space, own.observation) for own in record.episodes()}
    before = None
    if first > 0 and first not in begins:
        before = decoded(space, next(record.transitions(first - 1)).next_observation)
    for step in record.transitions(first):
        if step.step in begins:
            before = begins[step.step]
            explorer.begin(before)
        same = encoded(moves, explorer.ask(before)) == step.action
        following = decoded(space, step.next_observation)
        explorer.tell(
            before,
            decoded(moves, step.action),
            following,
            terminated=step.terminated,
            truncated=step.truncated,
            reward=step.reward,
        )
        before = following
        yield same
