"""Processes as /proc shows them, and signals to them. Only Linux has /proc: on other systems, no process is found.

The guard imports this without Horae's packages: only the standard library may be used here.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Iterable, Iterator

LINUX = sys.platform == "linux"
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")  # clock ticks per second


class Process:
    """One process and the resources that it uses. `cpu` is in seconds and includes ended children."""

    __slots__ = ("cpu", "group", "memory", "parent", "pid", "session", "state", "threads")

    def __init__(self, pid: int, fields: list[bytes]) -> None:
        self.pid = pid
        self.state = fields[0].decode()
        self.parent, self.group, self.session = int(fields[1]), int(fields[2]), int(fields[3])
        self.cpu = sum(map(int, fields[11:15])) / TICKS
        self.threads = int(fields[17])
        self.memory = int(fields[21]) * PAGE  # resident bytes; shared memory counts for every process

    @property
    def is_alive(self) -> bool:
        return self.state not in "ZX"


def process(pid: int) -> Process | None:
    """Return the present state of a process, or None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return Process(pid, file.read().rpartition(b") ")[2].split())
    except (OSError, ValueError, IndexError):
        return None


def all_processes() -> Iterator[Process]:
    """Yield every process."""
    for name in os.listdir("/proc") if LINUX else ():
        if name.isdecimal() and (found := process(int(name))) is not None:
            yield found


def family_of(roots: Iterable[int]) -> list[Process]:
    """Return the living processes with these pids, and all below them."""
    family: list[Process] = []
    waiting = list(roots)
    for pid in waiting:
        found = process(pid)
        if found is not None:
            waiting += children(found)
            if found.is_alive:
                family.append(found)
    return family


def children(parent: Process) -> list[int]:
    """Return the pids of a process's children; the kernel has a list of them for each thread."""
    folder = f"/proc/{parent.pid}/task"
    try:
        threads = [str(parent.pid)] if parent.threads == 1 else os.listdir(folder)
    except OSError:
        return []
    found: list[int] = []
    for thread in threads:
        with contextlib.suppress(OSError), open(f"{folder}/{thread}/children") as file:
            found += map(int, file.read().split())
    return found


def count_tasks(uid: int) -> int:
    """Count the processes and threads of a user, as the kernel counts them for the user's limit."""
    count = 0
    for one in all_processes():
        with contextlib.suppress(OSError):
            count += one.threads if os.stat(f"/proc/{one.pid}").st_uid == uid else 0
    return count


def own_children() -> list[int]:
    """Return this process's direct children, adopted ones included."""
    me = os.getpid()
    try:
        with open(f"/proc/{me}/task/{me}/children") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return [found.pid for found in all_processes() if found.parent == me]


def proportional_memory(pid: int) -> int:
    """Return the memory of a process in bytes, with its share of shared memory; slow. 0 if it cannot be read."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/smaps_rollup", "rb") as file:
        for line in file:
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def mark_of(pid: int, name: bytes) -> bytes:
    """Return a variable of a process's initial environment; empty if it had none."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return b""
    return next((one[len(name) + 1 :] for one in variables if one.startswith(name + b"=")), b"")


def spare_others(pid: int) -> None:
    """When memory is short, let the kernel kill this process and its descendants before other processes."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "wb", 0) as file:
        file.write(b"500")


def kill_tree(root: int) -> None:
    """Kill a process and everything below it."""
    family = [root]
    processes = list(all_processes())
    for parent in family:
        family += [one.pid for one in processes if one.parent == parent and one.pid not in family]
    for pid in family:
        send_signal(pid, signal.SIGKILL)


def kill_marked(guard: int) -> None:
    """Kill every process that a dead guard started, in rounds, because a process may fork meanwhile."""
    mark = f"{guard}.".encode()
    for _ in range(20):
        living = (one.pid for one in all_processes() if one.is_alive)
        found = [pid for pid in living if mark_of(pid, b"HORAE_GUARD").startswith(mark)]
        for pid in found:
            send_signal(pid, signal.SIGKILL)
        if not found:
            return


def signal_group(pgid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, number)


def send_signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def reap() -> bool:
    """Reap dead children; return False when no child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
