"""The worker's client of its guard: it starts child processes and receives their exits."""

import asyncio
import contextlib
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from horae.worker.processes.guard import HEADER
from horae.worker.processes.processes import kill_marked

MAX_OPEN_FILES = 65_536


class SpawnFailed(Exception):
    """A program could not be started; `errno` and `step` (limit, user, chdir or exec) hold the reason."""

    def __init__(self, errno: int, step: str) -> None:
        super().__init__(os.strerror(errno))
        self.errno = errno
        self.step = step


class GuardDied(Exception):
    """The guard is dead, and with it every process that it had started."""


class ChildProcess:
    """A running child.

    `exited` gets its exit status when none of its processes is left. A negative status is the signal that killed it.
    """

    def __init__(self, spawner: "Spawner", child_id: int, pid: int) -> None:
        self._spawner = spawner
        self._id = child_id
        self.pid = pid
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.exceeded: tuple[str, float] | None = None  # the limit for which it was killed, and the amount

    def terminate(self) -> None:
        """Ask its process group to end; call `kill` after some time."""
        self._spawner.send({"term": self._id})

    def kill(self) -> None:
        """Kill the child and all processes that it has started."""
        self._spawner.send({"kill": self._id})


class Spawner:
    """Starts child processes by the guard. Each worker has one guard, which is started with the first child."""

    def __init__(self) -> None:
        self._nofile = raise_open_files()
        self._sock: socket.socket | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self._next = 0
        self._starting: dict[int, asyncio.Future[ChildProcess]] = {}
        self._children: dict[int, ChildProcess] = {}
        self._out: deque[tuple[memoryview, list[int]]] = deque()
        self._in = bytearray()

    @property
    def folder(self) -> Path:
        """Return a private folder for temporary files, which is deleted after the worker's end, even after a crash."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="horae-worker-"))
        return self._folder

    async def spawn(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        fds: Sequence[int],
        bounds: Mapping[str, Any] | None = None,
    ) -> ChildProcess:
        """Start a program whose descriptors 1, 2, ... are `fds`; the caller closes its own copies afterwards.

        `bounds` are the limits for the guard, as `guard` describes them.
        """
        self._ensure_guard()
        self._next += 1
        child_id = self._next
        started = self._starting[child_id] = asyncio.get_running_loop().create_future()
        frame = {"spawn": child_id, "argv": list(argv), "env": dict(env), "cwd": cwd, **(bounds or {})}
        self.send(frame, [os.dup(fd) for fd in fds])
        try:
            return await asyncio.shield(started)
        except asyncio.CancelledError:
            started.add_done_callback(lambda _: self.send({"kill": child_id}))
            raise

    def send(self, frame: dict[str, object], fds: list[int] | None = None) -> None:
        """Send a frame; its descriptors are closed once they are sent."""
        if self._sock is None:
            _close(fds or [])
            return
        body = json.dumps(frame).encode()
        self._out.append((memoryview(HEADER.pack(len(body)) + body), fds or []))
        if len(self._out) == 1:
            self._write()

    async def close(self) -> None:
        """Let the guard kill all children, and wait until the guard has ended."""
        guard = self._guard
        self._lose_guard()
        if guard is not None:
            await asyncio.get_running_loop().run_in_executor(None, guard.wait)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _ensure_guard(self) -> None:
        if self._sock is not None:
            return
        if self._guard is not None:
            self._guard.poll()  # the former guard has died
        mine, its = socket.socketpair()
        mine.setblocking(False)
        program = [sys.executable, "-I", "-S", "-X", "utf8", str(Path(__file__).with_name("guard.py"))]
        with its:
            self._guard = subprocess.Popen(
                [*program, str(its.fileno()), str(self.folder), str(self._nofile)],
                pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                env={"PATH": os.environ.get("PATH", os.defpath)},
            )
        self._sock = mine
        asyncio.get_running_loop().add_reader(mine.fileno(), self._read)

    def _lose_guard(self) -> None:
        """Report every child as dead, because the guard is gone, and its processes with it."""
        sock, self._sock = self._sock, None
        if sock is None:
            return
        loop = asyncio.get_running_loop()
        loop.remove_reader(sock.fileno())
        loop.remove_writer(sock.fileno())
        sock.close()
        while self._out:
            _close(self._out.popleft()[1])
        self._in.clear()
        waiting: list[asyncio.Future[Any]] = [*self._starting.values()]
        waiting += [child.exited for child in self._children.values()]
        self._starting.clear()
        self._children.clear()
        for future in waiting:
            if not future.done():
                future.set_exception(GuardDied("the worker's guard process is gone"))
                future.exception()  # marks the exception as retrieved: nobody may wait

    def _write(self) -> None:
        sock = self._sock
        try:
            while self._out and sock is not None:
                rest, fds = self._out[0]
                sent = socket.send_fds(sock, [rest], fds) if fds else sock.send(rest)
                _close(fds)
                if sent < len(rest):
                    self._out[0] = (rest[sent:], [])
                else:
                    self._out.popleft()
        except BlockingIOError:
            asyncio.get_running_loop().add_writer(sock.fileno(), self._write)  # type: ignore[union-attr]
        except OSError:
            self._lose_guard()
        else:
            if sock is not None:
                asyncio.get_running_loop().remove_writer(sock.fileno())

    def _read(self) -> None:
        assert self._sock is not None
        try:
            data = self._sock.recv(65_536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose_guard()
            if self._guard is not None:
                kill_marked(self._guard.pid)
            return
        self._in += data
        while len(self._in) >= HEADER.size:
            end = HEADER.size + HEADER.unpack_from(self._in)[0]
            if len(self._in) < end:
                return
            frame = json.loads(self._in[HEADER.size : end])
            del self._in[:end]
            self._handle(frame)

    def _handle(self, frame: dict[str, Any]) -> None:
        if "exit" in frame:
            child = self._children.pop(frame["exit"], None)
            if child is not None and "limit" in frame:
                child.exceeded = (frame["limit"], frame["seen"])
            if child is not None and not child.exited.done():
                child.exited.set_result(frame["status"])
            return
        child_id = frame["started"] if "started" in frame else frame["failed"]
        started = self._starting.pop(child_id)
        if "failed" in frame:
            started.set_exception(SpawnFailed(frame["errno"], str(frame["step"])))
            started.exception()  # marks the exception as retrieved: the caller may be cancelled
        else:
            self._children[child_id] = ChildProcess(self, child_id, frame["pid"])
            started.set_result(self._children[child_id])


@cache
def raise_open_files() -> int:
    """Raise this process's limit on open files to its maximum. Return the former limit, for its children."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if most > soft:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return soft


def _close(fds: list[int]) -> None:
    while fds:
        os.close(fds.pop())
