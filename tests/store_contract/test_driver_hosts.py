"""A URL with several hosts: the primary is found in any position, however the others fail."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from bench.kit.postgres import Postgres
from horae.env import system_env
from horae.errors import BadInput, StoreUnavailable
from horae.store.driver import Driver, one
from horae.store.open import open_store_driver
from horae.store.postgres.driver import PostgresDriver
from horae.store.postgres.hosts import Hosts, NotPrimary, urls_of
from tests.cli.fake_api import run
from tests.replication import Pair, replicated
from tests.store_contract.test_driver import GET, PUT
from tests.store_contract.test_driver_silence import SLEEP, Hole, works
from tests.waiting import eventually


@contextmanager
def never_answers() -> Iterator[socket.socket]:
    """A host that accepts connections and sends nothing: a database that hangs."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        listener.settimeout(0)
        yield listener


@contextmanager
def drops() -> Iterator[socket.socket]:
    """A host that does not accept connections, as if all its packets were lost: its backlog is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(listener.getsockname())
        yield listener
        for each in waiting:
            each.close()


def asked(listener: socket.socket) -> int:
    """Return the number of connections since the last call."""
    count = 0
    with suppress(BlockingIOError):
        while True:
            listener.accept()[0].close()
            count += 1
    return count


def beside(listener: socket.socket, url: str) -> str:
    """Return a URL of two hosts, with this listener as the first."""
    return url.replace("@", f"@127.0.0.1:{listener.getsockname()[1]},", 1)


@pytest.mark.parametrize("hangs", [never_answers, drops])
async def test_a_first_host_that_hangs_is_skipped(postgres_url: str, hangs: Any):
    with hangs() as listener:
        url = beside(listener, postgres_url)
        driver = await open_store_driver(url, system_env())
        try:
            await driver.migrate()
            assert await works(driver)
        finally:
            await driver.close()


async def test_the_host_that_served_is_tried_first(migrated_url: str):
    with never_answers() as listener:
        driver = await open_store_driver(beside(listener, migrated_url), system_env())
        try:
            assert asked(listener) == 1
            await driver.migrate()
            heard: list[str] = []
            await driver.listen(heard.append)
            await asyncio.gather(*(driver.write(one(PUT, f"k{n}", "1")) for n in range(4)))
            await driver.notify("hint")
            await eventually(lambda: heard == ["hint"])

            assert asked(listener) == 0
        finally:
            await driver.close()


def test_commands_skip_a_host_that_hangs(postgres_url: str, tmp_path: Path):
    with never_answers() as listener:
        url = beside(listener, postgres_url)

        upgraded = run(None, "db", "upgrade", "--store", url)
        copied = run(None, "db", "backup", str(tmp_path / "copy"), "--store", url)

    assert "from nothing" in upgraded.stdout
    assert copied.exit_code == 0


async def test_hosts_that_all_hang_are_named_in_the_error(migrated_url: str):
    with never_answers() as first, never_answers() as second:
        ports = [listener.getsockname()[1] for listener in (first, second)]
        with pytest.raises(StoreUnavailable, match=f"127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}: no answer in time"):
            await open_store_driver(f"postgresql://postgres@127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}/x", system_env())


async def test_the_refusal_of_a_primary_is_reported_before_a_host_that_hangs(postgres: Postgres):
    with never_answers() as listener, pytest.raises(BadInput, match="nowhere"):
        await open_store_driver(beside(listener, postgres.url("nowhere")), system_env())


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Driver]:
    driver = await open_store_driver(url, system_env())
    try:
        await driver.migrate()
        yield driver
    finally:
        await driver.close()


@pytest.fixture
async def pair(own_postgres: Postgres) -> AsyncIterator[Pair]:
    own_postgres.create_database("horae")
    with replicated(own_postgres) as pair:
        yield pair


async def test_connections_move_from_a_silent_primary_to_the_new_one(pair: Pair):
    hole = Hole(pair.primary.port)
    hosts = f"127.0.0.1:{await hole.start()},127.0.0.1:{pair.standby.port}"
    try:
        async with opened(f"postgresql://postgres@{hosts}/horae") as driver:
            await asyncio.gather(*(driver.write(one(PUT, f"k{n}", "1")) for n in range(4)))
            await pair.catch_up()
            hole.dark()
            waiting = asyncio.gather(*(driver.write(one(PUT, f"l{n}", "1")) for n in range(8)), return_exceptions=True)
            pair.fail_over()

            await eventually(lambda: works(driver), within=15)

            assert pair.standby.execute("SELECT value FROM store WHERE key = 'back'", "horae").strip() == "1"
            async with asyncio.timeout(30):
                await waiting
    finally:
        await hole.stop()


async def test_operations_on_a_hanging_primary_behind_a_proxy_fail_after_a_failover(pair: Pair):
    """The proxy leads new connections elsewhere and keeps the old ones, which would wait until their timeout."""
    proxy = Hole(pair.primary.port)
    try:
        async with opened(f"postgresql://postgres@127.0.0.1:{await proxy.start()}/horae") as driver:
            await asyncio.gather(*(driver.read(one(SLEEP, 0.1)) for _ in range(4)))
            await pair.catch_up()
            pair.promote()
            proxy.dark()
            proxy.port = pair.standby.port
            proxy.light(old_lines=False)

            async with asyncio.timeout(30):
                await asyncio.gather(*(driver.read(one(GET, "epoch")) for _ in range(8)), return_exceptions=True)
                assert await driver.read(one(GET, "epoch"))
    finally:
        await proxy.stop()


async def test_a_standby_is_skipped_and_refused_when_alone(pair: Pair):
    pair.primary, pair.standby = pair.standby, pair.primary
    async with opened(pair.url("horae")) as driver:
        pair.primary, pair.standby = pair.standby, pair.primary
        await driver.write(one(PUT, "a", "1"))
        await pair.catch_up()
    with pytest.raises(StoreUnavailable, match="standby"):
        await open_store_driver(pair.standby.url("horae"), system_env())


async def test_a_former_primary_that_returns_is_refused(pair: Pair):
    async with opened(pair.url("horae")) as driver:
        await pair.catch_up()
        pair.fail_over()
        await eventually(lambda: works(driver))
        pair.primary.start()
        pair.standby.stop("immediate")

        with pytest.raises(StoreUnavailable):
            await driver.write(one(PUT, "split", "1"))
        assert pair.primary.execute("SELECT count(*) FROM store WHERE key = 'split'", "horae").strip() == "0"
        pair.standby.start()
        await eventually(lambda: works(driver))


async def test_a_former_primary_that_returns_serves_no_long_statement(pair: Pair):
    async with opened(pair.url("horae")) as driver:
        assert isinstance(driver, PostgresDriver)
        await pair.catch_up()
        pair.fail_over()
        await eventually(lambda: works(driver))
        pair.primary.start()

        for _ in range(20):
            await driver._connector.probe()

            assert driver._connector._hosts.served.endswith(f":{pair.standby.port}/horae")


@pytest.mark.parametrize(
    ("url", "each"),
    [
        ("postgresql://db/x", ["postgresql://db/x"]),
        ("postgresql:///x", ["postgresql:///x"]),
        ("postgresql:///x?host=/run/pg", ["postgresql:///x?host=/run/pg"]),
        (
            "postgresql://u:p%40@a:1,[::1]:2,c/x?sslmode=require",
            [f"postgresql://u:p%40@{host}/x?sslmode=require" for host in ("a:1", "[::1]:2", "c")],
        ),
        (
            "postgresql:///x?host=a,b&port=1,2&user=u",
            ["postgresql:///x?host=a&port=1&user=u", "postgresql:///x?host=b&port=2&user=u"],
        ),
        (
            "postgresql:///x?host=a,b&port=1",
            ["postgresql:///x?host=a&port=1", "postgresql:///x?host=b&port=1"],
        ),
        ("postgresql:///x?host=a,b", ["postgresql:///x?host=a", "postgresql:///x?host=b"]),
    ],
)  # fmt: skip
def test_each_host_has_a_url(url: str, each: list[str]):
    assert urls_of(url) == each


async def test_the_most_informative_error_is_raised():
    errors = {
        "a": NotPrimary("standby"), "b": ConnectionRefusedError("refused"),
        "c": asyncpg.CannotConnectNowError("starting"), "d": asyncpg.InvalidPasswordError("password"),
    }  # fmt: skip

    async def fails(url: str) -> None:
        raise errors[url.removeprefix("postgresql://")]

    for named, told in (("a,b", "refused"), ("a,b,c", "starting"), ("a,d,b", "password"), ("a", "standby")):
        for tried in (Hosts(f"postgresql://{named}").first, Hosts(f"postgresql://{named}").any):
            with pytest.raises(Exception, match=told):
                await tried(fails)
