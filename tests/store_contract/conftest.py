"""Fixtures of stores: SQLite in memory, SQLite on a file, and PostgreSQL. Each promise is tested on all of them."""

import itertools
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bench.kit.postgres import Postgres
from horae.env import Env, VirtualClock, system_env, virtual_env
from horae.store.driver import Driver
from horae.store.open import open_store_driver

STORES = ("memory", "file", "postgres")

# DELETE, because TRUNCATE makes new files; the first rows come back when the store is opened and migrated.
EMPTY = """
DO $$
DECLARE name text;
BEGIN
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid();
    FOR name IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
        AND NOT relispartition AND relname <> 'alembic_version' LOOP
        EXECUTE format('DELETE FROM %I', name);
    END LOOP;
    ALTER TABLE namespaces ALTER id RESTART;
    ALTER TABLE queues ALTER id RESTART;
    ALTER TABLE lanes ALTER id RESTART;
END $$;
"""

_numbers = itertools.count(1)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def env(clock: VirtualClock) -> Env:
    return virtual_env(clock=clock)


@pytest.fixture(scope="session")
def migrated_postgres(postgres: Postgres) -> str:
    """The name of a migrated database, which is quicker to copy than to migrate."""
    import asyncio

    name = f"migrated_{os.getpid()}"
    url = postgres.create_database(name)

    async def migrate() -> None:
        driver = await open_store_driver(url, system_env())
        await driver.migrate()
        await driver.close()

    asyncio.run(migrate())
    postgres.execute("DELETE FROM store WHERE key = 'place'", name)  # otherwise a copy would begin a new epoch
    return name


@pytest.fixture
def migrated_url(postgres: Postgres, migrated_postgres: str) -> Iterator[str]:
    """The URL of a PostgreSQL store at HEAD, which belongs to this test."""
    name = f"store_{os.getpid()}_{next(_numbers)}"
    postgres.execute(f'CREATE DATABASE "{name}" TEMPLATE "{migrated_postgres}"')
    yield postgres.url(name)
    postgres.drop_database(name)


@pytest.fixture(scope="session")
def shared_postgres(postgres: Postgres, migrated_postgres: str) -> Iterator[str]:
    """A database that the tests of this process use one after the other."""
    name = f"shared_{os.getpid()}"
    postgres.execute(f'CREATE DATABASE "{name}" TEMPLATE "{migrated_postgres}"')
    yield name
    postgres.drop_database(name)


@pytest.fixture
def emptied_url(postgres: Postgres, shared_postgres: str) -> str:
    """The URL of a PostgreSQL store without rows, which is quicker to empty than to create."""
    postgres.execute(EMPTY, shared_postgres)
    return postgres.url(shared_postgres)


@pytest.fixture(params=STORES)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each kind; the one on PostgreSQL has its tables already."""
    if request.param == "memory":
        return "sqlite://"
    if request.param == "file":
        return f"sqlite:///{tmp_path}/horae.db"
    url: str = request.getfixturevalue("emptied_url")
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
