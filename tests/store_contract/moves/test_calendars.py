"""Calendars in the store: consecutive versions, the calendars of triggers, and timers that wake."""

from functools import partial

import msgspec

from horae.env import SECOND
from horae.model.triggers.calendars.read import parse_times
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Interval
from horae.store.triggers import calendars, triggers
from tests.store_contract.world import NAMESPACE, World, add_trigger

HOUR = 3600 * SECOND
DAY = 24 * HOUR
ALWAYS = {"hours": "00:00-24:00"}


async def put(world: World, name: str, definition: dict) -> int:
    text, now = msgspec.json.encode(definition).decode(), world.now()
    return await world.store.write(lambda: calendars.put(NAMESPACE, name, text, "", now))


async def compiled(world: World, *names: str, since: int | None = None):
    wanted = (NAMESPACE, names)
    found = await world.store.read(lambda: calendars.compiled([wanted], world.now() if since is None else since))
    return found.get(wanted)


async def test_versions_follow_one_another_without_gap(world: World):
    start = world.now()
    assert await put(world, "work", ALWAYS) == 1
    world.clock.advance(HOUR)
    assert await put(world, "work", {"hours": "09:00-17:00"}) == 2

    rows = await world.store.read(lambda: calendars.versions(NAMESPACE, "work"))
    assert [(row.version, row.valid_from - start, row.valid_to) for row in rows] == [
        (2, HOUR, None), (1, 0, start + HOUR),
    ]  # fmt: skip
    assert (await world.store.read(lambda: calendars.find(NAMESPACE, "work"))).version == 2
    assert (await world.store.read(lambda: calendars.find(NAMESPACE, "work", start))).version == 1
    assert (await world.store.read(lambda: calendars.find(NAMESPACE, "work", start + HOUR))).version == 2
    assert await world.store.read(lambda: calendars.find(NAMESPACE, "work", start - 1)) is None


async def test_versions_at_one_instant_are_valid_one_after_the_other(world: World):
    for _ in range(3):
        await put(world, "work", ALWAYS)
    rows = await world.store.read(lambda: calendars.versions(NAMESPACE, "work"))
    assert [row.valid_to for row in rows] == [None, rows[0].valid_from, rows[1].valid_from]
    assert len({row.valid_from for row in rows}) == 3


async def test_a_deleted_calendar_is_gone_and_its_number_goes_on(world: World):
    await put(world, "work", ALWAYS)
    world.clock.advance(HOUR)
    now = world.now()
    await world.store.write(lambda: calendars.delete(NAMESPACE, "work", now))

    assert await world.store.read(lambda: calendars.find(NAMESPACE, "work")) is None
    assert await world.store.read(lambda: calendars.definitions(NAMESPACE)) == {}
    assert await compiled(world, "work", since=now) is None
    assert await put(world, "work", ALWAYS) == 2


async def test_a_page_is_in_the_order_of_names_and_within_its_namespace(world: World):
    for name in ("b", "a", "c"):
        await put(world, name, ALWAYS)
    rows = await world.store.read(lambda: calendars.page(NAMESPACE, "a", 1))
    assert [row.name for row in rows] == ["b"]
    assert await world.store.read(lambda: calendars.page(NAMESPACE + 1, "", 10)) == []


async def test_compiled_calendars_include_versions_since_an_instant_and_all_references(world: World):
    start = world.now()  # 08:00 UTC
    await put(world, "base", {"hours": "09:00-10:00"})
    await put(world, "middle", {"calendar": "base"})
    await put(world, "top", {"any": ["middle", {"dates": ["1971-01-01"]}]})
    world.clock.advance(DAY)
    await put(world, "base", {"hours": "20:00-21:00"})

    both = await compiled(world, "top", since=start)
    assert both.is_open(start + HOUR)
    assert both.next_open(start + 2 * HOUR) == start + DAY + 12 * HOUR
    newest = await compiled(world, "top")
    assert not newest.is_open(start + HOUR)
    assert await compiled(world, "top") is newest  # an unchanged calendar is not compiled again


async def test_several_calendars_are_open_together(world: World):
    start = world.now()
    await put(world, "morning", {"hours": "09:00-12:00"})
    await put(world, "eleven", {"hours": "11:00-24:00"})
    both = await compiled(world, "morning", "eleven")
    assert both.next_open(start) == start + 3 * HOUR
    assert both.next_closed(start + 3 * HOUR) == start + 4 * HOUR
    assert await compiled(world, "morning", "gone") is None


async def timers(world: World) -> list:
    return [row[0] for row in await world.rows("SELECT next_fire_at FROM timers ORDER BY trigger_id")]


async def test_only_timers_of_a_changed_calendar_wake(world: World):
    job = await world.job()
    daily = Interval(every=DAY, anchor=world.now())
    mine, other, paused = [await add_trigger(world, job, daily, Rules()) for _ in range(3)]
    await put(world, "work", ALWAYS)
    for trigger in (mine, paused):
        assert await world.store.write(partial(calendars.use, NAMESPACE, ["work"], trigger, "advance")) == []
    now = world.now()
    (asleep,) = [t for t in await world.store.read(lambda: triggers.of_job(job.id)) if t.id == paused]
    owner = triggers.Owner(job.id, NAMESPACE, 1)
    await world.store.write(lambda: triggers.set_state(asleep, "paused", owner, now))

    woken = await world.store.write(lambda: calendars.wake(NAMESPACE, ["work", "others"], now))

    assert woken == 1
    assert dict(zip(sorted([mine, other, paused]), await timers(world), strict=True)) == {
        mine: now, other: now + DAY, paused: None,
    }  # fmt: skip


async def test_calendars_list_their_triggers_until_these_end(world: World):
    job = await world.job()
    trigger = await add_trigger(world, job, Interval(every=DAY), Rules(), name="daily")
    await put(world, "work", ALWAYS)
    await world.store.write(lambda: calendars.use(NAMESPACE, ["work"], trigger, "skip"))

    assert await world.store.read(lambda: calendars.triggers_of(NAMESPACE, "work", 10)) == [(job.spec.name, "daily")]
    await world.store.write(lambda: calendars.drop_uses(trigger))
    assert await world.store.read(lambda: calendars.triggers_of(NAMESPACE, "work", 10)) == []


async def test_a_missing_calendar_is_reported(world: World):
    trigger = await add_trigger(world, await world.job(), Interval(every=DAY), Rules())
    await put(world, "work", ALWAYS)
    assert await world.store.write(lambda: calendars.use(NAMESPACE, ["work", "gone"], trigger, "skip")) == ["gone"]
    assert await world.rows("SELECT count(*) FROM calendar_triggers") == [(0,)]


async def test_definitions_are_read_as_they_were_written(world: World):
    await put(world, "work", {"hours": "09:00-17:00", "except": ["closed"]})
    found = await world.store.read(lambda: calendars.definitions(NAMESPACE))
    assert found == {"work": parse_times({"hours": "09:00-17:00", "except": ["closed"]})}
