"""A complete Horae for a test: a server, a worker and a store in memory, on a clock that jumps over waits.

    with server(app) as horae:
        execution = horae.sync.run("etl", day="2026-11-15")
        assert execution.result == {"rows": 3}

This is the real engine, so that everything except time behaves as in production. While a call of `run` or `finish`
waits and no job runs, the clock jumps to the next instant at which something is due.
"""

import asyncio
import logging
import threading
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import structlog

from horae.client.app import App
from horae.client.client import Client
from horae.client.loops import on_home_loop
from horae.client.sync import SyncProxy
from horae.client.transport.embedded import EmbeddedTransport
from horae.client.views import ExecutionInfo
from horae.engine.server_node import ServerNode
from horae.engine.settings import DAY, EngineSettings
from horae.env import SECOND, Env, Instant, Micros, SystemClock, VirtualClock, steady_time, system_env
from horae.server.app import Application
from horae.store.contract import Store
from horae.store.executions.leaving import timeouts
from horae.store.sqlite.memory import MemoryDriver
from horae.store.workflows import due as workflow_due
from horae.testing.inline import Waits
from horae.worker.gateway_transport import GatewayTransport
from horae.worker.settings import WorkerSettings
from horae.worker.worker import WorkerRuntime

REAL = SystemClock()
KEY = "horae-testing-" + "0" * 32
MASTER_KEY = b64encode(bytes(32)).decode()  # for the secrets of tests, which need no protection
SESSION_TIMEOUT = 10 * 365 * DAY  # so long that the worker is not lost when the clock jumps
PULSE = 0.002  # real seconds between two checks
# The virtual time that must pass without work before the clock jumps: every service polls the store once a second.
QUIET_BEFORE_JUMP = SECOND + SECOND // 10
MAX_CHECKS = 600  # checks in a row after which `finish` fails because an execution is queued but does not start


class Server:
    """The running Horae of a test. Its methods can be awaited on any event loop; `sync` has blocking versions of them.

    With `schedules`, the schedules and triggers of the app's jobs fire.
    """

    def __init__(self, app: App, secrets: Mapping[str, str], schedules: bool) -> None:
        self._app, self._secrets, self._schedules = app, secrets, schedules
        self._clock = VirtualClock(REAL.now())
        self._began = self._clock.now()
        self._loop = asyncio.new_event_loop()
        self.sync: Any = SyncProxy(self)

    @property
    def slept(self) -> float:
        """Return the seconds that have passed on the server's clock."""
        return (self._clock.now() - self._began) / SECOND

    async def run(self, job: Any, /, **params: Any) -> ExecutionInfo:
        """Submit a job or a workflow, given as its function or its name, and return its execution when it has ended."""
        return await self.finish(await self.client.submit(getattr(job, "name", job), params))

    async def finish(self, execution: ExecutionInfo | str, meanwhile: "Meanwhile | None" = None) -> ExecutionInfo:
        """Return an execution when it has ended. Raises Waits when it waits for something that will not happen.

        `meanwhile` is called whenever nothing runs, before the clock jumps. If it returns True, it has done something,
        and the clock does not jump.
        """
        execution_id = execution if isinstance(execution, str) else execution.id
        ended: ExecutionInfo = await on_home_loop(self._loop, self._finish(execution_id, meanwhile))
        return ended

    # The following methods run on the server's own event loop.

    async def start(self) -> None:
        """Start everything. If this fails, stop what has been started."""
        async with AsyncExitStack() as started:
            await self._start(started)
            self._started = started.pop_all()

    async def stop(self) -> None:
        await self._started.aclose()

    async def _start(self, started: AsyncExitStack) -> None:
        env = Env(self._clock, (own := system_env()).ids, own.rng)
        driver = MemoryDriver(env)
        await driver.migrate()
        settings = EngineSettings(session_timeout=SESSION_TIMEOUT, master_keys=MASTER_KEY)
        self._node = ServerNode(env, Store(driver, env), settings)
        started.push_async_callback(self._node.stop)
        await self._node.start()
        await self._node.tenancy.keys.ensure_admin_key(KEY)
        self.client = Client(key=KEY, transport=EmbeddedTransport(Application(self._node)))
        started.push_async_callback(_cancelled, asyncio.ensure_future(self._tick()))
        for name, value in self._secrets.items():
            await self.client.secrets.set(name, value)
        for document in self._app.definitions():
            timed = {} if self._schedules else {"schedule": None, "triggers": None}
            await self.client.jobs.apply({**document, **timed})
        queues = {document.get("queue", "default"): None for document in self._app.definitions()}
        about = WorkerSettings(name="test", queues=("default", *(queue for queue in queues if queue != "default")))
        self._worker = WorkerRuntime(env, about, GatewayTransport(self._node), self._app)
        started.push_async_callback(self._stop_worker, asyncio.ensure_future(self._worker.run()))

    async def _stop_worker(self, running: asyncio.Future[Any]) -> None:
        self._worker.abort()
        await running

    async def _tick(self) -> None:
        """Advance the virtual clock as fast as real time, so that code that reads the clock sees time pass."""
        last = steady_time()
        while True:
            await REAL.sleep(PULSE)
            now = steady_time()
            self._clock.advance(now - last)
            last = now

    async def _finish(self, execution_id: str, meanwhile: "Meanwhile | None") -> ExecutionInfo:
        since, patience = self._clock.now(), MAX_CHECKS  # `since`: nothing has run since this instant
        while not (execution := await self.client.executions.get(execution_id)).is_final:
            if not await self._is_idle():
                await REAL.sleep(PULSE)
                since = self._clock.now()
            elif self._clock.now() < since + QUIET_BEFORE_JUMP:
                self._clock.advance(self._step(since + QUIET_BEFORE_JUMP))
            else:
                if meanwhile is None or not await meanwhile(execution):
                    patience = await self._jump(execution, patience)
                since = self._clock.now()
        return execution

    def _step(self, until: Instant) -> Micros:
        """Return the time until a service wakes, but not beyond `until`, so that every service can poll the store."""
        return max(1, min(until, self._clock.next_wake() or until) - self._clock.now())

    async def _is_idle(self) -> bool:
        """Return whether no job runs and no callback is pending."""
        for _ in range(3):
            await settle()
            session = self._worker.session
            if session is None or not session.stock.is_empty:
                return False
        return True

    async def _jump(self, execution: ExecutionInfo, patience: int) -> int:
        """Move the clock to the next instant at which something is due, and return the new `patience`.

        While an execution is queued, the clock does not jump, because that execution may start at any moment; only
        `patience` is reduced.
        """
        queued = any(queue.raw.get("queued") for queue in await self.client.queues.list())
        due = await self._due()
        if queued and patience:
            return patience - 1
        if queued or due is None:
            told = await self.client.executions.explain(execution.id)
            raise Waits(f"{execution.job_name} waits: {told.summary}")
        self._clock.advance(max(0, due - self._clock.now()))
        return MAX_CHECKS

    async def _due(self) -> Instant | None:
        """Return the next instant at which something in the store is due, or None."""
        store = self._node.store
        found = [await store.next_wake(), await store.next_join(), await store.next_fire_at()]
        found += [await store.read(timeouts.next_due), await store.look_up(workflow_due.next_due)]
        return min((at for at in found if at is not None), default=None)


Meanwhile = Callable[[ExecutionInfo], Awaitable[bool]]


async def _cancelled(task: asyncio.Future[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def settle() -> None:
    """Run all callbacks of this event loop that can run without waiting."""
    loop: Any = asyncio.get_running_loop()
    for _ in range(10_000):
        await REAL.sleep(0)
        if not loop._ready:
            return


@contextmanager
def server(app: App, *, secrets: Mapping[str, str] | None = None, schedules: bool = False) -> Iterator[Server]:
    """Run a server and a worker with an app's jobs in a separate thread, during a `with` block.

    In this block, `app.client` is connected to the server. Schedules and triggers of the jobs fire only if `schedules`
    is true.
    """
    made = Server(app, secrets or {}, schedules)
    thread = threading.Thread(target=made._loop.run_forever, name="horae-testing", daemon=True)
    thread.start()
    quiet = not structlog.is_configured()
    if quiet:  # without a logging setup, show only the test's own output
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    try:
        asyncio.run_coroutine_threadsafe(made.start(), made._loop).result()
        try:
            with app.with_client(made.client):
                yield made
        finally:
            asyncio.run_coroutine_threadsafe(made.stop(), made._loop).result()
    finally:
        made._loop.call_soon_threadsafe(made._loop.stop)
        thread.join()
        made._loop.close()
        if quiet:
            structlog.reset_defaults()
