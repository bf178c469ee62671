"""A run's durable record: every transition, metric and event in one SQLite file that any other tool can read.

Each step is a transaction of its own, in WAL mode: one process writes, any number read meanwhile, and whatever ends it,
a kill or a power cut, leaves whole steps behind. A kill leaves all of them; a power cut may take those after the last
`settle`, unless every one is `power_safe`. Observations and actions are kept as `coded` has them, to the last bit.
"""

import json
import math
import os
import sqlite3
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxplore.errors import InputError

FORMAT = 1
"""Of the file; a newer one is refused, not guessed at."""

SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE episodes (
    episode INTEGER PRIMARY KEY, first_step INTEGER NOT NULL, seed INTEGER NOT NULL, observation BLOB NOT NULL
);
CREATE TABLE transitions (
    step INTEGER PRIMARY KEY, episode INTEGER NOT NULL REFERENCES episodes, action BLOB NOT NULL,
    next_observation BLOB NOT NULL, reward REAL, terminated INTEGER NOT NULL, truncated INTEGER NOT NULL
);
CREATE TABLE metrics (
    step INTEGER NOT NULL, name TEXT NOT NULL, value REAL, PRIMARY KEY (step, name)
) WITHOUT ROWID;
CREATE TABLE events (
    number INTEGER PRIMARY KEY, step INTEGER NOT NULL, time TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL
);
CREATE TABLE tasks (
    number INTEGER PRIMARY KEY, step INTEGER NOT NULL, time TEXT NOT NULL, task TEXT NOT NULL, seed INTEGER NOT NULL,
    settings TEXT NOT NULL, report TEXT NOT NULL, returns TEXT NOT NULL
);
"""

LANDSCAPES = """
CREATE TABLE IF NOT EXISTS landscapes (
    step INTEGER NOT NULL, name TEXT NOT NULL, rows INTEGER NOT NULL, columns INTEGER NOT NULL, numbers BLOB NOT NULL,
    PRIMARY KEY (step, name)
);
"""
"""What models knew; `numbers` are float32, little-endian, row by row. Older records have no such table until they are
gone on with, and older versions take no notice of it."""

TOLD = """
CREATE TABLE IF NOT EXISTS told (episode INTEGER PRIMARY KEY REFERENCES episodes);
"""
"""Episodes of a policy: the explorer was told of them, and not asked. As with landscapes, older records have none."""

CHUNK = 4096
"""Transitions that are read at once."""


class Episode(NamedTuple):
    """How an episode began."""

    episode: int
    first_step: int
    """Transitions there were before it."""
    seed: int
    """What the environment was reset with."""
    observation: bytes


class Step(NamedTuple):
    """A transition; it began where the one before it, or its episode, left off."""

    step: int
    """Counted from 0."""
    episode: int
    action: bytes
    next_observation: bytes
    reward: float
    terminated: bool
    truncated: bool


class Event(NamedTuple):
    """Something that happened to the run."""

    step: int
    time: str
    kind: str
    text: str


class Record:
    """The open file. Made by `Record.create`, `Record.open` (to write) or `Record.read`."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self._connection = path, connection

    @classmethod
    def create(cls, path: Path, *, power_safe: bool = False) -> "Record":
        """A new, empty record."""
        with _complaining(path):
            connection = _connected(f"{path.absolute().as_uri()}?mode=rwc", power_safe)
            connection.executescript("PRAGMA journal_mode = WAL; BEGIN;" + SCHEMA + LANDSCAPES + TOLD)
            connection.execute("INSERT INTO about VALUES ('format', ?)", (str(FORMAT),))
            connection.execute("COMMIT")
        return cls(path, connection)

    @classmethod
    def open(cls, path: Path, *, power_safe: bool = False) -> "Record":
        """An existing record, to go on with."""
        record = cls._existing(path, "rw", power_safe)
        with _complaining(path):
            for table in (LANDSCAPES, TOLD):
                record._connection.execute(table)
        return record

    @classmethod
    def read(cls, path: Path) -> "Record":
        """An existing record, to look at, whether it is being written or not."""
        log = path.with_name(path.name + "-wal")
        if not os.access(path.parent, os.W_OK) and not (log.exists() and log.stat().st_size):
            return cls._existing(path, "ro&immutable=1")  # nobody writes, and SQLite could not even make its log
        return cls._existing(path, "ro")

    @classmethod
    def _existing(cls, path: Path, mode: str, power_safe: bool = False) -> "Record":
        if not path.is_file():
            raise InputError(f"there is no {path}: expected the record of a run there")
        with _complaining(path):
            connection = _connected(f"{path.absolute().as_uri()}?mode={mode}", power_safe)
            row = connection.execute("SELECT value FROM about WHERE name = 'format'").fetchone()
        if row is None or row[0] != str(FORMAT):
            connection.close()
            raise InputError(
                f"{path} has format {None if row is None else row[0]}, expected {FORMAT}: it is from another version "
                "of maxplore"
            )
        return cls(path, connection)

    def close(self) -> None:
        """Done with."""
        self._connection.close()

    def __enter__(self) -> "Record":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(
        self,
        step: Step | None = None,
        *,
        episode: Episode | None = None,
        told: bool = False,
        metrics: Mapping[int, Mapping[str, float]] | None = None,
    ) -> None:
        """Keep what a step brought, all of it or nothing: the transition, its episode if it is the first of one, and
        metrics by the step that they belong to. Metrics that are there already are replaced. A step that the explorer
        is only `told` of comes on top of those that the run was to have."""
        with _complaining(self.path), self._transaction() as connection:
            if episode is not None:
                connection.execute("INSERT INTO episodes VALUES (?, ?, ?, ?)", episode)
                if told:
                    connection.execute("INSERT INTO told VALUES (?)", (episode.episode,))
            if step is not None:
                connection.execute("INSERT INTO transitions VALUES (?, ?, ?, ?, ?, ?, ?)", step)
                if told:
                    connection.execute("UPDATE about SET value = value + 1 WHERE name = 'steps'")
            for at, own in (metrics or {}).items():
                rows = [(at, name, value) for name, value in own.items()]
                connection.executemany("INSERT OR REPLACE INTO metrics VALUES (?, ?, ?)", rows)

    def note(self, kind: str, text: str, *, at: int | None = None) -> None:
        """Keep an event."""
        step = self.steps if at is None else at
        with _complaining(self.path), self._transaction() as connection:
            connection.execute("INSERT INTO events VALUES (NULL, ?, ?, ?, ?)", (step, _now(), kind, text))

    def solved(
        self, task: str, *, seed: int, settings: Any, report: Any, returns: list[float], step: int | None = None
    ) -> None:
        """Keep what came of a task that was solved from the first `step` transitions, or all of them."""
        row = (
            self.steps if step is None else step,
            _now(),
            task,
            seed,
            json.dumps(settings),
            json.dumps(report),
            json.dumps(returns),
        )
        with _complaining(self.path), self._transaction() as connection:
            connection.execute("INSERT INTO tasks VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", row)

    def survey(self, step: int, tables: Mapping[str, np.ndarray]) -> None:
        """Keep what models knew at a step, tables of numbers by name, in place of what was kept of it."""
        rows = [(step, name, *table.shape, table.astype("<f4").tobytes()) for name, table in tables.items()]
        if rows:
            with _complaining(self.path), self._transaction() as connection:
                connection.executemany("INSERT OR REPLACE INTO landscapes VALUES (?, ?, ?, ?, ?)", rows)

    def landscapes(self, step: int) -> dict[str, np.ndarray]:
        """What models knew at a step, by name; nothing if it was not kept."""
        found: dict[str, np.ndarray] = {}
        question = "SELECT name, rows, columns, numbers FROM landscapes WHERE step = ? ORDER BY name"
        for name, rows, columns, numbers in self._rows(question, step):
            fits = all(isinstance(x, int) and x >= 0 for x in (rows, columns)) and isinstance(numbers, bytes)
            if not fits or 4 * rows * columns != len(numbers):
                raise InputError(f"{self.path} has a landscape of another form: the record is damaged")
            found[str(name)] = np.frombuffer(numbers, "<f4").reshape(rows, columns)
        return found

    @property
    def surveyed(self) -> list[int]:
        """Steps of which it is kept what models knew."""
        if not self._has("landscapes"):
            return []
        return [int(self._number(step)) for (step,) in self._rows("SELECT DISTINCT step FROM landscapes ORDER BY step")]

    def settle(self) -> None:
        """Have the disk confirm that it holds all that was written: what follows may rely on it after a power cut."""
        log = self.path.with_name(self.path.name + "-wal")
        with _complaining(self.path):
            if log.exists():
                descriptor = os.open(log, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
            # As far as no reader stands in the way: nobody who looks on can make the run wait.
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def aim(self, steps: int) -> None:
        """Keep how many steps the run is to have."""
        with _complaining(self.path), self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO about VALUES ('steps', ?)", (str(steps),))

    @property
    def aimed(self) -> int:
        """How many steps the run is to have; if nobody said so, those that it has."""
        rows = self._rows("SELECT value FROM about WHERE name = 'steps'")
        try:
            return int(rows[0][0]) if rows else self.steps
        except (ValueError, TypeError):
            raise InputError(f"{self.path} has {rows[0][0]!r} for its number of steps: it is damaged") from None

    @property
    def steps(self) -> int:
        """Transitions kept."""
        return self._value("SELECT COALESCE(MAX(step) + 1, 0) FROM transitions")

    def last_episode(self) -> Episode | None:
        """The latest that began; None before the first."""
        rows = self._rows("SELECT * FROM episodes ORDER BY episode DESC LIMIT 1")
        return next((Episode(*row) for row in rows), None)

    def episodes(self, first: int = 0) -> Iterator[Episode]:
        """Episodes in their order, from one on."""
        return (
            Episode(*row) for row in self._rows("SELECT * FROM episodes WHERE episode >= ? ORDER BY episode", first)
        )

    @property
    def told(self) -> set[int]:
        """Episodes that the explorer was told of, and not asked in."""
        return {episode for (episode,) in self._rows("SELECT episode FROM told")} if self._has("told") else set()

    def transitions(self, first: int = 0) -> Iterator[Step]:
        """Transitions in their order, from one on."""
        while rows := self._rows("SELECT * FROM transitions WHERE step >= ? ORDER BY step LIMIT ?", first, CHUNK):
            for step, episode, action, following, reward, terminated, truncated in rows:
                kinds = (
                    (step, int),
                    (episode, int),
                    (action, bytes),
                    (following, bytes),
                    (terminated, int),
                    (truncated, int),
                )
                if not all(isinstance(value, kind) for value, kind in kinds):
                    raise InputError(f"{self.path} has a transition of another form: the record is damaged")
                yield Step(step, episode, action, following, self._number(reward), bool(terminated), bool(truncated))
            first = rows[-1][0] + 1

    def metrics(self, name: str | None = None) -> Iterator[tuple[int, str, float]]:
        """Metrics by step: all, or those of one name. What is not a number is NaN."""
        rows = self._rows(
            "SELECT step, name, value FROM metrics WHERE ?1 IS NULL OR name = ?1 ORDER BY step, name", name
        )
        return ((step, own, self._number(value)) for step, own, value in rows)

    def events(self) -> Iterator[Event]:
        """Events in their order."""
        return (Event(*row) for row in self._rows("SELECT step, time, kind, text FROM events ORDER BY number"))

    def tasks(self) -> Iterator[dict[str, Any]]:
        """What came of every task, in their order."""
        for row in self._rows("SELECT step, time, task, seed, settings, report, returns FROM tasks ORDER BY number"):
            own = dict(zip(("step", "time", "task", "seed", "settings", "report", "returns"), row, strict=True))
            try:
                yield own | {name: json.loads(own[name]) for name in ("settings", "report", "returns")}
            except (ValueError, TypeError, RecursionError):
                raise InputError(f"{self.path} has a task that cannot be read: the record is damaged") from None

    def _has(self, table: str) -> bool:
        return bool(self._rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", table))

    def _value(self, question: str) -> Any:
        with _complaining(self.path):
            return self._connection.execute(question).fetchone()[0]

    def _rows(self, question: str, *given: Any) -> list[tuple[Any, ...]]:
        with _complaining(self.path):
            return self._connection.execute(question, given).fetchall()

    def _number(self, value: Any) -> float:
        """SQLite keeps nothing in the place of what is not a number."""
        if value is not None and not isinstance(value, int | float):
            raise InputError(f"{self.path} has {value!r} in the place of a number: the record is damaged")
        return math.nan if value is None else float(value)

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise


def _connected(uri: str, power_safe: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=30.0, check_same_thread=False)
    # A record may come from a stranger: its schema is not trusted with functions or writable internals.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute(f"PRAGMA synchronous = {'FULL' if power_safe else 'NORMAL'}")
    return connection


@contextmanager
def _complaining(path: Path) -> Generator[None]:
    """SQLite's complaints as one line."""
    try:
        yield
    except sqlite3.Error as error:
        what = str(error)
        if "full" in what or "disk I/O" in what:
            raise InputError(
                f"{path} cannot be written ({what}): make room on the disk, then resume; every step before is kept"
            ) from error
        raise InputError(f"{path} is no record of a run, or damaged, or not to be had now ({what})") from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
