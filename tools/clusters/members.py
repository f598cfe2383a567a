"""One member of a cluster: a PostgreSQL server that Patroni runs, and the relays around it."""

import json
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from msgspec import Struct

TTL, LOOP, RETRY = 20, 2, 3  # seconds; 20 is Patroni's least time until a silent leader is replaced
SETTINGS = {
    "max_connections": 200, "shared_buffers": "64MB", "max_wal_size": "512MB", "wal_log_hints": "on",
    "wal_keep_size": "256MB", "unix_socket_directories": "", "fsync": "on",
}  # fmt: skip
HBA = ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]


class Member(Struct, frozen=True, kw_only=True):
    """The name, the ports and the relays' ports of a member."""

    name: str
    postgres: int
    rest: int
    postgres_relay: int
    rest_relay: int
    etcd_relay: int

    @property
    def relays(self) -> tuple[str, ...]:
        """Return the names of its relays."""
        return tuple(f"{self.name}-{part}" for part in ("postgres", "rest", "etcd"))

    def config(self, folder: Path, programs: Path, *, synchronous: bool) -> dict[str, Any]:
        """Return Patroni's configuration."""
        user = {"username": "postgres", "password": "none"}
        return {
            "scope": "horae",
            "name": self.name,
            "restapi": {"listen": f"127.0.0.1:{self.rest}", "connect_address": f"127.0.0.1:{self.rest_relay}"},
            "etcd3": {"hosts": [f"127.0.0.1:{self.etcd_relay}"]},
            "bootstrap": {
                "dcs": {
                    "ttl": TTL, "loop_wait": LOOP, "retry_timeout": RETRY, "primary_start_timeout": 0,
                    "synchronous_mode": synchronous, "maximum_lag_on_failover": 1_000_000_000,
                    "postgresql": {"use_pg_rewind": True, "use_slots": True, "parameters": SETTINGS},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, {"auth": "trust"}, "no-sync"],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{self.postgres}", "connect_address": f"127.0.0.1:{self.postgres_relay}",
                "data_dir": str(folder / self.name / "data"), "bin_dir": str(programs),
                "pgpass": str(folder / self.name / "pgpass"), "pg_hba": HBA,
                "authentication": {"superuser": user, "replication": user, "rewind": user},
                "parameters": {"unix_socket_directories": ""},
            },
            "watchdog": {"mode": "off"},
        }  # fmt: skip

    def write_config(self, folder: Path, programs: Path, *, synchronous: bool) -> Path:
        """Write the configuration, and return its path."""
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps(self.config(folder, programs, synchronous=synchronous)))
        return path


def processes(patroni: int, data: Path) -> list[psutil.Process]:
    """Return the processes of a member: Patroni, the PostgreSQL server and its children."""
    pids = [patroni]
    with suppress(OSError, ValueError):  # there is no server
        pids.append(int((data / "postmaster.pid").read_text().split("\n", 1)[0]))
    found: dict[int, psutil.Process] = {}
    for pid in pids:
        try:
            parent = psutil.Process(pid)
            found |= {process.pid: process for process in (parent, *parent.children(recursive=True))}
        except psutil.NoSuchProcess:
            continue
    return list(found.values())


def send(number: signal.Signals, targets: list[psutil.Process]) -> None:
    """Send a signal to processes, the parents first."""
    for process in targets:
        try:
            os.kill(process.pid, number)
        except ProcessLookupError:
            continue
