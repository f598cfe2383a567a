"""Deadlines of jobs and triggers: every execution that they start has one."""

import pytest
from msgspec import structs

from horae.env import SECOND
from horae.model.admission.policy import DeadlinePolicy
from horae.model.admission.rank import RankLeads
from horae.model.executions.submission import Submission
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Interval
from tests.store_contract.moves.test_backfills import make, work
from tests.store_contract.workflow_world import open_all, step, workflow
from tests.store_contract.world import World, add_trigger, lead

MINUTE, HOUR = 60 * SECOND, 3600 * SECOND


async def deadlines(world: World) -> list[int | None]:
    return [row[0] for row in await world.rows("SELECT deadline FROM parcels ORDER BY id")]


@pytest.mark.parametrize(("job", "rule", "within"), [(HOUR, None, HOUR), (HOUR, MINUTE, MINUTE), (None, HOUR, HOUR)])
async def test_a_fire_has_its_deadline_from_its_nominal_instant(world: World, job, rule, within):
    made = await world.job(within=job)
    rules = Rules(overlap="allow", within=rule, spread=30 * SECOND, offset=20 * SECOND)
    start = world.now() // MINUTE * MINUTE
    await add_trigger(world, made, Interval(every=MINUTE, anchor=start), rules)
    world.clock.advance(start + MINUTE + 25 * SECOND - world.now())
    assert (await world.store.fire(100, lead)).timers == 1
    assert await deadlines(world) == [start + MINUTE + within]
    ((due,),) = await world.rows("SELECT due_at FROM parcels")
    assert due == start + MINUTE + 20 * SECOND, "and not from when it is due"


async def test_equal_jobs_with_and_without_a_deadline_differ(world: World):
    rules, trigger = Rules(overlap="allow", within=HOUR), Interval(every=MINUTE, anchor=world.now())
    start, job = world.now(), await world.job()
    await add_trigger(world, job, trigger, rules)
    await add_trigger(world, job, trigger, Rules(overlap="allow"))
    world.clock.advance(MINUTE)
    await world.store.fire(100, lead)
    assert sorted(map(str, await deadlines(world))) == sorted(map(str, [start + MINUTE + HOUR, None]))


async def test_a_backfill_counts_from_now(world: World):
    job, start = await world.job(within=HOUR), world.now()
    await add_trigger(world, job, Interval(every=MINUTE, anchor=start), Rules(overlap="allow", start_at=start))
    world.clock.advance(10 * MINUTE)
    await world.store.fire(100, lead)
    before = len(await deadlines(world))
    await work(world, await make(world, job, start, start + 3 * MINUTE))
    late = (await deadlines(world))[before:]
    assert late
    assert set(late) == {world.now() + HOUR}


async def test_steps_have_the_deadline_of_their_workflow(world: World):
    job = await world.job(within=MINUTE)
    (wanted,) = world.wanted(await workflow(world, step("a", job)))
    wanted = structs.replace(wanted, envelope=structs.replace(wanted.envelope, deadline=world.now() + HOUR))
    await world.store.submit([Submission(executions=[wanted])])
    await open_all(world)
    assert await deadlines(world) == [world.now() + HOUR] * 2


async def test_a_queue_by_deadline_takes_fires_by_it(world: World):
    trigger = Interval(every=MINUTE, anchor=world.now())
    for name, within in (("late", HOUR), ("soon", MINUTE), ("never", None)):
        await add_trigger(world, await world.job(name, within=within), trigger, Rules(overlap="allow"))
    world.clock.advance(MINUTE)
    await world.store.fire(100, RankLeads(lambda queue: DeadlinePolicy()))
    rows = await world.rows("SELECT j.name FROM queued q JOIN jobs j ON j.id = q.job ORDER BY q.rank")
    assert [row[0] for row in rows] == ["soon", "late", "never"]
