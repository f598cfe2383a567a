"""All rows move from store to store, and backups restore them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from horae.env import SECOND, Env, VirtualClock
from horae.errors import BadInput, Conflict, HoraeError
from horae.model.base.ids import parcel_id
from horae.model.fleet.server import ServerProcess
from horae.store import epochs
from horae.store.copying import backup, transfer
from horae.store.driver import Driver, one
from horae.store.fleet import sessions
from horae.store.open import open_store_driver
from horae.store.schema import all_tables as schema
from horae.store.script import ColumnType, Fetch, Insert, Script, Statement

SAMPLES: dict[ColumnType, object] = {
    "uuid": UUID(int=7), "int": 3, "bigint": 1 << 60, "smallint": 5, "text": "grüße\n", "bytea": b"\x00\xff" * 8,
    "bool": True, "float": 0.25,
}  # fmt: skip
JOB = (
    "INSERT INTO jobs (id, namespace, name, version, state, created_at, updated_at)"
    " VALUES ($1, 1, $2, 1, 'active', 1, 1)"
)
SESSION = (
    "INSERT INTO sessions (id, namespace, worker, presence, capabilities, queues, concurrency, state, epoch, seen,"
    " last_seen, created_at) VALUES ($1, 1, 'w', '{}', '[]', '[]', 1, 'live', 1, $2, 1, 1)"
)
EPOCH = Statement("epoch", "SELECT value FROM store WHERE key = 'epoch'")


async def fill(driver: Driver, env: Env) -> None:
    """Insert rows with every kind of value, and nulls, into every table."""

    def script() -> Script[None]:
        for table in schema.metadata.sorted_tables:
            yield Insert(table.name, transfer.kinds(table), samples(table, env))
        yield Fetch(Statement("nobody_serves", "UPDATE servers SET last_seen = 1"))

    await driver.write(script)


def samples(table: Any, env: Env) -> list[list[object]]:
    """Return two rows of a table: one with every kind of value, and one with nulls."""
    columns = transfer.kinds(table)
    rows = [[SAMPLES[kind] for _, kind in columns] for _ in range(2)]
    for number, row in enumerate(rows):
        for place, column in enumerate(table.columns):
            if column.primary_key or column.unique or any(column.name in i.columns for i in table.indexes):
                row[place] = distinct(columns[place][1], number, env)
            elif column.nullable and number:
                row[place] = None
    return rows


def distinct(kind: ColumnType, number: int, env: Env) -> object:
    if kind == "uuid":
        return parcel_id(env.new_id())
    if kind == "text":
        return f"value {number}"
    return b"%d" % number if kind == "bytea" else number + 100


async def sums(driver: Driver) -> transfer.Sums:
    async with driver.snapshot() as read:
        return await transfer.each_table(read, ignore)


async def ignore(*_: object) -> None:
    pass


@asynccontextmanager
async def opened(url: str, env: Env) -> AsyncIterator[Driver]:
    driver = await open_store_driver(url, env)
    try:
        await driver.migrate()
        yield driver
    finally:
        await driver.close()


@pytest.mark.parametrize("direction", ["to postgres", "to sqlite"])
async def test_all_rows_move_to_the_other_kind_of_store(direction: str, tmp_path: Path, migrated_url: str, env: Env):
    urls = [f"sqlite:///{tmp_path}/horae.db", migrated_url]
    source_url, target_url = urls if direction == "to postgres" else reversed(urls)
    async with opened(source_url, env) as source:
        await fill(source, env)
        before = await sums(source)

    moved = await transfer.migrate(source_url, target_url, env)

    assert moved == before
    assert all(total.rows >= 2 for total in moved.values())
    async with opened(target_url, env) as target:
        after = await sums(target)
        assert [name for name in before if before[name] != after[name]] in ([], ["store"])  # it records its timeline
        made = Statement("make", "INSERT INTO lanes (namespace, queue, needs) VALUES (1, 1, '[]') RETURNING id")
        assert (await target.write(one(made)))[0][0] == 102


async def test_a_store_in_use_is_not_overwritten(tmp_path: Path, env: Env):
    async with opened(f"sqlite:///{tmp_path}/a.db", env) as source:
        await fill(source, env)
        async with opened(f"sqlite:///{tmp_path}/b.db", env) as target:
            await fill(target, env)
            before = await sums(target)
            with pytest.raises(Conflict, match="not empty"):
                await transfer.copy(source, target)
            assert await sums(target) == before


async def test_a_copy_that_differs_is_reported(tmp_path: Path, env: Env):
    async with opened(f"sqlite:///{tmp_path}/a.db", env) as source:
        await fill(source, env)
        async with source.snapshot() as read:
            found = await transfer.each_table(read, ignore)
        await source.write(one(Statement("change", "UPDATE jobs SET version = version + 1")))
        with pytest.raises(HoraeError, match="differs in jobs"):
            await transfer.compare(found, source)


@pytest.mark.parametrize("store_url", ["file", "postgres"], indirect=True)
async def test_a_backup_brings_the_store_back_in_a_new_epoch(store_url: str, tmp_path: Path, env: Env):
    file = tmp_path / "backup"
    async with opened(store_url, env) as driver:
        await driver.write(one(Statement("job", JOB), env.new_id(), "kept"))
        await driver.write(one(Statement("session", SESSION), env.new_id(), b""))
        await backup.backup(driver, file, env)
        await driver.write(one(Statement("job", JOB), env.new_id(), "made after the backup"))

    with pytest.raises(Conflict, match="--replace"):
        await backup.restore(file, store_url, env)
    epoch = (env.now() - epochs.BEGINNING) // SECOND + 1
    assert await backup.restore(file, store_url, env, replace=True) == epoch

    async with opened(store_url, env) as driver:
        assert await driver.read(one(Statement("jobs", "SELECT name FROM jobs"))) == [("kept",)]
        assert await driver.read(one(EPOCH)) == [(str(epoch),)]
        assert await driver.read(one(Statement("sessions", "SELECT state FROM sessions"))) == [("closed",)]

    again = await backup.restore(file, store_url, env, replace=True)  # in the same second
    assert again == epoch + 1


async def test_one_backup_restored_in_two_places_begins_two_epochs(
    postgres_driver: Driver, tmp_path: Path, clock: VirtualClock, env: Env
):
    """Neither store knows of the other, and both send tokens to the same outside world."""
    async with opened(f"sqlite:///{tmp_path}/old.db", env) as old:
        await backup.backup(old, tmp_path / "file", env)
    await backup.backup(postgres_driver, tmp_path / "portable", env)

    began = []
    for place, name in enumerate(("file", "portable", "file")):
        clock.advance(SECOND)
        began.append(await backup.restore(tmp_path / name, f"sqlite:///{tmp_path}/new{place}.db", env))
    assert began == sorted(set(began))
    assert began[-1] << 32 < 1 << 63


@pytest.mark.parametrize("store_url", ["file", "postgres"], indirect=True)
async def test_an_interrupted_restore_leaves_the_store_unchanged(
    store_url: str, postgres_driver: Driver, tmp_path: Path, env: Env, monkeypatch: pytest.MonkeyPatch
):
    await fill(postgres_driver, env)
    await backup.backup(postgres_driver, tmp_path / "b", env)
    async with opened(store_url, env) as driver:
        await driver.write(one(Statement("job", JOB), env.new_id(), "mine"))
        before = await sums(driver)
    read, count = backup._row, 0

    def broken(*args: Any) -> Any:
        nonlocal count
        count += 1
        if count > 30:
            raise RuntimeError("the disk is gone")
        return read(*args)

    monkeypatch.setattr(backup, "_row", broken)
    with pytest.raises(RuntimeError, match="the disk is gone"):
        await backup.restore(tmp_path / "b", store_url, env, replace=True)

    async with opened(store_url, env) as driver:
        assert await sums(driver) == before


async def test_a_restored_file_replaces_the_old_one_with_its_new_epoch_or_not_at_all(
    tmp_path: Path, env: Env, monkeypatch: pytest.MonkeyPatch
):
    url = f"sqlite:///{tmp_path}/horae.db"
    async with opened(url, env) as driver:
        await backup.backup(driver, tmp_path / "b", env)
        await driver.write(one(Statement("job", JOB), env.new_id(), "mine"))
        before = await sums(driver)

    def broken(*_: object) -> Script[int]:
        yield Fetch(Statement("clear", "DELETE FROM store"))
        raise OSError("killed")

    monkeypatch.setattr(epochs, "renew", broken)
    with pytest.raises(OSError, match="killed"):
        await backup.restore(tmp_path / "b", url, env, replace=True)

    async with opened(url, env) as driver:
        assert await sums(driver) == before


async def test_an_interrupted_copy_leaves_an_empty_store(tmp_path: Path, env: Env, monkeypatch: pytest.MonkeyPatch):
    async with opened(f"sqlite:///{tmp_path}/a.db", env) as source, opened(f"sqlite:///{tmp_path}/b.db", env) as target:
        await fill(source, env)

        async def broken(*_: object) -> None:
            raise HoraeError("The copy differs.")

        monkeypatch.setattr(transfer, "compare", broken)
        with pytest.raises(HoraeError, match="differs"):
            await transfer.copy(source, target)
        await transfer.refuse_occupied(target)


@pytest.mark.parametrize(("url", "place"), [("http://a", "http://a"), ("", "vm, process 7")])
@pytest.mark.parametrize("command", ["restore", "migrate"])
async def test_a_store_with_running_servers_is_not_changed(
    command: str, url: str, place: str, migrated_url: str, tmp_path: Path, env: Env
):
    async with opened(migrated_url, env) as driver:
        await backup.backup(driver, tmp_path / "b", env)
        serving = ServerProcess(id=env.new_id(), url=url, host="vm", pid=7, version="1", roles=("scheduler",))
        await driver.write(lambda: sessions.record_server(serving, env.now()))
        before = await sums(driver)

    if command == "restore":
        refused = backup.restore(tmp_path / "b", migrated_url, env, replace=True)
    else:
        refused = transfer.migrate(migrated_url, f"sqlite:///{tmp_path}/new.db", env)
    with pytest.raises(Conflict, match=f"running at {place}"):
        await refused

    async with opened(migrated_url, env) as driver:
        assert await sums(driver) == before


async def test_a_portable_backup_can_be_restored_into_sqlite(postgres_driver: Driver, tmp_path: Path, env: Env):
    await fill(postgres_driver, env)
    await backup.backup(postgres_driver, tmp_path / "b", env)

    await backup.restore(tmp_path / "b", f"sqlite:///{tmp_path}/new.db", env)

    async with opened(f"sqlite:///{tmp_path}/new.db", env) as driver:
        before, after = await sums(postgres_driver), await sums(driver)
        assert [name for name in before if before[name] != after[name]] == ["servers", "store"]


async def test_a_backup_overwrites_only_a_backup(tmp_path: Path, env: Env):
    path = tmp_path / "horae.db"
    driver = await open_store_driver(f"sqlite:///{path}", env)
    try:
        await driver.migrate()
        for _ in range(2):
            await backup.backup(driver, tmp_path / "again", env)
        (tmp_path / "notes").write_text("mine")
        for file, said in (("horae.db", "is a store"), ("notes", "not a backup"), ("nowhere/b", "no folder")):
            with pytest.raises(BadInput, match=said):
                await backup.backup(driver, tmp_path / file, env)
        assert (tmp_path / "notes").read_text() == "mine"
    finally:
        await driver.close()


async def test_a_missing_backup_is_reported(tmp_path: Path, env: Env):
    with pytest.raises(BadInput, match="cannot be read"):
        await backup.restore(tmp_path / "none", f"sqlite:///{tmp_path}/new.db", env)


async def test_a_file_that_is_not_a_backup_is_refused(tmp_path: Path, env: Env):
    (tmp_path / "b").write_text("hello")
    with pytest.raises(BadInput, match="not a backup"):
        await backup.restore(tmp_path / "b", f"sqlite:///{tmp_path}/new.db", env)


async def test_a_damaged_or_short_backup_is_refused(
    tmp_path: Path, file_driver: Driver, postgres_driver: Driver, env: Env
):
    await backup.backup(file_driver, tmp_path / "file", env)
    await backup.backup(postgres_driver, tmp_path / "portable", env)
    damaged = (tmp_path / "file").read_bytes()
    (tmp_path / "file").write_bytes(damaged[:4096] + b"\xff" * 4096 + damaged[8192:])
    (tmp_path / "portable").write_bytes((tmp_path / "portable").read_bytes()[:400])

    async with opened(f"sqlite:///{tmp_path}/new.db", env) as target:
        before = await sums(target)
    for name in ("file", "portable"):
        with pytest.raises(BadInput, match="damaged"):
            await backup.restore(tmp_path / name, f"sqlite:///{tmp_path}/new.db", env, replace=True)
    async with opened(f"sqlite:///{tmp_path}/new.db", env) as target:
        assert await sums(target) == before
