"""A run's durable record: every transition, metric and event in one SQLite file that any other tool can read.

Each step is a transaction of its own, in WAL mode: one process writes, any number read meanwhile, and whatever ends it,
a kill or a power cut, leaves whole steps behind. A kill leaves all of them; a power cut may take those after the last
`settle`, unless every one is `power_safe`. Observations and actions are kept as `coded` has them, to the last bit.

Rows are numbered from 0 without gaps, and each has a digest of itself and of all rows before it, so that one which is
missing, changed or out of its order is found when the file is opened.
"""

import hashlib
import json
import math
import os
import sqlite3
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxplore.errors import InputError
from maxplore.runs import files

FORMAT = 2
"""Of the file; another one is refused, not guessed at."""

SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE episodes (
    episode INTEGER PRIMARY KEY, first_step INTEGER NOT NULL, seed INTEGER NOT NULL, observation BLOB NOT NULL,
    told INTEGER NOT NULL
);
CREATE TABLE transitions (
    step INTEGER PRIMARY KEY AUTOINCREMENT, episode INTEGER NOT NULL REFERENCES episodes, action BLOB NOT NULL,
    next_observation BLOB NOT NULL, reward REAL, terminated INTEGER NOT NULL, truncated INTEGER NOT NULL,
    digest BLOB NOT NULL
);
CREATE TABLE metrics (
    number INTEGER PRIMARY KEY AUTOINCREMENT, step INTEGER NOT NULL, name TEXT NOT NULL, value REAL,
    digest BLOB NOT NULL, UNIQUE (step, name)
);
CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT, step INTEGER NOT NULL, time TEXT NOT NULL, kind TEXT NOT NULL,
    text TEXT NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE tasks (
    number INTEGER PRIMARY KEY AUTOINCREMENT, step INTEGER NOT NULL, time TEXT NOT NULL, task TEXT NOT NULL,
    seed INTEGER NOT NULL, settings TEXT NOT NULL, report TEXT NOT NULL, returns TEXT NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE landscapes (
    number INTEGER PRIMARY KEY AUTOINCREMENT, step INTEGER NOT NULL, name TEXT NOT NULL, rows INTEGER NOT NULL,
    columns INTEGER NOT NULL, numbers BLOB NOT NULL, digest BLOB NOT NULL, UNIQUE (step, name)
);
"""
"""The digest of a transition covers its episode too, if it is the first of one. An episode that was
`told` is a policy's: the explorer was not asked. AUTOINCREMENT has SQLite keep the last number that was given out, by
which rows that are missing at the end are noticed. The `numbers` of landscapes (what models knew) are float32,
little-endian, row by row."""

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


class DamagedError(InputError):
    """A record that is not as it was written, from some row on."""

    def __init__(self, path: Path, why: str, steps: int) -> None:
        """It is sound for its first `steps`."""
        self.steps = steps
        self.found = f"{path} is damaged ({why}): {f'its first {steps} steps are' if steps else 'no step is'} sound"
        """What is wrong, without what to do about it."""
        super().__init__(self.found + (f", maxplore export {path.parent} --to npz keeps them" if steps else ""))


class Record:
    """The open file. Made by `Record.create`, `Record.open` (to write), `Record.read`, or `Record.peek` (unchecked)."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self._connection = path, connection
        self._end = 2**63 - 1

    @classmethod
    def create(cls, path: Path, config: str = "", *, power_safe: bool = False) -> "Record":
        """A new, empty record of a run with this config."""
        _check_kinds(path)
        with _complaining(path):
            connection = _connected(f"{path.absolute().as_uri()}?mode=rwc", power_safe)
            connection.executescript("PRAGMA journal_mode = WAL; BEGIN;" + SCHEMA)
            about = [("format", str(FORMAT)), ("config", config)]
            connection.executemany("INSERT INTO about VALUES (?, ?)", about)
            connection.execute("COMMIT")
        return cls(path, connection)

    @classmethod
    def open(cls, path: Path, *, power_safe: bool = False) -> "Record":
        """An existing record, to go on with; a `DamagedError` if it is not whole."""
        return cls._existing(path, "rw", power_safe)._checked()

    @classmethod
    def read(cls, path: Path) -> "Record":
        """An existing record, to look at, whether it is being written or not; a `DamagedError` if it is not whole."""
        return cls.peek(path)._checked()

    @classmethod
    def peek(cls, path: Path) -> "Record":
        """The same, unchecked: `damage` tells."""
        log = path.with_name(path.name + "-wal")
        if not os.access(path.parent, os.W_OK) and not (log.exists() and log.stat().st_size):
            return cls._existing(path, "ro&immutable=1")  # nobody writes, and SQLite could not even make its log
        return cls._existing(path, "ro")

    @classmethod
    def _existing(cls, path: Path, mode: str, power_safe: bool = False) -> "Record":
        if not path.exists():
            raise InputError(f"there is no {path}: expected the record of a run there")
        _check_kinds(path)
        with _complaining(path):
            connection = _connected(f"{path.absolute().as_uri()}?mode={mode}", power_safe)
            strange = connection.execute("SELECT name FROM sqlite_schema WHERE type IN ('trigger', 'view')").fetchone()
            row = connection.execute("SELECT value FROM about WHERE name = 'format'").fetchone()
        if strange is not None:
            connection.close()
            why = "a program that changes or makes up rows: drop it, the rows that maxplore wrote are checked then"
            raise InputError(f"{path} has {strange[0]}, {why}")
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

    def _checked(self) -> "Record":
        damage = self.damage()
        if damage is not None:
            self.close()
            raise damage
        return self

    def damage(self) -> DamagedError | None:
        """What is wrong, if anything is; transitions are then read up to there."""
        transacted = self._connection.in_transaction
        with _complaining(self.path):
            if not transacted:
                self._connection.execute("BEGIN")  # one moment of a record that may be being written
            try:
                sound, why = self._sound("transitions", self._begins())
                for table in ("metrics", "events", "tasks", "landscapes"):
                    why = why or self._sound(table, {})[1]
            finally:
                if not transacted:
                    self._connection.execute("ROLLBACK")
        if not why:
            return None
        self._end = sound
        return DamagedError(self.path, why, sound)

    def _begins(self) -> dict[int, list[Any]]:
        """Rows of episodes by the step that they begin with."""
        begins: defaultdict[int, list[Any]] = defaultdict(list)
        with suppress(sqlite3.DatabaseError):  # what cannot be read is missing then
            for row in self._connection.execute("SELECT * FROM episodes ORDER BY episode"):
                begins[row[1]].extend(row)
        return begins

    def _sound(self, table: str, begins: dict[int, list[Any]]) -> tuple[int, str]:
        """How many rows are as they were written, from the first on, and why it is no more; nothing if all are."""
        number, before = 0, b""
        try:
            for at, *row, digest in self._connection.execute(f"SELECT rowid, * FROM {table} ORDER BY 1"):
                if at < number:
                    return number, f"row {at} of {table} is too many"
                if at > number:
                    return number, f"row {number} of {table} is missing"
                begun = begins.pop(number, [])
                if _digest(before, [*row, *begun]) != digest:
                    return number, f"row {number} of {table}{', or its episode,' * bool(begun)} was changed"
                number, before = number + 1, digest
            last = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            return number, f"row {number} of {table}: {error}"
        if number - 1 != (-1 if last is None else last[0]):  # which may be anything, if it was changed
            return number, f"row {number} of {table} is missing"
        return number, f"an episode has no row of {table}" if begins else ""

    def _append(self, table: str, row: Sequence[Any], begun: Sequence[Any] = ()) -> int:
        """Add a row to those of a table; its number. The digest covers also the episode that has `begun` with it."""
        question = f"SELECT seq, digest FROM sqlite_sequence s LEFT JOIN {table} t ON t.rowid = seq WHERE s.name = ?"
        last, before = self._connection.execute(question, (table,)).fetchone() or (-1, b"")
        if before is None:
            raise self.damage() or DamagedError(self.path, f"row {last} of {table} is missing", self.steps)
        own = (last + 1, *row)
        values = (*own, _digest(before, [*own, *begun]))
        self._connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)
        return last + 1

    def digest(self, steps: int) -> bytes:
        """Of the first so many steps."""
        rows = self._rows("SELECT digest FROM transitions WHERE step = ?", steps - 1)
        return rows[0][0] if rows else b""

    @property
    def config(self) -> str:
        """Of the run, as it was when it began."""
        rows = self._rows("SELECT value FROM about WHERE name = 'config'")
        return rows[0][0] if rows else ""

    def write(
        self,
        step: Step,
        *,
        episode: Episode | None = None,
        told: bool = False,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """Keep what a step brought, all of it or nothing: the transition, its episode if it is the first of one, and
        its metrics. A step that the explorer is only `told` of comes on top of those that the run was to have."""
        begun = () if episode is None else (*episode, int(told))
        row = (*step[1:4], _real(step.reward), int(step.terminated), int(step.truncated))
        with _complaining(self.path), self._transaction() as connection:
            if begun:
                connection.execute("INSERT INTO episodes VALUES (?, ?, ?, ?, ?)", begun)
            number = self._append("transitions", row, begun)
            if number != step.step:
                raise DamagedError(self.path, f"it has {number} steps where {step.step} were expected", number)
            if told:
                connection.execute("UPDATE about SET value = value + 1 WHERE name = 'steps'")
            for name, value in (metrics or {}).items():
                self._append("metrics", (number, name, _real(value)))

    def note(self, kind: str, text: str, *, at: int | None = None) -> None:
        """Keep an event."""
        step = self.steps if at is None else at
        with _complaining(self.path), self._transaction():
            self._append("events", (step, _now(), kind, text))

    def solved(
        self, task: str, *, seed: int, settings: Any, report: Any, returns: list[float], step: int | None = None
    ) -> None:
        """Keep what came of a task that was solved from the first `step` transitions, or all of them."""
        told = (json.dumps(settings), json.dumps(report), json.dumps(returns))
        with _complaining(self.path), self._transaction():
            self._append("tasks", (self.steps if step is None else step, _now(), task, seed, *told))

    def survey(self, step: int, tables: Mapping[str, np.ndarray]) -> None:
        """Keep what models knew at a step, tables of numbers by name, unless it is kept already."""
        with _complaining(self.path), self._transaction():
            known = self.landscapes(step)
            for name, table in tables.items():
                if name not in known:
                    self._append("landscapes", (step, name, *table.shape, table.astype("<f4").tobytes()))

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
        return min(self._end, self._rows("SELECT COALESCE(MAX(step) + 1, 0) FROM transitions")[0][0])

    def last_episode(self) -> Episode | None:
        """The latest that began; None before the first."""
        rows = self._rows("SELECT * FROM episodes ORDER BY episode DESC LIMIT 1")
        return next((Episode(*row[:-1]) for row in rows), None)

    def episodes(self, first: int = 0) -> Iterator[Episode]:
        """Episodes in their order, from one on."""
        rows = self._rows("SELECT * FROM episodes WHERE episode >= ? ORDER BY episode", first)
        return (Episode(*row[:-1]) for row in rows)

    @property
    def told(self) -> set[int]:
        """Episodes that the explorer was told of, and not asked in."""
        return {episode for (episode,) in self._rows("SELECT episode FROM episodes WHERE told")}

    def transitions(self, first: int = 0) -> Iterator[Step]:
        """Transitions in their order, from one on."""
        question = "SELECT * FROM transitions WHERE step >= ? AND step < ? ORDER BY step LIMIT ?"
        while rows := self._rows(question, first, self._end, CHUNK):
            for step, episode, action, following, reward, terminated, truncated, _ in rows:
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


def _check_kinds(path: Path) -> None:
    """An `InputError` if SQLite would open anything but plain files. They are only looked at: to open and close one
    would let go of the locks that SQLite has on it."""
    for end in ("", "-wal", "-shm", "-journal"):
        files.check_kind(path.with_name(path.name + end))


def _connected(uri: str, power_safe: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=30.0, check_same_thread=False)
    connection.text_factory = _text
    # A record may come from a stranger: its schema is not trusted with functions or writable internals.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute(f"PRAGMA synchronous = {'FULL' if power_safe else 'NORMAL'}")
    return connection


def _text(data: bytes) -> str:
    """Damaged words are read too, so that their digest tells."""
    return data.decode(errors="surrogateescape")


def _real(value: float) -> float | None:
    """A number as SQLite gives it back: nothing for NaN, and no negative zero."""
    return None if math.isnan(value) else float(value) + 0.0


def _digest(before: bytes, values: Sequence[Any]) -> bytes:
    """Of a row, and of those before it, whose digest is given."""
    data = [value for value in values if isinstance(value, bytes)]
    rest = [len(value) if isinstance(value, bytes) else value for value in values]
    # Unlike `repr`, `ascii` is the same in every version of Python.
    return hashlib.blake2b(b"".join((before, ascii(rest).encode(), *data)), digest_size=8).digest()


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
