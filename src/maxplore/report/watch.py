"""The page live: a server on this machine, for this machine alone, that makes it anew while the run goes on."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

from maxplore.errors import InputError
from maxplore.report.page import page
from maxplore.runs.directory import Folder

HOST = "127.0.0.1"

PATIENCE = 10.0
"""Times as long as the page took to make, until it is made again: whoever looks on leaves the machine to the run."""


class Live:
    """The newest page, and the version of it."""

    def __init__(self, folders: Sequence[Folder]) -> None:
        self.folders = folders
        self._lock = Lock()
        self._page, self._stamp, self._again = "", (), 0.0
        self.refresh()

    @property
    def page(self) -> str:
        return self._page

    @property
    def version(self) -> str:
        """What the page says of itself."""
        return self._page.partition('data-version="')[2].partition('"')[0]

    def refresh(self) -> None:
        """Make the page anew, if anything has changed and the last time is long enough ago."""
        with self._lock:
            stamp = tuple(_stamp(file) for folder in self.folders for file in _watched(folder))
            if stamp == self._stamp or time.monotonic() < self._again:
                return
            began = time.monotonic()
            self._page = page(self.folders)
            self._stamp, self._again = stamp, time.monotonic() + PATIENCE * (time.monotonic() - began)


class Handler(BaseHTTPRequestHandler):
    """Answers for the page and its version, to whoever has asked this machine by its own name."""

    def do_GET(self) -> None:
        assert isinstance(self.server, Server)
        live = self.server.live
        # A name that somebody else's page has pointed at this machine is not its own.
        if self.headers.get("Host") not in self.server.names:
            self._answer(HTTPStatus.FORBIDDEN, "this page is for this machine alone\n")
            return
        if self.path not in ("/", "/version"):
            self._answer(HTTPStatus.NOT_FOUND, "there is nothing here but /\n")
            return
        try:
            live.refresh()
        except (InputError, OSError, ValueError) as error:  # a run may be half-written, moved or removed meanwhile
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n")
            return
        if self.path == "/":
            self._answer(HTTPStatus.OK, live.page, "text/html")
        else:
            self._answer(HTTPStatus.OK, live.version)

    def _answer(self, status: HTTPStatus, text: str, kind: str = "text/plain") -> None:
        body = text.encode(errors="backslashreplace")  # a folder may have any name
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("X-Frame-Options", "DENY")
        with suppress(ConnectionError):  # whoever asked may be gone
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name is the library's)
        """Nothing is said about every question."""


class Server(ThreadingHTTPServer):
    """Bound to the loopback address, so that no other machine can reach it."""

    daemon_threads = True

    def __init__(self, folders: Sequence[Folder], port: int) -> None:
        self.live = Live(folders)
        try:
            super().__init__((HOST, port), Handler)
        except (OSError, OverflowError) as error:
            raise InputError(f"port is {port}, which cannot be had ({error}): give another, or 0 for any") from error
        own = self.server_address[1]
        self.url = f"http://{HOST}:{own}/"
        self.names = {f"{name}:{own}" for name in (HOST, "localhost")}


def watch(folders: Sequence[Folder], port: int, say: Callable[[str], None]) -> None:
    """Serve the page until Ctrl-C."""
    with Server(folders, port) as server:
        say(f"{server.url} shows the run as it goes on; Ctrl-C ends this, not the run")
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            say("no longer watched")


def _watched(folder: Folder) -> list[Path]:
    """What changes as a run goes on."""
    return [folder.record, folder.record.with_name(f"{folder.record.name}-wal"), folder.videos]


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
