"""The folder of a run: what is where, what the run was asked to do, and who may write."""

import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from maxplore.errors import InputError

try:
    import fcntl
except ImportError:  # no lock where there is no flock
    fcntl = None

FORMAT = 1
"""Of the folder; a newer one is refused, not guessed at."""


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

    def write_config(self, config: RunConfig) -> None:
        """Keep what the run was asked to do."""
        write_text(self.config, json.dumps({"format": FORMAT, **asdict(config)}, indent=1) + "\n")

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
        except InputError:
            raise
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise InputError(
                f"{self.config} is no config of a run, or damaged ({type(error).__name__}: {error})"
            ) from None
        return config

    @contextmanager
    def locked(self) -> Generator[None]:
        """For one process at a time; a process that is gone holds nothing."""
        try:
            descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise InputError(
                f"{self.lock} cannot be opened ({error.strerror}): expected a directory to write"
            ) from error
        try:
            if fcntl is not None:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    owner = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
                    raise InputError(
                        f"{self.path} is being written by process {owner}: wait for it, or end it, then try again"
                    ) from None
            os.truncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            yield
        finally:
            os.close(descriptor)


def versions() -> dict[str, str]:
    """Of everything that decides about the numbers."""
    return {name: version(name) for name in ("maxplore", "gymnasium", "jax", "equinox", "mujoco", "numpy")}


def write_text(path: Path, text: str) -> None:
    """Put a text in place all at once."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
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
