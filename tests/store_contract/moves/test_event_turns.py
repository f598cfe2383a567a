"""Executions that events fire run one at a time if the trigger's overlap rule requires it, like timed fires."""

import asyncio

import pytest

from horae.env import SECOND
from horae.features.events.store import events, watches
from horae.model.base.ids import index_of, parcel_of
from horae.model.triggers.decisions.external import EventTrigger, WatchTrigger
from horae.model.triggers.decisions.rules import Rules
from horae.store.triggers import turns
from horae.store.triggers.turns import turn_key
from tests.store_contract.moves.test_dependencies import dependent, upstream
from tests.store_contract.moves.test_events import event, fits, take, told
from tests.store_contract.moves.test_turns import blocked, finish, pass_on, states
from tests.store_contract.moves.test_watches import due, found
from tests.store_contract.world import NAMESPACE, World, add_trigger, lead

FIRED, LEFT = ("fired", True), ("skipped-overlap", False)


async def listen(world: World, overlap: str, trigger=None, **more):
    job = await world.job("load")
    await add_trigger(world, job, trigger or EventTrigger(event="upload"), Rules(overlap=overlap, **more), "in")
    return turn_key(job.id, "in")


async def came(world: World, count: int = 1):
    """Return the executions of events that arrive one by one."""
    made = []
    for _ in range(count):
        world.clock.advance(SECOND)
        taken = await take(world, event())
        made += [one.execution for each in taken.events for one in each.outcomes if one.execution is not None]
    return made


async def test_queue_one_keeps_the_latest(world: World):
    key = await listen(world, "queueOne")
    first, second, third = await came(world, 3)
    assert await states(world, [first, second, third]) == ["queued", "skipped", "waiting"]
    assert await pass_on(world, key) == 0
    await finish(world, await world.worker(), first)
    assert await pass_on(world, key) == 1
    assert await states(world, [third]) == ["queued"]
    await world.check()


@pytest.mark.parametrize("overlap", ["skip", "queueOne", "queueAll", "allow"])
async def test_the_dry_run_of_an_event_matches_its_decision(world: World, overlap: str):
    more = {"most_queued": 1} if overlap == "queueAll" else {}
    await listen(world, overlap, max_fires=3, **more)
    for n in range(4):
        now = world.clock.now()
        plan = events.plan(NAMESPACE, event(id=f"e{n}"), lead, fits, world.env.new_id(), now)
        would, known = await world.store.read(lambda plan=plan: plan)
        (became,) = (await take(world, event(id=f"e{n}"))).events
        assert ([(one.disposition, one.cause) for one in would], known) == (
            [(one.disposition, one.cause) for one in became.outcomes], False,
        )  # fmt: skip
    _, known = await world.store.read(lambda: events.plan(NAMESPACE, event(id="e0"), lead, fits, became.id, now))
    assert known


async def test_the_dry_run_of_an_event_counts_executions_whose_turn_has_come(world: World):
    await listen(world, "queueAll", most_queued=1)
    first, _ = await came(world, 2)
    await finish(world, await world.worker(), first)
    plan = events.plan(NAMESPACE, event(), lead, fits, world.env.new_id(), world.clock.now())
    would, _ = await world.store.read(lambda: plan)
    assert [one.disposition for one in would] == ["skipped-overlap"]
    assert told(await take(world, event())) == [[LEFT]]


async def test_queue_all_runs_fires_in_order_and_skips_those_without_room(world: World):
    key = await listen(world, "queueAll", most_queued=2)
    made = await came(world, 3)
    assert told(await take(world, event(), event())) == [[LEFT], [LEFT]]
    rows = await world.rows("SELECT DISTINCT cause FROM event_fires WHERE disposition <> 'fired'")
    assert [tuple(row) for row in rows] == [("2 executions waited for the previous one already",)]
    worker = await world.worker()
    for id in made:
        assert await states(world, [id]) == ["queued"]
        await finish(world, worker, id)
        await pass_on(world, key)
    assert await states(world, made) == ["success"] * 3
    assert await blocked(world) == []


async def test_cancel_other_requests_the_cancellation_of_the_holder(world: World):
    key = await listen(world, "cancelOther")
    first, second = await came(world, 2)
    (one,) = await blocked(world)
    assert (one.key, one.holder, one.cancels) == (key, first, True)
    await world.store.cancel(parcel_of(first), index_of(first), "replaced")
    assert await pass_on(world, key) == 1
    assert await states(world, [first, second]) == ["cancelled", "queued"]


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("queueOne", [[FIRED], [LEFT], [FIRED]]),
        ("queueAll", [[FIRED]] * 3),
        ("cancelOther", [[FIRED], [LEFT], [FIRED]]),
    ],
)
async def test_the_first_of_simultaneous_events_runs_and_the_last_waits(world: World, overlap, expected):
    await listen(world, overlap, max_fires=3)
    taken = await take(world, event(), event(), event())
    assert told(taken) == expected
    assert taken.blocked
    assert len(await world.on("queued")) == 1
    ran = sum(one != [LEFT] for one in expected)
    assert await world.rows("SELECT fired FROM timers") == [(ran,)]
    await world.check()


async def test_two_simultaneous_events_do_not_both_run(world: World):
    await listen(world, "queueAll")
    await asyncio.gather(*(take(world, event()) for _ in range(4)))
    assert len(await world.on("queued")) == 1
    assert sum(slice.hi - slice.lo for slice in await world.on("waiting")) == 3


async def test_a_turn_waits_for_executions_that_ran_before_turns_existed(world: World):
    job = await world.job("load")
    trigger = await add_trigger(world, job, EventTrigger(event="upload"), Rules(overlap="skip"), "in")
    (first,) = await came(world)
    await world.do("UPDATE triggers SET rules = $2 WHERE id = $1", trigger, '{"overlap":"queueOne"}')
    (second,) = await came(world)
    assert await states(world, [first, second]) == ["queued", "waiting"]
    assert [one.holder for one in await blocked(world)] == [first]


async def test_new_objects_wait_for_each_other_too(world: World):
    key = await listen(world, "queueAll", WatchTrigger(url="s3://bucket/in/"))
    (poll,) = await due(world)
    objects = [found(n) for n in range(3)]
    done = await world.store.change(lambda now: watches.record_found(poll, objects, lead, fits, world.env.new_id, now))
    made = [one.execution for each in done.events for one in each.outcomes]
    assert done.blocked
    assert await states(world, made) == ["queued", "waiting", "waiting"]
    worker = await world.worker()
    await finish(world, worker, made[0])
    assert await pass_on(world, key) == 1
    assert await states(world, made) == ["success", "queued", "waiting"]
    assert await world.store.write(lambda: turns.forget("", 10)) == ""


async def test_an_event_fire_waits_for_its_turn_and_not_for_dependencies(world: World):
    job = await dependent(world, "load", await upstream(world, "a"))
    await add_trigger(world, job, EventTrigger(event="upload"), Rules(overlap="queueOne"), "in")
    first, second = await came(world, 2)
    assert await states(world, [first, second]) == ["queued", "waiting"]
    await finish(world, await world.worker(), first)
    assert await pass_on(world, turn_key(job.id, "in")) == 1
    assert await states(world, [second]) == ["queued"]


async def test_the_end_of_a_replaced_execution_advances_dependents(world: World):
    up = await upstream(world, "a")
    down = await dependent(world, "b", up, conditions={str(up.id): "finished"})
    await add_trigger(world, up, EventTrigger(event="upload"), Rules(overlap="queueOne"), "in")
    await came(world, 2)
    assert await world.rows("SELECT 1 FROM queued WHERE job = $1", down.id) == []
    await came(world)
    assert await world.rows("SELECT 1 FROM queued WHERE job = $1", down.id) == [(1,)]
