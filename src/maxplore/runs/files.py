"""Files as they are read and written: plain ones alone, never through a link, and put in place all at once.

A folder may come from a stranger, or change while somebody writes in it: a link would lead out of it, and a pipe or a
device makes whoever opens it wait for ever.
"""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from maxplore.errors import InputError

FILE, DIRECTORY = "a file", "a directory"
KINDS = {
    stat.S_IFREG: FILE,
    stat.S_IFDIR: DIRECTORY,
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def kind(path: Path) -> str | None:
    """What is at this path, which for a link is the link; None if nothing is."""
    try:
        return _kind(path.lstat())
    except (FileNotFoundError, NotADirectoryError):
        return None


def check_kind(path: Path, wanted: str = FILE) -> None:
    """An `InputError` if there is anything but what is wanted: a `FILE` or a `DIRECTORY`."""
    if (found := kind(path)) not in (None, wanted):
        raise InputError(f"{path} is {found}, expected {wanted}: move it away, or give another place")


def plain(path: str, flags: int) -> int:
    """Open nothing but a plain file: the `opener` of every `open` in a folder of ours."""
    check_kind(Path(path))  # before: to open a device may do something
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    if (found := _kind(os.fstat(descriptor))) != FILE:  # after: it may have been replaced
        os.close(descriptor)
        raise InputError(f"{path} is {found}, expected {FILE}")
    return descriptor


def read(path: Path) -> bytes:
    """All of a plain file."""
    with open(path, "rb", opener=plain) as file:
        return file.read()


@contextmanager
def placed(path: Path) -> Generator[BinaryIO]:
    """A new file to write to: it is put in the place of `path` once it is whole and on the disk, or else removed. Its
    directory must be there: one that was moved is not begun again."""
    check_kind(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.unlink(missing_ok=True)  # of a process that died, and had the same number
        with draft.open("xb") as file:  # which follows no link
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # so that the new name, too, outlives a power cut
        finally:
            os.close(folder)
    except OSError as error:
        reason = error.strerror or str(error).partition("\n")[0]
        raise InputError(f"{path} cannot be written ({reason}); nothing of it is left") from error
    finally:
        with suppress(OSError):
            draft.unlink()


def write_text(path: Path, text: str) -> None:
    """Put a text in place all at once."""
    with placed(path) as file:
        file.write(text.encode(errors="backslashreplace"))


def _kind(found: os.stat_result) -> str:
    return KINDS.get(stat.S_IFMT(found.st_mode), "a device")
