"""The guard: a small process beside each worker that starts its children and sees that none outlives it.

It runs by its path, without Horae's packages, so it starts in milliseconds and stays small. The worker sends frames
over a socket (a length and a JSON object, file descriptors attached); it answers with frames of its own:

    {"spawn": id, "argv": [...], "env": {...}, "cwd": path | null}  with descriptors for the child's 1, 2, 3, ...
        "watch": {"memory", "processes", "cpu"}: bounds of all that it starts, together
        "rlimits": {"NOFILE", "FSIZE", "CPU", "DATA", "NPROC" (more than there are)}, "user": [uid, gid]: what it has
            before it begins
        -> {"started": id, "pid": pid} or {"failed": id, "errno": number, "step": "limit" | "user" | "chdir" | "exec"}
    {"term": id}   SIGTERM to the child's process group; from then on its processes may finish in peace
    {"kill": id}   SIGKILL to everything the child has started
        -> {"exit": id, "status": code or -signal}  once nothing of the child is left; with {"limit": name, "seen":
           amount} if it was killed for being over one

A child leads its own session and process group. When it exits without having been told to, what is left of its group
is killed. On Linux the guard also adopts what the child's descendants orphan (PR_SET_CHILD_SUBREAPER), tells by
HORAE_GUARD in their environment whose they are, and kills them too. When the worker's end of the socket closes,
however the worker died, everything is killed and the worker's temporary folder removed. If the guard is killed, the
worker does the killing, by the same mark. Only the death of both at one instant leaves commands alive: to have the
kernel kill them too (PR_SET_PDEATHSIG) costs a fork of this process for each, which takes several times as long.
"""

import contextlib
import ctypes
import errno
import fcntl
import heapq
import json
import os
import resource
import select
import shutil
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from horae.worker import confined
    from horae.worker.processes import (
        LINUX,
        Process,
        all_processes,
        below,
        kill_tree,
        mark_of,
        own_children,
        process,
        reap,
        send_signal,
        signal_group,
        spare_others,
        tasks_of,
    )
else:  # a program of its own, which finds what lies beside it
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import confined
    from processes import (
        LINUX,
        Process,
        all_processes,
        below,
        kill_tree,
        mark_of,
        own_children,
        process,
        reap,
        send_signal,
        signal_group,
        spare_others,
        tasks_of,
    )

TICK = 0.05  # seconds between looks at what should be gone
IDLE = 5.0  # seconds between looks at what died unnoticed
PR_SET_CHILD_SUBREAPER = 36
HEADER = struct.Struct("<I")
HEADROOM = 8192  # processes and threads of the worker's user, beyond those that there are at its start
STEPS = ("limit", "user", "chdir", "exec")
MAX_FDS = 8
MARK = b"HORAE_GUARD"
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)  # by the guard, not by its children


def prctl(option: int, value: int) -> None:
    """Ask the kernel for something only Linux has."""
    if LINUX:
        _libc.prctl(option, value, 0, 0, 0)


_libc = ctypes.CDLL(None, use_errno=True)


class Urgency:
    """Being able to act while everything else is busy, as under a fork bomb, where the system allows it.

    What is started meanwhile is as ordinary as the worker is.
    """

    def __init__(self) -> None:
        self._policies: tuple[int, int] | None = None
        with contextlib.suppress(AttributeError, OSError):
            ordinary = os.sched_getscheduler(0)
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            self._policies = ordinary, os.SCHED_FIFO

    @contextlib.contextmanager
    def put_off(self) -> Iterator[None]:
        """Be ordinary for a moment, for a child to inherit."""
        if self._policies is None:
            yield
            return
        ordinary, urgent = self._policies
        os.sched_setscheduler(0, ordinary, os.sched_param(0))
        try:
            yield
        finally:
            os.sched_setscheduler(0, urgent, os.sched_param(1))


def bound_tasks() -> None:
    """Have the kernel end what forks without end before the machine is full; it binds no one who is root."""
    if os.getuid() != 0 and LINUX:
        _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
        most = tasks_of(os.getuid()) + HEADROOM
        if hard == resource.RLIM_INFINITY or hard > most:
            resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def now() -> float:
    """Seconds of a clock that only goes on; this program has no Env to ask."""
    return time.monotonic()


class Child:
    """A process started for the worker."""

    def __init__(self, id: int, pid: int, mark: bytes) -> None:
        self.id = id
        self.pid = pid
        self.mark = mark  # the value of HORAE_GUARD in the environment of it and its descendants
        self.pidfd = pidfd_of(pid)
        self.is_told = False  # to end: its processes may finish in peace
        self.is_dead = False  # but not reaped: its pid still names its group
        self.watch: confined.Watch | None = None
        self.family: set[int] = set()  # pids that were seen below it
        self.hit: tuple[str, float] | None = None  # the limit that it was over


def pidfd_of(pid: int) -> int:
    """A descriptor that tells of a process's death, or -1 where there is none to have."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


class Guard:
    """The guard's whole state: its socket and its children."""

    def __init__(self, sock: socket.socket, folder: str, nofile: int) -> None:
        self.urgency = Urgency()
        self.sock = sock
        self.folder = folder
        self.nofile = nofile  # the limit on open files that children get
        self.children: dict[int, Child] = {}
        self.poll = select.poll()
        self.poll.register(sock, select.POLLIN)
        self.pidfds: dict[int, Child] = {}
        self.watched: dict[int, Child] = {}  # to be looked at now and then
        self.looks: list[tuple[float, int]] = []  # when at whose family; a heap
        self.events = 0

    def run(self) -> None:
        """Serve until the worker is gone, then leave nothing behind."""
        try:
            while True:
                ready = self.poll.poll(1000 * self.patience())
                for fd, _ in ready:
                    if fd == self.sock.fileno():
                        self.receive()
                    else:
                        self.note_death(self.pidfds[fd])
                self.look()
                self.look_at_families()
                self.events += 1
                if not ready or self.events % 256 == 0:
                    self.reap_adopted()
        except (EOFError, ConnectionError):
            pass
        finally:
            self.finish()

    def patience(self) -> float:
        """Seconds that nothing needs to be looked at."""
        patience = TICK if self.watched else IDLE
        return max(0.0, min(patience, self.looks[0][0] - now())) if self.looks else patience

    # The worker's wishes

    def receive(self) -> None:
        head, fds, _, _ = socket.recv_fds(self.sock, HEADER.size, MAX_FDS, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
        for fd in fds:
            os.set_inheritable(fd, False)
        head += self.read(HEADER.size - len(head)) if head else b""
        if not head:
            raise EOFError
        frame = json.loads(self.read(HEADER.unpack(head)[0]))
        try:
            if "spawn" in frame:
                self.spawn(frame, fds)
            elif "term" in frame:
                self.term(frame["term"])
            elif "kill" in frame:
                self.kill(frame["kill"])
        finally:
            for fd in fds:
                os.close(fd)

    def read(self, count: int) -> bytes:
        """Read exactly so many bytes; the worker is about to send them."""
        parts = []
        while count:
            part = self.sock.recv(count)
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def send(self, frame: dict[str, object]) -> None:
        body = json.dumps(frame).encode()
        self.sock.sendall(HEADER.pack(len(body)) + body)

    def spawn(self, frame: dict[str, Any], fds: list[int]) -> None:
        id = frame["spawn"]
        mark = f"{os.getpid()}.{id}"
        frame["env"]["HORAE_GUARD"] = mark
        try:
            pid = self.start(frame, fds)
        except OSError as error:
            self.send({"failed": id, "errno": error.errno, "step": error.strerror})
            return
        child = self.children[id] = Child(id, pid, mark.encode())
        if child.pidfd >= 0:
            self.pidfds[child.pidfd] = child
            self.poll.register(child.pidfd, select.POLLIN)
        else:
            self.watched[child.id] = child
        spare_others(pid)
        if frame.get("watch"):
            child.watch = confined.Watch(**frame["watch"])
            heapq.heappush(self.looks, (now() + child.watch.pace, id))
        self.send({"started": id, "pid": pid})

    def start(self, frame: dict[str, Any], fds: list[int]) -> int:
        """Start the program; what stands against it is raised as OSError, with the step it failed at."""
        argv, env, cwd = frame["argv"], frame["env"], frame["cwd"]
        here = os.open(".", os.O_RDONLY)
        moved = [out_of_the_way(fd) for fd in fds]
        files = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        files += [(os.POSIX_SPAWN_DUP2, fd, i) for i, fd in enumerate(moved, 1)]  # type: ignore[misc]
        step = "chdir"
        try:
            if frame.get("rlimits") or frame.get("user"):
                step = "exec"
                program = find_program(argv[0], env)
                with self.urgency.put_off():
                    return confined.start(program, frame, moved, self.nofile)
            if cwd:
                os.chdir(cwd)
            step = "exec"
            program = find_program(argv[0], env)
            with open_files(self.nofile), self.urgency.put_off():
                return os.posix_spawn(program, argv, env, file_actions=files, setsid=True, setsigdef=IGNORED)
        except ValueError:
            raise OSError(errno.EINVAL, step) from None
        except OSError as error:
            raise OSError(error.errno, error.strerror if error.strerror in STEPS else step) from None
        finally:
            os.fchdir(here)
            for fd in (here, *moved):
                os.close(fd)

    def term(self, id: int) -> None:
        child = self.children.get(id)
        if child is not None:
            child.is_told = True
            signal_group(child.pid, signal.SIGTERM)

    def kill(self, id: int) -> None:
        child = self.children.get(id)
        if child is None:
            return
        child.is_told = False
        self.kill_all_of(child)
        if child.is_dead:
            self.bury(child)

    # Ends

    def note_death(self, child: Child) -> None:
        """A child has exited; its pid stays its own until it is reaped."""
        if child.pidfd >= 0:
            self.poll.unregister(child.pidfd)
            del self.pidfds[child.pidfd]
            os.close(child.pidfd)
            child.pidfd = -2
        child.is_dead = True
        if child.is_told:
            self.watched[child.id] = child
        else:
            self.bury(child)

    def look(self) -> None:
        """Look again at children that had no pidfd, or whose processes were given time."""
        for child in list(self.watched.values()):
            if child.pidfd == -1 and os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                child.pidfd = -2
                self.note_death(child)
            elif child.is_dead and child.is_told and not any(self.left_of(child)):
                self.bury(child)

    def bury(self, child: Child) -> None:
        """The child is dead: so is everything of it, and then it is reported."""
        signal_group(child.pid, signal.SIGKILL)
        self.kill_orphans(child)
        _, status = os.waitpid(child.pid, 0)
        del self.children[child.id]
        self.watched.pop(child.id, None)
        told: dict[str, object] = {"exit": child.id, "status": os.waitstatus_to_exitcode(status)}
        if child.hit is not None:
            told |= {"limit": child.hit[0], "seen": child.hit[1]}
        self.send(told)

    # Limits

    def look_at_families(self) -> None:
        """Look at those whose turn it is; what is over a limit is killed, and looked at until nothing of it is left."""
        adopted: list[Process] | None = None
        while self.looks and self.looks[0][0] <= now():
            child = self.children.get(heapq.heappop(self.looks)[1])
            if child is None or child.watch is None or (child.is_dead and not child.is_told):
                continue
            adopted = self.adopted() if adopted is None else adopted
            family = below([child.pid, *(one.pid for one in adopted if self.is_of(one, child))])
            child.family = {one.pid for one in family}
            hit = child.watch.over(family)
            if hit is not None:
                child.hit = child.hit or hit
                self.kill(child.id)
            pace = TICK if child.hit else child.watch.pace
            heapq.heappush(self.looks, (now() + pace, child.id))

    def adopted(self) -> list[Process]:
        """What the children's descendants have orphaned."""
        known = {child.pid for child in self.children.values()}
        found = (process(pid) for pid in own_children() if pid not in known)
        return [one for one in found if one is not None and one.is_alive]

    def is_of(self, orphan: Process, child: Child) -> bool:
        """Whether an orphan belongs to a child: it was seen below it, is of its session, or carries its mark."""
        if orphan.pid in child.family or child.pid in (orphan.group, orphan.session):
            return True
        return len(self.children) == 1 or mark_of(orphan.pid, MARK) == child.mark

    def kill_all_of(self, child: Child) -> None:
        """Kill until nothing is found; something may be forking against it."""
        for _ in range(50):
            signal_group(child.pid, signal.SIGKILL)
            found = list(self.left_of(child))
            for pid in found:
                send_signal(pid, signal.SIGKILL)
            self.reap_adopted()  # the dead are many, and would have to be looked at again
            if not found:
                return

    def left_of(self, child: Child) -> Iterator[int]:
        """Living processes of a child but itself: its group and session, its descendants, and what carries its mark."""
        family = {child.pid}
        processes = sorted(all_processes(), key=lambda one: one.pid)
        for one in processes * 2:  # twice, for a parent with a higher pid than its child
            if one.pid in family or not one.is_alive:
                continue
            if one.parent in family or child.pid in (one.group, one.session) or self.is_adopted_of(one, child):
                family.add(one.pid)
                yield one.pid

    def is_adopted_of(self, one: Process, child: Child) -> bool:
        return one.parent == os.getpid() and (one.pid in child.family or mark_of(one.pid, MARK) == child.mark)

    def kill_orphans(self, child: Child) -> None:
        """Kill what descendants of a child left to the guard; with no other child alive, whoever they belong to."""
        known = {other.pid for other in self.children.values()}
        for pid in own_children():
            if pid not in known and (len(known) == 1 or pid in child.family or mark_of(pid, MARK) == child.mark):
                kill_tree(pid)

    def reap_adopted(self) -> None:
        """Bury adopted processes that have died."""
        if LINUX:
            known = {child.pid for child in self.children.values()}
            for pid in own_children():
                if pid not in known:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(pid, os.WNOHANG)

    def finish(self) -> None:
        """Kill everything and everybody; a process that hides behind a fork is found in the next round."""
        for _ in range(400):
            for child in self.children.values():
                signal_group(child.pid, signal.SIGKILL)
            for pid in own_children():
                kill_tree(pid)
            if not reap():
                break
            select.select([], [], [], 0.005)
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def find_program(name: str, env: dict[str, str]) -> str:
    """Where a program lies, by the PATH it will itself have."""
    if "/" in name:
        return name
    found = errno.ENOENT
    for folder in os.get_exec_path(env):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            if os.access(path, os.X_OK):
                return path
            found = errno.EACCES
    raise OSError(found, "exec")


@contextlib.contextmanager
def open_files(limit: int) -> Iterator[None]:
    """Have another limit on open files for a moment, for a child to inherit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, soft), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def out_of_the_way(fd: int) -> int:
    """The same file under a number that no child expects anything at."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64)


def main() -> None:
    """Usage: guard.py SOCKET-FD TEMPORARY-FOLDER OPEN-FILES."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    bound_tasks()
    sock = socket.socket(fileno=int(sys.argv[1]))
    sock.set_inheritable(False)
    Guard(sock, sys.argv[2], int(sys.argv[3])).run()


if __name__ == "__main__":
    main()
