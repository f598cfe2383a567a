"""The guard: a small process beside each worker that starts the worker's children, so that none outlives the worker.

It is started by its path, without Horae's packages, so it starts in milliseconds and stays small. The worker sends
frames over a socket (a length and a JSON object, with file descriptors); the guard answers with its own frames:

    {"spawn": id, "argv": [...], "env": {...}, "cwd": path | null}  with descriptors for the child's 1, 2, 3, ...
        "watch": {"memory", "processes", "cpu"}: limits of the child and all its descendants, together
        "rlimits": {"NOFILE", "FSIZE", "CPU", "DATA", "NPROC" (in addition to the user's present processes)},
        "user": [uid, gid]: both are set before the start
        -> {"started": id, "pid": pid} or {"failed": id, "errno": number, "step": "limit" | "user" | "chdir" | "exec"}
    {"term": id}   SIGTERM to the child's process group; after this, its processes may outlive the child
    {"kill": id}   SIGKILL to everything the child has started
        -> {"exit": id, "status": code or -signal}  once nothing of the child is left; with {"limit": name, "seen":
           amount} if it was killed for exceeding a limit

A child leads its own session and process group. When it exits without {"term"}, all other processes of its group are
killed. On Linux the guard also adopts orphans, descendants of a child whose parents have died (PR_SET_CHILD_SUBREAPER).
It finds the child to which an orphan belongs by HORAE_GUARD in the orphan's environment, and kills the orphan, too.
When the worker's end of the socket closes, for any reason, all these processes are killed and the worker's temporary
folder is removed. If the guard is killed, the worker kills the processes, which it finds by HORAE_GUARD. Only if both
die at the same time, commands stay alive. The kernel could kill them, too (PR_SET_PDEATHSIG), but this needs a fork of
this process for each command, which takes several times as long.
"""

import ctypes
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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from horae.worker.processes import confined
    from horae.worker.processes.guard_descendants import Descendants, GuardedChild
    from horae.worker.processes.guard_starts import IGNORED, Urgency, start
    from horae.worker.processes.processes import (
        LINUX,
        Process,
        count_tasks,
        family_of,
        kill_tree,
        own_children,
        reap,
        signal_group,
        spare_others,
    )
else:  # a separate program, which imports its neighbours
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import confined
    from guard_descendants import Descendants, GuardedChild
    from guard_starts import IGNORED, Urgency, start
    from processes import (
        LINUX,
        Process,
        count_tasks,
        family_of,
        kill_tree,
        own_children,
        reap,
        signal_group,
        spare_others,
    )

TICK = 0.05  # seconds between checks of processes that should be gone
IDLE = 5.0  # seconds between checks for processes whose death was not signalled
PR_SET_CHILD_SUBREAPER = 36
HEADER = struct.Struct("<I")
HEADROOM = 8192  # processes and threads that the worker's user may have beyond those at its start
MAX_FDS = 8


def prctl(option: int, value: int) -> None:
    """Set an option of the process that only Linux has."""
    if LINUX:
        _libc.prctl(option, value, 0, 0, 0)


_libc = ctypes.CDLL(None, use_errno=True)


def bound_tasks() -> None:
    """Limit the processes of this user, to stop a fork bomb before the machine is full. It has no effect for root."""
    if os.getuid() != 0 and LINUX:
        _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
        most = count_tasks(os.getuid()) + HEADROOM
        if hard == resource.RLIM_INFINITY or hard > most:
            resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def now() -> float:
    """Return the seconds of a monotonic clock; this program has no Env."""
    return time.monotonic()


class Guard:
    """The guard's whole state: its socket and its children."""

    def __init__(self, sock: socket.socket, folder: str, nofile: int) -> None:
        self.urgency = Urgency()
        self.sock = sock
        self.folder = folder
        self.nofile = nofile  # the limit on open files that children get
        self.children: dict[int, GuardedChild] = {}
        self.descendants = Descendants(self.children)
        self.poll = select.poll()
        self.poll.register(sock, select.POLLIN)
        self.pidfds: dict[int, GuardedChild] = {}
        self.watched: dict[int, GuardedChild] = {}  # children that `look` checks in every tick
        self.looks: list[tuple[float, int]] = []  # a heap of times and children whose families are due for a check
        self.events = 0

    def run(self) -> None:
        """Serve until the worker is gone, then leave no process behind."""
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
                    self.descendants.reap_adopted()
        except (EOFError, ConnectionError):
            pass
        finally:
            self.finish()

    def patience(self) -> float:
        """Return the seconds until the next check."""
        patience = TICK if self.watched else IDLE
        return max(0.0, min(patience, self.looks[0][0] - now())) if self.looks else patience

    # Requests of the worker

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
        """Read exactly this many bytes; the worker is about to send them."""
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
        child_id = frame["spawn"]
        mark = f"{os.getpid()}.{child_id}.{os.urandom(8).hex()}"  # random, so that no other process can guess it
        frame["env"]["HORAE_GUARD"] = mark
        try:
            pid = start(frame, fds, self.urgency, self.nofile)
        except OSError as error:
            self.send({"failed": child_id, "errno": error.errno, "step": error.strerror})
            return
        child = self.children[child_id] = GuardedChild(child_id, pid, mark.encode())
        if child.pidfd >= 0:
            self.pidfds[child.pidfd] = child
            self.poll.register(child.pidfd, select.POLLIN)
        else:
            self.watched[child.id] = child
        spare_others(pid)
        if frame.get("watch"):
            child.watch = confined.FamilyWatch(**frame["watch"])
            heapq.heappush(self.looks, (now() + child.watch.pace, child_id))
        self.send({"started": child_id, "pid": pid})

    def term(self, child_id: int) -> None:
        child = self.children.get(child_id)
        if child is not None:
            child.may_finish = True
            signal_group(child.pid, signal.SIGTERM)

    def kill(self, child_id: int) -> None:
        child = self.children.get(child_id)
        if child is None:
            return
        child.may_finish = False
        self.descendants.kill_all_of(child)
        if child.is_dead:
            self.bury(child)

    # Ends

    def note_death(self, child: GuardedChild) -> None:
        """Note the exit of a child; its pid is reserved until it is reaped."""
        if child.pidfd >= 0:
            self.poll.unregister(child.pidfd)
            del self.pidfds[child.pidfd]
            os.close(child.pidfd)
            child.pidfd = -2
        child.is_dead = True
        if child.may_finish:
            self.watched[child.id] = child
        else:
            self.bury(child)

    def look(self) -> None:
        """Check children whose exit the kernel does not signal (no pidfd), and exited ones that may leave processes."""
        for child in list(self.watched.values()):
            if child.pidfd == -1 and os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                child.pidfd = -2
                self.note_death(child)
            elif child.is_dead and child.may_finish and not any(self.descendants.left_of(child)):
                self.bury(child)

    def bury(self, child: GuardedChild) -> None:
        """Kill everything that is left of a dead child, and report its exit."""
        signal_group(child.pid, signal.SIGKILL)
        self.descendants.kill_orphans(child)
        _, status = os.waitpid(child.pid, 0)
        del self.children[child.id]
        self.watched.pop(child.id, None)
        frame: dict[str, object] = {"exit": child.id, "status": os.waitstatus_to_exitcode(status)}
        if child.exceeded is not None:
            frame |= {"limit": child.exceeded[0], "seen": child.exceeded[1]}
        self.send(frame)

    # Limits

    def look_at_families(self) -> None:
        """Check the limits of the families that are due: of children and their descendants.

        A family that exceeds a limit is killed, and checked again until none of its processes is left.
        """
        adopted: list[Process] | None = None
        while self.looks and self.looks[0][0] <= now():
            child = self.children.get(heapq.heappop(self.looks)[1])
            if child is None or child.watch is None or (child.is_dead and not child.may_finish):
                continue
            adopted = self.descendants.adopted() if adopted is None else adopted
            family = family_of([child.pid, *(one.pid for one in adopted if self.descendants.is_of(one, child))])
            child.family = {one.pid for one in family}
            exceeded = child.watch.exceeded_limit(family)
            if exceeded is not None:
                child.exceeded = child.exceeded or exceeded
                self.kill(child.id)
            pace = TICK if child.exceeded else child.watch.pace
            heapq.heappush(self.looks, (now() + pace, child.id))

    def finish(self) -> None:
        """Kill every process of every child, in rounds, because a process may fork meanwhile."""
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
