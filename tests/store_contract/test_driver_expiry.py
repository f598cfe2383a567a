"""Old parcels are deleted, and rows that live executions need stay."""

from uuid import UUID

import pytest

from horae.env import SECOND, Env, Instant, VirtualClock
from horae.model.base.ids import execution_id, parcel_id
from horae.model.tenancy.namespace import Retention
from horae.store.driver import Driver, one
from horae.store.expiry import expiry
from horae.store.postgres import partitions
from horae.store.postgres.partitions import day_at
from horae.store.script import ColumnType, Insert, Script, Statement

DAY: Instant = 86_400 * SECOND
NOBODY = UUID(int=0)

PARCEL: dict[str, tuple[ColumnType, object]] = {
    "id": ("uuid", None), "namespace": ("int", 1), "job": ("uuid", NOBODY), "version": ("int", 1), "queue": ("int", 1),
    "lane": ("int", 1), "priority": ("smallint", 4), "due_at": ("bigint", 0), "parent": ("uuid", None),
    "delivery": ("smallint", 0), "n": ("int", 1), "ends": ("bytea", b""), "items": ("bytea", b"{}"),
    "submitted_at": ("bigint", 0),
}  # fmt: skip
SLICE: dict[str, tuple[ColumnType, object]] = {
    "parcel": ("uuid", None), "lo": ("int", 0), "hi": ("int", 1), "job": ("uuid", NOBODY), "queue": ("int", 1),
    "namespace": ("int", 1), "attempt": ("int", 1), "failures": ("int", 0), "losses": ("int", 0),
}  # fmt: skip
WAITING = SLICE | {"width": ("int", 2), "reason": ("text", "retry")}
HISTORY = SLICE | {"state": ("text", "success"), "reason": ("text", ""), "worker": ("text", ""),
                   "completed_at": ("bigint", 0)}  # fmt: skip
LOGS: dict[str, tuple[ColumnType, object]] = {
    "parcel": ("uuid", None), "item": ("int", 0), "attempt": ("int", 1), "seq": ("int", 1), "count": ("int", 1),
    "base": ("int", 0), "upto": ("bigint", 1), "lines": ("bytea", b"x"),
}  # fmt: skip
BLOBS: dict[str, tuple[ColumnType, object]] = {"parcel": ("uuid", None), "item": ("int", 0), "content": ("bytea", b"")}
TABLES = {"parcels": PARCEL, "waiting": WAITING, "history": HISTORY, "logs": LOGS, "blobs": BLOBS}


async def put(driver: Driver, table: str, **values: object) -> None:
    columns = {name: (kind, values.get(name, default)) for name, (kind, default) in TABLES[table].items()}
    types = tuple((name, kind) for name, (kind, _) in columns.items())

    def script() -> Script[None]:
        yield Insert(table, types, [tuple(value for _, value in columns.values())])

    await driver.write(script)


async def finished(driver: Driver, env: Env, at: Instant, parent: UUID | None = None, **more: object) -> UUID:
    """Create a parcel of one execution that began and ended at given instants, with a log and a large result."""
    parcel = parcel_id(env.ids(at))
    await put(driver, "parcels", id=parcel, parent=parent, namespace=more.get("namespace", 1))
    await put(driver, "history", parcel=parcel, completed_at=at + SECOND, **more)
    await put(driver, "logs", parcel=parcel)
    await put(driver, "blobs", parcel=parcel)
    return parcel


async def unfinished(driver: Driver, env: Env, at: Instant) -> UUID:
    parcel = parcel_id(env.ids(at))
    await put(driver, "parcels", id=parcel, parent=None)
    await put(driver, "waiting", parcel=parcel)
    return parcel


async def left(driver: Driver, table: str) -> set[UUID]:
    key = "id" if table == "parcels" else "parcel"
    return {id for (id,) in await driver.read(one(Statement("left", f"SELECT {key} FROM {table}")))}


async def expire_all(driver: Driver, before: Instant) -> int:
    total = 0
    while gone := await driver.expire(before, batch=2):
        total += gone
    return total


async def test_old_parcels_are_deleted_with_all_their_rows(driver: Driver, env: Env, clock: VirtualClock):
    now = clock.now()
    await driver.ensure_partitions(now)
    old = [await finished(driver, env, now) for _ in range(5)]
    young = await finished(driver, env, now + 3 * DAY)

    assert await expire_all(driver, now + 2 * DAY) == len(old)

    for table in ("parcels", "history", "logs", "blobs"):
        assert await left(driver, table) == {young}


async def test_live_executions_and_their_relatives_survive(driver: Driver, env: Env, clock: VirtualClock):
    now = clock.now()
    await driver.ensure_partitions(now)
    await finished(driver, env, now)
    live = await unfinished(driver, env, now)
    child = await finished(driver, env, now, parent=execution_id(live, 0))
    await finished(driver, env, now)

    assert await expire_all(driver, now + 2 * DAY) > 0

    assert await left(driver, "parcels") == {live, child}
    assert await left(driver, "history") == {child}
    assert await left(driver, "logs") == {child}
    assert await left(driver, "blobs") == {child}


async def test_survivors_are_deleted_after_they_have_ended(driver: Driver, env: Env, clock: VirtualClock):
    now = clock.now()
    await driver.ensure_partitions(now)
    live = await unfinished(driver, env, now)
    await expire_all(driver, now + 2 * DAY)

    await driver.write(one(Statement("end", "DELETE FROM waiting")))
    await put(driver, "history", parcel=live, completed_at=now + 5 * DAY)

    assert await expire_all(driver, now + 4 * DAY) == 0
    assert await left(driver, "history") == {live}
    assert await expire_all(driver, now + 6 * DAY) == 1
    assert await left(driver, "history") == set()


async def test_days_are_created_ahead_and_take_rows_from_default(postgres_driver: Driver, env: Env):
    driver, at = postgres_driver, 1_900_000_000 * SECOND
    where = Statement("where", "SELECT DISTINCT tableoid::regclass::text FROM history")
    parcel = await finished(driver, env, at)
    assert await driver.read(one(where)) == [("history_default",)]

    await driver.ensure_partitions(at)
    await driver.ensure_partitions(at)

    assert await driver.read(one(where)) == [(day_at(at).table("history"),)]
    assert await left(driver, "parcels") == {parcel}
    days = Statement("days", "SELECT count(*) FROM pg_inherits WHERE inhparent = 'logs'::regclass")
    assert (await driver.read(one(days)))[0][0] >= 9


async def test_a_day_with_a_late_end_is_kept_whole(postgres_driver: Driver, env: Env, clock: VirtualClock):
    driver, now = postgres_driver, clock.now()
    await driver.ensure_partitions(now)
    await finished(driver, env, now)
    late = parcel_id(env.ids(now))
    await put(driver, "parcels", id=late)
    await put(driver, "history", parcel=late, completed_at=now + 9 * DAY)

    assert await expire_all(driver, now + 3 * DAY) == 0
    assert len(await left(driver, "parcels")) == 2
    assert await expire_all(driver, now + 10 * DAY) == 2


async def test_a_detached_day_whose_server_died_is_dropped_later(
    postgres_driver: Driver, env: Env, clock: VirtualClock
):
    driver, now = postgres_driver, clock.now()
    await driver.ensure_partitions(now)
    name = day_at(now).table("logs")
    await driver.write(one(Statement("detach", f"ALTER TABLE logs DETACH PARTITION {name}")), hot=False)

    await driver.expire(now)

    assert await driver.read(one(Statement("there", f"SELECT to_regclass('{name}')::text"))) == [(None,)]


async def walk_all(driver: Driver, retention: Retention, now: Instant) -> int:
    after: UUID | None = expiry.FIRST_ID
    total = 0
    while after is not None:
        page = expiry.walk(after, now - min(retention.spans), retention, now, 2)
        after, gone = await driver.write(page, hot=False)
        total += gone
    return total


async def test_a_namespace_keeps_outcomes_for_its_own_retention(driver: Driver, env: Env, clock: VirtualClock):
    now = clock.now()
    await driver.ensure_partitions(now)
    retention = Retention(2 * DAY, {2: {"success": DAY, "failed": 9 * DAY}})
    short = await finished(driver, env, now, namespace=2)
    long = await finished(driver, env, now, namespace=2, state="failed")
    both = await finished(driver, env, now, namespace=2)
    await put(driver, "history", parcel=both, lo=1, hi=2, namespace=2, state="failed", completed_at=now)
    others = [await finished(driver, env, now) for _ in range(3)]
    live = await unfinished(driver, env, now)
    child = await finished(driver, env, now, parent=execution_id(live, 0), namespace=2)

    async def sweep(at: Instant) -> set[UUID]:
        while await driver.expire(at - retention.everywhere, 2, retention.longer_rules(at)):
            pass
        await walk_all(driver, retention, at)
        kept = await left(driver, "parcels")
        assert await left(driver, "history") == kept - {live}
        assert await left(driver, "logs") == kept - {live}
        assert await left(driver, "blobs") == kept - {live}
        return kept

    assert await sweep(now + DAY // 2) == {short, long, both, *others, live, child}
    assert await sweep(now + DAY + DAY // 2) == {long, both, *others, live, child}
    assert await sweep(now + 4 * DAY) == {long, both, live, child}
    assert await sweep(now + 10 * DAY) == {live, child}


async def test_a_day_with_many_rows_to_keep_stays_without_the_others(
    postgres_driver: Driver, env: Env, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
):
    driver, now = postgres_driver, clock.now()
    monkeypatch.setattr(partitions, "MAX_KEPT", 1)
    await driver.ensure_partitions(now)
    retention = Retention(2 * DAY, {2: {"success": 9 * DAY}})
    kept = {await finished(driver, env, now, namespace=2) for _ in range(2)}
    await finished(driver, env, now)
    later = now + 4 * DAY

    assert await driver.expire(later - 2 * DAY, 2, retention.longer_rules(later)) == 0
    assert await walk_all(driver, retention, later) == 1
    assert await left(driver, "parcels") == kept
    where = Statement("where", "SELECT DISTINCT tableoid::regclass::text FROM history")
    assert await driver.read(one(where)) == [(day_at(now).table("history"),)]
    later = now + 12 * DAY
    assert await driver.expire(later - 2 * DAY, 2, retention.longer_rules(later)) == 2
