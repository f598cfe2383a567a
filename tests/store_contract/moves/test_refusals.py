"""Fires, events and backfills without a free unique key or room in a quota: they do not run, and the ledger has the
cause.
"""

from collections.abc import Sequence

import msgspec
import pytest

from horae.env import SECOND
from horae.errors import OverQuota
from horae.features.backfills.store import work as backfill_work
from horae.features.events.store import events
from horae.model.admission.quota import UNBOUNDED, Quota, QuotaBounds
from horae.model.base.ids import parcel_of
from horae.model.executions.deduplication import Unique
from horae.model.triggers.decisions.external import EventTrigger
from horae.model.triggers.decisions.rules import Misfire, Rules
from horae.model.triggers.decisions.values import Interval, Once
from horae.model.triggers.events.values import NewEvent
from horae.store.executions.deduplication import deduplicate
from horae.store.triggers.refusals import Room
from tests.store_contract.moves.test_backfills import finish, make, missed
from tests.store_contract.moves.test_deduplication import ask
from tests.store_contract.world import NAMESPACE, World, add_trigger, lead, success

MINUTE = 60 * SECOND
ALLOW = Rules(overlap="allow")


async def ledger(world: World) -> list[tuple[str, bool]]:
    rows = await world.rows("SELECT disposition, execution FROM fires ORDER BY last, trigger_id")
    return [(disposition, execution is not None) for disposition, execution in rows]


async def events_of(
    world: World, count: int | Sequence[int], bounds: QuotaBounds = UNBOUNDED, *, patient: bool = False
) -> list[str]:
    numbers = range(count) if isinstance(count, int) else count
    given = [NewEvent(name="upload", payload=msgspec.json.encode({"n": n})) for n in numbers]
    room = Room(bounds=bounds, raise_if_full=patient)
    taken = await world.store.change(
        lambda now: events.take(NAMESPACE, given, lead, lambda *_: None, world.env.new_id, now, room=room)
    )
    return [one.disposition for event in taken.events for one in event.outcomes]


async def test_a_fire_whose_key_is_taken_is_skipped_until_its_execution_has_ended(world: World):
    job = await world.job(unique=Unique())
    await add_trigger(world, job, Interval(every=MINUTE, anchor=world.now()), ALLOW)
    await add_trigger(world, job, Interval(every=MINUTE, anchor=world.now()), ALLOW)
    world.clock.advance(MINUTE)
    assert len((await world.store.fire(10, lead)).parcels) == 1
    assert sorted(await ledger(world)) == [("fired", True), ("skipped-unique", False)]
    (again,) = await ask(world, job, Unique(), key="")
    assert again.deduplicated

    worker = await world.worker()
    (granted,) = await worker.claim(10)
    world.clock.advance(MINUTE)
    assert (await world.store.fire(10, lead)).parcels == []
    await worker.report(success(granted))
    world.clock.advance(MINUTE)
    assert len((await world.store.fire(10, lead)).parcels) == 1


async def test_a_newer_fire_replaces_an_execution_that_has_not_begun(world: World):
    job = await world.job(unique=Unique(keep="latest"))
    await add_trigger(world, job, Interval(every=MINUTE, anchor=world.now()), ALLOW)
    world.clock.advance(MINUTE)
    (first,) = (await world.store.fire(10, lead)).parcels
    world.clock.advance(MINUTE)
    (second,) = (await world.store.fire(10, lead)).parcels

    assert await world.history(parcel_of(first.id)) == [(0, 1, "cancelled", deduplicate.REPLACED)]
    assert await world.states(second.id) == ["queued"]
    assert await ledger(world) == [("fired", True), ("fired", True)]


async def test_fires_without_room_are_skipped_and_do_not_count(world: World):
    job = await world.job()
    world.store.set_bounds(QuotaBounds(queues={job.queue: ("default", 1)}))
    trigger = await add_trigger(world, job, Interval(every=MINUTE, anchor=world.now()), Rules(max_fires=2))
    await add_trigger(world, job, Once(at=world.now() + MINUTE), ALLOW)
    world.clock.advance(MINUTE)
    await world.store.fire(10, lead)
    assert sorted(await ledger(world)) == [("fired", True), ("skipped-quota", False)]
    (cause,) = await world.rows("SELECT cause FROM fires WHERE disposition = 'skipped-quota'")
    assert "maxQueued" in cause[0]
    world.clock.advance(MINUTE)
    await world.store.fire(10, lead)
    ((fired, following),) = await world.rows("SELECT fired, next_fire_at FROM timers WHERE trigger_id = $1", trigger)
    assert fired <= 1
    assert following is not None


async def test_a_used_up_daily_quota_skips_fires(world: World):
    job = await world.job()
    world.store.set_bounds(
        QuotaBounds({NAMESPACE: Quota(executions_per_day=1)}, spent={NAMESPACE: "executionsPerDay: 1 of 1"})
    )
    await add_trigger(world, job, Interval(every=MINUTE, anchor=world.now()), ALLOW)
    world.clock.advance(MINUTE)
    await world.store.fire(10, lead)
    assert await ledger(world) == [("skipped-quota", False)]


async def test_a_fire_waits_for_room_if_the_quota_requires_it(world: World):
    job = await world.job()
    world.store.set_bounds(QuotaBounds({NAMESPACE: Quota(queued=1, over="wait")}))
    for _ in range(2):
        await add_trigger(world, job, Interval(every=MINUTE, anchor=world.now()), ALLOW)
    world.clock.advance(MINUTE)
    await world.store.fire(10, lead)
    assert await ledger(world) == [("fired", True)]
    ((trouble,),) = await world.rows("SELECT trouble FROM timers WHERE trouble IS NOT NULL")
    assert "queued" in trouble

    worker = await world.worker()
    await worker.claim(1)
    world.clock.advance(2 * SECOND)
    assert len((await world.store.fire(10, lead)).parcels) == 1
    assert await ledger(world) == [("fired", True)] * 2
    assert await world.rows("SELECT trouble FROM timers WHERE trouble IS NOT NULL") == []
    causes = sorted(row[0] for row in await world.rows("SELECT cause FROM fires"))
    assert causes == ["due", f"waited for room: {trouble.rstrip('.')}"]


async def test_the_ledger_says_that_a_fire_waited_for_room_too_long(world: World):
    job = await world.job()
    world.store.set_bounds(QuotaBounds({NAMESPACE: Quota(queued=0, over="wait")}))
    skip = Rules(overlap="allow", misfire=Misfire(policy="skip"))
    await add_trigger(world, job, Interval(every=10 * MINUTE, anchor=world.now()), skip)
    world.clock.advance(10 * MINUTE)
    await world.store.fire(10, lead)
    assert await ledger(world) == []

    world.clock.advance(2 * MINUTE)
    await world.store.fire(10, lead)
    ((disposition, cause),) = await world.rows("SELECT disposition, cause FROM fires")
    assert disposition == "skipped-misfire"
    assert "waited for room: The namespace may have 0 queued" in cause


async def test_a_refused_fire_replaces_no_execution(world: World):
    job = await world.job(unique=Unique(keep="latest"))
    await add_trigger(world, job, Interval(every=MINUTE, anchor=world.now()), ALLOW)
    world.clock.advance(MINUTE)
    (first,) = (await world.store.fire(10, lead)).parcels
    world.store.set_bounds(QuotaBounds(queues={job.queue: ("default", 1)}))
    world.clock.advance(MINUTE)
    assert (await world.store.fire(10, lead)).parcels == []
    assert await world.states(first.id) == ["queued"]
    (again,) = await ask(world, job, Unique(), key="")
    assert again.execution_id == first.id


async def test_events_obey_unique_keys_and_quotas(world: World):
    job = await world.job(unique=Unique(key="${params.n}"))
    await add_trigger(world, job, EventTrigger(event="upload"), ALLOW, params={"n": "${event.payload.n}"})
    assert await events_of(world, 2) == ["fired", "fired"]
    assert await events_of(world, 3) == ["skipped-unique", "skipped-unique", "fired"]
    bounds = QuotaBounds(queues={job.queue: ("default", 4)})
    assert await events_of(world, 6, bounds) == [*["skipped-unique"] * 3, "fired", *["skipped-quota"] * 2]
    assert await events_of(world, 5) == [*["skipped-unique"] * 4, "fired"]


FIRED, TAKEN, FULL, LEFT = "fired", "skipped-unique", "skipped-quota", "skipped-overlap"


@pytest.mark.parametrize(
    ("rules", "numbers", "expected"),
    [
        (Rules(overlap="skip"), [0, 1, 2], [TAKEN, FIRED, LEFT]),
        (Rules(overlap="allow", max_fires=1), [0, 1, 2], [TAKEN, FIRED, "skipped-bounds"]),
        (Rules(overlap="queueOne"), [1, 2, 0], [FIRED, FIRED, TAKEN]),
        (Rules(overlap="queueOne"), [0, 1, 2, 3], [TAKEN, FIRED, LEFT, FIRED]),
        (Rules(overlap="cancelOther"), [1, 0, 2, 0], [FIRED, TAKEN, FIRED, TAKEN]),
        (Rules(overlap="queueAll", most_queued=1), [1, 0, 2, 3], [FIRED, TAKEN, FIRED, LEFT]),
    ],
)
async def test_a_refused_event_leaves_its_place_to_the_next_one(world: World, rules: Rules, numbers, expected):
    job = await world.job(unique=Unique(key="${params.n}"))
    await ask(world, job, Unique(), key="0")
    await add_trigger(world, job, EventTrigger(event="upload"), rules, "in", params={"n": "${event.payload.n}"})

    assert await events_of(world, numbers) == expected

    assert await world.rows("SELECT fired FROM timers") == [(expected.count(FIRED),)]
    assert await world.rows("SELECT count(*) FROM meetings") == [(1 + expected.count(FIRED),)]
    await world.check()


async def test_a_newer_event_gets_the_room_of_the_waiting_one_that_it_replaces(world: World):
    job = await world.job()
    await add_trigger(world, job, EventTrigger(event="upload"), Rules(overlap="queueOne"), "in")
    bounds = QuotaBounds(queues={job.queue: ("default", 2)})
    assert await events_of(world, 4, bounds) == [FIRED, LEFT, LEFT, FIRED]
    assert await events_of(world, 1, bounds) == [FULL]


async def test_an_event_whose_key_a_newer_one_takes_over_does_not_count_as_a_fire(world: World):
    job = await world.job(unique=Unique(key="${params.n}", keep="latest"))
    rules = Rules(overlap="allow", max_fires=2)
    await add_trigger(world, job, EventTrigger(event="upload"), rules, params={"n": "${event.payload.n}"})
    assert await events_of(world, [1, 1, 2, 3]) == [TAKEN, FIRED, FIRED, "skipped-bounds"]


async def test_a_key_is_free_again_after_a_quota_refused_its_execution(world: World):
    job = await world.job(unique=Unique(key="${params.n}"))
    await add_trigger(world, job, EventTrigger(event="upload"), ALLOW, params={"n": "${event.payload.n}"})
    assert await events_of(world, [1, 2, 2], QuotaBounds(queues={job.queue: ("default", 1)})) == [FIRED, FULL, FULL]
    assert await world.rows("SELECT count(*) FROM meetings") == [(1,)]


async def test_an_event_waits_for_room_if_the_quota_requires_it_and_nothing_is_stored_meanwhile(world: World):
    job = await world.job()
    await add_trigger(world, job, EventTrigger(event="upload"), ALLOW)
    bounds = QuotaBounds({NAMESPACE: Quota(queued=1, over="wait")})
    assert await events_of(world, 1, bounds, patient=True) == ["fired"]
    with pytest.raises(OverQuota, match="queued"):
        await events_of(world, 1, bounds, patient=True)
    assert await world.rows("SELECT count(*) FROM events") == [(1,)]

    assert await events_of(world, 1, bounds) == ["skipped-quota"]
    await (await world.worker()).claim(1)
    assert await events_of(world, 1, bounds, patient=True) == ["fired"]


async def test_a_backfill_waits_for_keys_and_room(world: World):
    start, job, _ = await missed(world)
    backfill = await make(world, job, start + 3 * MINUTE, start + 6 * MINUTE)
    bounds = QuotaBounds(queues={job.queue: ("default", 2)})

    async def work(bounds: QuotaBounds) -> backfill_work.BackfillStep:
        now = world.now()
        return await world.store.write(
            lambda: backfill_work.process(backfill.id, lead, world.env.new_id, now, bounds=bounds)
        )

    worked = await work(bounds)
    assert (sum(map(len, worked.parcels)), worked.more) == (2, False)
    assert "maxQueued" in worked.backfill.note
    assert (await work(bounds)).parcels == []
    done = await finish(world, backfill, await world.worker())
    assert (done.state, done.counts.succeeded, done.note) == ("done", 3, "")


async def test_a_backfill_of_a_singleton_runs_one_at_a_time(world: World):
    start, job, _ = await missed(world)
    await world.do(
        "UPDATE job_versions SET spec = $2 WHERE job = $1",
        job.id,
        msgspec.json.encode(msgspec.structs.replace(job.spec, unique=Unique(keep="latest"))).decode(),
    )
    backfill = await make(world, job, start + 3 * MINUTE, start + 6 * MINUTE)
    done = await finish(world, backfill, await world.worker())
    assert (done.state, done.counts.succeeded) == ("done", 3)
    assert all(state != "cancelled" for _, _, state, _ in await world.history())
