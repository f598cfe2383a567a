"""A world over each kind of store; after every test the invariants must hold."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from horae.env import Env, virtual_env
from horae.store.driver import Driver
from horae.store.open import open_store_driver
from horae.testing.postgres import Postgres
from tests.store_contract.world import World


@pytest.fixture(scope="session")
def shared_url(postgres: Postgres, migrated_postgres: str) -> Iterator[str]:
    """One database for all tests of this process: each empties it, which is quicker than making another."""
    name = f"moves_{os.getpid()}"
    postgres.execute(f'CREATE DATABASE "{name}" TEMPLATE "{migrated_postgres}"')
    yield postgres.url(name)
    postgres.drop_database(name)


@pytest.fixture
def migrated_url(shared_url: str) -> str:
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
async def world(driver: Driver, env: Env) -> AsyncIterator[World]:
    made = World(driver, env)
    if driver.dialect == "postgresql":
        await made.wipe()
    yield made
    await made.check()
