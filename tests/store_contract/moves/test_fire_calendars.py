"""Fire by calendars: the ledger has skipped, moved and coalesced fires, and executions are due when they may run."""

import asyncio

import msgspec
import pytest

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.triggers.decisions.rules import Misfire, Rules
from horae.model.triggers.decisions.values import Interval
from horae.store.triggers import audit_fires, calendars, triggers
from tests.store_contract.world import NAMESPACE, World, add_trigger, lead

MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
# The world's clock begins on a Friday at 08:00 UTC.
NINE_TO_TEN = {"hours": "09:00-10:00"}
ALWAYS = {"hours": "00:00-24:00"}


async def put(world: World, name: str, definition: dict) -> None:
    text, now = msgspec.json.encode(definition).decode(), world.now()
    await world.store.write(lambda: calendars.put(NAMESPACE, name, text, "", now))
    await world.store.write(lambda: calendars.wake(NAMESPACE, [name], now))


async def trigger(world: World, every: int, outside: str, *names: str, job=None, **rules):
    rules = {"overlap": "allow", "calendars": names or ("work",), "outside": outside, **rules}
    job = job or await world.job()
    return await add_trigger(world, job, Interval(every=every, anchor=world.now()), Rules(**rules))


async def ledger(world: World, trigger, start):
    rows = await world.rows("SELECT first, last, disposition FROM fires WHERE trigger_id = $1 ORDER BY last", trigger)
    return [((first - start) // MINUTE, (last - start) // MINUTE, told) for first, last, told in rows]


async def dues(world: World, start):
    rows = await world.rows("SELECT due_at FROM parcels ORDER BY due_at")
    return [(due - start) / MINUTE for (due,) in rows]


async def run_until(world: World, until):
    """Fire whenever a timer is due."""
    while (at := await world.store.next_fire_at()) is not None and at <= until:
        world.clock.advance(max(0, at - world.now()))
        assert (await world.store.fire(100, lead)).timers
    world.clock.advance(until - world.now())


async def audited(world: World) -> None:
    assert (await world.store.read(audit_fires.audit_fires)).findings == []


async def test_outside_of_the_calendar_fires_are_skipped(world: World):
    start = world.now()
    await put(world, "work", NINE_TO_TEN)
    mine = await trigger(world, 20 * MINUTE, "skip")
    await run_until(world, start + 140 * MINUTE)

    assert await ledger(world, mine, start) == [
        (20, 20, "skipped-calendar"), (40, 40, "skipped-calendar"), (60, 60, "fired"), (80, 80, "fired"),
        (100, 100, "fired"), (120, 120, "skipped-calendar"), (140, 140, "skipped-calendar"),
    ]  # fmt: skip
    assert await dues(world, start) == [60, 80, 100]
    assert (await world.rows("SELECT cause FROM fires LIMIT 1"))[0][0] == 'calendar "work" was closed'
    await audited(world)


async def test_fires_are_postponed_to_the_next_opening_as_one(world: World):
    start = world.now()
    await put(world, "work", NINE_TO_TEN)
    mine = await trigger(world, 20 * MINUTE, "postpone")
    await run_until(world, start + 80 * MINUTE)

    assert await ledger(world, mine, start) == [
        (20, 20, "moved"), (40, 40, "coalesced"), (60, 60, "coalesced"), (80, 80, "fired"),
    ]  # fmt: skip
    assert await dues(world, start) == [60, 80]
    ((moved, cause),) = await world.rows("SELECT execution, cause FROM fires WHERE disposition = 'moved'")
    assert moved is not None
    assert cause == 'calendar "work" was closed; moved to 2027-01-15T09:00:00Z'
    assert await world.rows("SELECT moved_to FROM timers") == [(start + HOUR,)]
    await audited(world)


async def test_fires_are_advanced_to_the_last_open_second_as_one(world: World):
    start = world.now()
    await put(world, "work", NINE_TO_TEN)
    world.clock.advance(70 * MINUTE)
    mine = await trigger(world, 30 * MINUTE, "advance")
    await run_until(world, start + 120 * MINUTE - SECOND)

    assert await ledger(world, mine, start) == [(100, 100, "fired"), (130, 130, "moved")]
    assert await dues(world, start) == [100, 120 - 1 / 60]
    await audited(world)
    await run_until(world, start + 200 * MINUTE)
    assert (await ledger(world, mine, start))[2:] == [(160, 160, "coalesced"), (190, 190, "coalesced")]
    await audited(world)


async def test_several_calendars_must_all_be_open(world: World):
    start = world.now()
    await put(world, "work", NINE_TO_TEN)
    await put(world, "late", {"hours": "09:40-24:00"})
    mine = await trigger(world, 20 * MINUTE, "skip", "work", "late")
    await run_until(world, start + 120 * MINUTE)
    assert [row for row in await ledger(world, mine, start) if row[2] == "fired"] == [(100, 100, "fired")]


async def test_closed_seconds_of_a_trigger_every_second_share_a_row(world: World):
    await put(world, "work", NINE_TO_TEN)
    mine = await trigger(world, SECOND, "skip")
    await run_until(world, world.now() + 20 * SECOND)
    rows = await world.rows("SELECT first, last FROM fires WHERE trigger_id = $1 ORDER BY last", mine)
    assert [(last - first) // SECOND for first, last in rows] == [0, 5, 5, 5]
    await audited(world)


async def test_after_a_long_outage_there_are_few_rows(world: World):
    start = world.now()
    await put(world, "work", NINE_TO_TEN)
    mine = await trigger(world, SECOND, "skip", misfire=Misfire(policy="skip"))
    world.clock.advance(40 * HOUR)
    await world.store.fire(100, lead)

    assert [told for _, _, told in await ledger(world, mine, start)] == [
        "skipped-calendar", "skipped-misfire", "skipped-calendar", "skipped-misfire", "skipped-calendar",
    ]  # fmt: skip
    await audited(world)


async def test_a_change_counts_from_its_instant_on(world: World):
    """Fires before the change are decided by the version of that time, even if they are decided later."""
    start = world.now()
    await put(world, "work", NINE_TO_TEN)
    mine = await trigger(world, 20 * MINUTE, "skip", misfire=Misfire(policy="all"))
    world.clock.advance(50 * MINUTE)
    await put(world, "work", {"hours": "08:00-09:00"})
    world.clock.advance(60 * MINUTE)
    await world.store.fire(100, lead)

    assert await ledger(world, mine, start) == [(20, 100, "skipped-calendar")]
    await audited(world)


async def test_a_change_wakes_the_timers_that_it_advances(world: World):
    start = world.now()
    await put(world, "work", ALWAYS)
    mine = await trigger(world, 4 * HOUR, "advance")
    await world.store.fire(100, lead)
    assert await world.store.next_fire_at() == start + 4 * HOUR
    world.clock.advance(HOUR)
    await put(world, "work", {"hours": "08:00-11:00"})
    await run_until(world, start + 3 * HOUR)

    assert await ledger(world, mine, start) == [(240, 240, "moved")]
    assert await dues(world, start) == [180 - 1 / 60]
    await audited(world)


async def test_an_edit_does_not_repeat_fires_decided_ahead(world: World):
    start = world.now()
    await put(world, "work", {"hours": "08:00-09:00"})
    job = await world.job()
    rules = Rules(overlap="allow", calendars=("work",), outside="advance")
    await add_trigger(world, job, Interval(every=2 * HOUR, anchor=start), rules, name="mine")
    await run_until(world, start + HOUR)  # 10:00 has been decided at 08:59:59
    assert await dues(world, start) == [60 - 1 / 60]

    (timer,) = await world.store.read(lambda: triggers.of_job(job.id))
    owner, now, id = triggers.Owner(job.id, NAMESPACE, 2), world.now(), world.env.new_id()
    when = msgspec.structs.replace(timer.when, trigger=Interval(every=HOUR, anchor=start), rules=Rules(overlap="allow"))
    await world.store.write(lambda: triggers.replace(timer, id, owner, when, "active", now))
    await run_until(world, start + 3 * HOUR)

    assert await ledger(world, id, start) == [(180, 180, "fired")]
    await audited(world)


async def test_an_ended_or_changed_trigger_leaves_its_calendars(world: World):
    await put(world, "work", ALWAYS)
    job = await world.job()
    rules = Rules(calendars=("work",))
    await add_trigger(world, job, Interval(every=HOUR), rules, name="mine")
    owner, now, id = triggers.Owner(job.id, NAMESPACE, 2), world.now(), world.env.new_id()
    (timer,) = await world.store.read(lambda: triggers.of_job(job.id))
    when = msgspec.structs.replace(timer.when, params={"a": 1})
    await world.store.write(lambda: triggers.replace(timer, id, owner, when, "active", now))
    assert await world.rows("SELECT trigger_id FROM calendar_triggers") == [(id,)]
    (timer,) = await world.store.read(lambda: triggers.of_job(job.id))
    await world.store.write(lambda: triggers.end(timer, now))
    assert await world.rows("SELECT trigger_id FROM calendar_triggers") == []


async def test_a_missing_calendar_is_refused(world: World):
    with pytest.raises(BadInput, match='no calendar named "work"'):
        await trigger(world, HOUR, "skip")
    assert await world.rows("SELECT count(*) FROM timers") == [(0,)]


async def test_a_trigger_with_an_unusable_calendar_does_not_block_others(world: World):
    start, job = world.now(), await world.job()
    await put(world, "gone", {"dates": ["2030-01-01"]})
    await put(world, "work", {"hours": "00:00-24:00", "except": ["gone"]})
    by_reference = await trigger(world, MINUTE, "skip", job=job)
    directly = await trigger(world, MINUTE, "skip", "gone", job=job)
    plain = await add_trigger(world, job, Interval(every=MINUTE, anchor=start), Rules(overlap="allow"))
    await world.do("DELETE FROM calendars WHERE name = 'gone'")
    world.clock.advance(MINUTE)
    done = await world.store.fire(100, lead)

    assert {trouble.trigger for trouble in done.troubles} == {by_reference, directly}
    assert 'no calendar named "gone"' in done.troubles[1].reason
    assert await ledger(world, plain, start) == [(1, 1, "fired")]
    await put(world, "gone", {"dates": ["2030-01-01"]})
    world.clock.advance(MINUTE)
    assert (await world.store.fire(100, lead)).troubles == []
    await audited(world)


async def test_servers_that_fire_at_once_move_a_fire_once(world: World):
    start = world.now()
    await put(world, "work", NINE_TO_TEN)
    job = await world.job()
    for _ in range(5):
        await trigger(world, 20 * MINUTE, "postpone", job=job)
    world.clock.advance(20 * MINUTE)
    await asyncio.gather(*(world.store.fire(100, lead) for _ in range(4)))
    assert await dues(world, start) == [60] * len(await dues(world, start))
    assert await world.rows("SELECT count(*), count(execution) FROM fires WHERE disposition = 'moved'") == [(5, 5)]
