"""Workers on a Ray cluster: the same processes as on one machine, wherever there is a free core.

Ray says where, and notices what is lost; each of its tasks starts a worker, waits for it, and ends with it. Folders are
on a path that all machines share.
"""

import importlib
import os
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from maxplore.errors import InputError
from maxplore.sweep.engine import GIGABYTES, WORK, Ended, surroundings

MEMORY = int(GIGABYTES * 2**30)
PROBED = 5.0
"""Seconds that a cluster may take to answer at all."""
SETTINGS = b"\0\0\0\4\0\0\0\0\0"
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS
"""What a client of HTTP/2, and so of Ray, says first; a server answers with settings of its own."""
TOLD = {
    "RAY_AUTH_MODE": "token",  # it lets nobody in without one
    "RAY_USAGE_STATS_ENABLED": "0",  # and reports nothing to anybody
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # devices are left alone
    "RAY_NUM_REDIS_GET_RETRIES": "5",  # and a refusal is soon believed
}
"""Ray's environment where nothing else is said."""


@contextmanager
def connected(address: str | None) -> Generator["Cluster"]:
    """The cluster at this address; by default one that runs on this machine, or else a new one of this machine alone.

    An `InputError` if there is none, or it does not let us in.
    """
    if os.environ.get("RAY_AUTH_MODE") == "disabled":
        raise InputError("RAY_AUTH_MODE is disabled, expected token: anybody could run anything on the cluster")
    for name, value in TOLD.items():
        os.environ.setdefault(name, value)
    ray = _ray()
    if (address := address or os.environ.get("RAY_ADDRESS") or None) is not None:
        _probe(address)
    try:
        new = {} if address else {"include_dashboard": False}
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **new)
    except Exception as error:  # Ray raises whatever its parts do
        told, cause = str(error).strip().splitlines(), str(error.__cause__ or "").strip().splitlines()
        why = "; ".join(each.strip()[:200] for each in (*told[:1], *cause[-1:]))
        hint = "this machine must be part of the cluster, and know its token"
        raise InputError(f"Ray does not start, or does not let us in ({why}): {hint}") from error
    try:
        yield Cluster(ray)
    finally:
        ray.shutdown()


class Cluster:
    """As many workers as the cluster has cores, and memory for, at the moment."""

    def __init__(self, ray: Any) -> None:
        self._ray, self._had_room = ray, False
        self._task = ray.remote(num_cpus=1, memory=MEMORY, max_retries=0)(_task())

    def room(self) -> int:
        """How many may run now: machines come and go."""
        alive = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        room = sum(min(int(own.get("CPU", 0)), int(own.get("memory", 0) // MEMORY)) for own in alive)
        self._had_room = self._had_room or room > 0
        if not self._had_room:
            raise InputError(f"no machine of the cluster has a core and {GIGABYTES:g} GB for a worker: add one")
        return room

    def start(self, order: Path, run: Path) -> Any:
        """A task whose worker goes on with this run."""
        return self._task.remote(WORK, str(order), str(run), surroundings(), str(Path.cwd()))

    def ended(self, worker: Any) -> Ended | None:
        """How its worker ended; None as long as it runs, or waits for a core."""
        ready, _ = self._ray.wait([worker], timeout=0)
        if not ready:
            return None
        try:
            return Ended(*self._ray.get(worker))
        except self._ray.exceptions.RayTaskError as error:  # it could not even start one
            return Ended(None, loss=f"no worker could be started ({' '.join(str(error.cause).split())[:200]})")
        except self._ray.exceptions.RayError as error:
            return Ended(None, loss=f"its worker was lost ({type(error).__name__})")

    def stop(self, workers: Sequence[Any]) -> None:
        """Have workers finish their step; who is impatient a second time ends them at once."""
        for force in (False, True):
            for worker in workers:
                with suppress(self._ray.exceptions.RayError, ValueError):
                    self._ray.cancel(worker, force=force)
            with suppress(KeyboardInterrupt):
                self._ray.wait(list(workers), num_returns=len(workers))
                return


def _task() -> Callable[..., tuple[int, str]]:
    """What a task does. Made in here, it travels whole: where it arrives it needs nothing but Python."""

    def task(module: str, order: str, run: str, surroundings: dict[str, str], place: str) -> tuple[int, str]:
        import os
        import platform
        import signal
        import subprocess
        import sys
        import time

        def opener(path: str, flags: int) -> int:
            return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)

        with open(order.removesuffix(".json") + ".log", "wb", opener=opener) as log:
            worker = subprocess.Popen(
                [sys.executable, "-m", module, order, run, str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=place if os.path.isdir(place) else None,
                env={**os.environ, **surroundings},
            )
        while worker.poll() is None:
            try:
                time.sleep(0.2)
            except KeyboardInterrupt:  # cancelled
                worker.send_signal(signal.SIGINT)
        return worker.returncode, platform.node()

    return task


def _probe(address: str) -> None:
    """An `InputError` if nobody answers there: Ray itself would take a minute to say so."""
    host, _, port = address.rpartition(":")
    if address == "auto":
        return
    if not host or "/" in address or not port.isdecimal():
        raise InputError(f"address is {address!r}, expected HOST:PORT of the cluster's head, or auto")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), PROBED) as probe:
            probe.sendall(HELLO)
            answer = probe.recv(len(SETTINGS))
    except (OSError, OverflowError) as error:
        raise InputError(f"address is {address!r}, and nobody answers there ({error}): is the head started?") from error
    if answer[3:4] != SETTINGS[3:4] and os.environ.get("RAY_USE_TLS") != "1":
        raise InputError(f"address is {address!r}, and it is no Ray that answers there: which port has the head?")


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise InputError(f"ray cannot be imported ({error}): pip install maxplore[ray]") from error
