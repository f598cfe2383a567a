"""Executions that wait for their dependencies: those of a job with a schedule, and requested ones."""

import pytest
from msgspec import structs

from horae.env import SECOND
from horae.model.base.ids import execution_id, parcel_of
from horae.model.executions import submission
from horae.model.executions.execution import Extra
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Interval
from horae.store.definitions import jobs
from horae.store.triggers.dependencies import joins, waits
from horae.store.triggers.dependencies.starts import Consequences
from tests.store_contract.moves.test_dependencies import dependent, look, run, started, states, upstream
from tests.store_contract.world import NAMESPACE, World, add_trigger, failed, lead

HOUR = 3600 * SECOND
DAY = 24 * HOUR
ALLOW = Rules(overlap="allow")


async def hourly(world: World, job):
    """Create a job with a schedule whose first fire is in an hour."""
    return await add_trigger(world, job, Interval(every=HOUR, anchor=world.now()), ALLOW)


async def scheduled(world: World, name: str):
    """Create an upstream with a schedule that has not begun: the tests run its executions."""
    job = await upstream(world, name)
    rules = Rules(overlap="allow", start_at=world.now() + 100 * DAY)
    await add_trigger(world, job, Interval(every=HOUR, anchor=world.now()), rules)
    return job


async def fire(world: World):
    """Return the fires of the next hour."""
    world.clock.advance(HOUR)
    return await world.store.fire(100, lead)


async def asked(world: World, job, patience=DAY, **extra):
    """Submit an execution that is to wait, and return its receipt."""
    (wanted,) = world.wanted(job)
    wanted = structs.replace(wanted, extra=Extra(**extra), patience=patience)
    done = await world.store.submit([submission.Submission(executions=[wanted])])
    return done.answers[0][0], done


async def open_joins(world: World, job):
    return await world.store.read(lambda: joins.open_of(job.id))


async def depend_on(world: World, job, *upstreams):
    """Write another version of a job that depends on these."""
    spec = structs.replace(job.spec, dependencies=tuple(str(up.id) for up in upstreams))

    def script(now):
        yield from jobs.lock(job.id, NAMESPACE)
        assert (yield from jobs.set_dependencies(job.id, spec)) is None
        done = Consequences()
        yield from waits.reconsider(job.id, world.env.new_id, now, done)
        return done

    return await world.store.change(script)


async def test_a_fire_waits_for_the_upstreams_of_its_interval(world: World):
    start = world.now()
    a = await scheduled(world, "a")
    d = await dependent(world, "d", a)
    await hourly(world, d)
    fired = await fire(world)

    (slice,) = await world.on("waiting")
    assert (slice.job, slice.reason, slice.wake_at, bool(slice.gate)) == (d.id, "dependency", None, True)
    assert fired.lanes == {}
    await run(world, a, interval=(start + HOUR, start + 2 * HOUR))
    await run(world, a)
    assert await states(world, d) == ["waiting"]
    worker = await world.worker()
    await run(world, a, worker=worker, interval=(start, start + HOUR))
    assert await states(world, d) == ["queued"]
    (queued,) = [slice for slice in await world.on("queued") if slice.job == d.id]
    assert queued.rank == start + HOUR - lead(d.queue, 4, d.id)
    assert worker.effects.requeued == {d.lane: queued.rank}
    assert len(await started(world, d)) == 1


async def test_a_fire_whose_upstreams_have_ended_goes_on_at_once(world: World):
    start = world.now()
    a = await upstream(world, "a")
    d = await dependent(world, "d", a)
    await hourly(world, d)
    await run(world, a, interval=(start, start + HOUR))
    assert await started(world, d) == []
    fired = await fire(world)
    assert await states(world, d) == ["queued"]
    assert fired.lanes.keys() == {d.lane}


async def test_a_failed_upstream_skips_the_fire_that_waits(world: World):
    start = world.now()
    a = await upstream(world, "a")
    d = await dependent(world, "d", a)
    await hourly(world, d)
    await fire(world)
    (ran,) = await run(world, a, failed, interval=(start, start + HOUR))
    await look(world)
    assert await states(world, d) == ["skipped"]
    (row,) = await world.rows("SELECT reason, error FROM history WHERE job = $1", d.id)
    assert (row[0], str(ran) in row[1]) == ("dependency", True)

    await run(world, a, interval=(start, start + HOUR))
    assert await states(world, d) == ["skipped", "queued"]


async def test_a_fire_after_its_upstream_failed_is_skipped(world: World):
    start = world.now()
    a = await upstream(world, "a")
    d = await dependent(world, "d", a)
    await hourly(world, d)
    await run(world, a, failed, interval=(start, start + HOUR))
    assert (await look(world)).joins == 0
    await fire(world)
    await look(world)
    assert await states(world, d) == ["skipped"]


@pytest.mark.parametrize(("late", "state"), [("fail", "failed"), ("skip", "skipped"), ("run", "queued")])
async def test_a_fire_ends_after_its_dependency_timeout(world: World, late, state):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a, dependency_timeout=2 * HOUR, on_dependency_timeout=late)
    e = await dependent(world, "e", d, conditions={str(d.id): "failure"})
    await asked(world, d, patience=2 * HOUR)
    world.clock.advance(2 * HOUR - 1)
    assert (await look(world)).joins == 0
    world.clock.advance(1)
    assert await world.store.read(joins.next_due) == world.now()
    await look(world)
    assert await states(world, d) == [state]
    assert len(await started(world, e)) == (state == "failed")
    assert (await look(world)).joins == 0
    if state == "failed":
        (row,) = await world.rows("SELECT error FROM history WHERE job = $1", d.id)
        assert all(word in row[0] for word in ("DependencyTimeout", 'waited for \\"a\\"'))


async def test_a_fire_takes_one_new_success_of_an_upstream_without_intervals(world: World):
    start = world.now()
    a, b = await scheduled(world, "a"), await upstream(world, "b")
    d = await dependent(world, "d", a, b)
    await hourly(world, d)
    await run(world, b)
    await fire(world)
    await run(world, a, interval=(start, start + HOUR))
    assert await states(world, d) == ["queued"]
    await fire(world)
    await run(world, a, interval=(start + HOUR, start + 2 * HOUR))
    assert await states(world, d) == ["queued", "waiting"]
    await run(world, b)
    assert await states(world, d) == ["queued", "queued"]


async def test_a_manual_run_of_a_scheduled_upstream_does_not_stand_for_its_interval(world: World):
    a, b = await scheduled(world, "a"), await scheduled(world, "b")
    d = await dependent(world, "d", a, b)
    await run(world, a, interval=(0, HOUR))
    await run(world, b)
    assert await started(world, d) == []
    await run(world, a)
    assert [extra.interval for extra in await started(world, d)] == [None]
    await run(world, b, interval=(0, HOUR))
    assert [extra.interval for extra in await started(world, d)] == [None, (0, HOUR)]


async def test_an_upstream_without_intervals_fills_the_oldest_interval(world: World):
    a, b = await scheduled(world, "a"), await upstream(world, "b")
    d = await dependent(world, "d", a, b)
    await run(world, a, interval=(HOUR, 2 * HOUR))
    await run(world, a, interval=(0, HOUR))
    await run(world, b)
    assert [extra.interval for extra in await started(world, d)] == [(0, HOUR)]
    await run(world, b, n=2)
    assert [extra.interval for extra in await started(world, d)] == [(0, HOUR), (HOUR, 2 * HOUR)]
    await run(world, a, interval=(2 * HOUR, 3 * HOUR))
    assert len(await started(world, d)) == 3


async def test_a_requested_wait_needs_one_success_of_each_upstream(world: World):
    a, b = await upstream(world, "a"), await upstream(world, "b")
    d = await dependent(world, "d", a, b)
    receipt, done = await asked(world, d)
    assert (receipt.state, done.lanes) == ("waiting", {})
    await run(world, a, interval=(0, HOUR))  # any of its successes counts
    await run(world, b)
    assert await states(world, d) == ["queued"]
    assert len(await started(world, d)) == 1


async def test_a_requested_wait_without_dependencies_goes_on_at_once(world: World):
    a = await upstream(world, "a")
    b = await upstream(world, "b")
    d = await dependent(world, "d", a, b)
    await run(world, a)
    await run(world, b, interval=(0, HOUR))
    receipt, _ = await asked(world, d)
    assert receipt.state == "waiting"
    alone, done = await asked(world, a)
    assert (alone.state, done.lanes.keys()) == ("queued", {a.lane})


async def test_a_requested_wait_for_an_interval_counts_earlier_ends(world: World):
    a, b = await upstream(world, "a"), await upstream(world, "b")
    d = await dependent(world, "d", a, b)
    await run(world, a, interval=(0, HOUR))
    receipt, _ = await asked(world, d, interval=(0, HOUR))
    assert receipt.state == "waiting"
    await run(world, b, interval=(0, HOUR))
    assert sorted(await states(world, d)) == [
        "queued",
        "queued",
    ]  # the execution of the interval, and the requested one
    late, _ = await asked(world, d, interval=(0, HOUR))
    assert late.state == "queued"


async def test_a_waiting_execution_can_be_cancelled_without_its_neighbours(world: World):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a)
    wanted = [structs.replace(one, patience=DAY) for one in world.wanted(d, 3)]
    await world.store.submit([submission.Submission(executions=wanted)])
    (slice,) = await world.on("waiting")
    assert await world.store.cancel(slice.parcel, 1, "") == ("cancelled", None)
    await run(world, a, n=3)
    assert await world.states(slice.parcel) == ["queued", "cancelled", "queued"]
    (row,) = await world.rows("SELECT state FROM joins WHERE execution = $1", execution_id(slice.parcel, 1))
    assert row == ("ended",)


async def test_an_execution_due_later_waits_for_its_time_after_its_dependencies(world: World):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a)
    (wanted,) = world.wanted(d, due_at=world.now() + HOUR)
    done = await world.store.submit([submission.Submission(executions=[structs.replace(wanted, patience=DAY)])])
    await run(world, a)
    (slice,) = await world.on("waiting")
    assert (slice.reason, slice.wake_at, slice.gate) == ("delay", done.parcels[0].envelope.due_at, None)


async def test_a_changed_dependency_releases_executions_with_complete_joins(world: World):
    a, b = await upstream(world, "a"), await upstream(world, "b")
    d = await dependent(world, "d", a, b)
    await run(world, a, interval=(0, HOUR))
    receipt, _ = await asked(world, d)
    await depend_on(world, d, a)
    assert [extra.interval for extra in await started(world, d) if extra.origin] == [(0, HOUR)]
    assert await world.states(parcel_of(receipt.execution_id)) == ["waiting"]
    done = await depend_on(world, d)
    assert await world.states(parcel_of(receipt.execution_id)) == ["queued"]
    assert done.lanes.keys() == {d.lane}
    assert await world.rows("SELECT job FROM dependents") == []


async def test_counts_of_unchanged_dependencies_are_preserved(world: World):
    a, b, c = await upstream(world, "a"), await upstream(world, "b"), await upstream(world, "c")
    d = await dependent(world, "d", a, b)
    await run(world, a)
    await depend_on(world, d, a, c)
    await run(world, c)
    assert len(await started(world, d)) == 1


async def test_two_fires_of_one_interval_wait_separately(world: World):
    start = world.now()
    a = await upstream(world, "a")
    d = await dependent(world, "d", a)
    await hourly(world, d)
    await hourly(world, d)
    await fire(world)
    assert len(await open_joins(world, d)) == 2
    await run(world, a, interval=(start, start + HOUR))
    assert await states(world, d) == ["queued", "queued"]
    assert await open_joins(world, d) == []


async def test_the_end_of_a_replaced_execution_is_reported_to_dependents(world: World):
    a = await upstream(world, "a")
    d = await dependent(world, "d", a, conditions={str(a.id): "finished"})
    await add_trigger(world, a, Interval(every=HOUR, anchor=world.now()), Rules(overlap="queueOne", grace=DAY))
    start = world.now()
    for _ in range(3):
        done = await fire(world)
    assert await states(world, a) == ["queued", "skipped", "waiting"]
    assert [extra.interval for extra in await started(world, d)] == [(start + HOUR, start + 2 * HOUR)]
    assert d.lane in done.lanes
