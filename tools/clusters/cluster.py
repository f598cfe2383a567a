"""A cluster: it is started, asked for its leader, broken and healed."""

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import msgspec
import psutil
from msgspec import Struct

from bench.kit.postgres import UNPRIVILEGED, free_port
from tools.clusters import programs
from tools.clusters.members import Member, processes, send

START = 90.0  # seconds until a new cluster has all its members
STATE = "cluster.json"
HAPROXY = """
global
    maxconn 2000
defaults
    mode tcp
    timeout connect 2s
    timeout client 1h
    timeout server 1h
listen primary
    bind 127.0.0.1:{port}
    option httpchk OPTIONS /primary
    http-check expect status 200
    default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
{servers}
"""


class ClusterError(Exception):
    """The cluster did not do what it was asked."""


class Layout(Struct, kw_only=True):
    """The parts of a cluster, as they are stored in its folder."""

    postgres: str
    synchronous: bool
    members: list[Member]
    etcd: int
    etcd_peer: int
    haproxy: int
    pids: dict[str, int] = {}


class Cluster:
    """A cluster in a folder. Every method may be called by another process than the one that started it."""

    def __init__(self, folder: Path, layout: Layout) -> None:
        self.folder, self.layout = folder, layout

    @classmethod
    def create(cls, folder: Path, *, members: int = 3, postgres: str = "18", synchronous: bool = True) -> "Cluster":
        """Start a cluster in an empty folder, and wait until it has a leader and all its standbys."""
        programs.check(postgres)
        made = [
            Member(
                name=f"pg{i + 1}", postgres=free_port(), rest=free_port(), postgres_relay=free_port(),
                rest_relay=free_port(), etcd_relay=free_port(),
            )
            for i in range(members)
        ]  # fmt: skip
        layout = Layout(
            postgres=postgres, synchronous=synchronous, members=made, etcd=free_port(), etcd_peer=free_port(),
            haproxy=free_port(),
        )  # fmt: skip
        cluster = cls(folder, layout)
        cluster._prepare()
        try:
            cluster._start_all()
        except BaseException:
            cluster.down()
            raise
        return cluster

    @classmethod
    def of(cls, folder: Path) -> "Cluster":
        """Return the cluster that was started in a folder."""
        try:
            return cls(folder, msgspec.json.decode((folder / STATE).read_bytes(), type=Layout))
        except FileNotFoundError:
            raise ClusterError(f"There is no cluster in {folder}. Start one with `tools/cluster up`.") from None

    # Addresses

    def url(self, database: str = "horae") -> str:
        """Return the URL that names every member."""
        hosts = ",".join(f"127.0.0.1:{member.postgres_relay}" for member in self.layout.members)
        return f"postgresql://postgres@{hosts}/{database}"

    def proxy_url(self, database: str = "horae") -> str:
        """Return the URL of haproxy, which leads to the leader."""
        return f"postgresql://postgres@127.0.0.1:{self.layout.haproxy}/{database}"

    def member_url(self, name: str, database: str = "horae") -> str:
        """Return the URL of one member, past the relays."""
        return f"postgresql://postgres@127.0.0.1:{self.member(name).postgres}/{database}"

    def member(self, name: str) -> Member:
        for member in self.layout.members:
            if member.name == name:
                return member
        raise ClusterError(f"There is no member {name}: {', '.join(member.name for member in self.layout.members)}.")

    # What is known of it

    def status(self) -> list[dict[str, Any]]:
        """Return the members as the first one that answers sees them."""
        for member in self.layout.members:
            with suppress(OSError, ValueError):
                seen: list[dict[str, Any]] = _get(f"http://127.0.0.1:{member.rest}/cluster")["members"]
                return seen
        return []

    def leader(self) -> str | None:
        """Return the member that says itself that it is the primary and holds the leader's lock."""
        for member in self.layout.members:
            with suppress(OSError, ValueError):
                _get(f"http://127.0.0.1:{member.rest}/primary")
                return member.name
        return None

    def wait_for_leader(self, other_than: str | None = None, patience: float = 90.0) -> str:
        """Wait until a member leads; with `other_than`, until another one does."""

        def led() -> str | None:
            found = self.leader()
            return None if found == other_than else found

        return _eventually(led, patience, "no member became the leader")

    def wait_until_whole(self, patience: float = START) -> None:
        """Wait until all members run, and with synchronous replication until a standby is synchronous."""

        def is_whole() -> bool:
            seen = self.status()
            roles = [one.get("role") for one in seen if one.get("state") in ("running", "streaming")]
            wanted = "sync_standby" if self.layout.synchronous and len(self.layout.members) > 1 else "leader"
            return len(roles) == len(self.layout.members) and "leader" in roles and wanted in roles

        _eventually(is_whole, patience, f"not all members run: {self.status()}")

    # Faults

    def kill(self, name: str) -> None:
        """Kill a member as a machine dies: Patroni, PostgreSQL and all its processes."""
        send(signal.SIGKILL, self._processes(name))

    def freeze(self, name: str) -> None:
        """Stop all processes of a member, as a machine that hangs."""
        send(signal.SIGSTOP, self._processes(name))

    def thaw(self, name: str) -> None:
        send(signal.SIGCONT, self._processes(name))

    def cut(self, name: str) -> None:
        """Cut a member off from the others, from etcd and from clients."""
        for relay in self.member(name).relays:
            (self.folder / "cut" / relay).touch()

    def heal(self, name: str) -> None:
        for relay in self.member(name).relays:
            (self.folder / "cut" / relay).unlink(missing_ok=True)

    def start(self, name: str) -> None:
        """Start a killed member again."""
        member = self.member(name)
        (self.folder / name / "data" / "postmaster.pid").unlink(missing_ok=True)
        self._spawn(name, [*programs.patroni(self.folder), self.folder / f"{member.name}.json"])
        self._save()

    def freeze_etcd(self) -> None:
        send(signal.SIGSTOP, [psutil.Process(self.layout.pids["etcd"])])

    def thaw_etcd(self) -> None:
        send(signal.SIGCONT, [psutil.Process(self.layout.pids["etcd"])])

    def switchover(self) -> str:
        """Let a standby take over in good order; return the new leader."""
        before = self.wait_for_leader()
        body = json.dumps({"leader": before}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.member(before).rest}/switchover", data=body)
        try:
            urllib.request.urlopen(request, timeout=60).close()
        except urllib.error.HTTPError as error:
            raise ClusterError(f"Patroni refused the switchover: {error.read().decode()}") from None
        return self.wait_for_leader(other_than=before)

    def down(self) -> None:
        """End everything and delete the folder."""
        for name in (member.name for member in self.layout.members):
            send(signal.SIGCONT, self._processes(name))
            self.kill(name)
        send(signal.SIGKILL, [one for pid in self.layout.pids.values() for one in processes(pid, self.folder)])
        shutil.rmtree(self.folder, ignore_errors=True)

    # Starting

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "cut").mkdir()
        for member in self.layout.members:
            (self.folder / member.name).mkdir()
        (self.folder / "etcd").mkdir(mode=0o700)
        bin_dir = programs.postgres_programs(self.layout.postgres, self.folder / "programs")
        for member in self.layout.members:
            member.write_config(self.folder, bin_dir, synchronous=self.layout.synchronous)
        rows = [
            (name, port, behind)
            for member in self.layout.members
            for name, port, behind in zip(
                member.relays,
                (member.postgres_relay, member.rest_relay, member.etcd_relay),
                (member.postgres, member.rest, self.layout.etcd),
                strict=True,
            )
        ]
        (self.folder / "relays").write_text("".join(f"{name} {port} {behind}\n" for name, port, behind in rows))
        servers = "".join(
            f"    server {one.name} 127.0.0.1:{one.postgres_relay} check port {one.rest_relay}\n"
            for one in self.layout.members
        )
        (self.folder / "haproxy.cfg").write_text(HAPROXY.format(port=self.layout.haproxy, servers=servers))
        if os.geteuid() == 0:
            for path in (self.folder, *self.folder.glob("*"), *self.folder.glob("programs/**/*")):
                shutil.chown(path, UNPRIVILEGED)

    def _start_all(self) -> None:
        client, peer = (f"http://127.0.0.1:{port}" for port in (self.layout.etcd, self.layout.etcd_peer))
        self._spawn(
            "etcd",
            [
                programs.program("etcd"), "--data-dir", self.folder / "etcd", "--unsafe-no-fsync",
                "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
                "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
            ],
        )  # fmt: skip
        self._spawn("relays", [sys.executable, "-m", "tools.clusters.relay", self.folder / "relays"])
        for member in self.layout.members:
            self.start(member.name)
        self._spawn("haproxy", [programs.program("haproxy"), "-db", "-f", self.folder / "haproxy.cfg"])
        self._save()
        self.wait_until_whole()

    def _spawn(self, name: str, command: list[Any]) -> None:
        """Start a process of the unprivileged account, whose output goes to a file with its name."""
        place: dict[str, Any] = {}
        if os.geteuid() == 0 and name != "relays":
            account = pwd.getpwnam(UNPRIVILEGED)
            place = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        env = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C", "PYTHONPATH": str(programs.ROOT)}
        folder = programs.ROOT if name == "relays" else self.folder
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=env, cwd=folder,
                **place,
            )  # fmt: skip
        self.layout.pids[name] = process.pid

    def _save(self) -> None:
        (self.folder / STATE).write_bytes(msgspec.json.encode(self.layout))

    def _processes(self, name: str) -> list[psutil.Process]:
        pid = self.layout.pids.get(self.member(name).name)
        return [] if pid is None else processes(pid, self.folder / name / "data")


@contextmanager
def running_cluster(**options: Any) -> Iterator[Cluster]:
    """Run a cluster for the length of a `with` block."""
    cluster = Cluster.create(Path(mkdtemp(prefix="horae-cluster-")), **options)
    try:
        yield cluster
    finally:
        cluster.down()


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=1.0) as answer:
        return json.loads(answer.read() or b"null")


def _eventually(look: Callable[[], Any], patience: float, otherwise: str) -> Any:
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.05)
    raise ClusterError(f"After {patience:g} s {otherwise}.")
