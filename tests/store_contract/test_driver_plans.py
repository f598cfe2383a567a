"""Every hot statement runs by index, whatever the tables held when it was planned."""

import re

import pytest

from horae.env import SECOND, Env
from horae.model.retry import RetryPolicy
from horae.model.trigger import Interval, Rules
from horae.store.driver import Driver, one, op_name
from horae.store.explain import explain
from horae.store.moves import submission
from horae.store.moves.promote import LONG_AGO
from horae.store.script import Fetch, ForEach, Insert, Lock, Op, ScriptFactory, Statement
from horae.store.tables import PARTITIONED, SHELVES
from tests.store_contract.world import World, add_trigger, failed, lead, rank, success

MINUTE = 60 * SECOND
LARGE = (*SHELVES, *PARTITIONED, "timers", "fires", "unique_keys", "idempotency", "requests")
SIZES = [0, 10, pytest.param(1_000_000, marks=[pytest.mark.prove, pytest.mark.timeout(600)])]


async def live_through(world: World) -> None:
    """Submit, claim, report, retry, cancel, promote, fire, lose and rescue: everything that is hot."""
    job = await world.job(retry=RetryPolicy(retries=3))
    policies = {(job.id, 1): job.spec.retry}
    wanted = world.wanted(job, 1, key="k")
    for _ in range(2):
        await world.store.submit([submission.Submission(executions=wanted, idempotency=None)])
    await world.parcel(job, 8)
    await world.parcel(job, 2, due_at=world.now() + SECOND)
    trigger = await add_trigger(world, job, Interval(every=MINUTE, anchor=world.now()), Rules(overlap="skip"))
    worker, other = await world.worker("a"), await world.worker("b")
    await worker.claim(3)
    held = await worker.holds()
    await worker.report(failed(held[0]), *(success(slice) for slice in held[1:]), policies=policies)
    await worker.claim(3)
    mine = (await worker.holds())[0]
    await world.store.cancel(mine.parcel, mine.lo, "")
    await world.store.claim_for_parked(
        [other.parked(2, frozenset(await world.all_lanes()))], await world.views(), frozenset()
    )
    await world.store.answer_empty([(worker.session, 1, 1)])
    for _ in range(2):
        world.clock.advance(MINUTE)
        await world.store.fire(100, lead)
    await world.store.promote_due(LONG_AGO, 100, rank)
    await worker.lose()
    await world.store.rescue(worker.session, 100)
    await other.claim(3, channel=1)  # one of what was lost, and past the rest
    assert trigger


async def recorded(world: World) -> list[Op]:
    """Each distinct statement of a life, as it was written."""
    ops: dict[str, Op] = {}

    async def before(op: Op) -> None:
        if not isinstance(op, Lock):
            ops.setdefault(op_name(op), op)

    write = world.driver.write

    async def hooked(make: ScriptFactory[object], *, hot: bool = True) -> object:
        world.driver.before = before
        try:
            return await write(make, hot=hot)
        finally:
            world.driver.before = None

    world.store.driver.write = hooked  # type: ignore[method-assign,assignment]
    try:
        await live_through(world)
    finally:
        del world.store.driver.write  # type: ignore[method-assign]
    return [op for name, op in sorted(ops.items()) if name != "test" and not name.startswith("wipe")]


async def fill(driver: Driver, rows: int) -> None:
    """Slices, parcels and history in numbers; statistics are gathered as autovacuum would."""
    make = "SELECT lpad(to_hex(i), 32, '0')::uuid, 0, 1, lpad(to_hex(i % 1000), 32, '0')::uuid, 1, 1, 1, 0, 0"
    for first in range(1, rows + 1, 100_000):
        await fill_some(driver, make, f"FROM generate_series({first}, {min(rows, first + 99_999)}) AS i")
    await driver.write(one(Statement("analyze", "ANALYZE")), hot=False)


async def fill_some(driver: Driver, make: str, many: str) -> None:
    parcel = "lpad(to_hex(i), 32, '0')::uuid, 1, lpad(to_hex(i % 1000), 32, '0')::uuid, 1, 1, 1, 4, NULL, i, NULL, NULL"
    texts = [
        f"INSERT INTO parcels SELECT {parcel}, 0, 1, '', '{{}}', NULL, i {many}",
        f"INSERT INTO waiting {make}, false, 9, i, '', NULL {many}",
        f"INSERT INTO queued {make}, false, 9, 1 + i % 10, i, 0, NULL, NULL {many}",
        f"INSERT INTO running {make}, false, 9, lpad(to_hex(i % 100), 32, '0')::uuid, 0, 1, 1, i, 0, 0, NULL {many}",
        f"INSERT INTO history {make}, 'success', '', '', 0, 0, i, NULL, NULL, NULL, NULL, NULL {many}",
    ]
    for text in texts:
        await driver.write(one(Statement("fill", text)), hot=False)


@pytest.mark.parametrize("rows", SIZES)
async def test_postgres_runs_hot_statements_by_index(postgres_driver: Driver, env: Env, rows: int):
    world = World(postgres_driver, env)
    ops = await recorded(world)
    if rows:
        await fill(postgres_driver, rows)

    bad = {op_name(op): plan for op in ops for plan in [await explain(postgres_driver, op)] if not by_index(plan)}

    assert len(ops) > 25
    assert bad == {}


def by_index(plan: list[str]) -> bool:
    """No large table is read from end to end, nothing is sorted or gathered by bitmap or hash."""
    text = "\n".join(plan)
    scanned = re.findall(r"Seq Scan on (\w+?)(?:_default|_d\d{8})?\b", text)
    return not any(table in LARGE for table in scanned) and not re.search(r"Sort\b|Bitmap|Hash Join|Merge Join", text)


async def test_sqlite_runs_hot_statements_by_index(memory_driver: Driver, env: Env):
    ops = await recorded(World(memory_driver, env))

    bad = {op_name(op): lines for op in ops for lines in [scans(await explain(memory_driver, op))] if lines}

    assert bad == {}


def scans(plan: list[str]) -> list[str]:
    """The lines that read a large table from end to end, whatever alias it has there."""
    large = {*LARGE, *(table[0] for table in LARGE)}
    return [line for line in plan if line.startswith("SCAN ") and line.split()[1] in large]


async def test_explain_knows_every_kind_of_op(driver: Driver, env: Env):
    ops: list[Op] = [
        Fetch(Statement("f", "SELECT * FROM store WHERE key = $1"), ("a",)),
        ForEach(Statement("e", "SELECT s.value FROM given JOIN store s ON s.key = given.key"), (("key", "text"),), []),
        Insert("store", (("key", "text"), ("value", "text")), []),
    ]
    plans = [await explain(driver, op) for op in ops]
    assert all(plans[:2])
    assert any("store" in line for plan in plans[:2] for line in plan)
