"""What keeps a child within bounds: limits and a user that it has before it begins, and a watch on all that it starts.

The kernel's limits are of one process each; a watch sums up a whole family. The guard imports this without Horae's
packages: only the standard library and `processes` may be used here.
"""

import os
import resource
import signal
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from horae.worker.processes.processes import Process, proportional, tasks_of
else:  # beside it in the guard, which is a program of its own
    from processes import proportional, tasks_of

FIRST, LAST = 0.1, 0.5  # seconds between looks: soon at first, and when much has changed; at most
THREADS = 16  # for each process that is allowed
FAILED = struct.Struct("<i16s")
LIMITS = {name: getattr(resource, f"RLIMIT_{name}") for name in ("NOFILE", "FSIZE", "CPU", "DATA", "NPROC")}
DEFAULTED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)


class FamilyWatch:
    """Looks at a family now and then, and says which limit it is over: its name, and what was seen."""

    def __init__(self, memory: int = 0, processes: int = 0, cpu: float = 0.0, every: float = LAST) -> None:
        self.memory, self.processes, self.cpu, self.every = memory, processes, cpu, every
        self.pace = FIRST
        self._last = (0, 0)

    def over(self, family: "list[Process]") -> tuple[str, float] | None:
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
            memory = sum(proportional(one.pid) for one in family)  # what they share counts once
            if memory > self.memory:
                return "memory", memory
        self._choose_pace(count, memory)
        return None

    def _choose_pace(self, count: int, memory: int) -> None:
        """What grows, or is near a limit, is looked at soon again."""
        former_count, former_memory = self._last
        self._last = count, memory
        grows = count > former_count + 8 or (self.memory and memory > former_memory + self.memory // 16)
        near = self.memory and memory > self.memory // 2
        self.pace = FIRST / 2 if grows or near else min(self.every, self.pace * 2)


def start(program: str, frame: dict[str, Any], fds: list[int], nofile: int) -> int:
    """Start a program within its limits and as its user; what stands against it is an OSError with the step.

    It forks this small process, because nothing else can set limits before the program begins.
    """
    told, tells = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(program, frame, fds, nofile, tells)
    os.close(tells)
    with os.fdopen(told, "rb") as pipe:
        problem = pipe.read(FAILED.size)
    if problem:
        os.waitpid(pid, 0)
        number, step = FAILED.unpack(problem)
        raise OSError(number, step.rstrip(b"\0").decode())
    return pid


def _become(program: str, frame: dict[str, Any], fds: list[int], nofile: int, tells: int) -> None:
    """The child's side: never returns."""
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
            rlimits["NPROC"] += tasks_of(uid)  # it is of all that the user has; root is not bound by it
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
        os.write(tells, FAILED.pack(number or 5, step))
        os._exit(127)


def _limit(limits: dict[str, int], *, hard: bool) -> None:
    """No process may have more than it has: a limit that is higher than the system's stays the system's."""
    for name, value in limits.items():
        _, most = resource.getrlimit(LIMITS[name])
        bound = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(LIMITS[name], (bound, bound if hard else most))
