"""Stores that were copied or restored without Horae's commands: no token repeats, and no session lives on."""

import asyncio
import json
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from bench.kit.postgres import Postgres
from horae.env import Env, system_env
from horae.model.fleet.protocol import Register
from horae.store.contract import Store
from horae.store.open import open_store_driver
from tests.cli.fake_api import run


async def registered(url: str, env: Env) -> tuple[int, UUID]:
    """Return the epoch of a store, and a session in it."""
    driver = await open_store_driver(url, env)
    await driver.migrate()
    session = await Store(driver, env).register(1, Register(protocol=1, worker="w"))
    await driver.close()
    return session.epoch, session.id


async def standing(url: str, session: UUID) -> tuple[int, str]:
    """Return the epoch of a store that a server has just opened, and the state of a session."""
    driver = await open_store_driver(url, system_env())
    await driver.migrate()
    store = Store(driver, system_env())
    found = await store.session(session)
    epoch = (await store.identity()).epoch
    await driver.close()
    assert found is not None
    return epoch, found.state


def program(server: Postgres, name: str, *arguments: str) -> None:
    subprocess.run([server._program(name), *arguments], check=True, capture_output=True)


@pytest.mark.parametrize("how", ["another database", "the same database", "the same tables"])
async def test_a_restored_dump_begins_an_epoch(migrated_url: str, postgres: Postgres, tmp_path: Path, how: str):
    epoch, session = await registered(migrated_url, system_env())
    dump, url = str(tmp_path / "dump"), migrated_url
    program(postgres, "pg_dump", "--format=custom", f"--file={dump}", migrated_url)
    if how == "another database":
        url = postgres.create_database(f"restored_{migrated_url.rpartition('/')[2]}")
        program(postgres, "pg_restore", f"--dbname={url}", dump)
    elif how == "the same database":
        postgres.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public", url.rpartition("/")[2])
        program(postgres, "pg_restore", f"--dbname={url}", dump)
    else:
        postgres.execute("DELETE FROM store; DELETE FROM sessions", url.rpartition("/")[2])
        tables = ("--table=store", "--table=sessions")
        program(postgres, "pg_restore", "--data-only", *tables, f"--dbname={url}", dump)

    begun, state = await standing(url, session)
    assert (begun > epoch, state) == (True, "closed")
    assert (await standing(url, session))[0] == begun
    if url != migrated_url:
        assert await standing(migrated_url, session) == (epoch, "live")
        postgres.drop_database(url.rpartition("/")[2])


async def test_a_database_made_from_another_begins_an_epoch(migrated_url: str, postgres: Postgres):
    epoch, session = await registered(migrated_url, system_env())
    name = migrated_url.rpartition("/")[2]
    postgres.execute(f'CREATE DATABASE "copy_{name}" TEMPLATE "{name}"')

    begun, state = await standing(postgres.url(f"copy_{name}"), session)

    assert (begun > epoch, state) == (True, "closed")
    postgres.drop_database(f"copy_{name}")


async def test_upkeep_and_restarts_begin_no_epoch(own_postgres: Postgres):
    url = own_postgres.create_database("horae")
    before, session = await registered(url, system_env())
    for upkeep in ("VACUUM FULL store", "VACUUM FREEZE store", "CLUSTER store USING store_pkey"):
        own_postgres.execute(upkeep, "horae")
    own_postgres.stop("immediate")
    own_postgres.start()

    assert await standing(url, session) == (before, "live")


@pytest.fixture
def copied(own_postgres: Postgres) -> Iterator[Postgres]:
    """Start a server on a copy of another's files, taken while that one was stopped."""
    copy = Postgres(Path(tempfile.mkdtemp(prefix="horae-copy-")))
    yield copy
    copy.remove()


async def test_a_cold_copy_of_postgresql_begins_an_epoch_on_request(own_postgres: Postgres, copied: Postgres):
    url = own_postgres.create_database("horae")
    epoch, session = await registered(url, system_env())
    own_postgres.stop()
    copied._hand_over()
    source, target = own_postgres.folder / "data", copied.folder / "data"
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)
    copied.start()

    told = await asyncio.to_thread(run, None, "db", "new-epoch", "--yes", "--store", copied.url("horae"), "-o", "json")

    begun, state = await standing(copied.url("horae"), session)
    assert json.loads(told.stdout)["epoch"] == begun > epoch
    assert state == "closed"


async def test_a_copied_file_begins_an_epoch_on_request(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/horae.db"
    epoch, session = await registered(url, system_env())
    shutil.copyfile(tmp_path / "horae.db", tmp_path / "copy.db")

    told = await asyncio.to_thread(
        run, None, "db", "new-epoch", "--yes", "--store", f"sqlite:///{tmp_path}/copy.db", "-o", "json"
    )

    begun, state = await standing(f"sqlite:///{tmp_path}/copy.db", session)
    assert json.loads(told.stdout)["epoch"] == begun > epoch
    assert state == "closed"
    assert await standing(url, session) == (epoch, "live")


def test_a_new_epoch_is_asked_for_and_needs_a_store(tmp_path: Path):
    store = f"sqlite:///{tmp_path}/horae.db"

    absent = run(None, "db", "new-epoch", "--yes", "--store", store)
    run(None, "db", "upgrade", "--store", store)
    unsure = run(None, "db", "new-epoch", "--store", store)

    assert (absent.exit_code, unsure.exit_code) == (3, 2)
    with sqlite3.connect(tmp_path / "horae.db") as raw:
        assert raw.execute("SELECT value FROM store WHERE key = 'epoch'").fetchone() == ("1",)
