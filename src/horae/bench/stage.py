"""A stage: a real server and real workers as processes of their own, and a client that talks to them over HTTP."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO

from horae.bench.app import app
from horae.client.client import Client
from horae.client.local import read_key
from horae.env import Env
from horae.errors import HoraeError

APP = "horae.bench.app:app"
START = 60.0  # seconds a process may take to be there
DRAIN, STOP = 3.0, 10.0  # seconds until it is told again to end, and until it is killed
LOOK = 0.005
_SERVING = re.compile(r"https?://127\.0\.0\.1:\d+")


class Process:
    """A `horae` process with its own folder; its output goes to a file."""

    def __init__(self, env: Env, folder: Path, *arguments: str) -> None:
        self._env = env
        self._name = arguments[0]
        self._log = folder / f"{arguments[0]}.log"
        self._file: IO[bytes] = self._log.open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "horae.cli.main", *arguments],
            cwd=folder,
            env=_clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._file,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the bench, which ends its processes itself
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    async def said(self, pattern: re.Pattern[str]) -> str:
        """Wait until it prints something."""
        found: list[str] = []

        async def look() -> bool:
            match = pattern.search(self._log.read_text(errors="replace"))
            found.extend([match[0]] if match else [])
            self.check()
            return bool(match)

        await until(self._env, look, f"horae {self._name} to start", START)
        return found[0]

    def check(self) -> None:
        """Raise what it said last when it is gone."""
        if self._process.poll() is not None:
            tail = self._log.read_text(errors="replace")[-2000:]
            raise HoraeError(f"horae {self._name} ended with {self._process.returncode}:\n{tail}")

    def stop(self) -> None:
        """End it: in good order, then without, then by force; blocks until it is gone."""
        for number, patience in ((signal.SIGTERM, DRAIN), (signal.SIGTERM, STOP), (signal.SIGKILL, None)):
            if self._process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(patience)
        self._file.close()


def _clean_environment() -> dict[str, str]:
    """Nothing of the caller's settings reaches the processes."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HORAE_")}


class Stage:
    """A server on a store, its workers, and a client with the bench's jobs defined."""

    def __init__(self, env: Env, folder: Path, url: str, client: Client, server: Process) -> None:
        self.env, self.folder, self.url, self.client, self.server = env, folder, url, client, server
        self.worker: Process | None = None

    async def start_worker(self, concurrency: int) -> None:
        """Start a worker and wait until the server knows it."""
        self.worker = self.begin_worker(concurrency)
        await self.until(self._has_worker, "a worker to register", START)

    def begin_worker(self, concurrency: int) -> Process:
        """Start a worker and wait for nothing."""
        self.worker = Process(
            self.env, self.folder, "worker", "--server", self.url, "--key", read_key(self.folder / "admin.key"),
            "--app", APP, "--concurrency", str(concurrency),
        )  # fmt: skip
        return self.worker

    def stop_worker(self) -> None:
        if self.worker is not None:
            self.worker.stop()
            self.worker = None

    async def until(self, check: Callable[[], Awaitable[bool]], what: str, within: float, every: float = LOOK) -> None:
        """Wait for a condition; what ends unexpectedly is told at once."""

        async def watched() -> bool:
            self.check()
            return await check()

        await until(self.env, watched, what, within, every)

    def check(self) -> None:
        """Raise what ended unexpectedly."""
        self.server.check()
        if self.worker is not None:
            self.worker.check()

    async def _has_worker(self) -> bool:
        return any(worker.status == "live" for worker in await self.client.workers.list())


async def until(env: Env, check: Callable[[], Awaitable[bool]], what: str, within: float, every: float = LOOK) -> None:
    """Wait for a condition, looking again and again."""
    ends_at = env.clock.monotonic() + within
    while not await check():
        if env.clock.monotonic() > ends_at:
            raise HoraeError(f"Waited {within:g} s for {what}, in vain.", "Is this machine busy with other things?")
        await env.clock.sleep(every)


@asynccontextmanager
async def staged(env: Env, store: str, command: str = "server") -> AsyncIterator[Stage]:
    """A server on this store; it, its workers and its files are gone when the block ends, however it ends."""
    with tempfile.TemporaryDirectory(prefix="horae-bench-") as name:
        folder = Path(name)
        server = Process(env, folder, command, "--store", store, "--data", name, "--port", "0")
        stage = None
        try:
            url = await server.said(_SERVING)
            client = Client(url, read_key(folder / "admin.key"), env=env)
            stage = Stage(env, folder, url, client, server)
            for definition in app.definitions():
                await client.jobs.apply(definition)
            yield stage
        finally:
            if stage is not None:
                stage.stop_worker()
                await stage.client.close()
            server.stop()
