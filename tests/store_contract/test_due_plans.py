"""Due timers are found by index whatever PostgreSQL believes of the tables, even before it has analyzed them."""

import re

import asyncpg
import pytest

from horae.store.driver import Driver
from horae.store.script import Fetch, Statement
from horae.store.triggers.due import DEFINITIONS, DUE
from horae.store.triggers.targets import OF_JOBS
from tests.store_contract.explained import explain

ID = "lpad(to_hex(i), 32, '0')::uuid"
FILLING = {
    "jobs (id, namespace, name, version, state, created_at, updated_at)": f"{ID}, 1, 'job-' || i, 1, 'active', i, i",
    "job_versions (job, version, spec, queue, lane, created_at)": f"{ID}, 1, '{{}}', 1, 1, i",
    "triggers (id, job, namespace, name, version, definition, rules, state, valid_from, created_at)": (
        f"{ID}, {ID}, 1, 'x', 1, '{{}}', '{{}}', 'active', i, i"
    ),
    "timers (trigger_id, job, namespace, next_fire_at, decided_through)": f"{ID}, {ID}, 1, i, i",
}


@pytest.fixture
async def vacuumed(postgres_driver: Driver) -> Driver:
    """Create two thousand triggers with known row counts but unknown values, as after a restart or a load."""
    connection = await asyncpg.connect(postgres_driver.url)  # type: ignore[attr-defined]
    try:
        for columns, values in FILLING.items():
            await connection.execute(f"INSERT INTO {columns} SELECT {values} FROM generate_series(1, 2000) AS i")
        await connection.execute("VACUUM")
    finally:
        await connection.close()
    return postgres_driver


@pytest.mark.parametrize("statement", [DUE, DEFINITIONS, OF_JOBS], ids=lambda statement: statement.name)
async def test_every_table_is_read_by_a_condition_on_its_index(vacuumed: Driver, statement: Statement):
    plan = "\n".join(await explain(vacuumed, Fetch(statement)))

    assert "Seq Scan" not in plan
    assert re.findall(r"Index Scan using \w+ on (\w+) \w+ .*\n(?!.*Index Cond)", plan) == []
    assert not re.search(r"Nested Loop.*\n.*(Subquery Scan|namespaces)", plan)
