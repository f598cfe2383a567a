"""A small world on a virtual clock: servers, workers and clients over the real engine and an in-memory store.

Everything runs on one thread and draws chance from one seed, so a failure prints its seed and replays exactly.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from random import Random
from typing import Any, TypeVar

from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.env import SECOND, Env, VirtualClock, uuid7
from horae.store import epochs
from horae.store.contract import Store
from horae.store.sqlite.memory import MemoryDriver

T = TypeVar("T")
_owner: ContextVar["Actor | None"] = ContextVar("owner", default=None)


class Lost(Exception):
    """No answer arrived."""


class Actor:
    """A process that can be killed together with all its tasks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        token = _owner.set(self)
        try:
            return asyncio.get_running_loop().create_task(work)
        finally:
            _owner.reset(token)

    def adopt(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def kill(self) -> None:
        self.alive = False
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _task_factory(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> "asyncio.Task[Any]":
    task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **options)
    owner = _owner.get()
    if owner is not None:
        owner.adopt(task)
    return task


class Faults:
    """Probabilities of faults; all zero after the world has healed."""

    def __init__(self, rng: Random) -> None:
        self.drop = rng.choice([0.0, 0.02, 0.1, 0.3])
        self.repeat = rng.choice([0.0, 0.05, 0.2])
        self.delay = rng.choice([0.0, 0.02, 0.5])
        self.server_crash = rng.choice([0.0, 0.05, 0.2])
        self.worker_crash = rng.choice([0.0, 0.05, 0.2])
        self.freeze = rng.choice([0.0, 0.05])
        self.failover = 0.0

    def heal(self) -> None:
        self.drop = self.repeat = self.delay = self.server_crash = self.worker_crash = self.freeze = 0.0
        self.failover = 0.0


SETTINGS = EngineSettings(session_timeout=6 * SECOND, heartbeat=2 * SECOND)


class Server(Actor):
    """A server process that may be killed at any await; another one replaces it."""

    def __init__(self, world: "World", name: str) -> None:
        super().__init__(name)
        self.node = ServerNode(world.env, Store(world.driver, world.env), SETTINGS)

    async def start(self) -> None:
        await self.spawn(self.node.start())


class World:
    """The clock, the store, the servers and the faults of a simulation."""

    def __init__(self, seed: int, servers: int = 2) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.clock = VirtualClock()
        self.env = Env(self.clock, uuid7(Random(seed + 1)), Random(seed + 2))
        self.driver = MemoryDriver(self.env)
        self.faults = Faults(self.rng)
        self.faults.failover = Random(seed + 3).choice([0.0, 0.1])
        self.servers: list[Server] = []
        kinds = ("dropped", "repeated", "server crash", "worker crash", "freeze", "delayed", "failover")
        self.hits = dict.fromkeys(kinds, 0)
        self._wanted = servers

    async def begin(self) -> None:
        asyncio.get_running_loop().set_task_factory(_task_factory)
        await self.driver.migrate()
        if self.seed % 3 == 0:
            self.driver.before = self._between_statements
        for i in range(self._wanted):
            await self.add_server(f"server-{i}")

    async def _between_statements(self, op: object) -> None:
        """Yield to other tasks between any two statements, so that crashes can happen there."""
        await asyncio.sleep(0)

    async def add_server(self, name: str) -> None:
        server = Server(self, name)
        self.servers.append(server)
        await server.start()

    async def crash_server(self, server: Server) -> None:
        self.hits["server crash"] += 1
        self.servers.remove(server)
        await server.kill()

    async def fail_over(self) -> None:
        """Let the store fail over to a standby that has every commit."""
        self.hits["failover"] += 1
        await self.driver.write(lambda: epochs.begin_epoch(self.env.now(), detaches=True))
        self.driver.epoch_met(None)

    async def call(self, act: Callable[[ServerNode], Awaitable[T]], timeout: float = 5.0) -> T:
        """Call a random server; the request or the answer may be lost, late or repeated."""
        if not self.servers or self._happens(self.faults.drop, "dropped"):
            await self.clock.sleep(timeout)
            raise Lost
        server = self.rng.choice(self.servers)
        await self._travel()
        if not server.alive:
            raise Lost
        if self._happens(self.faults.repeat, "repeated"):
            server.spawn(self._repeat(server, act))
        handling = server.spawn(self._handle(server, act))
        waiting = asyncio.ensure_future(self.clock.sleep(timeout))
        try:
            await asyncio.wait({handling, waiting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if not handling.done() or handling.cancelled() or self._happens(self.faults.drop, "dropped"):
            handling.add_done_callback(lambda task: task.cancelled() or task.exception())
            raise Lost
        await self._travel()
        return handling.result()

    async def _handle(self, server: Server, act: Callable[[ServerNode], Awaitable[T]]) -> T:
        return await act(server.node)

    async def _repeat(self, server: Server, act: Callable[[ServerNode], Awaitable[Any]]) -> None:
        """Deliver the same request again, sooner or much later; its answer is not read."""
        await self.clock.sleep(self.rng.choice([0.0, 0.01, 1.0, 8.0]))
        try:
            await act(server.node)
        except Exception:
            return

    async def _travel(self) -> None:
        if self.faults.delay:
            self.hits["delayed"] += 1
            await self.clock.sleep(self.rng.uniform(0, self.faults.delay))

    def _happens(self, chance: float, name: str) -> bool:
        happens = chance > 0 and self.rng.random() < chance
        self.hits[name] += happens
        return happens

    async def run(self, seconds: float, until: Callable[[], Awaitable[bool]] | None = None) -> bool:
        """Let time pass: whenever no task can run, the clock jumps to the next end of a sleep."""
        end = self.clock.now() + int(seconds * SECOND)
        ticks = 0
        while self.clock.now() < end:
            await settle()
            following = self.clock.next_wake()
            self.clock.advance(max(0, min(end, following if following is not None else end) - self.clock.now()))
            ticks += 1
            if until is not None and ticks % 50 == 0 and await until():
                return True
        await settle()
        return until is not None and await until()


async def settle() -> None:
    """Run everything that can run now."""
    loop = asyncio.get_running_loop()
    for _ in range(20_000):
        await asyncio.sleep(0)
        if not loop._ready:  # type: ignore[attr-defined]
            return
    raise AssertionError("the simulation does not settle: a task loops without waiting")
