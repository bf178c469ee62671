"""The folder of a run: what is where, what the run was asked to do, and who may write."""

import json
import os
import platform
import re
import stat
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium as gym

from maxplore.errors import InputError
from maxplore.runs import files
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

FILES = ("config.json", "run.sqlite", "run.sqlite-wal", "run.sqlite-shm", "run.sqlite-journal", "lock", "explorer.npz")
DIRECTORIES = ("checkpoints", "tensorboard", "figures", "videos", "landscapes")
"""Parts of a folder that nobody but its run, or its explorer, writes."""


class BusyError(InputError):
    """Somebody else is writing there now. Later it may be free."""


class LostError(InputError):
    """The folder of a run, or a part of it, was moved, deleted or replaced under a process that writes there."""


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
    """Where things are. The folder itself may be reached through links; what is in it is no link."""

    def __init__(self, path: Path) -> None:
        self.path = path
        root = path.absolute()  # an environment may change the working directory
        self.config, self.record, self.lock = root / "config.json", root / "run.sqlite", root / "lock"
        self.checkpoints, self.tensorboard = root / "checkpoints", root / "tensorboard"
        self.figures, self.videos, self.landscapes = root / "figures", root / "videos", root / "landscapes"
        self.root = root
        self._held: Callable[[], None] | None = None

    @property
    def is_run(self) -> bool:
        """Whether there is a run in it."""
        return files.kind(self.config) is not None

    def checkpoint(self, step: int) -> Path:
        """The file of the checkpoint at this step."""
        return self.checkpoints / f"{step:010d}.npz"

    def landscape(self, step: int) -> Path:
        """The file of the landscape that a sweep asks for after so many steps."""
        return self.landscapes / f"{step:010d}.npz"

    def all_checkpoints(self) -> list[tuple[int, Path]]:
        """Steps and files of all checkpoints, the newest first."""
        found = [(int(file.stem), file) for file in self.checkpoints.glob("*.npz") if file.stem.isdecimal()]
        return sorted(found, reverse=True)

    def drafts(self) -> list[Path]:
        """What a process left that died while it wrote."""
        found = (*self.root.glob(".config.json.*"), *self.checkpoints.glob(".*.npz.*"))
        return [file for file in found if re.fullmatch(r"\.(config\.json|\d{10}\.npz)\.\d+", file.name)]

    def check_kinds(self) -> None:
        """An `InputError` if a part of the folder is a link, which could lead anywhere, or anything else that is not to
        be opened."""
        for name in FILES:
            files.check_kind(self.root / name)
        for name in DIRECTORIES:
            files.check_kind(self.root / name, files.DIRECTORY)
        for _, file in self.all_checkpoints():
            files.check_kind(file)

    def check_free(self) -> None:
        """An `InputError` unless a run can begin here: there is nothing, or what one has left that died before."""
        elsewhere = "or give a new directory with --out"
        if self.is_run:
            raise InputError(f"{self.path} has a run already: resume it, {elsewhere}")
        if not self.root.exists():
            return
        unborn = self._unborn()
        found = {*self.root.iterdir(), *self.checkpoints.glob("*")} if self.root.is_dir() else {self.root}
        if found and (self.lock not in found or found - {*unborn, self.lock, self.checkpoints}):
            raise InputError(f"{self.path} has something else in it: empty it, {elsewhere}")
        self.check_kinds()

    def clear_unborn(self) -> None:
        """Make sure, holding the lock, that a run can begin, and remove what is left of one that died before it did:
        that has everything but a config, and no step."""
        if self.is_run:
            raise BusyError(f"{self.path} has a run already, which another process began meanwhile: resume it")
        self.check_free()
        if self.record.exists():
            try:
                with Record.peek(self.record) as record:
                    steps = record.steps
            except InputError:  # it died when it made the record
                steps = 0 if not self.checkpoint(0).exists() else None
            if steps != 0:
                what = "a record" if steps is None else f"a record of {steps} steps"
                raise InputError(f"{self.path} has {what} and no config.json: move it away, or give another --out")
        for file in self._unborn():
            file.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            self.checkpoints.rmdir()

    def _unborn(self) -> list[Path]:
        """All that there can be before there is a config, but the lock."""
        record = [self.record.with_name(self.record.name + end) for end in ("", "-wal", "-shm", "-journal")]
        return [*record, self.checkpoint(0), *self.drafts()]

    @contextmanager
    def held(self, steps: Callable[[], int]) -> Generator[None]:
        """In here, `check` notices if the folder, or its record or lock, is another one than now. What is open is no
        help against that: it goes on to be written, wherever it is or is not. `steps` tells how many are on record."""
        handle = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)  # as long as it is open, its number is not used again
        log = self.record.with_name(f"{self.record.name}-wal")
        own = {path: _identity(path) for path in (self.lock, self.record, log) if files.kind(path) is not None}
        folder = _identity(handle)

        def check() -> None:
            if _identity(self.root, follow=True) != folder:
                raise LostError(self._moved(handle, steps()))
            for path, identity in own.items():
                if _identity(path) != identity:
                    kept = "kept only if it was moved" if path == self.record else "on record"
                    raise LostError(
                        f"{path} was deleted, moved or replaced under the process that used it, which ends here: the "
                        f"{steps()} steps of the run are {kept}"
                    )

        self._held = check
        try:
            yield
        finally:
            self._held = None
            os.close(handle)

    def check(self) -> None:
        """A `LostError` if the folder is held, and no longer there as it was."""
        if self._held is not None:
            self._held()

    def _moved(self, handle: int, steps: int) -> str:
        """Where a folder is that is no longer where it was."""
        ends = "under the process that used it, which ends here"
        if os.fstat(handle).st_nlink == 0:
            return f"{self.path} was deleted {ends}: none of its {steps} steps is left"
        place = f"/proc/self/fd/{handle}"
        now = os.readlink(place) if os.path.islink(place) else "another place"
        return f"{self.path} was moved to {now} {ends}: all {steps} steps are safe there: maxplore resume {now}"

    def writable(self, file: Path) -> Path:
        """The same path, if what is written there now comes to lie in this folder; a `LostError` or `InputError` if
        not."""
        self.check()
        if file.parent != self.root:
            files.check_kind(file.parent, files.DIRECTORY)
            file.parent.mkdir(exist_ok=True)  # and none above: a folder that was moved is not begun again
        return file

    def write_config(self, config: RunConfig) -> None:
        """Keep what the run was asked to do."""
        files.write_text(self.writable(self.config), as_text(config))

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
        self.check_kinds()
        try:
            plain = json.loads(files.read(self.config))
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
            if _identity(descriptor) != _identity(self.lock):
                raise BusyError(f"{self.lock} was deleted or replaced when it was taken: try again")
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


def check_out(path: Path) -> None:
    """An `InputError` if a file at this path would take the place of a part of a run, or of anything but a file."""
    files.check_kind(path)
    check_not_own(path)


def check_not_own(path: Path) -> None:
    """An `InputError` if this path is a part of a run, or in one."""
    whole = path.resolve()
    for above in whole.parents:
        folder, part = Folder(above), whole.relative_to(above).parts[0]
        if part.lower() in (*FILES, *DIRECTORIES) and folder.is_run and files.kind(folder.record) is not None:
            raise InputError(f"{path} is a part of the run in {above}, or in one: give another --out")


def make_directory(path: Path) -> None:
    """Have a directory to write to, or an `InputError`."""
    check_not_own(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be made a directory ({error.strerror}): give another place") from error


def _identity(place: Path | int, *, follow: bool = False) -> tuple[int, int] | None:
    """Which file or folder it is, whatever it is called; None if there is none."""
    try:
        found = os.stat(place) if follow or isinstance(place, int) else os.lstat(place)
    except OSError:
        return None
    return found.st_dev, found.st_ino


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
