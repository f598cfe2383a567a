"""The cost of a list is the cost of a page: every database reads history along an index, with or without statistics."""

import re
from uuid import UUID

import pytest

from horae.features.dead_letters.store.reads import _window as letters
from horae.model.base.ids import parcel_id
from horae.store.base import shelves
from horae.store.definitions.job_pages import _statement
from horae.store.definitions.job_reads import DELETED_NAMED, PENDING
from horae.store.driver import one
from horae.store.executions.parcels import PARCELS
from horae.store.executions.reads import child_lists
from horae.store.executions.reads.execution_lists import END, FIRST, _window
from horae.store.script import ForEach, Insert, Script, Statement
from horae.store.sqlite.translate import translate
from tests.store_contract.explained import explain
from tests.store_contract.world import NAMESPACE, TestJob, World

ALL = ("waiting", "queued", "running", "history")
ROWS = 4000
EMPTY = re.compile(r"Seq Scan on \w+_default\b.*\(cost=0\.00\.\.[01]\.00 rows=[01] ")
"""The plan of an empty partition. PostgreSQL knows that it is empty only after autovacuum has visited it."""


async def plan(world: World, statement: Statement, *params: object) -> str:
    explain = "EXPLAIN QUERY PLAN " if world.driver.dialect == "sqlite" else "EXPLAIN "
    text = translate(statement.text) if world.driver.dialect == "sqlite" else statement.text
    rows = await world.driver.read(one(Statement("plan", explain + text), *params))
    told = (str(row[-1]) for row in rows)
    return "\n".join(line for line in told if not EMPTY.search(line))


async def fill(world: World, job: TestJob, other: TestJob) -> None:
    """Store a history with nearly all executions in one job."""
    ids = [parcel_id(world.env.ids(world.now() + i * 1000)) for i in range(ROWS)]
    owners = [other if i % 400 == 0 else job for i in range(ROWS)]
    now = world.now()
    parcels = [
        (id, 1, j.id, 1, j.queue, j.lane, 4, None, now, None, None, 0, 1, b"", b"{}", None, now)
        for id, j in zip(ids, owners, strict=True)
    ]
    ended = [
        (id, 0, 1, j.id, j.queue, 1, 1, 0, 0, "failed" if i % 100 == 0 else "success", "", "w", now, now, now, None,
         None, None, None, None, 0)
        for i, (id, j) in enumerate(zip(ids, owners, strict=True))
    ]  # fmt: skip

    def script() -> Script[None]:
        yield Insert("parcels", PARCELS, parcels)
        yield Insert("history", shelves.HISTORY, ended)

    await world.store.write(script)


def indexes(world: World) -> dict[str, str]:
    if world.driver.dialect == "sqlite":
        names = ("sqlite_autoindex_history_1", "history_job", "history_rare", "history_tenant", "history_rare_job")
    else:
        names = (
            "_pkey",
            "_job_parcel_idx",
            "_namespace_state_parcel_lo_idx",
            "_namespace_parcel_lo_idx",
            "_job_state_parcel_lo_idx",
        )
    return dict(zip(("key", "job", "failed", "tenant", "failed of job"), names, strict=True))


@pytest.mark.parametrize("since", [False, True])
async def test_history_is_read_in_order_along_an_index(world, since):
    job, other = await world.job("job"), await world.job("other")
    await fill(world, job, other)
    known = indexes(world)
    low: list[UUID] = [UUID(int=FIRST.int + 1)] if since else []
    for by_job, failed, wanted in ((None, False, "key"), (other.id, False, "job"), (None, True, "failed")):
        shelves_read = ("history",) if failed else ALL
        statement = _window(shelves_read, by_job is not None, "failed" if failed else "", since, 64)
        told = await plan(world, statement, *END, NAMESPACE, *low, *([by_job] if by_job else []))
        history = [line for line in told.splitlines() if "history" in line and ("Scan" in line or "SEARCH" in line)]
        history = [line for line in history if known[wanted] in line]
        assert history, told
        assert "Seq Scan on history" not in told
        assert by_job or "Bitmap Heap Scan on history" not in told  # for one job's few rows it is harmless
        assert "SCAN history" not in told.replace("SCAN history_slices", "")


@pytest.mark.parametrize("since", [False, True])
async def test_failures_of_a_job_are_found_without_reading_all_its_executions(world, since):
    job, other = await world.job("job"), await world.job("other")
    await fill(world, job, other)
    low: list[UUID] = [UUID(int=FIRST.int + 1)] if since else []
    for statement in (_window(("history",), True, "cancelled", since, 64), letters("", True, since, 300, 2000)):
        told = await plan(world, statement, *END, NAMESPACE, *low, job.id)
        assert re.search(rf"{indexes(world)['failed of job']}\b", told), told
    told = await plan(world, letters("", False, since, 300, 2000), *END, NAMESPACE, *low)
    assert re.search(rf"{indexes(world)['failed']}\b", told), told


async def test_parcels_of_a_long_window_are_read_by_key(world):
    job, other = await world.job("job"), await world.job("other")
    await fill(world, job, other)
    told = await plan(world, _window(ALL, False, "", False, 1024), *END, NAMESPACE)
    assert "Seq Scan on parcels_default" not in told, told
    assert "Hash" not in told, told
    told = await plan(world, _window(("running", "waiting"), False, "running", False, 1024), *END, NAMESPACE)
    if world.driver.dialect == "sqlite":
        assert "waiting_begun" in told, told


@pytest.mark.parametrize("since", [False, True])
async def test_a_small_namespace_does_not_read_the_rows_of_a_large_one(world, since):
    job, other = await world.job("job"), await world.job("other")
    await fill(world, job, other)
    low: list[UUID] = [UUID(int=FIRST.int + 1)] if since else []
    told = await plan(world, _window(ALL, False, "", since, 64, tenant=True), *END, 2, *low)
    assert indexes(world)["tenant"] in told, told
    assert "Seq Scan on history" not in told
    assert "SCAN history" not in told.replace("SCAN history_slices", "")


async def test_parcels_of_a_parent_are_found_by_an_index(world):
    job, other = await world.job("job"), await world.job("other")
    await fill(world, job, other)
    told = await plan(world, child_lists.OF_PARENT, UUID(int=7), FIRST, END[0], NAMESPACE)
    used = "parcels_parent" if world.driver.dialect == "sqlite" else "_parent_id_idx"
    assert used in told, told
    assert "Seq Scan" not in told


@pytest.mark.parametrize("state", ["active", "paused", "deleted", None])
async def test_jobs_are_listed_along_an_index_in_every_state(world, state):
    await world.job("job")
    which = "deleted" if state is None else f"is {state}"
    used = f"jobs_{'name' if state in (None, 'active') else state}"
    told = await plan(world, _statement((which, "plain")), NAMESPACE, 50)
    if world.driver.dialect == "sqlite":
        assert re.search(rf"SEARCH j USING (COVERING )?INDEX {used}\b", told), told
    named = await plan(world, DELETED_NAMED, NAMESPACE, "job")
    assert "SCAN jobs" not in named, named


async def test_pending_executions_are_found_without_reading_delayed_ones(world):
    if world.driver.dialect != "sqlite":
        pytest.skip("a plan of PostgreSQL goes by how many rows there are")
    told = "\n".join(await explain(world.driver, ForEach(PENDING, (("job", "uuid"),), [(UUID(int=1),)])))
    assert "INDEX waiting_job (job=? AND reason=?)" in told, told
    assert "INDEX queued_job (job=?)" in told, told
