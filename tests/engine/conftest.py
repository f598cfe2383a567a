"""Fixtures: a world over each kind of store, as in the contract tests. After every test the invariants are checked."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bench.kit.postgres import Postgres
from horae.env import Env, VirtualClock, system_env, virtual_env
from horae.store.driver import Driver
from horae.store.open import open_store_driver
from tests.engine.explain_stage import Stage, staged
from tests.store_contract.wiping import Wiper
from tests.store_contract.world import World


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def env(clock: VirtualClock) -> Env:
    return virtual_env(clock=clock)


async def migrated(url: str, env: Env) -> None:
    driver = await open_store_driver(url, env)
    await driver.migrate()
    await driver.close()


@pytest.fixture(scope="session")
def engine_database(postgres: Postgres) -> Iterator[str]:
    """Return a migrated database for all tests of this process; it is emptied before each test."""
    name = f"engine_{os.getpid()}"
    url = postgres.create_database(name)
    asyncio.run(migrated(url, system_env()))
    yield url
    postgres.drop_database(name)


@pytest.fixture(scope="session")
def wiper(engine_database: str) -> Iterator[Wiper]:
    wiper = Wiper(engine_database)
    yield wiper
    wiper.close()


@pytest.fixture
def emptied_database(wiper: Wiper, engine_database: str) -> str:
    """Return the emptied database."""
    wiper.wipe()
    return engine_database


@pytest.fixture(scope="session")
def engine_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a migrated file to be copied."""
    path = tmp_path_factory.mktemp("migrated") / "horae.db"
    asyncio.run(migrated(f"sqlite:///{path}", virtual_env()))
    return path


@pytest.fixture(params=("memory", "file", "postgres"))
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "sqlite://"
    if request.param == "file":
        shutil.copy(request.getfixturevalue("engine_file"), tmp_path / "horae.db")
        return f"sqlite:///{tmp_path}/horae.db"
    url: str = request.getfixturevalue("emptied_database")
    return url


@pytest.fixture
async def driver(store_url: str, env: Env) -> AsyncIterator[Driver]:
    """Return a store of each kind."""
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


@pytest.fixture
async def stage(world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    """Return a node over the world. Tests call the steps of its services."""
    async with staged(world, monkeypatch) as made:
        yield made
