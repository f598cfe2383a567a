"""Every promise of the store runs on each of these: SQLite in memory, SQLite on a file, PostgreSQL."""

import itertools
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from horae.env import Env, VirtualClock, system_env, virtual_env
from horae.store.driver import Driver
from horae.store.open import open_store_driver
from horae.testing.postgres import Postgres

STORES = ("memory", "file", "postgres")

_numbers = itertools.count(1)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def env(clock: VirtualClock) -> Env:
    return virtual_env(clock=clock)


@pytest.fixture(scope="session")
def migrated_postgres(postgres: Postgres) -> str:
    """The name of a migrated database; a copy of it is made quicker than the migration runs."""
    import asyncio

    name = f"migrated_{os.getpid()}"
    url = postgres.create_database(name)

    async def migrate() -> None:
        driver = await open_store_driver(url, system_env())
        await driver.migrate()
        await driver.close()

    asyncio.run(migrate())
    return name


@pytest.fixture
def migrated_url(postgres: Postgres, migrated_postgres: str) -> Iterator[str]:
    """The URL of a PostgreSQL store at HEAD, this test's own."""
    name = f"store_{os.getpid()}_{next(_numbers)}"
    postgres.execute(f'CREATE DATABASE "{name}" TEMPLATE "{migrated_postgres}"')
    yield postgres.url(name)
    postgres.drop_database(name)


@pytest.fixture(params=STORES)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each kind; PostgreSQL's is migrated already."""
    if request.param == "memory":
        return "sqlite://"
    if request.param == "file":
        return f"sqlite:///{tmp_path}/horae.db"
    url: str = request.getfixturevalue("migrated_url")
    return url


@pytest.fixture
async def driver(store_url: str, env: Env) -> AsyncIterator[Driver]:
    """A migrated store of each kind."""
    driver = await open_store_driver(store_url, env)
    await driver.migrate()
    yield driver
    await driver.close()


@pytest.fixture
async def memory_driver(env: Env) -> AsyncIterator[Driver]:
    driver = await open_store_driver("sqlite://", env)
    await driver.migrate()
    yield driver
    await driver.close()


@pytest.fixture
async def file_driver(tmp_path: Path, env: Env) -> AsyncIterator[Driver]:
    driver = await open_store_driver(f"sqlite:///{tmp_path}/horae.db", env)
    await driver.migrate()
    yield driver
    await driver.close()


@pytest.fixture
async def postgres_driver(migrated_url: str, env: Env) -> AsyncIterator[Driver]:
    driver = await open_store_driver(migrated_url, env)
    await driver.migrate()
    yield driver
    await driver.close()
