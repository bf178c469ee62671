"""The folder of a run: what is where, what the run was asked to do, and who may write."""

import json
import os
import platform
import re
import stat
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium as gym

from maxplore.errors import InputError
from maxplore.runs.plain import space_from_plain
from maxplore.runs.record import Record
from maxplore.runs.watchdog import check_limit

try:
    import fcntl
except ImportError:  # no lock where there is no flock
    fcntl = None

HELD: set[int] = set()
"""Locks of this process."""


def _let_go() -> None:
    """A child that an environment forks does not hold what its parent held."""
    for descriptor in HELD:
        os.close(descriptor)
    HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)

FORMAT = 1
"""Of the folder; a newer one is refused, not guessed at."""


FREE = ("step_limit", "power_safe")
"""Of a config: what may be changed later, since it decides about no number."""


class BusyError(InputError):
    """Somebody else is writing there now. Later it may be free."""


@dataclass(frozen=True)
class RunConfig:
    """What a run was asked to do: all that it takes to begin it again."""

    env: str
    """The environment's id."""
    env_kwargs: dict[str, Any]
    """What it is made with."""
    method: str
    preset: str
    seed: int
    horizon: int | None
    settings: dict[str, Any]
    """Of the method, by name, in plain numbers and words."""
    until_utility: float
    checkpoint_every: int
    """Steps between two checkpoints."""
    step_limit: float | None
    """Seconds that the environment may take for a step."""
    power_safe: bool
    """Whether the disk confirms every step before the next."""
    observation_space: dict[str, Any]
    action_space: dict[str, Any]
    versions: dict[str, str]
    in_force: dict[str, Any]
    """Every setting, the usual ones too."""
    command: str
    name: str
    """Of this run among all others, wherever its folder goes."""


class Folder:
    """Where things are."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config, self.record, self.lock = path / "config.json", path / "run.sqlite", path / "lock"
        self.checkpoints, self.tensorboard = path / "checkpoints", path / "tensorboard"
        self.figures, self.videos = path / "figures", path / "videos"

    @property
    def is_run(self) -> bool:
        """Whether there is a run in it."""
        return self.config.is_file()

    def checkpoint(self, step: int) -> Path:
        """The file of the checkpoint at this step."""
        return self.checkpoints / f"{step:010d}.npz"

    def all_checkpoints(self) -> list[tuple[int, Path]]:
        """Steps and files of all checkpoints, the newest first."""
        found = [(int(file.stem), file) for file in self.checkpoints.glob("*.npz") if file.stem.isdecimal()]
        return sorted(found, reverse=True)

    def drafts(self) -> list[Path]:
        """What a process left that died while it wrote."""
        found = (*self.path.glob(".config.json.*"), *self.checkpoints.glob(".*.npz.*"))
        return [file for file in found if re.fullmatch(r"\.(config\.json|\d{10}\.npz)\.\d+", file.name)]

    def clear_unborn(self) -> None:
        """Remove what is left of a run that died before it began: it has everything but a config."""
        own = {self.lock.name, self.record.name, f"{self.record.name}-wal", f"{self.record.name}-shm", "checkpoints"}
        if self.is_run or not {file.name for file in self.path.iterdir()} - {x.name for x in self.drafts()} <= own:
            return
        left = [*self.drafts(), *(file for file in self.path.iterdir() if file.is_file()), *self.checkpoints.glob("*")]
        for file in left:
            file.unlink(missing_ok=True)
        if self.checkpoints.is_dir():
            self.checkpoints.rmdir()

    def write_config(self, config: RunConfig) -> None:
        """Keep what the run was asked to do."""
        write_text(self.config, as_text(config))

    def spaces(self, config: RunConfig) -> tuple[gym.Space[Any], gym.Space[Any]]:
        """Of observations and actions, or an `InputError`."""
        try:
            return space_from_plain(config.observation_space), space_from_plain(config.action_space)
        except Exception as error:  # a config from anywhere can break a reader in many ways
            raise InputError(
                f"{self.config} has no spaces that can be read ({type(error).__name__}: {error})"
            ) from None

    def read_config(self) -> RunConfig:
        """What the run was asked to do, or an `InputError` if this is no run."""
        if not self.path.is_dir():
            raise InputError(f"there is no directory {self.path}: expected that of a run")
        if not self.is_run:
            raise InputError(f"{self.path} has no {self.config.name}: expected the directory of a run")
        try:
            plain = json.loads(self.config.read_text())
            written = plain.pop("format")
            if written != FORMAT:
                raise InputError(
                    f"{self.config} has format {written!r}, expected {FORMAT}: it is from another version of maxplore"
                )
            for field in fields(RunConfig):
                _check_type(field.name, plain[field.name], field.type)
            config = RunConfig(**plain)
            if config.checkpoint_every < 1:
                raise ValueError(f"checkpoint_every is {config.checkpoint_every}, expected at least 1")
            check_limit(config.step_limit)
        except InputError:
            raise
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InputError(
                f"{self.config} is no config of a run, or damaged ({type(error).__name__}: {error})"
            ) from None
        if not self.written_elsewhere:  # SQLite shares a log within one machine only
            self._compare(config)
        return config

    def _compare(self, config: RunConfig) -> None:
        """An `InputError` if the record has it that the run was begun with something else."""
        with Record.peek(self.record) as record:
            kept = record.config
        try:
            begun = json.loads(kept)
            for name, value in json.loads(as_text(config)).items():
                if name not in FREE and value != begun[name]:
                    why = f"{name} is {value!r}, expected {begun[name]!r}, which the run was begun with"
                    raise InputError(f"{self.config} was changed ({why}): put that back, every step is on record")
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{self.record} does not tell what the run was begun with: it is damaged") from None

    @contextmanager
    def locked(self) -> Generator[None]:
        """For one process at a time; a process that is gone holds nothing."""
        try:  # a link could lead to a file of somebody else's
            descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        except OSError as error:
            why = f"{self.lock} cannot be opened ({error.strerror})"
            raise InputError(f"{why}: expected a file in a directory to write") from error
        HELD.add(descriptor)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InputError(f"{self.lock} is not a file, expected one to lock")
            if fcntl is not None:
                for last in (False, False, True):
                    try:
                        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except OSError:
                        if last:
                            raise BusyError(
                                f"{self.path} is being written by process {_owner(descriptor)}: wait for it, or end "
                                "it, then try again"
                            ) from None
                        time.sleep(0.02)  # it may be somebody who only looks who `writer` is
            os.truncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()} on {platform.node()}\n".encode(), 0)
            yield
        finally:
            HELD.discard(descriptor)
            os.close(descriptor)

    @property
    def writer(self) -> str | None:
        """Who is writing there now, such as `123 on venus`, a process and its machine; None if nobody is."""
        if fcntl is None:
            return None
        try:
            descriptor = os.open(self.lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return _owner(descriptor)
        finally:
            os.close(descriptor)
        return None

    @property
    def written_elsewhere(self) -> bool:
        """Whether another machine is writing there now."""
        writer = self.writer
        return writer is not None and writer.partition(" on ")[2] != platform.node()


def as_text(config: RunConfig) -> str:
    """As it is written down."""
    return json.dumps({"format": FORMAT, **asdict(config)}, indent=1) + "\n"


def _owner(lock: int) -> str:
    """Who holds this lock."""
    return os.pread(lock, 300, 0).decode(errors="replace").strip() or "unknown"


def versions() -> dict[str, str]:
    """Of everything that decides about the numbers."""
    return {name: version(name) for name in ("maxplore", "gymnasium", "jax", "equinox", "mujoco", "numpy")}


def write_text(path: Path, text: str) -> None:
    """Put a text in place all at once."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # so that the new name, too, outlives a power cut
        finally:
            os.close(folder)
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}): expected a place to write to") from error
    finally:
        draft.unlink(missing_ok=True)


def _check_type(name: str, value: Any, wanted: Any) -> None:
    """A `TypeError` if a config from disk has something else in this place."""
    kinds: Mapping[Any, tuple[type, ...]] = {
        bool: (bool,),
        str: (str,),
        int: (int,),
        float: (int, float),
        int | None: (int, type(None)),
        float | None: (int, float, type(None)),
    }
    if not isinstance(value, kinds.get(wanted, (dict,))) or (isinstance(value, bool) and wanted is not bool):
        raise TypeError(f"{name} is {value!r}, expected {wanted}")
