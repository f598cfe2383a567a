"""Turns: a trigger's executions run one at a time if its overlap requires it, for every way in which they may end."""

import msgspec
import pytest

from horae.env import SECOND
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Interval
from horae.store.triggers import turns
from horae.store.triggers.turns import turn_key
from tests.store_contract.world import World, add_trigger, lead, rank, success

MINUTE = 60 * SECOND


async def keyed(world: World, overlap: str, **more):
    """Create a job with one trigger that fires every minute; return the job and the trigger's key."""
    job = await world.job("report")
    rules = Rules(overlap=overlap, grace=60 * MINUTE, **more)
    await add_trigger(world, job, Interval(every=MINUTE, anchor=world.now()), rules, "often")
    return job, turn_key(job.id, "often")


async def minute(world: World):
    world.clock.advance(MINUTE)
    done = await world.store.fire(100, lead)
    return [execution_id(parcel.id, i) for parcel in done.parcels for i in range(len(parcel))]


async def states(world: World, executions):
    return [(await world.states(parcel_of(id)))[index_of(id)] for id in executions]


async def pass_on(world: World, key: str) -> int:
    done = await world.store.change(lambda now: turns.pass_on(key, rank, world.env.new_id, now))
    return done.rows


async def finish(world: World, worker, id):
    slices = await worker.holds() or await worker.claim(1)
    (slice,) = [s for s in slices if s.parcel == parcel_of(id)]
    await worker.report(success(slice))


async def blocked(world: World):
    return await world.store.read(lambda: turns.blocked("", 100))


async def test_queue_one_keeps_the_newest_and_runs_it_after_the_last(world: World):
    job, key = await keyed(world, "queueOne")
    (first,) = await minute(world)
    (second,) = await minute(world)
    assert await states(world, [first, second]) == ["queued", "waiting"]
    (third,) = await minute(world)
    assert await states(world, [first, second, third]) == ["queued", "skipped", "waiting"]
    assert [(one.key, one.job, one.holder, one.cancels) for one in await blocked(world)] == [
        (key, job.id, first, False)
    ]
    assert await pass_on(world, key) == 0
    worker = await world.worker()
    await finish(world, worker, first)
    assert (await blocked(world))[0].holder is None
    assert await pass_on(world, key) == 1
    assert await states(world, [third]) == ["queued"]
    assert await pass_on(world, key) == 0

    rows = await world.rows("SELECT disposition, count(*) FROM fires GROUP BY disposition")
    assert [tuple(row) for row in rows] == [("fired", 3)]


async def test_queue_all_runs_fires_in_order_and_skips_those_without_room(world: World):
    _, key = await keyed(world, "queueAll", most_queued=2)
    made = [id for _ in range(4) for id in await minute(world)]
    assert await states(world, made) == ["queued", "waiting", "waiting"]
    rows = await world.rows("SELECT disposition, cause FROM fires WHERE disposition <> 'fired'")
    assert [tuple(row) for row in rows] == [("skipped-overlap", "2 executions waited for the previous one already")]
    worker = await world.worker()
    for id in made:
        assert await states(world, [id]) == ["queued"]
        await finish(world, worker, id)
        await pass_on(world, key)
    assert await states(world, made) == ["success"] * 3
    assert await blocked(world) == []


async def test_several_at_once_begin_with_the_oldest(world: World):
    _, key = await keyed(world, "queueAll")
    world.clock.advance(2 * MINUTE)
    made = await minute(world)
    assert await states(world, made) == ["queued", "waiting", "waiting"]
    worker = await world.worker()
    await finish(world, worker, made[0])
    await pass_on(world, key)
    assert await states(world, made) == ["success", "queued", "waiting"]


async def test_cancel_other_requests_the_cancellation_of_the_holder(world: World):
    _, key = await keyed(world, "cancelOther")
    (first,) = await minute(world)
    (second,) = await minute(world)
    (one,) = await blocked(world)
    assert (one.holder, one.cancels) == (first, True)
    await world.store.cancel(parcel_of(first), index_of(first), "replaced")
    assert await pass_on(world, key) == 1
    assert await states(world, [first, second]) == ["cancelled", "queued"]


@pytest.mark.parametrize("end", ["cancelled", "rescued"])
async def test_a_turn_ends_with_any_end_of_its_holder(world: World, end):
    _, key = await keyed(world, "queueOne")
    (first,) = await minute(world)
    await minute(world)
    if end == "cancelled":
        await world.store.cancel(parcel_of(first), index_of(first), "")
        assert await pass_on(world, key) == 1
        return
    worker = await world.worker()
    await worker.claim(1)
    await worker.lose()
    await world.store.rescue(worker.session, 100)
    assert await pass_on(world, key) == 0  # it is retried, so its turn goes on


async def test_a_fire_after_the_last_has_ended_begins_at_once_unless_others_wait(world: World):
    _, key = await keyed(world, "queueAll")
    (first,) = await minute(world)
    worker = await world.worker()
    await finish(world, worker, first)
    (second,) = await minute(world)
    assert await states(world, [second]) == ["queued"]
    (third,) = await minute(world)
    await finish(world, worker, second)
    (fourth,) = await minute(world)
    assert await states(world, [third, fourth]) == ["waiting", "waiting"]
    await pass_on(world, key)
    assert await states(world, [third, fourth]) == ["queued", "waiting"]


async def test_an_execution_from_before_the_use_of_turns_has_the_first_turn(world: World):
    job = await world.job()
    trigger = await add_trigger(world, job, Interval(every=MINUTE, anchor=world.now()), Rules(), "often")
    (first,) = await minute(world)
    rules = Rules(overlap="queueAll", grace=60 * MINUTE)
    text = msgspec.json.encode(rules).decode()
    await world.do("UPDATE triggers SET rules = $2 WHERE id = $1", trigger, text)
    (second,) = await minute(world)
    assert await states(world, [first, second]) == ["queued", "waiting"]
    assert (await blocked(world))[0].holder == first
    worker = await world.worker()
    await finish(world, worker, first)
    await pass_on(world, turn_key(job.id, "often"))
    assert await states(world, [second]) == ["queued"]


async def test_triggers_without_turns_cost_no_extra_statement(world: World):
    job = await world.job()
    await add_trigger(world, job, Interval(every=MINUTE, anchor=world.now()), Rules(overlap="allow"))
    world.clock.advance(MINUTE)
    await world.store.fire(100, lead)
    assert await world.rows("SELECT key FROM holders") == []


async def test_ended_holders_are_deleted(world: World):
    await keyed(world, "queueOne")
    (first,) = await minute(world)
    await world.store.write(lambda: turns.forget("", 10))
    assert len(await world.rows("SELECT key FROM holders")) == 1
    worker = await world.worker()
    await finish(world, worker, first)
    await world.store.write(lambda: turns.forget("", 10))
    assert await world.rows("SELECT key FROM holders") == []


async def test_two_triggers_of_a_job_have_separate_turns(world: World):
    job, _ = await keyed(world, "queueOne")
    await add_trigger(world, job, Interval(every=MINUTE, anchor=world.now()), Rules(overlap="queueOne"), "other")
    made = await minute(world)
    assert await states(world, made) == ["queued", "queued"]
