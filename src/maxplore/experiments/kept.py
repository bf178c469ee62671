"""What a figure reads of a trial, in a small file beside the figure: `FOLDER/trials/NAME.npz` outlives the run itself.

The file holds arrays (`states`, `episodes`, `landscapes/STEPS`) and, as JSON in `about`, whose they are: the trial, the
columns of its states, what tasks were paid and promised, and which code made it. Nothing in it is pickled.
"""

import json
import math
import subprocess
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxplore.errors import InputError
from maxplore.exploit import Forecast
from maxplore.runs import files
from maxplore.runs.directory import Folder, make_directory
from maxplore.runs.export import arrays
from maxplore.runs.record import Record
from maxplore.sweep.trial import OtherRunError, Solved, Trial, done, plain, solved_of

FORMAT = 1
"""Of the file; a newer one is refused, not guessed at."""
COVERED = ("steps", "after", "landscapes")
"""What a trial may have more of than is asked for; all else is the same, or it is another trial."""
MOST = 2**30
"""Bytes of all arrays in a file; one that would unfold to more is no kept trial."""


class Seen(NamedTuple):
    """What a trial has seen, a row a step, and what came of its tasks: all that a figure reads of it."""

    states: np.ndarray
    """After each step, in the columns that the figure reads; float32, `[steps, columns]`."""
    episodes: np.ndarray
    tasks: Mapping[Solved, list[float]] = {}
    """Real returns, by task and the steps of D that it was solved from,"""
    forecasts: Mapping[Solved, Forecast] = {}
    """and what the models expected of them, where that is on record."""
    landscapes: Mapping[int, np.ndarray] = {}
    """The utility over the plane of states, by the steps that were done."""
    version: str = ""
    """Of maxplore, when the run began."""
    commit: str = ""
    """Of its code, when the trial ended; empty if nobody knows."""

    @property
    def made_by(self) -> str:
        return f"maxplore {self.version}, commit {self.commit or 'unknown'}"

    def lacks(self, trial: Trial) -> str:
        """What of the trial is not here, in words; nothing if all of it is."""
        if len(self.states) < trial.steps:
            return f"step {trial.steps}"
        tasks = (f"{task} from {steps} steps" for task, steps in trial.asked if (task, steps) not in self.tasks)
        return next(tasks, "") or next((f"landscape {at}" for at in trial.landscapes if at not in self.landscapes), "")

    def cut(self, trial: Trial) -> "Seen":
        """As much of it as the trial is."""
        return self._replace(
            states=self.states[: trial.steps],
            episodes=self.episodes[: trial.steps],
            tasks={own: self.tasks[own] for own in trial.asked},
            forecasts={own: self.forecasts[own] for own in trial.asked if own in self.forecasts},
            landscapes={at: self.landscapes[at] for at in trial.landscapes},
        )


class Kept:
    """The kept trials of a figure: a sweep asks it what is there, and tells it what has ended."""

    def __init__(self, folder: Path, columns: tuple[int, ...]) -> None:
        self.folder, self.columns = folder, columns
        self._seen: dict[str, Seen] = {}

    def has(self, name: str, trial: Trial) -> bool:
        """Whether all of the trial is kept; an `InputError` if its file is another trial's, or damaged."""
        file = self._file(name)
        if name not in self._seen and file.exists():
            self._seen[name] = read(file, trial, self.columns)
        if name not in self._seen:
            return False
        lacks, steps = self._seen[name].lacks(trial), len(self._seen[name].states)
        if lacks and steps > trial.steps and done(trial, self._run(name)).steps < steps:
            # What would be run in its place is shorter: steps that took hours are not given for that.
            raise OtherRunError(f"{file} has {steps} steps and no {lacks}, expected that too: give another --out")
        return not lacks

    def keep(self, name: str, trial: Trial, *, now: bool) -> None:
        """Keep what came of a trial that has ended: all that its run has, which may be more than the trial asks for.

        If it ended `now`, then it was this code that ended it.
        """
        if not self.has(name, trial):
            seen = seen_in(self._run(name), trial, self.columns, commit=commit() if now else "")
            write(self._file(name), trial, self.columns, seen)
            self._seen[name] = seen

    def seen(self, name: str, trial: Trial) -> Seen:
        """What a trial that has ended has seen, as far as it goes."""
        self.keep(name, trial, now=False)
        return self._seen[name].cut(trial)

    def _file(self, name: str) -> Path:
        return self.folder / "trials" / f"{name}.npz"

    def _run(self, name: str) -> Path:
        return self.folder / "runs" / name


def seen_in(path: Path, trial: Trial, columns: tuple[int, ...], *, commit: str = "") -> Seen:
    """All that the run in this folder has seen."""
    folder = Folder(path)
    config = folder.read_config()
    with Record.read(folder.record) as record:
        rows = arrays(record, *folder.spaces(config))
        solved = solved_of(trial, record)
    kept = {int(file.stem): file for file in sorted(folder.landscapes.glob("*.npz")) if file.stem.isdecimal()}
    return Seen(
        rows["next_observations"][:, list(columns)].astype(np.float32),
        rows["episodes"].astype(np.int32),
        {own: row["returns"] for own, row in solved.items()},
        {own: found for own, row in solved.items() if (found := _forecast(row["report"].get("forecast"))) is not None},
        {at: _landscape(file) for at, file in kept.items()},
        config.versions.get("maxplore", "unknown"),
        commit,
    )


def write(file: Path, trial: Trial, columns: tuple[int, ...], seen: Seen) -> None:
    """Put it in place all at once."""
    own = replace(
        trial,
        steps=len(seen.states),
        after=tuple(sorted({steps for _, steps in seen.tasks})),
        landscapes=tuple(seen.landscapes),
    )
    tasks = [
        {"task": task, "steps": steps, "returns": returns}
        | ({"forecast": asdict(seen.forecasts[task, steps])} if (task, steps) in seen.forecasts else {})
        for (task, steps), returns in seen.tasks.items()
    ]
    about = {
        "format": FORMAT,
        "trial": asdict(own),
        "columns": columns,
        "tasks": tasks,
        "version": seen.version,
        "commit": seen.commit,
    }
    plains = {f"landscapes/{at}": values for at, values in seen.landscapes.items()}
    told = np.array(json.dumps(about))
    make_directory(file.parent)
    with files.placed(file) as out:
        np.savez_compressed(out, allow_pickle=False, about=told, states=seen.states, episodes=seen.episodes, **plains)


def read(file: Path, trial: Trial, columns: tuple[int, ...]) -> Seen:
    """What is kept of the trial, which may be more or less than all of it; an `InputError` if it is not the trial's."""
    try:
        held = _arrays(file)
        about = json.loads(str(held["about"]))
        if about["format"] != FORMAT:  # whose other parts nobody here knows
            what = f"{file} has format {about['format']!r}, expected {FORMAT}: it is from another version of maxplore"
            raise OtherRunError(f"{what}; give another --out")
        own = Trial.of(about["trial"])
        seen = Seen(
            held["states"],
            held["episodes"],
            {_solved(row): _numbers(row["returns"], own.episodes) for row in about["tasks"]},
            {_solved(row): _promised(row["forecast"]) for row in about["tasks"] if "forecast" in row},
            {at: held[f"landscapes/{at}"] for at in own.landscapes},
            str(about["version"]),
            str(about["commit"]),
        )
        shape = (own.steps, len(about["columns"]))
        if seen.states.shape != shape or seen.episodes.shape != shape[:1] or seen.states.dtype != np.float32:
            raise ValueError(f"states are {seen.states.dtype} of {seen.states.shape}, expected float32 of {shape}")
        if seen.episodes.dtype.kind != "i":
            raise ValueError(f"episodes are {seen.episodes.dtype}, expected whole numbers")
        for at, plane in seen.landscapes.items():
            if plane.ndim != 2 or plane.dtype != np.float32:
                raise ValueError(f"landscape {at} is {plane.dtype} of {plane.shape}, expected a plane of float32")
    except OtherRunError:
        raise
    except Exception as error:  # a file from anywhere can break a reader in many ways
        again = "remove it, and the trial is taken from its run, or run again"
        raise InputError(f"{file} is no kept trial, or damaged ({_why(error)}): {again}") from None
    names = [name for name in asdict(trial) if name not in COVERED]
    pairs = {
        **{name: (plain(getattr(own, name)), plain(getattr(trial, name))) for name in names},
        "columns": (about["columns"], list(columns)),
    }
    for name, (has, asked) in pairs.items():
        if has != asked:
            what = f"{file} has a trial with {name} {has!r}, expected {asked!r}"
            raise OtherRunError(f"{what}: give another --out, or remove the file")
    return seen


@cache
def commit() -> str:
    """The last that changed this package, with a + if it was changed since; empty where there is no git, or it knows
    nothing of the package."""
    last = _git("log", "-1", "--format=%h", "--", ".")
    return last + (CHANGED if _git("status", "--porcelain", "--", ".") != "" else "") if last else ""


CHANGED = "+"
"""After a commit: what it has was changed since."""


def code() -> str:
    """Version and commit of this package; with `CHANGED` at its end, nobody can tell which."""
    from maxplore import __version__

    return f"maxplore {__version__} {commit()}".strip()


def _git(*words: str) -> str | None:
    """What git says of the package; None if it cannot be asked, or does not know."""
    package = Path(__file__).parents[1]
    try:
        asked = subprocess.run(
            ["git", *words], cwd=package, capture_output=True, text=True, check=False, timeout=PATIENCE
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout.strip() if asked.returncode == 0 else None


PATIENCE = 10.0
"""Seconds."""


def _solved(row: Mapping[str, Any]) -> Solved:
    return str(row["task"]), int(row["steps"])


def _numbers(values: Any, count: int) -> list[float]:
    if len(values) != count or not all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        raise ValueError(f"returns are {values!r}, expected {count} numbers")
    return [float(value) for value in values]


def _promised(told: Any) -> Forecast:
    if (found := _forecast(told)) is None:
        raise ValueError(f"forecast is {told!r}, expected numbers for {', '.join(FORECAST)}")
    return found


def _forecast(told: Any) -> Forecast | None:
    """As the record of a run has it; None if it has none, or one that is not finite."""
    if not isinstance(told, dict) or not all(isinstance(told.get(name), int | float) for name in FORECAST):
        return None
    return Forecast(*(float(told[name]) for name in FORECAST))


FORECAST = ("mean", "low", "high")


def _arrays(file: Path) -> dict[str, np.ndarray]:
    with open(file, "rb", opener=files.plain) as data:  # by name, NumPy leaves a damaged file open
        with zipfile.ZipFile(data) as held:
            if (size := sum(each.file_size for each in held.infolist())) > MOST:
                raise ValueError(f"it unfolds to {size} bytes, expected at most {MOST}")
        data.seek(0)
        with np.load(data, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}


def _why(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _landscape(file: Path) -> np.ndarray:
    try:
        return _arrays(file)["utility"].astype(np.float32)
    except Exception as error:  # as above
        raise InputError(f"{file} is no landscape, or damaged ({_why(error)})") from None
