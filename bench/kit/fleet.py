"""Many of the bundled workers in one process, each with its own session and connections."""

import asyncio
import time
from collections.abc import Sequence
from random import Random
from types import TracebackType
from uuid import UUID

from bench.kit.app import app
from bench.kit.stage import until
from horae.env import Env
from horae.model.fleet.protocol import Answer, Exchange, Register, Registered
from horae.worker.http_transport import HttpTransport
from horae.worker.settings import WorkerSettings
from horae.worker.worker import WorkerRuntime

AT_ONCE = 50  # workers that register at the same time


class Line(HttpTransport):
    """A transport that remembers the server and time of its last answer."""

    def __init__(self, servers: Sequence[str], key: str, rng: Random) -> None:
        super().__init__(servers, key, rng=rng)
        self.at = ""  # the server that answered the last exchange
        self.since = 0.0  # the first answer of this server after another one
        self.sessions = 0

    async def register(self, body: Register) -> Registered:
        registered = await super().register(body)
        self.sessions += 1
        self.at = self.at or self.servers[0]
        return registered

    async def exchange(self, session: UUID, body: Exchange) -> Answer:
        server = self.servers[0]
        answer = await super().exchange(session, body)
        if server != self.at:
            self.at, self.since = server, time.perf_counter()
        return answer


class Fleet:
    """Workers, spread evenly over servers, that run while the block lasts."""

    def __init__(self, env: Env, urls: Sequence[str], key: str, count: int) -> None:
        self._env, self._urls, self._key, self._count = env, list(urls), key, count
        self._lines: list[Line] = []
        self._tasks: list[asyncio.Task[str]] = []

    async def __aenter__(self) -> "Fleet":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def registered(self, within: float) -> None:
        """Start the workers, some at a time, and wait until all have a session."""
        for first in range(0, self._count, AT_ONCE):
            for number in range(first, min(self._count, first + AT_ONCE)):
                self._begin(number)
            await until(self._env, self._all_there, f"{len(self._lines)} sessions", within)

    async def _all_there(self) -> bool:
        for task in self._tasks:
            if task.done():
                task.result()
        return all(line.sessions for line in self._lines)

    def _begin(self, number: int) -> None:
        turn = number % len(self._urls)
        line = Line([*self._urls[turn:], *self._urls[:turn]], self._key, self._env.rng)
        settings = WorkerSettings(name=f"bench-{number}", concurrency=1, kinds=(), replace=False)
        self._lines.append(line)
        self._tasks.append(asyncio.create_task(WorkerRuntime(self._env, settings, line, app).run()))

    @property
    def lost(self) -> int:
        """The number of sessions that were replaced by new ones."""
        return sum(line.sessions - 1 for line in self._lines)

    def at(self, server: str) -> list[Line]:
        """Return the workers with a last answer from this server."""
        return [line for line in self._lines if line.at == server]

    async def all_left(self, lines: Sequence[Line], server: str) -> bool:
        """Tell whether all of these workers have an answer from another server."""
        return all(line.at != server for line in lines)

    def moved_after(self, lines: Sequence[Line], begun: float) -> list[float]:
        """Return the seconds from an instant to each worker's first answer from another server."""
        return [line.since - begun for line in lines]
