"""Events of triggers with calendars: skipped while these are closed, or due when they open."""

from horae.model.triggers.decisions.rules import Rules
from horae.store.triggers import calendars, trigger_reads
from tests.store_contract.moves.test_events import event, listen, take, told
from tests.store_contract.moves.test_fire_calendars import ALWAYS, HOUR, NINE_TO_TEN, put
from tests.store_contract.world import NAMESPACE, World

# The world's clock begins on a Friday at 08:00 UTC.


def by_calendar(outside: str, **rules) -> Rules:
    return Rules(**{"overlap": "allow", "calendars": ("work",), "outside": outside, **rules})


async def test_events_outside_of_the_calendar_are_skipped(world: World):
    await put(world, "work", NINE_TO_TEN)
    await listen(world, rules=by_calendar("skip"))

    before = await take(world, event())
    world.clock.advance(HOUR)
    within = await take(world, event())

    assert (told(before), told(within)) == ([[("skipped-calendar", False)]], [[("fired", True)]])


async def test_events_outside_of_the_calendar_wait_for_its_opening(world: World):
    start = world.now()
    await put(world, "work", NINE_TO_TEN)
    mine = await listen(world, rules=by_calendar("postpone"))

    taken = await take(world, event(), event())

    assert told(taken) == [[("moved", True)], [("moved", True)]]
    assert taken.wake_at == start + HOUR
    assert await world.rows("SELECT DISTINCT due_at FROM parcels") == [(start + HOUR,)]
    assert {slice.wake_at for slice in await world.on("waiting")} == {start + HOUR}
    assert (await world.store.read(lambda: trigger_reads.fired_by_events(mine)))[0] == 2


async def test_postponed_events_do_not_overlap_either(world: World):
    await put(world, "work", NINE_TO_TEN)
    await listen(world, rules=by_calendar("postpone", overlap="skip"))

    assert told(await take(world, event())) == [[("moved", True)]]
    assert told(await take(world, event())) == [[("skipped-overlap", False)]]


async def test_a_change_of_the_calendar_applies_to_the_next_event(world: World):
    await put(world, "work", NINE_TO_TEN)
    await listen(world, rules=by_calendar("skip"))
    await take(world, event())
    world.clock.advance(HOUR // 60)

    await put(world, "work", ALWAYS)
    world.clock.advance(1)

    assert told(await take(world, event())) == [[("fired", True)]]


async def test_a_missing_calendar_does_not_block_other_triggers(world: World):
    await put(world, "work", ALWAYS)
    await listen(world, rules=by_calendar("skip"))
    await listen(world)
    await world.store.change(lambda now: calendars.delete(NAMESPACE, "work", now))
    world.clock.advance(HOUR)

    (outcomes,) = told(await take(world, event()))

    assert sorted(outcomes) == [("fired", True), ("skipped-trouble", False)]
