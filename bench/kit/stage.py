"""A stage: a real server and real workers as separate processes, and a client that talks to them over HTTP."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO

from bench.kit.app import app
from bench.kit.wire import build
from horae.client.client import Client
from horae.env import Env
from horae.errors import HoraeError

APP = "bench.kit.app:app"
ROOT = Path(__file__).parents[2]  # processes import the jobs from here
START = 60.0  # seconds for the start of a process
DRAIN, STOP = 3.0, 10.0  # seconds until the stop signal is repeated, and until the process is killed
LOOK = 0.005
_SERVING = re.compile(r"https?://127\.0\.0\.1:\d+")


class Process:
    """A `horae` process with its own folder; its output goes to a file."""

    def __init__(self, env: Env, folder: Path, *arguments: str, number: int = 0, key: str = "") -> None:
        self._env = env
        self._name = arguments[0]
        self._log = folder / f"{arguments[0]}-{number}.log"
        self._file: IO[bytes] = self._log.open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "horae.cli.main", *arguments],
            cwd=folder,
            env={**_clean_environment(), **({"HORAE_ADMIN_KEY": key, "HORAE_KEY": key} if key else {})},
            stdin=subprocess.DEVNULL,
            stdout=self._file,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C must reach only the bench, which ends its processes itself
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    async def said(self, pattern: re.Pattern[str]) -> str:
        """Wait until the process prints a text that matches a pattern; return the match."""
        found: list[str] = []

        async def look() -> bool:
            match = pattern.search(self._log.read_text(errors="replace"))
            found.extend([match[0]] if match else [])
            self.check()
            return bool(match)

        await until(self._env, look, f"horae {self._name} to start", START)
        return found[0]

    def check(self) -> None:
        """Raise an error with the last output if the process has ended."""
        if self._process.poll() is not None:
            tail = self._log.read_text(errors="replace")[-2000:]
            raise HoraeError(f"horae {self._name} ended with {self._process.returncode}:\n{tail}")

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Stop the process; block until it has ended."""
        stop([self])

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and its children, if it is running."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def is_gone_within(self, patience: float | None) -> bool:
        """Wait for the end of the process; tell whether it ended in time."""
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            return False
        self._file.close()
        return True


def stop(processes: Sequence[Process]) -> None:
    """Stop processes together: drain, then abort, then kill; block until they have ended."""
    left = list(processes)
    for number, patience in ((signal.SIGTERM, DRAIN), (signal.SIGTERM, STOP), (signal.SIGKILL, None)):
        for process in left:
            process.signal(number)
        ends_at = None if patience is None else time.perf_counter() + patience
        left = [p for p in left if not p.is_gone_within(ends_at and max(0.0, ends_at - time.perf_counter()))]


def _clean_environment() -> dict[str, str]:
    """Return the environment for processes: without the caller's settings, and with the benches' jobs on the path."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HORAE_")}
    places = filter(None, [str(ROOT), inherited.get("PYTHONPATH")])
    return {**inherited, "PYTHONPATH": os.pathsep.join(places)}


class Stage:
    """Servers on a store, their workers, and a client with the bench's jobs defined."""

    def __init__(self, env: Env, folder: Path, key: str, urls: list[str], servers: list[Process]) -> None:
        self.env, self.folder, self.key, self.urls, self.servers = env, folder, key, urls, servers
        self.client = Client(urls[0], key, env=env)
        self.workers: list[Process] = []

    @property
    def url(self) -> str:
        return self.urls[0]

    @property
    def server(self) -> Process:
        return self.servers[0]

    @property
    def worker(self) -> Process | None:
        return self.workers[0] if self.workers else None

    def request(self, method: str, path: str, body: bytes = b"", server: int = 0, once: str = "") -> bytes:
        """Return a complete request to a server's API; `once` is its Idempotency-Key."""
        return build(self.urls[server], self.key, method, f"/api/v1{path}", body, once)

    async def start_worker(self, concurrency: int, count: int = 1) -> None:
        """Start workers and wait until the server knows all of them."""
        for _ in range(count):
            self.begin_worker(concurrency)

        async def are_there() -> bool:
            found = await self.client.workers.list()
            return sum(worker.status == "live" for worker in found) >= count

        await self.until(are_there, f"{count} workers to register", START)

    def begin_worker(self, concurrency: int) -> None:
        """Start a worker without waiting for its registration."""
        process = Process(
            self.env, self.folder, "worker", "--server", ",".join(self.urls), "--app", APP,
            "--concurrency", str(concurrency), "--name", f"bench-{len(self.workers)}",
            number=len(self.workers), key=self.key,
        )  # fmt: skip
        self.workers.append(process)

    def stop_worker(self) -> None:
        """Stop all workers."""
        stop(self.workers)
        self.workers.clear()

    def kill_server(self, number: int) -> None:
        """Kill a server, and stop checking whether it runs."""
        self.servers.pop(number).kill()
        del self.urls[number]

    async def until(self, check: Callable[[], Awaitable[bool]], what: str, within: float, every: float = LOOK) -> None:
        """Wait for a condition; raise an error at once if a process ends."""

        async def watched() -> bool:
            self.check()
            return await check()

        await until(self.env, watched, what, within, every)

    def check(self) -> None:
        """Raise an error if a process has ended."""
        for process in (*self.servers, *self.workers):
            process.check()


async def until(env: Env, check: Callable[[], Awaitable[bool]], what: str, within: float, every: float = LOOK) -> None:
    """Wait for a condition, checking it repeatedly."""
    ends_at = env.clock.monotonic() + within
    while not await check():
        if env.clock.monotonic() > ends_at:
            raise HoraeError(
                f"Timed out after {within:g} s, waiting for {what}.", "Is this machine busy with other work?"
            )
        await env.clock.sleep(every)


@asynccontextmanager
async def staged(env: Env, store: str, servers: int = 1) -> AsyncIterator[Stage]:
    """Start servers on a store; they, their workers and their files are removed when the block ends."""
    with tempfile.TemporaryDirectory(prefix="horae-bench-") as name:
        folder, urls = Path(name), list[str]()
        key = env.new_id().hex + env.new_id().hex  # each server start creates another key
        begun: list[Process] = []
        stage = None
        try:
            for number in range(servers):
                flags = ("--store", store, "--data", name, "--port", "0")
                begun.append(Process(env, folder, "server", *flags, number=number, key=key))
                urls.append(await begun[-1].said(_SERVING))
            stage = Stage(env, folder, key, urls, list(begun))
            for definition in app.definitions():
                await stage.client.jobs.apply(definition)
            yield stage
        finally:
            if stage is not None:
                stage.stop_worker()
                await stage.client.close()
            stop(begun)
