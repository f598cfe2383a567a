"""Confinement of a child: limits and a user that are set before its start, and a watch on all its descendants.

The kernel's limits apply to each process alone, whereas the watch adds up the resources of a family: a child and all
its descendants. The guard imports this without Horae's packages: only the standard library and `processes` may be used
here.
"""

import os
import resource
import signal
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from horae.worker.processes.processes import Process, count_tasks, proportional_memory
else:  # the guard is a separate program and imports its neighbours
    from processes import count_tasks, proportional_memory

FIRST, LAST = 0.1, 0.5  # seconds between checks: at first, and at most; the span grows while there are no large changes
THREADS = 16  # threads per allowed process
FAILED = struct.Struct("<i16s")
LIMITS = {name: getattr(resource, f"RLIMIT_{name}") for name in ("NOFILE", "FSIZE", "CPU", "DATA", "NPROC")}
DEFAULTED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)


class FamilyWatch:
    """Limits of a family of processes. `exceeded_limit` returns an exceeded limit with the measured amount.

    `pace` is the number of seconds until the next check, and `every` the largest pace.
    """

    def __init__(self, memory: int = 0, processes: int = 0, cpu: float = 0.0, every: float = LAST) -> None:
        self.memory, self.processes, self.cpu, self.every = memory, processes, cpu, every
        self.pace = FIRST
        self._last = (0, 0)

    def exceeded_limit(self, family: "list[Process]") -> tuple[str, float] | None:
        count, threads = len(family), sum(one.threads for one in family)
        if self.processes and count > self.processes:
            return "processes", count
        if self.processes and threads > self.processes * THREADS:
            return "processes", threads
        cpu = sum(one.cpu for one in family)
        if self.cpu and cpu > self.cpu:
            return "cpu", cpu
        memory = sum(one.memory for one in family)
        if self.memory and memory > self.memory:
            memory = sum(proportional_memory(one.pid) for one in family)  # shared memory counts once
            if memory > self.memory:
                return "memory", memory
        self._choose_pace(count, memory)
        return None

    def _choose_pace(self, count: int, memory: int) -> None:
        """Check again soon if the family grows or is near a limit."""
        former_count, former_memory = self._last
        self._last = count, memory
        grows = count > former_count + 8 or (self.memory and memory > former_memory + self.memory // 16)
        near = self.memory and memory > self.memory // 2
        self.pace = FIRST / 2 if grows or near else min(self.every, self.pace * 2)


def start(program: str, frame: dict[str, Any], fds: list[int], nofile: int) -> int:
    """Start a program within its limits and as its user. Raises an OSError that names the failed step.

    It forks this small process, because limits can only be set between fork and exec.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(program, frame, fds, nofile, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        problem = pipe.read(FAILED.size)
    if problem:
        os.waitpid(pid, 0)
        number, step = FAILED.unpack(problem)
        raise OSError(number, step.rstrip(b"\0").decode())
    return pid


def _become(program: str, frame: dict[str, Any], fds: list[int], nofile: int, writer: int) -> None:
    """Turn the forked child into the program; never return."""
    step, number = b"exec", 0
    try:
        os.setsid()
        for name in DEFAULTED:
            signal.signal(name, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for i, fd in enumerate(fds, 1):
            os.dup2(fd, i)
        step = b"limit"
        uid, gid = frame.get("user") or (os.getuid(), 0)
        rlimits = dict(frame.get("rlimits") or {})
        if "NPROC" in rlimits:
            rlimits["NPROC"] += count_tasks(uid)  # the kernel counts all processes of the user, except root
        _limit({"NOFILE": nofile}, hard=False)
        _limit(rlimits, hard=True)
        step = b"user"
        if frame.get("user"):
            os.setgroups([])
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
        step = b"chdir"
        if frame["cwd"]:
            os.chdir(frame["cwd"])
        step = b"exec"
        os.execve(program, frame["argv"], frame["env"])
    except OSError as error:
        number = error.errno or 0
    except ValueError:
        number = 22  # EINVAL
    finally:
        os.write(writer, FAILED.pack(number or 5, step))
        os._exit(127)


def _limit(limits: dict[str, int], *, hard: bool) -> None:
    """Set limits of this process, at most the system's own. `hard` limits cannot be raised again."""
    for name, value in limits.items():
        _, most = resource.getrlimit(LIMITS[name])
        bound = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(LIMITS[name], (bound, bound if hard else most))
