"""All daily statements use indexes, whatever the tables held when the statements were planned."""

import re

import pytest

from horae.env import Env
from horae.store.driver import Driver, one
from horae.store.script import Fetch, ForEach, Insert, Op, Statement
from horae.store.tables import LIVE_SHELVES, PARTITIONED
from tests.store_contract.explained import explain
from tests.store_contract.life import recorded, statements
from tests.store_contract.world import World

LARGE = (
    *(*LIVE_SHELVES, *PARTITIONED, "timers", "triggers", "fires", "unique_keys", "idempotency", "requests", "jobs"),
    *("job_versions", "job_minutes", "progress", "steps", "events", "event_fires", "watched", "dependency_fires"),
    *("flows", "flow_steps", "flow_parcels"),
)
# These scan all running slices now and then: for remains of a bug, for unused lanes,
# and for the use of shares with reserves.
WHOLE = {"unknown_sessions", "forget_lanes_of_workers", "running_by_lane"}
STANDS = "'', '', '', 4, NULL, i, i, i, NULL, '', '', 'main', '', 1, 1, 0, false, false, '', '', NULL, '{}', '[]', i"
ENDED = "0, 0, 0, 0, i, NULL, NULL, NULL, NULL, '', i"
SIZES = [0, 10, pytest.param(1_000_000, marks=[pytest.mark.prove, pytest.mark.timeout(900)])]


async def fill(driver: Driver, rows: int) -> None:
    """Fill every large table, and gather statistics as autovacuum would.

    The rows belong to a thousand lanes and ten thousand sessions. A lane or a few sessions with a tenth of all rows
    would be read faster by a scan of the table, and PostgreSQL would choose it.
    """
    for first in range(1, rows + 1, 100_000):
        many = f"FROM generate_series({first}, {min(rows, first + 99_999)}) AS i"
        for text in filling():
            await driver.write(one(Statement("fill", f"{text} {many}")), hot=False)
    await driver.write(one(Statement("analyze", "ANALYZE")), hot=False)


def filling() -> list[str]:
    id, job = "lpad(to_hex(i), 32, '0')::uuid", "lpad(to_hex(i % 1000), 32, '0')::uuid"
    session = "lpad(to_hex(i % 10000), 32, '0')::uuid"
    slice = f"SELECT {id}, 0, 1, {job}, 1, 1, 1, 0, 0"
    return [
        f"INSERT INTO parcels SELECT {id}, 1, {job}, 1, 1, 1, 4, NULL, i, NULL, NULL, 0, 1, '', '{{}}', NULL, i",
        f"INSERT INTO waiting {slice}, 0, 9, 0, i, '', NULL, 0",
        f"INSERT INTO queued {slice}, 0, 9, 0, 1 + i % 1000, i, 0, NULL",
        f"INSERT INTO running {slice}, 0, 9, 0, {session}, 0, 1, 1, i, 0, 0, NULL",
        f"INSERT INTO history {slice}, 'success', '', '', 0, 0, i, NULL, NULL, NULL, NULL, NULL, 0",
        f"INSERT INTO attempts SELECT {id}, 1, 0, 1, '', {id}, 'failed', 'error', i, i, NULL, NULL",
        f"INSERT INTO logs SELECT {id}, 0, 1, 0, 1, 0, 9, NULL, NULL, ''",
        f"INSERT INTO progress SELECT {id}, 0, 1, 5, '', i",
        f"INSERT INTO steps SELECT {id}, 0, 'pay', 1, '', i",
        f"INSERT INTO requests SELECT {id}, 0, 1, CASE i % 2 WHEN 0 THEN 'cancel' ELSE 'timeout' END, {session}, '', i",
        f"INSERT INTO jobs SELECT {id}, 1, 'job-' || i, 1, 'active', i, i",
        f"INSERT INTO job_versions SELECT {id}, 1, '{{}}', 1, 1, i",
        f"INSERT INTO triggers SELECT {id}, {id}, 1, 'x', 1, '{{}}', '{{}}', NULL, NULL, 'active', i, NULL, NULL, 0, i",
        f"INSERT INTO timers (trigger_id, job, namespace, next_fire_at, decided_through) SELECT {id}, {id}, 1, i, i",
        f"INSERT INTO fires SELECT {job}, i, i, 'fired', 'due', {id}, i",
        f"INSERT INTO job_minutes SELECT {job}, i, {job}, 1, 0, 0, 0, 0, 0, 0",
        f"INSERT INTO events SELECT {id}, 1, 'event:x', 'k' || i, 'x', '', 'api', 'null', NULL, i",
        f"INSERT INTO event_fires SELECT {job}, {id}, {job}, i, 'fired', '', {id}",
        f"INSERT INTO dependency_fires SELECT i, {id}, {job}, 'fired', ''",
        f"INSERT INTO watched SELECT {job}, {id}, i",
        f"INSERT INTO flows SELECT {id}, 0, {id}, {id}, NULL, 1, {job}, 1, {STANDS}",
        f"INSERT INTO flow_steps SELECT {id}, 0, 'a', {job}, 1, 'main', 'running', 0, 0, 0, 0, {id}, {ENDED}",
        f"INSERT INTO flow_parcels SELECT {id}, 0, 'a', {id}, 1",
        "INSERT INTO unique_keys SELECT 1, 'job', 'k' || i, lpad(to_hex(i), 32, '0')::uuid, i",
        "INSERT INTO idempotency SELECT 1, 'route', 'k' || i, '', 200, '', i, i",
    ]


async def test_a_life_runs_all_daily_statements(memory_driver: Driver, env: Env):
    asked = await recorded(World(memory_driver, env))

    assert statements() - asked.keys() == set()


@pytest.mark.parametrize("rows", SIZES)
async def test_postgres_uses_indexes(postgres_driver: Driver, env: Env, rows: int):
    """Reads use the default planner, which prefers scans for a few rows; for a million it must choose an index."""
    asked = await recorded(World(postgres_driver, env))
    await fill(postgres_driver, rows)
    usual = {name for name, a in asked.items() if not a.writes}

    plans = {
        name: await explain(postgres_driver, a.op, hot=name not in usual or rows < 1000)
        for name, a in asked.items()
        if name not in WHOLE
    }

    bad = {name for name, plan in plans.items() if scanned(plan) or (name not in usual and detour(plan))}
    assert {name: plans[name] for name in bad} == {}


def scanned(plan: list[str]) -> list[str]:
    """Return the large tables that are read from end to end; an empty partition costs nothing."""
    lines = "\n".join(line for line in plan if "(cost=0.00..0.00 " not in line)
    found = re.findall(r"Seq Scan on (\w+?)(?:_default|_d\d{8})?\b", lines)
    return [table for table in found if table in LARGE]


def detour(plan: list[str]) -> bool:
    """Return whether a plan sorts, or uses bitmaps or hashes; ordered reads of several partitions are fine."""
    text = re.sub(r"Merge Append.*\n *Sort Key.*", "", "\n".join(plan))
    return bool(re.search(r"Sort\b|Bitmap|Hash Join|Merge Join", text))


async def test_sqlite_uses_indexes(memory_driver: Driver, env: Env):
    asked = await recorded(World(memory_driver, env))

    plans = {name: scans(await explain(memory_driver, a.op)) for name, a in asked.items() if name not in WHOLE}

    assert {name: lines for name, lines in plans.items() if lines} == {}


def scans(plan: list[str]) -> list[str]:
    """Return the lines that read a large table from end to end, under any alias."""
    large = {*LARGE, *(table[0] for table in LARGE)} - {"s"}  # an alias of sessions, or of a slice already found
    found = [line for line in plan if line.startswith("SCAN ") and line.split()[1] in large]
    return [line for line in found if "INDEX" not in line]  # in an index's order, up to a LIMIT


async def test_explain_knows_every_kind_of_op(driver: Driver, env: Env):
    ops: list[Op] = [
        Fetch(Statement("f", "SELECT * FROM store WHERE key = $1"), ("a",)),
        ForEach(Statement("e", "SELECT s.value FROM given JOIN store s ON s.key = given.key"), (("key", "text"),), []),
        Insert("store", (("key", "text"), ("value", "text")), []),
    ]
    plans = [await explain(driver, op) for op in ops]
    assert all(plans[:2])
    assert any("store" in line for plan in plans[:2] for line in plan)
