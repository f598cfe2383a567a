"""Dependencies: a dependent starts once, in the transaction in which its last upstream ends."""

import asyncio

import pytest
from msgspec import structs

from horae.env import SECOND
from horae.model.admission.circuit import Circuit
from horae.model.base.ids import execution_id
from horae.model.executions import submission
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import extras_of
from horae.store.triggers.dependencies import due_joins, joins
from tests.store_contract.world import World, failed, success

HOUR = 3600 * SECOND
FIRST, SECOND_HOUR = (0, HOUR), (HOUR, 2 * HOUR)


async def upstream(world: World, name: str, **spec):
    """Create a job in a queue of its own, so that its executions can be claimed separately."""
    return await world.job(name, queue=name, **spec)


async def dependent(world: World, name: str, *upstreams, **spec):
    ids = tuple(str(job.id) for job in upstreams)
    return await world.job(name, queue=name, dependencies=ids, **spec)


async def begin(world: World, worker, job, n=1, **extra):
    """Submit and claim executions of a job, a moment later than earlier ones, so that ids show the order."""
    world.clock.advance(SECOND)
    wanted = [structs.replace(one, extra=Extra(**extra)) for one in world.wanted(job, n)]
    await world.store.submit([submission.Submission(executions=wanted)])
    return await worker.claim(n, lanes=frozenset({job.lane}))


async def run(world: World, job, outcome=success, n=1, worker=None, **extra):
    """Run executions of a job to this end; return their ids."""
    worker = worker or await world.worker()
    held = await begin(world, worker, job, n, **extra)
    await worker.report(*(outcome(slice) for slice in held))
    return [execution_id(s.parcel, i) for s in held for i in range(s.lo, s.hi)]


async def started(world: World, job) -> list[Extra]:
    """Return the upstreams or intervals that started the executions of a job, oldest first."""
    rows = await world.rows("SELECT id, n FROM parcels WHERE job = $1 ORDER BY id", job.id)
    parcels = {parcel.id: parcel for parcel in await world.store.parcels([row[0] for row in rows])}
    return [extra for id, n in rows for extra in extras_of(parcels[id].extras, 0, n)]


async def look(world: World):
    return await world.store.change(lambda now: due_joins.check_due_joins(100, world.env.new_id, now))


async def states(world: World, job) -> list[str]:
    rows = await world.rows("SELECT id FROM parcels WHERE job = $1 ORDER BY id", job.id)
    return [state for row in rows for state in await world.states(row[0])]


async def test_one_success_of_each_starts_the_dependent_once(world: World):
    a, b = await upstream(world, "a"), await upstream(world, "b")
    d = await dependent(world, "d", a, b)

    (first,) = await run(world, a)
    assert await started(world, d) == []
    (second,) = await run(world, b)
    (extra,) = await started(world, d)
    assert (extra.origin, extra.interval, set(extra.upstream)) == ("dependency", None, {first, second})
    assert await states(world, d) == ["queued"]

    await run(world, b)
    assert len(await started(world, d)) == 1
    await run(world, a)
    assert len(await started(world, d)) == 2


async def test_the_report_that_starts_a_dependent_returns_its_lane(world: World):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a, priority=7)
    worker = await world.worker()
    await run(world, a, worker=worker)

    (queued,) = [slice for slice in await world.on("queued") if slice.job == d.id]
    assert worker.effects.requeued == {d.lane: queued.rank}
    assert queued.rank < world.now()
    assert [(moved.job, moved.state) for moved in worker.effects.started] == [(d.id, "queued")]


async def test_a_failure_does_not_start_a_dependent_that_waits_for_success(world: World):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a)
    await run(world, a, failed)
    assert await started(world, d) == []
    await run(world, a)
    assert len(await started(world, d)) == 1


async def test_a_dependent_starts_also_if_the_key_of_its_circuit_cannot_be_filled_in(world: World):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a, circuit=Circuit(key="${params.host}"))
    await run(world, a)
    assert await states(world, d) == ["queued"]


@pytest.mark.parametrize(
    ("condition", "outcome", "starts"),
    [
        ("success", success, 1),
        ("success", failed, 0),
        ("failure", success, 0),
        ("failure", failed, 1),
        ("finished", success, 1),
        ("finished", failed, 1),
    ],
)
async def test_conditions(world: World, condition, outcome, starts):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a, conditions={str(a.id): condition})
    await run(world, a, outcome)
    assert len(await started(world, d)) == starts


async def test_a_retry_is_not_an_end(world: World):
    from horae.model.definitions.retry import RetryPolicy

    a = await upstream(world, "a", retry=RetryPolicy(retries=1))
    d = await dependent(world, "d", a, conditions={str(a.id): "finished"})
    await run(world, a, failed)
    assert await started(world, d) == []


async def test_upstreams_of_one_interval_start_it_with_that_interval(world: World):
    a, b = await upstream(world, "a"), await upstream(world, "b")
    d = await dependent(world, "d", a, b)

    await run(world, a, interval=FIRST)
    await run(world, b, interval=SECOND_HOUR)
    assert await started(world, d) == []
    await run(world, b, interval=FIRST)
    assert [extra.interval for extra in await started(world, d)] == [FIRST]
    await run(world, a, interval=SECOND_HOUR)
    assert [extra.interval for extra in await started(world, d)] == [FIRST, SECOND_HOUR]


async def test_an_interval_starts_a_dependent_once_if_its_upstreams_run_again(world: World):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a)
    await run(world, a, interval=FIRST)
    await run(world, a, interval=FIRST)
    await run(world, a, failed, interval=FIRST)
    assert len(await started(world, d)) == 1


async def test_a_met_condition_stays_met(world: World):
    a, b = await upstream(world, "a"), await upstream(world, "b")
    d = await dependent(world, "d", a, b)
    await run(world, a, interval=FIRST)
    await run(world, a, failed, interval=FIRST)
    await run(world, b, interval=FIRST)
    assert await states(world, d) == ["queued"]


async def test_an_interval_is_inherited_all_the_way_down(world: World):
    a = await upstream(world, "a")
    b = await dependent(world, "b", a)
    c = await dependent(world, "c", b)
    await run(world, a, interval=FIRST)
    worker = await world.worker()
    (held,) = await worker.claim(1, lanes=frozenset({b.lane}))
    await worker.report(success(held))
    (extra,) = await started(world, c)
    assert (extra.interval, extra.upstream) == (FIRST, (execution_id(held.parcel, 0),))


async def test_an_end_that_does_not_trigger_dependents_starts_nothing(world: World):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a)
    await run(world, a, propagate=False)
    assert await started(world, d) == []


async def test_many_items_that_end_at_once_start_as_many(world: World):
    a, b = await upstream(world, "a"), await upstream(world, "b")
    d, e = await dependent(world, "d", a), await dependent(world, "e", a, b)
    ran = await run(world, a, n=50)

    assert [extra.upstream for extra in await started(world, d)] == [(id,) for id in ran]
    assert len(await world.rows("SELECT id FROM parcels WHERE job = $1", d.id)) == 1
    assert await started(world, e) == []
    await run(world, b, n=3)
    assert len(await started(world, e)) == 3
    rows = await world.rows("SELECT upstream, unused FROM dependencies WHERE job = $1", e.id)
    assert dict(rows) == {a.id: 47, b.id: 0}


async def test_many_items_of_one_interval_start_it_once(world: World):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a)
    await run(world, a, n=50, interval=FIRST)
    assert [extra.interval for extra in await started(world, d)] == [FIRST]


async def test_hundreds_of_dependents_of_one(world: World):
    a = await upstream(world, "a")
    made = [await world.job(f"d{i}", dependencies=(str(a.id),)) for i in range(300)]
    worker = await world.worker()
    held = await begin(world, worker, a, interval=FIRST)
    world.driver.statements.clear()
    await worker.report(*(success(slice) for slice in held))
    asked = sum(world.driver.statements.values())

    rows = await world.rows("SELECT job FROM queued WHERE job <> $1", a.id)
    assert sorted(row[0] for row in rows) == sorted(job.id for job in made)
    assert asked < 60


async def test_a_hundred_upstreams_of_one(world: World):
    ups = [await world.job(f"u{i}", queue="u") for i in range(100)]
    d = await dependent(world, "d", *ups)
    worker = await world.worker()
    for job in ups:
        wanted = [structs.replace(one, extra=Extra(interval=FIRST)) for one in world.wanted(job)]
        await world.store.submit([submission.Submission(executions=wanted)])
    held = await worker.claim(100, lanes=frozenset({ups[0].lane}))
    await worker.report(*(success(slice) for slice in held[:99]))
    assert await started(world, d) == []
    await worker.report(success(held[99]))
    (extra,) = await started(world, d)
    assert sorted(extra.upstream) == sorted(execution_id(slice.parcel, 0) for slice in held)


async def test_a_job_without_dependents_costs_no_statement(world: World):
    a = await upstream(world, "a")
    worker = await world.worker()
    held = await begin(world, worker, a)
    world.driver.statements.clear()
    await worker.report(*(success(slice) for slice in held))
    assert not world.driver.statements.keys() & {"dependents_of", "lock_dependents", "extras_of"}


async def test_the_end_of_a_lost_execution_starts_dependents(world: World):
    a = await upstream(world, "a", delivery="at-most-once")
    d = await dependent(world, "d", a, conditions={str(a.id): "failure"})
    worker = await world.worker()
    await begin(world, worker, a)
    await worker.lose()
    effects = await world.store.rescue(worker.session, 100)
    assert len(await started(world, d)) == 1
    assert effects.requeued.keys() == {d.lane}


async def test_a_lost_execution_that_goes_on_starts_no_dependents(world: World):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a, conditions={str(a.id): "finished"})
    worker = await world.worker()
    await begin(world, worker, a)
    await worker.lose()
    await world.store.rescue(worker.session, 100)
    assert await started(world, d) == []


async def test_a_cancelled_execution_starts_dependents(world: World):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a, conditions={str(a.id): "finished"})
    e = await dependent(world, "e", a)
    parcel = await world.parcel(a, 2)
    await world.store.cancel(parcel, 1, "")
    (extra,) = await started(world, d)
    assert extra.upstream == (execution_id(parcel, 1),)
    assert await started(world, e) == []


async def test_deleted_dependents_start_nothing(world: World):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a)
    await world.do("UPDATE jobs SET state = 'deleted' WHERE id = $1", d.id)
    await run(world, a)
    assert await started(world, d) == []
    assert await world.rows("SELECT 1 FROM dependencies WHERE unused > 0") == []


async def test_two_upstreams_that_end_together_start_it_once(world: World):
    a, b = await upstream(world, "a"), await upstream(world, "b")
    d = await dependent(world, "d", a, b)
    w, v = await world.worker("w"), await world.worker("v")
    for hour in range(5):
        interval = (hour * HOUR, (hour + 1) * HOUR)
        (left,), (right,) = await begin(world, w, a, interval=interval), await begin(world, v, b, interval=interval)
        await asyncio.gather(w.report(success(left)), v.report(success(right)))
        assert len(await started(world, d)) == hour + 1


# An upstream that fails for an interval


async def test_a_failed_upstream_leaves_a_skipped_execution_with_its_cause(world: World):
    a = await upstream(world, "extract")
    d = await dependent(world, "d", a)
    worker = await world.worker()
    (ran,) = await run(world, a, failed, worker=worker, interval=FIRST)
    assert worker.effects.wakes == [world.now()]
    looked = await look(world)

    assert [(over.state, over.job) for over, _ in looked.over] == [("skipped", d.id)]
    (row,) = await world.rows("SELECT state, reason, error FROM history WHERE job = $1", d.id)
    assert row[:2] == ("skipped", "dependency")
    assert all(word in row[2] for word in ("DependencyFailed", "extract", str(ran)))
    assert [extra.interval for extra in await started(world, d)] == [FIRST]
    assert (await look(world)).joins == 0


async def test_a_skipped_dependent_starts_when_the_upstream_succeeds_after_all(world: World):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a)
    await run(world, a, failed, interval=FIRST)
    await look(world)
    await run(world, a, interval=FIRST)
    assert await states(world, d) == ["skipped", "queued"]
    await run(world, a, interval=FIRST)
    assert len(await states(world, d)) == 2


async def test_a_success_before_the_skip_is_written_starts_it(world: World):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a)
    await run(world, a, failed, interval=FIRST)
    await run(world, a, interval=FIRST)
    await look(world)
    assert await states(world, d) == ["queued"]


async def test_skips_propagate_to_further_dependents(world: World):
    a = await upstream(world, "a")
    b = await dependent(world, "b", a)
    c = await dependent(world, "c", b)
    f = await dependent(world, "f", b, conditions={str(b.id): "finished"})
    await run(world, a, failed, interval=FIRST)
    await look(world)
    await look(world)
    assert await states(world, b) == ["skipped"]
    assert await states(world, c) == ["skipped"]
    assert await states(world, f) == ["queued"]


async def test_a_success_does_not_skip_a_dependent_that_waits_for_failure(world: World):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a, conditions={str(a.id): "failure"})
    await run(world, a, interval=FIRST)
    assert (await look(world)).joins == 0
    assert await started(world, d) == []


# Edits


async def test_joins_list_their_open_upstreams(world: World):
    a, b = await upstream(world, "a"), await upstream(world, "b")
    d = await dependent(world, "d", a, b)
    (ran,) = await run(world, a, interval=FIRST)
    (join,) = await world.store.read(lambda: joins.open_of(d.id))
    assert (join.interval, join.execution, join.state) == (FIRST, None, "open")
    ((_, parts),) = await world.store.read(lambda: joins.read({join.key}))
    assert {upstream: part.execution for upstream, part in parts.items()} == {a.id: ran}
