"""Events: each is stored once and decided once for every listening trigger; a repeated event fires nothing."""

import asyncio
from typing import Any
from uuid import UUID

import msgspec
import pytest

from horae.env import SECOND
from horae.features.events.store import event_reads, event_sweep, events
from horae.model.executions.parcel import extras_of
from horae.model.expressions.meter import record_over_budget
from horae.model.triggers.decisions.external import EventTrigger
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.events.values import NewEvent
from horae.store.expiry.expiry import Cutoffs
from horae.store.triggers.targets import Target
from tests.store_contract.world import NAMESPACE, World, add_trigger, lead, success

ALLOW = Rules(overlap="allow")


def fits(target: Target, item: bytes) -> str | None:
    return None


def event(name: str = "upload", id: str | None = None, **payload: Any) -> NewEvent:
    return NewEvent(name=name, payload=msgspec.json.encode(payload), id=id)


async def take(world: World, *given: NewEvent, only=None, check=fits) -> events.IntakeResult:
    return await world.store.change(
        lambda now: events.take(NAMESPACE, given, lead, check, world.env.new_id, now, only=only)
    )


async def listen(world: World, name: str = "upload", rules: Rules = ALLOW, params=None, **more: Any) -> UUID:
    job = await world.job(f"job-{world.env.new_id()}")
    return await add_trigger(world, job, EventTrigger(event=name, **more), rules, params=params or {})


def told(taken: events.IntakeResult) -> list[list[tuple[str, bool]]]:
    return [[(one.disposition, one.execution is not None) for one in event.outcomes] for event in taken.events]


async def test_an_event_fires_every_listening_trigger(world: World):
    first, second = await listen(world), await listen(world, params={"file": "${event.payload.key}"})
    await listen(world, "another")

    taken = await take(world, event(key="a.csv"))

    assert told(taken) == [[("fired", True), ("fired", True)]]
    (stored,) = taken.events
    assert stored.key == str(stored.id)
    extras = {}
    for parcel in await world.store.parcels([p.id for p in taken.parcels]):
        (extra,) = extras_of(parcel.extras, 0, 1)
        extras[extra.trigger] = (extra.origin, extra.event, bytes(parcel.items.one(0)))
    assert extras == {
        first: ("event", stored.key, b"{}"),
        second: ("event", stored.key, b'{"file":"a.csv"}'),
    }
    assert len(await world.on("queued")) == 2


async def test_a_repeated_event_gets_the_first_answer_and_fires_nothing(world: World):
    await listen(world)
    first = await take(world, event(id="e1", n=1))
    world.clock.advance(SECOND)

    again = await take(world, event(id="e1", n=1))

    assert again.parcels == []
    assert [e.repeated for e in again.events] == [True]
    assert again.events[0].outcomes == first.events[0].outcomes
    assert again.events[0].received_at == first.events[0].received_at
    assert len(await world.on("queued")) == 1


async def test_an_id_belongs_to_an_events_name(world: World):
    await listen(world, "a")
    await listen(world, "b")

    await take(world, event("a", "e1"))
    other = await take(world, event("b", "e1"))

    assert told(other) == [[("fired", True)]]


async def test_an_id_twice_in_one_request_is_one_event(world: World):
    await listen(world)

    taken = await take(world, event(id="e1"), event(id="e1"), event(id="e2"))

    assert [e.repeated for e in taken.events] == [False, True, False]
    assert taken.events[1].outcomes == taken.events[0].outcomes
    assert len(await world.rows("SELECT id FROM events")) == 2


async def test_many_events_of_one_trigger_are_one_parcel(world: World):
    await listen(world, params={"n": "${event.payload.n}"})

    taken = await take(world, *(event(n=n) for n in range(100)))

    assert [len(parcel) for parcel in taken.parcels] == [100]
    assert len({e.outcomes[0].execution for e in taken.events}) == 100


async def test_an_event_without_listeners_is_stored(world: World):
    taken = await take(world, event("unheard", "e1"))

    assert told(taken) == [[]]
    assert [e.name for e in await world.store.read(lambda: event_reads.page(NAMESPACE, None, None, 10))] == ["unheard"]
    await listen(world, "unheard")
    assert (await take(world, event("unheard", "e1"))).parcels == []


async def test_every_listener_that_does_not_fire_gives_a_reason(world: World):
    await listen(world, filter="${event.payload.n > 10}")
    await listen(world, filter="${event.payload.missing > 10}")
    await listen(world, rules=Rules(overlap="allow", end_at=world.now()))
    await listen(world, params={"x": "${event.payload.missing}"})

    taken = await take(world, event(n=1))

    causes = {one.cause: one.disposition for one in taken.events[0].outcomes}
    assert sorted(causes.values()) == ["skipped-bounds", "skipped-filter", "skipped-filter", "skipped-params"]
    assert "the filter is false" in causes
    assert any("no 'missing'" in cause for cause in causes)
    assert taken.parcels == []
    rows = await world.rows("SELECT disposition, execution FROM event_fires")
    assert len(rows) == 4
    assert {row[1] for row in rows} == {None}


async def test_invalid_params_are_reported(world: World):
    await listen(world)

    taken = await take(world, event(), check=lambda target, item: "n is missing")

    assert [(one.disposition, one.cause) for one in taken.events[0].outcomes] == [("skipped-params", "n is missing")]


async def test_expressions_that_are_too_costly_for_one_event_do_not_skip_the_next(world: World):
    await listen(world, params={"n": "${event.payload.n}"})

    def check(target: Target, item: bytes) -> str | None:
        if item == b'{"n":2}':
            return None
        record_over_budget("too much work", own=True)
        return "n is wrong"

    taken = await take(world, event(n=1), event(n=2), check=check)

    assert [one.cause for e in taken.events for one in e.outcomes] == ["n is wrong", "the event came"]


async def test_a_paused_job_or_trigger_does_not_fire(world: World):
    first = await listen(world)
    second = await listen(world)
    await world.do("UPDATE triggers SET state = 'paused' WHERE id = $1", first)
    await world.do("UPDATE jobs SET state = 'paused' WHERE id = (SELECT job FROM triggers WHERE id = $1)", second)

    taken = await take(world, event())

    assert sorted(one.cause for one in taken.events[0].outcomes) == ["the job is paused", "the trigger is paused"]


async def test_ended_triggers_and_deleted_jobs_ignore_events(world: World):
    first = await listen(world)
    second = await listen(world)
    await world.do("UPDATE triggers SET state = 'ended' WHERE id = $1", first)
    await world.do("UPDATE jobs SET state = 'deleted' WHERE id = (SELECT job FROM triggers WHERE id = $1)", second)

    assert told(await take(world, event())) == [[]]


async def test_a_trigger_that_must_not_overlap_fires_once_until_its_execution_has_ended(world: World):
    job = await world.job()
    await add_trigger(world, job, EventTrigger(event="upload"), Rules(overlap="skip"))

    both = await take(world, event(), event())
    assert told(both) == [[("fired", True)], [("skipped-overlap", False)]]
    assert told(await take(world, event())) == [[("skipped-overlap", False)]]
    worker = await world.worker()
    (slice_,) = await worker.claim(1)
    await worker.report(success(slice_))
    assert told(await take(world, event())) == [[("fired", True)]]


async def test_max_fires_is_counted_across_events(world: World):
    await listen(world, rules=Rules(overlap="allow", max_fires=2))

    taken = await take(world, event(), event(), event())
    assert told(taken) == [[("fired", True)], [("fired", True)], [("skipped-bounds", False)]]
    assert told(await take(world, event())) == [[("skipped-bounds", False)]]


async def test_an_event_may_address_one_trigger(world: World):
    job = await world.job()
    await add_trigger(world, job, EventTrigger(verify="signature"), ALLOW, name="mine")
    await add_trigger(world, job, EventTrigger(verify="signature"), ALLOW, name="other")

    taken = await take(world, event("mine"), only=(job.id, "mine"))

    assert [one.trigger for one in taken.events[0].outcomes] == ["mine"]


@pytest.mark.parametrize("rules", [ALLOW, Rules(overlap="skip"), Rules(overlap="allow", max_fires=3)])
async def test_the_same_event_at_two_servers_at_once_fires_once(world: World, rules: Rules):
    await listen(world, rules=rules)

    done = await asyncio.gather(*(take(world, event(id="e1")) for _ in range(4)))

    assert sorted(taken.events[0].repeated for taken in done) == [False, True, True, True]
    assert len({taken.events[0].outcomes[0].execution for taken in done}) == 1
    assert len(await world.on("queued")) == 1


async def test_different_events_at_once_count_each_other(world: World):
    await listen(world, rules=Rules(overlap="allow", max_fires=2))

    await asyncio.gather(*(take(world, event(id=f"e{i}")) for i in range(5)))

    assert len(await world.on("queued")) == 2
    dispositions = [row[0] for row in await world.rows("SELECT disposition FROM event_fires ORDER BY disposition")]
    assert dispositions == ["fired"] * 2 + ["skipped-bounds"] * 3


async def test_history_is_paged_newest_first_and_by_name(world: World):
    await listen(world, "a")
    for i in range(5):
        world.clock.advance(SECOND)
        await take(world, event("a" if i % 2 else "b", f"e{i}"))

    def page(name=None, before=None):
        return world.store.read(lambda: event_reads.page(NAMESPACE, name, before, 2))

    first = await page()
    second = await page(before=first[-1].id)
    assert [e.key for e in [*first, *second]] == ["e4", "e3", "e2", "e1"]
    assert [e.key for e in await page("a")] == ["e3", "e1"]
    assert [[one.disposition for one in e.outcomes] for e in first] == [[], ["fired"]]


async def test_old_events_are_deleted_with_their_ledger(world: World):
    await listen(world)
    await take(world, event(id="old"))
    world.clock.advance(10 * SECOND)
    await take(world, event(id="new"))
    before = world.now() - 5 * SECOND

    more = await world.store.write(lambda: event_sweep.sweep(Cutoffs(before, before, world.now()), 1))
    assert more
    assert not await world.store.write(lambda: event_sweep.sweep(Cutoffs(before, before, world.now()), 1))

    assert [row[0] for row in await world.rows("SELECT key FROM events")] == ["new"]
    assert len(await world.rows("SELECT event FROM event_fires")) == 1


async def test_names_with_listeners_are_listed(world: World):
    await listen(world, "b")
    await listen(world, "a")
    ended = await listen(world, "c")
    await world.do("UPDATE triggers SET state = 'ended' WHERE id = $1", ended)

    assert sorted(await world.store.read(lambda: event_reads.listened_names(NAMESPACE))) == ["a", "b"]


async def test_an_event_trigger_has_no_timer_that_is_due(world: World):
    trigger = await listen(world)

    assert await world.rows("SELECT next_fire_at FROM timers WHERE trigger_id = $1", trigger) == [(None,)]
    world.clock.advance(10**12)
    assert (await world.store.fire(10, lead)).timers == 0
