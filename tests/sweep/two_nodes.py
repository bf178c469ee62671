"""A real cluster of two nodes, one of which is killed in the middle.

`python -m tests.sweep.two_nodes OUT SHORT OUTSIDE` runs in a network of its own, where only loopback is up; OUTSIDE is
the network that it must not be in. It is the first process of a space of its own, too, with which all others end. It
leaves what it saw in OUT/seen.json. Ray keeps its sockets in SHORT, a path that must be.
"""

import fcntl
import json
import os
import secrets
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from maxplore.sweep import Trial, run_all
from maxplore.sweep.cluster import connected
from maxplore.sweep.status import RUNNING, Status
from tests.sweep.gate import ID

PORT = 6379
AT = 12
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1
TOLD = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_health_check_initial_delay_ms": "1000",  # who is gone is noticed in seconds
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_failure_threshold": "4",
}


def trials(gate: Path) -> dict[str, Trial]:
    """Two, that wait in the middle until the gate is open."""
    kwargs = {"gate": str(gate), "at": AT}
    return {f"max-{seed}": Trial(ID, "max", seed, 30, "smoke", env_kwargs=kwargs) for seed in (0, 1)}


def main(out: Path, short: str, outside: str) -> None:
    with socket.socket() as handle:
        fcntl.ioctl(handle, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
    os.environ.update(TOLD)
    seen: dict[str, Any] = {"lines": []}
    aside = ("--include-dashboard", "false", "--temp-dir", short)
    head = _node(out / "head.log", "--head", "--port", str(PORT), *aside)
    _until(lambda: _answers(PORT))
    second = _node(out / "second.log", "--address", f"127.0.0.1:{PORT}")
    _until(lambda: all("Ray runtime started" in (out / f"{name}.log").read_text() for name in ("head", "second")))
    gate, own = out / "gate", trials(out / "gate")

    def show(status: Status) -> None:
        """As soon as both trials are at the gate: one node is gone, and the gate open."""
        at_gate = [row.name for row in status.rows if row.state == RUNNING and row.done.steps >= AT - 1]
        if not gate.exists() and len(at_gate) == len(own):
            seen["listening"], seen["networks"] = _listening(), sorted(_networks())
            seen["killed"] = len(_kill(second.pid))
            gate.touch()

    with connected(f"127.0.0.1:{PORT}") as cluster:
        _until(lambda: cluster.room() == 2)
        outcomes = run_all(own, out, engine=cluster, say=seen["lines"].append, show=show)
    seen["outcomes"] = [tuple(outcome) for outcome in outcomes]
    seen["network"], seen["outside"] = os.readlink("/proc/self/ns/net"), outside
    _kill(head.pid)
    (out / "seen.json").write_text(json.dumps(seen))


def _node(log: Path, *options: str) -> subprocess.Popen[bytes]:
    """A node with one core for trials."""
    common = ("--block", "--node-ip-address", "127.0.0.1", "--num-cpus", "1", "--object-store-memory", "80000000")
    ray = Path(sys.executable).with_name("ray")
    with log.open("wb") as file:
        return subprocess.Popen([ray, "start", *common, *options], stdout=file, stderr=file)


def _until(happens: Any) -> None:
    while not happens():
        time.sleep(0.1)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _kill(first: int) -> list[int]:
    """At once, a process and all that come from it: a machine that is gone."""
    parents = {int(path.parent.name): _parent(path) for path in Path("/proc").glob("[0-9]*/stat")}
    family = [first]
    for pid in family:
        family.extend(child for child, parent in parents.items() if parent == pid)
    for pid in family:
        os.kill(pid, signal.SIGKILL)
    return family


def _parent(stat: Path) -> int:
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0  # it is gone


def _listening() -> list[str]:
    """Addresses that somebody listens at."""
    found: set[str] = set()
    for file, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/net/{file}").read_text().splitlines()[1:]:
            address, state = line.split()[1].partition(":")[0], line.split()[3]
            if state == "0A":
                words = struct.unpack(f">{len(address) // 8}I", bytes.fromhex(address))
                found.add(socket.inet_ntop(family, struct.pack(f"={len(words)}I", *words)))
    return sorted(found)


def _networks() -> set[str]:
    """Of all processes in here."""
    found: set[str] = set()
    for path in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            found.add(os.readlink(path))
        except OSError:
            continue  # it is gone
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
