"""A real PgBouncer: by session it works as without it, by transaction with PostgreSQL's own URL in addition."""

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from bench.kit.postgres import UNPRIVILEGED
from horae.env import Env, system_env
from horae.errors import StoreUnavailable
from horae.store.driver import Driver, one
from horae.store.open import Connections, open_store_driver
from horae.store.script import Fetch, Script, Statement
from tests.store_contract.life import live_through
from tests.store_contract.test_driver import GET, PUT
from tests.store_contract.world import World
from tests.waiting import eventually

MODES = ("session", "transaction")
SERVERS = 3  # connections of the pooler, fewer than those of a driver
ADD = Statement("add", "SELECT $1::bigint + 1")
SETTINGS = Statement(
    "settings",
    "SELECT current_setting('enable_seqscan'), current_setting('statement_timeout'),"
    " current_setting('synchronous_commit'), current_setting('TimeZone')",
)


@pytest.fixture(scope="session")
def pgbouncer() -> str:
    """Return the program."""
    path = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if path is None:
        missing = "pgbouncer is not on PATH; `make test` as root installs it, or: apt-get install pgbouncer"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return path


@asynccontextmanager
async def pooling(program: str, folder: Path, url: str, mode: str) -> AsyncIterator[str]:
    """Start a pooler before the database at a URL, and return the URL through it."""
    parts, port, file = urlsplit(url), free_port(), folder / "pgbouncer.ini"
    servers = SERVERS if mode == "transaction" else 20
    file.write_text(
        f"[databases]\n* = host=127.0.0.1 port={parts.port} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\ndefault_pool_size = {servers}\n"
    )
    # Like PostgreSQL, it refuses to run as root; the settings are sent to its standard input.
    who = {"user": UNPRIVILEGED} if os.geteuid() == 0 else {}
    with file.open() as settings, (folder / "pgbouncer.log").open("w") as log:
        process = subprocess.Popen([program, "/dev/stdin"], stdin=settings, stdout=log, stderr=log, cwd="/", **who)
        try:
            await eventually(lambda: answers(port), within=20)
            yield urlunsplit(parts._replace(netloc=f"postgres@127.0.0.1:{port}"))
        finally:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@asynccontextmanager
async def opened(url: str, env: Env, direct: str = "") -> AsyncIterator[Driver]:
    driver = await open_store_driver(url, env, connections=Connections(direct=direct))
    try:
        yield driver
    finally:
        await driver.close()


@pytest.fixture(params=MODES)
async def pooled(request, pgbouncer: str, tmp_path: Path, migrated_url: str) -> AsyncIterator[Driver]:
    """Open a store behind a pooler of each kind, migrated through it."""
    direct = migrated_url if request.param == "transaction" else ""
    async with (
        pooling(pgbouncer, tmp_path, migrated_url, request.param) as url,
        opened(url, system_env(), direct) as driver,
    ):
        await driver.migrate()
        yield driver


async def test_transactions_and_reads_beside_each_other(pooled: Driver):
    def script(i: int) -> Script[int]:
        yield Fetch(PUT, (f"key {i % 7}", str(i)))
        ((found,),) = yield Fetch(ADD, (i,))
        return int(found)

    written = await asyncio.gather(*(pooled.write(lambda i=i: script(i), hot=i % 2 == 0) for i in range(60)))
    read = await asyncio.gather(*(pooled.read(one(ADD, i)) for i in range(60)))

    assert written == [i + 1 for i in range(60)]
    assert read == [[(i + 1,)] for i in range(60)]
    assert len(await pooled.read(one(GET, "key 3"))) == 1


async def test_settings_depend_on_the_kind_of_work(pooled: Driver):
    hot, cold = await pooled.write(one(SETTINGS)), await pooled.write(one(SETTINGS), hot=False)

    assert hot == [("off", "10s", "on", "UTC")]
    assert cold == await pooled.read(one(SETTINGS)) == [("on", "1min", "on", "UTC")]


async def test_acknowledged_writes_are_on_disk_whatever_the_role_says(pgbouncer, tmp_path, migrated_url):
    async with opened(migrated_url, system_env()) as driver:
        name = urlsplit(migrated_url).path[1:]
        await driver.read(one(Statement("careless", f'ALTER DATABASE "{name}" SET synchronous_commit = off')))
    async with (
        pooling(pgbouncer, tmp_path, migrated_url, "transaction") as url,
        opened(url, system_env(), migrated_url) as driver,
    ):
        assert (await driver.write(one(SETTINGS)))[0][2] == "on"


async def test_notifications_are_received(pooled: Driver):
    heard: list[str] = []
    await pooled.listen(heard.append)

    await pooled.notify("hello")

    await eventually(lambda: heard == ["hello"])


async def add_again_and_again(driver: Driver) -> None:
    for _ in range(20):
        await asyncio.gather(*(driver.write(one(ADD, i)) for i in range(20)))


async def test_the_error_for_an_undeclared_transaction_pooler_has_a_remedy(pgbouncer, tmp_path, migrated_url):
    async with (
        pooling(pgbouncer, tmp_path, migrated_url, "transaction") as url,
        opened(url, system_env()) as driver,
    ):
        with pytest.raises(StoreUnavailable, match="another connection") as told:
            await add_again_and_again(driver)

    assert "HORAE_STORE_DIRECT" in told.value.remedy


async def test_all_daily_statements_work(pooled: Driver, env: Env):
    await live_through(World(pooled, env))
