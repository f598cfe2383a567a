"""The audit of joins: inconsistent rows, as left by a bug, are found and repaired."""

from msgspec import structs

from horae.env import SECOND
from horae.model.executions import submission
from horae.store.triggers.dependencies import audit_joins
from tests.store_contract.moves.test_dependencies import FIRST, dependent, run, started, states, upstream
from tests.store_contract.world import World

HOUR = 3600 * SECOND


async def found(world: World):
    now = world.now()
    return await world.store.read(lambda: audit_joins.audit_joins(now))


async def repaired(world: World):
    findings = await found(world)
    now = world.now()
    done = await world.store.write(lambda: audit_joins.repair_joins(findings, world.env.new_id, now))
    assert await found(world) == []
    return done


async def test_a_store_in_order_has_no_findings(world: World):
    a, b = await upstream(world, "a"), await upstream(world, "b")
    await dependent(world, "d", a, b)
    await run(world, a, interval=FIRST)
    await run(world, b)
    await run(world, b)
    assert await found(world) == []


async def test_a_complete_join_that_was_not_started(world: World):
    a, b = await upstream(world, "a"), await upstream(world, "b")
    d = await dependent(world, "d", a, b)
    await run(world, a, interval=FIRST)
    await world.do("DELETE FROM dependencies WHERE upstream = $1", b.id)  # as if the dependency on b had been lost
    (finding,) = await found(world)
    assert (finding.kind, finding.shelf, finding.job) == ("not-started", "joins", d.id)
    assert 'job "d" from 1970-01-01T00:00:00Z on: every upstream has met its condition' in finding.detail
    assert await repaired(world) == 1
    assert [extra.interval for extra in await started(world, d)] == [FIRST]


async def test_successes_that_were_not_used(world: World):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a)
    (ran,) = await run(world, a)
    await world.do("UPDATE dependencies SET unused = 1, execution = $1", ran)
    (finding,) = await found(world)
    assert (finding.kind, finding.job) == ("not-started", d.id)
    assert await repaired(world) == 1
    assert len(await started(world, d)) == 2


async def test_a_join_without_a_check_time(world: World):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a)
    wanted = [structs.replace(one, patience=SECOND) for one in world.wanted(d)]
    await world.store.submit([submission.Submission(executions=wanted)])
    assert await found(world) == []
    world.clock.advance(HOUR)
    (finding,) = await found(world)
    assert (finding.kind, finding.job) == ("overdue", d.id)


async def test_a_waiting_execution_that_belongs_to_no_join(world: World):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a)
    wanted = [structs.replace(one, patience=HOUR) for one in world.wanted(d, 2)]
    await world.store.submit([submission.Submission(executions=wanted)])
    await world.do("DELETE FROM joins")
    (finding,) = await found(world)
    assert (finding.kind, finding.shelf, finding.lo, finding.hi) == ("never-wakes", "waiting", 0, 2)
    assert await repaired(world) == 1
    (slice,) = await world.on("waiting")
    assert (slice.reason, slice.wake_at) == ("delay", world.now())
    assert await states(world, d) == ["waiting", "waiting"]
