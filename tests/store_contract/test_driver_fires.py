"""The ledger's days on PostgreSQL: created ahead, dropped whole, except for rows that were decided late."""

from uuid import UUID

from horae.env import SECOND, Instant, VirtualClock
from horae.model.triggers.ledger import LedgerRow
from horae.store.driver import Driver, one
from horae.store.postgres.partitions import day_at
from horae.store.script import Statement
from horae.store.triggers import ledger

DAY: Instant = 86_400 * SECOND
TRIGGER = UUID(int=7)
WHERE = Statement("where", "SELECT last, tableoid::regclass::text FROM fires ORDER BY last")
DAYS = Statement("days", "SELECT count(*) FROM pg_inherits WHERE inhparent = 'fires'::regclass")


async def put(driver: Driver, last: Instant, decided_at: Instant | None = None, first: Instant | None = None) -> None:
    row = LedgerRow(
        trigger=TRIGGER, first=last if first is None else first, last=last, disposition="fired", cause="due",
        execution=UUID(int=last), decided_at=last if decided_at is None else decided_at,
    )  # fmt: skip
    await driver.write(lambda: ledger.exchange_rows([], [row]))


async def expire_all(driver: Driver, before: Instant, low: Instant = 0) -> int:
    steps = 0
    while await driver.expire_fires(low, before):
        steps += 1
    return steps


async def test_days_are_created_ahead_and_take_rows_from_default(postgres_driver: Driver):
    driver, at = postgres_driver, 1_900_000_000 * SECOND
    await put(driver, at)
    assert await driver.read(one(WHERE)) == [(at, "fires_default")]

    await driver.ensure_partitions(at)
    await driver.ensure_partitions(at)

    assert await driver.read(one(WHERE)) == [(at, day_at(at).table("fires"))]
    assert (await driver.read(one(DAYS)))[0][0] >= 9


async def test_old_days_are_dropped_and_the_start_of_the_ledger_is_recorded(
    postgres_driver: Driver, clock: VirtualClock
):
    driver, start = postgres_driver, clock.now() - clock.now() % DAY
    await driver.ensure_partitions(start)
    for day in range(6):
        await put(driver, start + day * DAY)
    before = start + 4 * DAY + DAY // 2

    assert await expire_all(driver, before) >= 3
    assert [last for last, _ in await driver.read(one(WHERE))] == [start + day * DAY for day in (3, 4, 5)]
    assert await driver.read(ledger.known_from) == start + 3 * DAY
    assert await expire_all(driver, before) == 0


async def test_a_run_and_a_late_decision_outlive_their_day(postgres_driver: Driver, clock: VirtualClock):
    driver, start = postgres_driver, clock.now() - clock.now() % DAY
    await driver.ensure_partitions(start)
    await put(driver, start, decided_at=start + 40 * DAY)
    await put(driver, start + 5 * DAY, first=start + SECOND)

    await expire_all(driver, start + 4 * DAY)

    assert [last for last, _ in await driver.read(one(WHERE))] == [start, start + 5 * DAY]
    await expire_all(driver, start + 39 * DAY)
    assert [last for last, _ in await driver.read(one(WHERE))] == [start]
    await expire_all(driver, start + 41 * DAY, low=start + 38 * DAY)
    assert await driver.read(one(WHERE)) == []


async def test_a_detached_day_whose_server_died_is_dropped_later(postgres_driver: Driver, clock: VirtualClock):
    driver, now = postgres_driver, clock.now()
    await driver.ensure_partitions(now)
    name = day_at(now).table("fires")
    await driver.write(one(Statement("detach", f"ALTER TABLE fires DETACH PARTITION {name}")), hot=False)

    await expire_all(driver, now)

    assert await driver.read(one(Statement("there", f"SELECT to_regclass('{name}')::text"))) == [(None,)]


async def test_a_read_of_one_trigger_reads_only_the_requested_days(postgres_driver: Driver, clock: VirtualClock):
    driver, start = postgres_driver, clock.now() - clock.now() % DAY
    await driver.ensure_partitions(start)
    plan = Statement("plan", f"EXPLAIN {ledger.ROWS.text}".replace("$1", f"'{TRIGGER}'").replace("$3", "10"))
    text = Statement("plan", plan.text.replace("$2", str(start + 6 * DAY)))
    seen = "\n".join(line for (line,) in await driver.read(one(text)))

    assert day_at(start).table("fires") not in seen
    assert day_at(start + 6 * DAY).table("fires") in seen
