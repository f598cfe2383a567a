"""Fire: each nominal fire is decided once, by the first server, and the ledger records the decision."""

import asyncio

import msgspec
import pytest

from horae.env import SECOND
from horae.model.base.ids import execution_id
from horae.model.base.instant import format_instant
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import extras_of
from horae.model.triggers.decisions.rules import Misfire, Rules, due_at
from horae.model.triggers.decisions.values import Interval, Once
from horae.store.triggers import audit_fires, due, fire, triggers
from tests.store_contract.world import World, add_trigger, lead, success

MINUTE = 60 * SECOND
ALLOW = Rules(overlap="allow")


def every(span, world):
    return Interval(every=span, anchor=world.now())


async def ledger(world: World, trigger):
    rows = await world.rows(
        "SELECT first, last, disposition, execution FROM fires WHERE trigger_id = $1 ORDER BY last", trigger
    )
    return [tuple(row) for row in rows]


async def timer(world: World, trigger):
    return (
        await world.rows(
            "SELECT next_fire_at, decided_through, last_execution FROM timers WHERE trigger_id = $1", trigger
        )
    )[0]


async def test_a_due_timer_fires_once_and_moves_on(world: World):
    start = world.now()
    trigger = await add_trigger(world, await world.job(), every(MINUTE, world), ALLOW)
    assert (await world.store.fire(100, lead)).timers == 0
    world.clock.advance(MINUTE)
    done = await world.store.fire(100, lead)

    (parcel,) = done.parcels
    execution = execution_id(parcel.id, 0)
    assert await ledger(world, trigger) == [(start + MINUTE, start + MINUTE, "fired", execution)]
    assert await timer(world, trigger) == (start + 2 * MINUTE, start + MINUTE, execution)
    assert await world.states(parcel.id) == ["queued"]
    assert (await world.store.fire(100, lead)).timers == 0


async def test_a_look_begins_where_the_last_ended_also_among_many_of_one_instant(world: World):
    job, start = await world.job(), world.now()
    made = sorted([await add_trigger(world, job, every(MINUTE, world), ALLOW) for _ in range(5)])
    first = await add_trigger(world, job, Once(at=start + SECOND), ALLOW)
    world.clock.advance(MINUTE)

    marks, low, met = [], due.FIRST, 0
    while (done := await world.store.fire(2, lead, low)).timers:
        met, low = met + done.timers, done.through
        marks.append(low)

    assert met == 6
    assert marks == [(start + MINUTE, made[0]), (start + MINUTE, made[2]), (start + MINUTE, made[4])]
    assert await world.store.next_fire_at(low) == start + 2 * MINUTE
    assert [len(await ledger(world, trigger)) for trigger in (first, *made)] == [1] * 6


async def test_a_timer_before_the_mark_is_left_alone(world: World):
    trigger = await add_trigger(world, await world.job(), every(MINUTE, world), ALLOW)
    world.clock.advance(MINUTE)
    behind = (world.now() + 1, due.FIRST[1])

    assert (await world.store.fire(10, lead, behind)).timers == 0
    assert await world.store.next_fire_at(behind) is None
    assert await ledger(world, trigger) == []


async def test_the_execution_knows_its_fire(world: World):
    start = world.now()
    job = await world.job(priority=7)
    trigger = await add_trigger(world, job, every(MINUTE, world), ALLOW)
    world.clock.advance(MINUTE)
    (parcel,) = (await world.store.fire(100, lead)).parcels

    (stored,) = await world.store.parcels([parcel.id])
    assert extras_of(stored.extras, 0, 1) == [
        Extra(origin="fire", trigger=trigger, fire_at=start + MINUTE, interval=(start, start + MINUTE))
    ]
    assert (stored.envelope.due_at, stored.envelope.priority, stored.envelope.version) == (start + MINUTE, 7, 1)
    (queued,) = await world.on("queued")
    assert queued.rank == start + MINUTE - lead(job.queue, 7, job.id)


async def test_due_triggers_of_one_job_become_one_parcel(world: World):
    job = await world.job()
    for _ in range(5):
        await add_trigger(world, job, every(MINUTE, world), ALLOW)
    world.clock.advance(MINUTE)
    done = await world.store.fire(100, lead)

    assert [len(parcel) for parcel in done.parcels] == [5]
    assert done.timers == 5


async def test_the_batch_is_bounded_and_the_earliest_go_first(world: World):
    job = await world.job()
    late = await add_trigger(world, job, every(2 * MINUTE, world), ALLOW)
    early = await add_trigger(world, job, every(MINUTE, world), ALLOW)
    world.clock.advance(2 * MINUTE)
    assert (await world.store.fire(1, lead)).timers == 1

    assert len(await ledger(world, early)) == 2
    assert await ledger(world, late) == []


async def test_a_late_fire_is_not_missed(world: World):
    start = world.now()
    trigger = await add_trigger(world, await world.job(), every(MINUTE, world), Rules(overlap="allow", grace=MINUTE))
    world.clock.advance(MINUTE + 59 * SECOND)
    await world.store.fire(100, lead)

    assert [row[:3] for row in await ledger(world, trigger)] == [(start + MINUTE, start + MINUTE, "fired")]


async def test_missed_fires_fall_under_the_misfire_policy_in_one_row(world: World):
    start = world.now()
    job = await world.job()
    latest = await add_trigger(world, job, every(SECOND, world), Rules(overlap="allow", grace=0))
    skip = await add_trigger(world, job, every(SECOND, world), Rules(grace=0, misfire=Misfire(policy="skip")))
    world.clock.advance(1000 * SECOND + 1)
    await world.store.fire(100, lead)

    assert [row[:3] for row in await ledger(world, latest)] == [
        (start + SECOND, start + 999 * SECOND, "coalesced"),
        (start + 1000 * SECOND, start + 1000 * SECOND, "fired"),
    ]
    assert [row[:3] for row in await ledger(world, skip)] == [
        (start + SECOND, start + 1000 * SECOND, "skipped-misfire")
    ]


async def test_a_long_catch_up_goes_in_steps_and_leaves_no_gap(world: World):
    every_second = Rules(overlap="allow", misfire=Misfire(policy="all", most=1000), grace=0)
    trigger = await add_trigger(world, await world.job(), every(SECOND, world), every_second)
    world.clock.advance(250 * SECOND)
    steps = 0
    while (await world.store.fire(100, lead)).timers:
        steps += 1

    assert steps == 3
    rows = await ledger(world, trigger)
    assert [row[2] for row in rows] == ["fired"] * 250
    assert len({row[3] for row in rows}) == 250


async def test_overlap_skip_does_not_start_beside_the_last(world: World):
    start = world.now()
    trigger = await add_trigger(world, await world.job(), every(MINUTE, world))
    w = await world.worker()
    world.clock.advance(MINUTE)
    await world.store.fire(100, lead)
    (slice,) = await w.claim()
    world.clock.advance(MINUTE)
    await world.store.fire(100, lead)
    await w.report(success(slice))
    world.clock.advance(MINUTE)
    await world.store.fire(100, lead)

    assert [(row[0] - start, row[2]) for row in await ledger(world, trigger)] == [
        (MINUTE, "fired"), (2 * MINUTE, "skipped-overlap"), (3 * MINUTE, "fired"),
    ]  # fmt: skip
    assert [row[3] is None for row in await ledger(world, trigger)] == [False, True, False]


async def test_overlap_skip_of_several_due_fires_runs_the_newest(world: World):
    start = world.now()
    trigger = await add_trigger(world, await world.job(), every(SECOND, world), Rules(grace=MINUTE))
    world.clock.advance(3 * SECOND)
    (parcel,) = (await world.store.fire(100, lead)).parcels

    assert len(parcel) == 1
    assert [(row[0] - start, row[1] - start, row[2]) for row in await ledger(world, trigger)] == [
        (SECOND, 2 * SECOND, "skipped-overlap"), (3 * SECOND, 3 * SECOND, "fired"),
    ]  # fmt: skip
    assert await world.rows("SELECT cause FROM fires WHERE disposition = 'skipped-overlap'") == [
        ("a newer fire was due as well and ran instead",)
    ]


async def test_a_trigger_ends_after_as_many_fires_as_it_may_have(world: World):
    start = world.now()
    job = await world.job()
    trigger = await add_trigger(world, job, every(MINUTE, world), Rules(overlap="allow", max_fires=2))
    for _ in range(4):
        world.clock.advance(MINUTE)
        await world.store.fire(100, lead)

    assert [row[0] - start for row in await ledger(world, trigger)] == [MINUTE, 2 * MINUTE]
    assert await timer(world, trigger) == (None, start + 2 * MINUTE, (await ledger(world, trigger))[-1][3])
    assert await world.rows("SELECT fired FROM timers") == [(2,)]


async def test_a_trigger_without_fires_left_stays_so(world: World):
    job = await world.job()
    trigger = await add_trigger(world, job, every(MINUTE, world), Rules(overlap="allow", max_fires=1))
    world.clock.advance(MINUTE)
    await world.store.fire(100, lead)
    world.clock.advance(MINUTE)

    await each_trigger(world, job, lambda t: triggers.resume(t, world.now()))
    assert (await timer(world, trigger))[0] is None
    await each_trigger(world, job, lambda t: triggers.end(t, world.now()))

    assert [row[2] for row in await ledger(world, trigger)] == ["fired"]
    assert (await world.store.read(audit_fires.audit_fires)).findings == []


async def test_a_fire_that_did_not_run_is_not_counted(world: World):
    trigger = await add_trigger(world, await world.job(), every(MINUTE, world), Rules(max_fires=2))
    for _ in range(3):
        world.clock.advance(MINUTE)
        await world.store.fire(100, lead)

    assert [row[2] for row in await ledger(world, trigger)] == ["fired", "skipped-overlap", "skipped-overlap"]
    assert await world.rows("SELECT fired FROM timers") == [(1,)]


BROKEN = [
    ("definition", '{"kind":"cron","expression":"* * * * *","timezone":"Mars/Olympus"}', "Mars/Olympus"),
    ("definition", '{"kind":"tide","harbour":"Brest"}', "tide"),
    ("rules", '{"misfire":{"policy":"perhaps"}}', "perhaps"),
]


@pytest.mark.parametrize(("column", "text", "told"), BROKEN)
async def test_a_trigger_that_cannot_be_decided_does_not_block_others(world: World, column, text, told):
    start = world.now()
    job = await world.job()
    broken, sound = [await add_trigger(world, job, every(MINUTE, world), ALLOW) for _ in range(2)]
    kept = (await world.rows(f"SELECT {column} FROM triggers WHERE id = $1", broken))[0][0]
    await world.do(f"UPDATE triggers SET {column} = $2 WHERE id = $1", broken, text)
    world.clock.advance(MINUTE)
    done = await world.store.fire(100, lead)

    assert [row[2] for row in await ledger(world, sound)] == ["fired"]
    assert [(t.trigger, t.job) for t in done.troubles] == [(broken, job.id)]
    assert told in done.troubles[0].reason
    assert await world.store.troubled_triggers() == 1
    assert await timer(world, broken) == (start + MINUTE + fire.AGAIN, start, None)
    assert (await world.store.fire(100, lead)).timers == 0

    await world.do(f"UPDATE triggers SET {column} = $2 WHERE id = $1", broken, kept)
    world.clock.advance(MINUTE)
    assert (await world.store.fire(100, lead)).troubles == []
    assert [(row[0] - start, row[2]) for row in await ledger(world, broken)] == [
        (MINUTE, "fired"), (2 * MINUTE, "fired"),
    ]  # fmt: skip
    assert await world.store.troubled_triggers() == 0


async def test_a_trigger_that_cannot_be_decided_can_be_ended(world: World):
    start = world.now()
    job = await world.job()
    trigger = await add_trigger(world, job, every(MINUTE, world), ALLOW)
    await world.do("UPDATE triggers SET definition = $1", BROKEN[0][1])
    world.clock.advance(MINUTE)
    await world.store.fire(100, lead)

    await each_trigger(world, job, lambda t: triggers.resume(t, world.now()))
    assert await timer(world, trigger) == (start + MINUTE, start + MINUTE, None)
    world.clock.advance(MINUTE)
    await each_trigger(world, job, lambda t: triggers.end(t, world.now()))

    report = await world.store.read(audit_fires.audit_fires)
    assert [(f.kind, f.trigger) for f in report.findings] == [("undecidable", trigger)]
    rows = await world.rows("SELECT first, last, disposition, cause FROM fires ORDER BY last")
    assert [(first - start, last - start, what) for first, last, what, _ in rows] == [
        (1, MINUTE, "skipped-paused"), (MINUTE + 1, 2 * MINUTE, "skipped-misfire"),
    ]  # fmt: skip
    assert all("Mars/Olympus" in cause for *_, cause in rows)
    await world.do("DELETE FROM triggers")
    await world.do("DELETE FROM fires")


async def test_jitter_is_spread_by_names(world: World):
    start = world.now()
    rules = Rules(overlap="allow", jitter=30 * SECOND)
    await add_trigger(world, await world.job("report"), every(MINUTE, world), rules, "often")
    world.clock.advance(MINUTE)
    (parcel,) = (await world.store.fire(100, lead)).parcels

    assert parcel.envelope.due_at == due_at(rules, "default/report/often", start + MINUTE)


async def test_a_spread_trigger_is_met_at_its_place_in_the_window(world: World):
    start = world.now()
    rules = Rules(overlap="allow", spread=MINUTE, offset=20 * SECOND)
    trigger = await add_trigger(world, await world.job(), every(MINUTE, world), rules)
    world.clock.advance(MINUTE + 19 * SECOND)
    assert await world.store.next_fire_at() == start + MINUTE + 20 * SECOND
    assert (await world.store.fire(100, lead)).timers == 0
    world.clock.advance(SECOND)
    (parcel,) = (await world.store.fire(100, lead)).parcels

    assert parcel.envelope.due_at == start + MINUTE + 20 * SECOND
    assert [row[:3] for row in await ledger(world, trigger)] == [(start + MINUTE, start + MINUTE, "fired")]
    assert (await timer(world, trigger))[:2] == (start + 2 * MINUTE + 20 * SECOND, start + MINUTE)


async def test_a_resumed_spread_trigger_fires_the_rest_of_its_window(world: World):
    start, job = world.now(), await world.job()
    rules = Rules(overlap="allow", spread=MINUTE, offset=40 * SECOND)
    trigger = await add_trigger(world, job, every(MINUTE, world), rules)
    await each_trigger(world, job, triggers.pause)
    world.clock.advance(2 * MINUTE + 10 * SECOND)
    await each_trigger(world, job, lambda t: triggers.resume(t, world.now()))
    world.clock.advance(30 * SECOND)
    await world.store.fire(100, lead)

    assert [row[:3] for row in await ledger(world, trigger)] == [
        (start + MINUTE, start + MINUTE, "skipped-paused"), (start + 2 * MINUTE, start + 2 * MINUTE, "fired"),
    ]  # fmt: skip


async def test_params_of_a_trigger_are_filled_at_each_fire(world: World):
    start, job = world.now(), await world.job(params={"base": "b", "x": 0})
    params = {"day": "${fire.at}", "since": "from ${interval.start}", "x": 7, "by": "${params.base}/${fire.trigger}"}
    await add_trigger(world, job, every(MINUTE, world), ALLOW, "often", params=params)
    plain = await add_trigger(world, job, every(MINUTE, world), ALLOW, "plain", params={"x": 8})
    world.clock.advance(MINUTE)
    (parcel,) = (await world.store.fire(100, lead)).parcels

    (stored,) = await world.store.parcels([parcel.id])
    items = [msgspec.json.decode(item) for item in stored.items.part(0, 2)]
    at, before = format_instant(start + MINUTE), format_instant(start)
    assert {"day": at, "since": f"from {before}", "x": 7, "by": "b/often"} in items
    assert {"x": 8} in items
    assert len(await ledger(world, plain)) == 1


async def test_a_template_that_cannot_be_filled_sets_its_trigger_aside(world: World):
    job = await world.job()
    bad = await add_trigger(world, job, every(MINUTE, world), ALLOW, params={"x": "${params.nothing}"})
    good = await add_trigger(world, job, every(MINUTE, world), ALLOW)
    world.clock.advance(MINUTE)
    done = await world.store.fire(100, lead)

    assert [(trouble.trigger, "there is no 'nothing'" in trouble.reason) for trouble in done.troubles] == [(bad, True)]
    assert len(await ledger(world, good)) == 1


async def each_trigger(world: World, job, move):
    def script():
        for t in (yield from triggers.of_job(job.id, lock=True)):
            yield from move(t)

    await world.store.write(script)


async def test_once_fires_once(world: World):
    at = world.now() + MINUTE
    trigger = await add_trigger(world, await world.job(), Once(at=at))
    world.clock.advance(MINUTE)
    await world.store.fire(100, lead)
    world.clock.advance(MINUTE)

    assert (await world.store.fire(100, lead)).timers == 0
    assert [row[:3] for row in await ledger(world, trigger)] == [(at, at, "fired")]
    assert (await timer(world, trigger))[0] is None


async def test_a_clock_that_went_back_fires_nothing_twice(world: World):
    trigger = await add_trigger(world, await world.job(), every(MINUTE, world), ALLOW)
    world.clock.advance(MINUTE)
    await world.store.fire(100, lead)
    world.clock.advance(-30 * SECOND)
    await world.do("UPDATE timers SET next_fire_at = $1", world.now())
    done = await world.store.fire(100, lead)

    assert (done.timers, done.parcels) == (1, [])
    assert len(await ledger(world, trigger)) == 1


async def test_two_servers_never_fire_one_instant_twice(world: World):
    job = await world.job()
    ids = [await add_trigger(world, job, every(MINUTE, world), ALLOW) for _ in range(6)]
    for _ in range(4):
        world.clock.advance(MINUTE)
        await asyncio.gather(*(world.store.fire(100, lead) for _ in range(4)))
        while (await world.store.fire(100, lead)).timers:
            pass

    for id in ids:
        rows = await ledger(world, id)
        assert [row[2] for row in rows] == ["fired"] * 4
    assert sum(s.hi - s.lo for s in await world.on("queued")) == 24


async def test_the_next_fire_is_the_earliest(world: World):
    job = await world.job()
    assert await world.store.next_fire_at() is None
    await add_trigger(world, job, every(2 * MINUTE, world))
    await add_trigger(world, job, every(MINUTE, world))

    assert await world.store.next_fire_at() == world.now() + MINUTE


async def test_a_pause_is_one_row_and_fires_nothing(world: World):
    start = world.now()
    job = await world.job()
    trigger = await add_trigger(world, job, every(SECOND, world), ALLOW)

    await each_trigger(world, job, triggers.pause)
    world.clock.advance(1000 * SECOND)
    assert (await world.store.fire(100, lead)).timers == 0
    await each_trigger(world, job, lambda t: triggers.resume(t, world.now()))
    world.clock.advance(SECOND)
    await world.store.fire(100, lead)

    assert [(first - start, last - start, what) for first, last, what, _ in await ledger(world, trigger)] == [
        (SECOND, 1000 * SECOND, "skipped-paused"), (1001 * SECOND, 1001 * SECOND, "fired"),
    ]  # fmt: skip


async def test_an_ended_trigger_fires_no_more_and_leaves_nothing_undecided(world: World):
    job = await world.job()
    trigger = await add_trigger(world, job, every(SECOND, world), ALLOW)
    world.clock.advance(3 * SECOND)

    def script():
        for t in (yield from triggers.of_job(job.id, lock=True)):
            yield from triggers.end(t, world.now())

    await world.store.write(script)
    world.clock.advance(MINUTE)
    assert (await world.store.fire(100, lead)).timers == 0
    assert await world.store.next_fire_at() is None
    assert [row[2] for row in await ledger(world, trigger)] == ["skipped-misfire"]


async def test_the_audit_of_the_ledger_finds_what_is_wrong(world: World):
    start = world.now()
    trigger = await add_trigger(world, await world.job(), every(MINUTE, world), ALLOW)
    for _ in range(4):
        world.clock.advance(MINUTE)
        await world.store.fire(100, lead)

    async def findings():
        report = await world.store.read(audit_fires.audit_fires)
        return [(f.kind, (f.first - start) / MINUTE, (f.last - start) / MINUTE) for f in report.findings]

    assert await findings() == []
    await world.do("DELETE FROM fires WHERE last IN ($1, $2)", start + 2 * MINUTE, start + 4 * MINUTE)
    assert await findings() == [("uncovered", 2, 2), ("uncovered", 4, 4)]
    await world.do("UPDATE fires SET first = $1 WHERE last = $2", start + 2 * MINUTE, start + 3 * MINUTE)
    await world.do("UPDATE timers SET decided_through = $1", start + 3 * MINUTE)
    assert await findings() == []
    await world.do("UPDATE fires SET first = $1 WHERE last = $2", start + MINUTE, start + 3 * MINUTE)
    assert await findings() == [("duplicate", 1, 1)]
    await world.do("UPDATE fires SET first = $1 WHERE last = $2", start + MINUTE + 1, start + 3 * MINUTE)
    assert [kind for kind, *_ in await findings()] == ["unexpected"]
    await world.do("DELETE FROM fires WHERE trigger_id = $1", trigger)
    assert await findings() == [("uncovered", 1, 3)]
    report = await world.store.read(lambda: audit_fires.audit_fires(start + 4 * MINUTE))
    assert (report.triggers, report.findings) == (1, [])
    await world.do("DELETE FROM triggers")
