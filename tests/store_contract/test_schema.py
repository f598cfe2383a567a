"""Migrations create a store once, and never go backwards; tables and views have the properties that other
code needs.
"""

import asyncio
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from alembic.script import ScriptDirectory

from horae.env import Env
from horae.errors import StoreTooNew
from horae.model.base.ids import execution_id, parcel_id
from horae.store.driver import Driver, one
from horae.store.migrations import revisions as migrations
from horae.store.migrations.revisions import HEAD, upgrade
from horae.store.open import open_store_driver
from horae.store.script import Insert, Script, Statement
from horae.store.sqlite.connection import connect
from horae.store.sqlite.migrate import upgrade_file
from tests.store_contract.test_driver_expiry import HISTORY, SLICE, WAITING
from tests.waiting import eventually

VERSION = Statement("version", "SELECT version_num FROM alembic_version")
SET_VERSION = Statement("set_version", "UPDATE alembic_version SET version_num = '9999'")


def test_head_is_the_newest_revision():
    scripts = ScriptDirectory(str(Path(migrations.__file__).parent))
    assert scripts.get_current_head() == HEAD


async def test_a_store_is_migrated_from_nothing_and_only_once(store_url: str, env: Env):
    driver = await open_store_driver(store_url, env)
    await driver.migrate()
    await driver.migrate()

    assert await driver.read(one(VERSION)) == [(HEAD,)]
    await driver.close()


async def test_servers_that_start_together_migrate_once(postgres_url: str, env: Env):
    drivers = [await open_store_driver(postgres_url, env) for _ in range(3)]
    await asyncio.gather(*(driver.migrate() for driver in drivers))

    assert await drivers[0].read(one(VERSION)) == [(HEAD,)]
    assert await drivers[0].read(one(Statement("n", "SELECT count(*) FROM namespaces"))) == [(1,)]
    for driver in drivers:
        await driver.close()


def test_a_fresh_file_equals_an_upgrade_by_alembic(tmp_path: Path):
    from sqlalchemy import create_engine

    upgrade_file(tmp_path / "fresh.db")
    with create_engine(f"sqlite:///{tmp_path / 'upgraded.db'}").connect() as connection:
        upgrade(connection)
        connection.commit()

    def made(name: str) -> list[Any]:
        connection = connect(tmp_path / name)
        try:
            assert connection.execute(VERSION.text).fetchall() == [(HEAD,)]
            text = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE '%alembic%' ORDER BY 1, 2"
            return connection.execute(text).fetchall()
        finally:
            connection.close()

    assert made("fresh.db") == made("upgraded.db")


async def test_a_store_newer_than_the_program_is_refused(driver: Driver):
    await driver.write(one(SET_VERSION))
    try:
        with pytest.raises(StoreTooNew, match=f"9999.*{HEAD}.*pip install"):
            await driver.migrate()
    finally:
        await driver.write(one(Statement("back", f"UPDATE alembic_version SET version_num = '{HEAD}'")))


async def test_the_name_of_a_deleted_job_is_free(driver: Driver, env: Env):
    columns = "id, namespace, name, version, state, created_at, updated_at"
    text = f"INSERT INTO jobs ({columns}) VALUES ($1, 1, 'a', 1, $2, 1, 1)"
    insert = Statement("job", text)
    for state in ("deleted", "deleted", "active"):
        await driver.write(one(insert, env.new_id(), state))
    with pytest.raises(Exception, match=r"(?i)unique"):
        await driver.write(one(insert, env.new_id(), "paused"))


async def test_the_view_expands_slices_of_every_shelf(driver: Driver, env: Env):
    parcel = parcel_id(env.new_id())
    queued = SLICE | {"width": ("int", 2), "lane": ("int", 1), "rank": ("bigint", 0),
                      "queued_at": ("bigint", 7)}  # fmt: skip
    running = queued | {"session": ("uuid", UUID(int=1)), "channel": ("smallint", 0), "n": ("bigint", 1),
                        "granted_at": ("bigint", 0), "started_at": ("bigint", 8)}  # fmt: skip
    shelves: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("waiting", WAITING, {"lo": 0, "hi": 2, "reason": "retry"}),
        ("waiting", WAITING, {"lo": 2, "hi": 3, "reason": "sleep"}),
        ("queued", queued, {"lo": 3, "hi": 5}),
        ("running", running, {"lo": 5, "hi": 6}),
        ("history", HISTORY, {"lo": 6, "hi": 1024, "completed_at": 9}),
    ]

    def script() -> Script[None]:
        for table, columns, values in shelves:
            row = [parcel if name == "parcel" else values.get(name, default) for name, (_, default) in columns.items()]
            yield Insert(table, tuple((name, kind) for name, (kind, _) in columns.items()), [row])

    await driver.write(script)
    rows = await driver.read(
        one(Statement("view", "SELECT id, parcel, item, state, queued_at, completed_at FROM executions ORDER BY item"))
    )

    assert [row[2] for row in rows] == list(range(1024))
    assert [UUID(row[0]) for row in rows] == [execution_id(parcel, item) for item in range(1024)]
    states = [row[3] for row in rows]
    assert states[:7] == ["waiting", "waiting", "running", "queued", "queued", "running", "success"]
    assert rows[3][4] == 7
    assert rows[1023][5] == 9


async def test_heartbeats_stay_in_their_page(postgres_driver: Driver, env: Env):
    """No index has last_seen and half of each page is free, so PostgreSQL updates in place (HOT)."""
    driver, id = postgres_driver, env.new_id()
    text = (
        "INSERT INTO sessions (id, namespace, worker, presence, capabilities, queues, concurrency, state, epoch, seen,"
        " last_seen, created_at) VALUES ($1, 1, 'w', $2, '[]', '[]', 1, 'live', 1, $3, 1, 1)"
    )
    presence = json.dumps({"labels": ["x" * 400]})
    await driver.write(one(Statement("session", text), id, presence, b"\0" * 64))
    beat = Statement("beat", "UPDATE sessions SET last_seen = last_seen + 1, seen = $2 WHERE id = $1")
    flush = Statement("flush", "SELECT 1 FROM pg_stat_force_next_flush()")
    figures = Statement(
        "figures", "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'sessions'"
    )
    seen = [(0, 0)]

    async def stays() -> bool:
        """An old snapshot of somebody else, autovacuum's say, may send some beats to another page: then once more."""
        for _ in range(100):
            await driver.write(one(beat, id, b"\1" * 64))
        await driver.write(one(flush))
        updates, hot = (await driver.write(one(figures)))[0]
        before = seen[-1]
        seen.append((updates, hot))
        return bool(updates - before[0] >= 50 and (hot - before[1]) / (updates - before[0]) > 0.95)

    await eventually(stays)


async def test_shelves_are_vacuumed_by_dead_rows(postgres_driver: Driver):
    text = "SELECT array_to_string(reloptions, ' ') FROM pg_class WHERE relname = 'queued'"
    (options,) = (await postgres_driver.read(one(Statement("options", text))))[0]
    assert "autovacuum_vacuum_scale_factor=0 autovacuum_vacuum_threshold=5000" in options
    assert "autovacuum_vacuum_cost_delay=0" in options
