"""The promises of PostgreSQL's driver: deadlocks are retried, outages are survived, and an unknown commit is reported
as such.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg
import pytest

from bench.kit.postgres import Postgres
from horae.env import SECOND, Env, system_env
from horae.errors import BadInput, StoreUnavailable
from horae.store.driver import Driver, one, op_name
from horae.store.epochs import BEGINNING
from horae.store.open import Connections, open_store_driver
from horae.store.postgres.driver import PostgresDriver
from horae.store.postgres.faults import place_of
from horae.store.postgres.place import DatabasePlace
from horae.store.script import Fetch, Op, Script, Statement
from tests.store_contract.test_driver import GET, PUT
from tests.waiting import eventually

LOCK = Statement("lock", "SELECT value FROM store WHERE key = $1 FOR UPDATE")
SLEEP = Statement("sleep", "SELECT pg_sleep($1)")


async def test_a_deadlock_repeats_one_of_the_two_and_is_counted(postgres_driver: Driver):
    driver, both = postgres_driver, asyncio.Barrier(2)
    for key in "ab":
        await driver.write(one(PUT, key, "0"))
    first_tries = {"a", "b"}

    async def before(op: Op) -> None:
        if isinstance(op, Fetch) and op.statement.name == "put" and op.params[0] in first_tries:
            first_tries.discard(op.params[0])
            await both.wait()

    def script(mine: str, other: str) -> Script[None]:
        yield Fetch(LOCK, (mine,))
        yield Fetch(PUT, (other, mine))

    driver.before = before
    await asyncio.gather(driver.write(lambda: script("a", "b")), driver.write(lambda: script("b", "a")))

    assert driver.retries >= 1  # the retried script may interfere again
    assert {(await driver.read(one(GET, key)))[0][0] for key in "ab"} == {"a", "b"}


async def test_a_lock_by_name_excludes_and_frees_at_the_end(postgres_driver: Driver):
    from horae.store.script import Lock

    driver, order = postgres_driver, list[str]()
    held, going = asyncio.Event(), asyncio.Event()

    async def before(op: Op) -> None:
        order.append(op_name(op))
        if op_name(op) == "put":
            held.set()
            await going.wait()

    def script() -> Script[None]:
        yield Lock(("one", "two"))
        yield Fetch(PUT, ("a", "1"))

    driver.before = before
    first = asyncio.create_task(driver.write(script))
    await held.wait()
    second = asyncio.create_task(driver.write(script))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(second), 0.1)
    assert order == ["lock", "put", "lock"]
    going.set()
    await asyncio.gather(first, second)
    assert order == ["lock", "put", "lock", "put"]


class Proxy:
    """A proxy between driver and PostgreSQL that cuts the connection after passing on a COMMIT, before the answer."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cut = False
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection("127.0.0.1", self.port)
        down = asyncio.create_task(self._pass_on(theirs, writer))
        self._tasks |= {down, asyncio.current_task()}  # type: ignore[arg-type]
        try:
            while sent := await reader.read(65536):
                cut = self.cut and b"COMMIT" in sent
                if cut:
                    down.cancel()
                    await asyncio.wait([down])
                ours.write(sent)
                if cut:
                    await theirs.read(65536)
                    return
        except asyncio.CancelledError:
            return
        finally:
            down.cancel()
            for end in (ours, writer):
                end.transport.abort()
                with suppress(ConnectionError):
                    await end.wait_closed()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while sent := await reader.read(65536):
                writer.write(sent)


@asynccontextmanager
async def through_proxy(url: str, env: Env) -> AsyncIterator[tuple[Proxy, Driver]]:
    server, _, database = url.rpartition("/")
    proxy = Proxy(int(server.rpartition(":")[2]))
    driver = await open_store_driver(f"postgresql://postgres@127.0.0.1:{await proxy.start()}/{database}", env)
    try:
        yield proxy, driver
    finally:
        await driver.close()
        await proxy.stop()


async def test_the_outcome_of_a_commit_with_a_lost_answer_is_unknown(migrated_url: str, env: Env):
    async with through_proxy(migrated_url, env) as (proxy, driver):
        await driver.migrate()
        proxy.cut = True
        with pytest.raises(StoreUnavailable) as told:
            await driver.write(one(PUT, "a", "1"))
        proxy.cut = False

        assert told.value.fields == {"unknown": True}
        assert "nothing was changed" not in told.value.remedy
        assert await driver.read(one(GET, "a")) == [("1",)]


async def test_a_server_that_does_not_exist_is_reported(env: Env):
    with pytest.raises(StoreUnavailable, match=r"does not answer at 127\.0\.0\.1:1: ") as told:
        await open_store_driver("postgresql://postgres:secret@127.0.0.1:1/horae", env)
    assert "unknown" not in told.value.fields
    assert "host and port" in told.value.remedy
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://horae:a@b@db:5433/horae", "db:5433"),
        ("postgresql:///horae?host=/run/postgresql", "/run/postgresql"),
        ("postgresql:///horae", "its default socket"),
        ("postgresql://horae:secret@[::1/horae", "[::1/horae"),
    ],
)
def test_the_address_of_a_store_is_shown_without_secrets(url: str, place: str):
    assert place_of(url) == place


async def test_a_url_that_cannot_be_parsed_is_reported(env: Env):
    with pytest.raises(BadInput, match="URL is not valid") as told:
        await open_store_driver("postgresql://postgres@127.0.0.1:abc/horae", env)
    assert "host:5432" in told.value.remedy


async def test_a_restart_of_the_database_is_survived(own_postgres: Postgres):
    driver = await open_store_driver(own_postgres.create_database("horae"), system_env())
    await driver.migrate()
    heard: asyncio.Queue[str] = asyncio.Queue()
    await driver.listen(heard.put_nowait)

    await asyncio.to_thread(own_postgres.stop, "immediate")
    for work in (driver.write(one(PUT, "a", "1")), driver.read(one(GET, "a")), driver.ping()):
        with pytest.raises(StoreUnavailable):
            await work
    await asyncio.to_thread(own_postgres.start)

    await driver.write(one(PUT, "a", "1"))
    assert await driver.read(one(GET, "a")) == [("1",)]

    async def reached() -> bool:
        await driver.notify("again")
        return not heard.empty()

    await eventually(reached)
    await driver.close()


async def test_connections_that_broke_while_idle_are_skipped(postgres_driver: Driver):
    driver = postgres_driver
    await asyncio.gather(*(driver.write(one(SLEEP, 0.05)) for _ in range(4)))
    others = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
    kill = Statement("kill", f"SELECT count(pg_terminate_backend(pid)) {others}")
    await driver.read(one(kill))
    await asyncio.gather(*(driver.write(one(PUT, f"k{n}", "1")) for n in range(8)))

    await asyncio.gather(*(driver.read(one(SLEEP, 0.05)) for _ in range(4)))
    await driver.write(one(kill))
    await asyncio.gather(*(driver.read(one(GET, f"k{n}")) for n in range(8)))


async def test_a_write_that_finds_no_connection_gives_up_in_time(migrated_url: str, env: Env):
    driver = await PostgresDriver.open(migrated_url, env, Connections(hot=1))
    driver._hot._patience = 0.1
    blocking = asyncio.create_task(driver.write(one(SLEEP, 1.0)))
    await eventually(lambda: driver.statements["sleep"])
    with pytest.raises(StoreUnavailable, match="busy"):
        await driver.write(one(PUT, "a", "1"))
    await blocking
    await driver.write(one(PUT, "a", "1"))
    await driver.close()


async def test_a_cancelled_statement_gives_its_connection_back(migrated_url: str, env: Env):
    driver = await PostgresDriver.open(migrated_url, env, Connections(hot=1))
    for number in range(1, 4):
        writing = asyncio.create_task(driver.write(one(SLEEP, 30.0)))
        await eventually(lambda number=number: driver.statements["sleep"] == number)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
    async with asyncio.timeout(30):
        await driver.write(one(PUT, "a", "1"))
    await driver.close()


async def test_hot_statements_are_planned_for_large_tables(postgres_driver: Driver):
    names = ("enable_seqscan", "enable_sort", "enable_bitmapscan", "jit", "plan_cache_mode", "synchronous_commit")
    asked = Statement("settings", "SELECT " + ", ".join(f"current_setting('{name}')" for name in names))

    assert await postgres_driver.write(one(asked)) == [("off", "off", "off", "off", "force_generic_plan", "on")]
    assert (await postgres_driver.read(one(asked)))[0][:3] == ("on", "on", "on")


async def test_an_unsafe_default_of_the_role_is_overruled(postgres: Postgres, migrated_url: str, env: Env):
    database = migrated_url.rpartition("/")[2]
    postgres.execute(f'ALTER DATABASE "{database}" SET synchronous_commit = off')
    driver = await open_store_driver(migrated_url, env)
    shown = Statement("shown", "SELECT current_setting('synchronous_commit')")
    assert await driver.write(one(shown)) == [("on",)]
    await driver.close()


async def test_another_timeline_begins_a_new_epoch(postgres_driver: Driver, migrated_url: str, env: Env):
    await postgres_driver.write(one(Statement("old", "UPDATE store SET value = '0000FFFF' WHERE key = 'place'")))

    await postgres_driver.migrate()
    await postgres_driver.migrate()

    ((epoch,),) = await postgres_driver.read(one(GET, "epoch"))
    assert int(epoch) == (env.now() - BEGINNING) // SECOND + 1


async def test_a_failover_under_a_running_server_begins_a_new_epoch(postgres_driver: Any):
    await postgres_driver.write(one(Statement("old", "UPDATE store SET value = '0000FFFF' WHERE key = 'place'")))
    postgres_driver._connector._place = DatabasePlace("00000000", "", "")
    async with postgres_driver._connector.patient():
        pass

    ((epoch,),) = await postgres_driver.read(one(GET, "epoch"))
    assert int(epoch) > 1


async def test_a_long_snapshot_sees_one_state(postgres_driver: Driver):
    await postgres_driver.write(one(PUT, "a", "1"))
    async with postgres_driver.snapshot() as read:
        assert await read(one(GET, "a")) == [("1",)]
        await postgres_driver.write(one(PUT, "a", "2"))
        assert await read(one(GET, "a")) == [("1",)]
    assert await postgres_driver.read(one(GET, "a")) == [("2",)]


async def test_the_error_for_a_database_that_does_not_exist_has_a_remedy(postgres: Postgres, env: Env):
    with pytest.raises(BadInput, match=r'database "nowhere" does not exist.*createdb'):
        await open_store_driver(postgres.url("nowhere"), env)


async def test_a_pooler_that_refuses_settings_is_connected_without_them(
    migrated_url: str, env: Env, monkeypatch: pytest.MonkeyPatch
):
    connect = asyncpg.connect

    async def pooler(url: str, server_settings: dict[str, str], **more: Any) -> Any:
        if server_settings:
            raise asyncpg.ProtocolViolationError("unsupported startup parameter: jit")
        return await connect(url, **more)

    monkeypatch.setattr(asyncpg, "connect", pooler)
    driver = await open_store_driver(migrated_url, env)
    await driver.write(one(PUT, "a", "1"))
    await driver.close()
