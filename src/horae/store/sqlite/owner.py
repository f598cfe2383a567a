"""Ownership of a SQLite file: the process that owns the store locks a file beside it.

Network file systems are refused, because their locks are not reliable.
"""

import fcntl
import os
import re
from pathlib import Path

from horae.errors import BadInput, StoreInUse
from horae.private import open_file

_NETWORK = frozenset(
    ["nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "gpfs", "beegfs", "fuse.sshfs", "fuse.glusterfs"]
)


_URL = re.compile(r"https?://[^\s)]+")


class Ownership:
    """A lock on a database file. The text of the lock file names the owner, for processes that find it locked."""

    def __init__(self, path: Path, owner: str) -> None:
        refuse_network(path, Path("/proc/mounts"))
        self._pid = os.getpid()
        self._path = path
        self._lock = open_file(path.with_name(path.name + ".lock"), os.O_RDWR)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            first = os.pread(self._lock, 1000, 0).decode(errors="replace").strip()
            os.close(self._lock)
            raise StoreInUse(
                f"{path} is in use by {first or 'another process'}.",
                "Use that server over HTTP (HORAE_URL), stop it, or choose another file.",
                url=found[0] if (found := _URL.search(first)) else "",
            ) from None
        self.set_description(owner)

    def set_description(self, owner: str) -> None:
        """Replace the text about the owner in the lock file, for example when its address is known."""
        self._write(f"process {self._pid} {owner}".strip())

    def check(self) -> None:
        """Raise StoreInUse in a forked child of the owner, because two processes with one connection corrupt a file."""
        if os.getpid() != self._pid:
            raise StoreInUse(
                f"{self._path} was opened by process {self._pid}; this process, {os.getpid()}, was forked from it.",
                "Open the store after forking, or start child processes with the spawn method.",
            )

    def release(self) -> None:
        """Release the lock. The lock file stays.

        If it were removed, one process could still lock the removed file while another creates and locks a new one.
        """
        self._write("")
        os.close(self._lock)

    def _write(self, text: str) -> None:
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, text.encode(), 0)


def refuse_network(path: Path, mounts: Path) -> None:
    """Raise BadInput for a path on a network file system; `mounts` is the system's list of mounts.

    Without such a list, as on macOS, nothing is refused.
    """
    kind = _file_system(path.resolve(), mounts)
    if kind in _NETWORK:
        raise BadInput(
            f"{path} is on a network file system ({kind}), where SQLite's locks and syncs are not reliable.",
            "Use a local disk, or a PostgreSQL store.",
            field="store",
        )


def _file_system(path: Path, mounts: Path) -> str:
    best, kind = "", ""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return ""
    for line in lines:
        _, point, found, *_ = line.split(" ")
        point = point.encode().decode("unicode_escape")
        if len(point) >= len(best) and path.is_relative_to(point):
            best, kind = point, found
    return kind
