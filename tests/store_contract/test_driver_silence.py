"""A database whose packets are dropped: its silence is noticed within seconds, and so is its return."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from horae.engine.server_node import ServerNode
from horae.env import Env, system_env
from horae.errors import StoreUnavailable
from horae.store.contract import Store
from horae.store.driver import Driver, one
from horae.store.open import open_store_driver
from horae.store.postgres.driver import PostgresDriver
from horae.store.script import Statement
from tests.store_contract.test_driver import GET, PUT
from tests.waiting import eventually

SLEEP = Statement("sleep", "SELECT pg_sleep($1)")
NOTICED = 5.0  # seconds; three on an idle machine
BACK = 5.0


class Hole:
    """A proxy between driver and PostgreSQL that drops everything while it is dark, without an error."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._light = asyncio.Event()
        self._light.set()
        self._lines: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)

    def dark(self) -> None:
        self._light.clear()

    def light(self, *, old_lines: bool) -> None:
        """Let everything through again, or only new connections, as if the peers of old ones had forgotten them."""
        if not old_lines:
            self._light = asyncio.Event()
        self._light.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        light = self._light
        await self._hold(light.wait())
        theirs, ours = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            await self._hold(self._both(light, (reader, ours), (theirs, writer)))
        finally:
            for end in (ours, writer):
                end.transport.abort()
                with suppress(ConnectionError):
                    await end.wait_closed()

    async def _hold(self, waiting: Any) -> None:
        task = asyncio.ensure_future(waiting)
        self._lines.add(task)
        with suppress(asyncio.CancelledError, ConnectionError):
            await task
        self._lines.discard(task)

    async def _both(self, light: asyncio.Event, *ways: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        tasks = [asyncio.create_task(self._pass_on(light, *way)) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _pass_on(self, light: asyncio.Event, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while sent := await reader.read(65536):
            await light.wait()
            writer.write(sent)


@asynccontextmanager
async def through_hole(url: str, env: Env) -> AsyncIterator[tuple[Hole, Driver]]:
    server, _, database = url.rpartition("/")
    hole = Hole(int(server.rpartition(":")[2]))
    driver = await open_store_driver(f"postgresql://postgres@127.0.0.1:{await hole.start()}/{database}", env)
    try:
        await driver.migrate()
        yield hole, driver
    finally:
        await driver.close()
        await hole.stop()


async def fails(work: Any) -> StoreUnavailable:
    async with asyncio.timeout(NOTICED):
        with pytest.raises(StoreUnavailable) as told:
            await work
    return told.value


async def works(driver: Driver) -> bool:
    with suppress(StoreUnavailable):
        await driver.write(one(PUT, "back", "1"))
        return await driver.read(one(GET, "back")) == [("1",)]
    return False


@pytest.mark.parametrize("old_lines", [True, False])
async def test_silence_is_noticed_and_so_is_its_end(migrated_url: str, old_lines: bool):
    async with through_hole(migrated_url, system_env()) as (hole, driver):
        await asyncio.gather(*(driver.write(one(SLEEP, 0.05)) for _ in range(4)), *(driver.ping() for _ in range(4)))
        hole.dark()
        # More operations than connections: those that wait for a connection fail as well.
        writes = [driver.write(one(PUT, f"k{n}", "1")) for n in range(8)]
        errors = await asyncio.gather(*map(fails, (*writes, driver.read(one(GET, "a")), driver.ping())))
        assert all("unknown" not in error.fields for error in errors)

        async with asyncio.timeout(1):  # later operations fail at once
            await fails(driver.write(one(PUT, "a", "1")))

        hole.light(old_lines=old_lines)
        await eventually(lambda: works(driver), within=BACK)


async def test_a_running_statement_fails_when_silence_begins(migrated_url: str):
    async with through_hole(migrated_url, system_env()) as (hole, driver):
        writing = asyncio.create_task(driver.write(one(SLEEP, 0.3)))
        await eventually(lambda: driver.statements["sleep"])
        hole.dark()

        await fails(writing)
        hole.light(old_lines=False)
        await eventually(lambda: works(driver), within=BACK)


async def test_the_outcome_of_a_commit_during_silence_is_unknown(migrated_url: str, monkeypatch: pytest.MonkeyPatch):
    from horae.store.postgres import driver as module

    async with through_hole(migrated_url, system_env()) as (hole, driver):
        commit = module.commit

        async def dark(connection: Any) -> None:
            hole.dark()
            await commit(connection)

        monkeypatch.setattr(module, "commit", dark)
        told = await fails(driver.write(one(PUT, "a", "1")))

        assert told.fields == {"unknown": True}


async def test_a_slow_statement_is_not_taken_for_silence(migrated_url: str):
    async with through_hole(migrated_url, system_env()) as (_, driver):
        assert isinstance(driver, PostgresDriver)
        looked: list[None] = []
        probe = driver._pulse._probe

        async def counting() -> None:
            await probe()
            looked.append(None)

        driver._pulse._probe = counting
        slow = asyncio.create_task(driver.write(one(SLEEP, 2.0)))
        await eventually(lambda: looked)
        await driver.write(one(PUT, "a", "1"))
        await slow


async def test_a_process_that_stalled_itself_concludes_nothing(migrated_url: str, env: Env):
    async with through_hole(migrated_url, env) as (_, driver):
        assert isinstance(driver, PostgresDriver)

        async def stalled() -> None:
            env.clock.advance(10_000_000)  # type: ignore[attr-defined]
            raise TimeoutError

        driver._pulse._probe = stalled
        assert await driver._pulse._answers()


async def test_connections_have_keepalives(migrated_url: str):
    async with through_hole(migrated_url, system_env()) as (_, driver):
        assert isinstance(driver, PostgresDriver)
        connection = await driver._hot.take()
        line = connection._transport.get_extra_info("socket")

        assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert line.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 3000
        driver._hot.give_back(connection)


async def test_a_server_is_not_ready_during_silence_and_goes_on_afterwards(migrated_url: str):
    env = system_env()
    async with through_hole(migrated_url, env) as (hole, driver):
        node = ServerNode(env, Store(driver, env))
        await node.start()
        hole.dark()
        await eventually(lambda: not node.ready, within=NOTICED)
        hole.light(old_lines=False)

        async def settled() -> bool:
            rows = await driver.read(one(Statement("duty", "SELECT holder FROM duties WHERE until > $1"), env.now()))
            return node.ready and set(rows) == {(node.id,)}

        await eventually(lambda: node.ready, within=BACK)
        await eventually(settled)
        await node.stop()
