"""Fixtures of the small world on each kind of store; the invariants are checked after every test."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bench.kit.postgres import Postgres
from horae.env import Env, virtual_env
from horae.store.driver import Driver
from horae.store.open import open_store_driver
from tests.store_contract.wiping import Wiper
from tests.store_contract.world import World


@pytest.fixture(scope="session")
def shared_url(postgres: Postgres, migrated_postgres: str) -> Iterator[str]:
    """The URL of a database for all tests of this process, which is quicker to empty than to create."""
    name = f"moves_{os.getpid()}"
    postgres.execute(f'CREATE DATABASE "{name}" TEMPLATE "{migrated_postgres}"')
    yield postgres.url(name)
    postgres.drop_database(name)


@pytest.fixture(scope="session")
def wiper(shared_url: str) -> Iterator[Wiper]:
    wiper = Wiper(shared_url)
    yield wiper
    wiper.close()


@pytest.fixture
def migrated_url(shared_url: str, wiper: Wiper) -> str:
    wiper.wipe()
    return shared_url


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated file to be copied."""
    path = tmp_path_factory.mktemp("migrated") / "horae.db"

    async def migrate() -> None:
        driver = await open_store_driver(f"sqlite:///{path}", virtual_env())
        await driver.migrate()
        await driver.close()

    asyncio.run(migrate())
    return path


@pytest.fixture(params=("memory", "file", "postgres"))
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "sqlite://"
    if request.param == "file":
        shutil.copy(request.getfixturevalue("migrated_file"), tmp_path / "horae.db")
        return f"sqlite:///{tmp_path}/horae.db"
    url: str = request.getfixturevalue("migrated_url")
    return url


@pytest.fixture
async def driver(store_url: str, env: Env) -> AsyncIterator[Driver]:
    """A store of each kind; the one on PostgreSQL has all its tables."""
    driver = await open_store_driver(store_url, env)
    if driver.dialect == "sqlite":
        await driver.migrate()
    yield driver
    await driver.close()


@pytest.fixture
async def world(driver: Driver, env: Env) -> AsyncIterator[World]:
    made = World(driver, env)
    yield made
    await made.check()
