"""A stage on a database of this process."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from bench.kit.postgres import Postgres
from horae.env import system_env
from horae.store.open import open_store_driver
from tests.races.stage import Stage


@pytest.fixture(scope="session")
def stage_url(postgres: Postgres) -> Iterator[str]:
    name = f"races_{os.getpid()}"
    url = postgres.create_database(name)

    async def migrate() -> None:
        driver = await open_store_driver(url, system_env())
        await driver.migrate()
        await driver.close()

    asyncio.run(migrate())
    yield url
    postgres.drop_database(name)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stage(stage_url: str) -> AsyncIterator[Stage]:
    made = await Stage.open(stage_url)
    yield made
    await made.close()
