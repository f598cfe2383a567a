"""Backfills: missed fires run once, in order, within the bound of live executions; the ledger stays complete."""

import asyncio

import msgspec
import pytest
from msgspec import structs

from horae.env import SECOND
from horae.features.backfills.model.values import Backfill, BackfillCounts
from horae.features.backfills.store import backfills
from horae.features.backfills.store import work as backfill_work
from horae.model.base.instant import format_instant
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import extras_of
from horae.model.triggers.decisions.rules import Misfire, Rules
from horae.model.triggers.decisions.values import Interval, Once
from horae.store.definitions import jobs
from horae.store.expiry.expiry import Cutoffs
from horae.store.triggers import audit_fires, calendars, ledger, triggers
from tests.store_contract.world import NAMESPACE, World, add_trigger, failed, lead, success

MINUTE = 60 * SECOND
SKIP = Rules(misfire=Misfire(policy="skip"), overlap="allow")
ALLOW = Rules(overlap="allow")


def every(world, span=MINUTE):
    return Interval(every=span, anchor=world.now())


async def make(world: World, job, since, until, **more) -> Backfill:
    backfill = Backfill(
        id=world.env.new_id(), namespace=NAMESPACE, job=job.id, since=since, until=until, created_at=world.now(), **more
    )
    await world.store.write(lambda: backfills.put(backfill))
    return backfill


async def work(world: World, backfill, **more):
    now = world.now()
    return await world.store.write(lambda: backfill_work.process(backfill.id, lead, world.env.new_id, now, **more))


async def finish(world: World, backfill, worker, outcome=success) -> Backfill:
    """Advance a backfill to its end, with one worker that runs all executions."""
    while True:
        worked = await work(world, backfill)
        if worked is None or worked.backfill.completed_at is not None:
            return await world.store.read(lambda: backfills.get(backfill.id, NAMESPACE))
        for slice in await worker.claim(100):
            await worker.report(outcome(slice))


async def rows(world: World, start):
    found = await world.rows("SELECT first, last, disposition, execution FROM fires ORDER BY last")
    return [((f - start) // MINUTE, (z - start) // MINUTE, what, e is not None) for f, z, what, e in found]


async def missed(world: World, minutes=10, rules=SKIP):
    """Create a trigger that fires every minute and missed its first fires, in one ledger row."""
    start, job = world.now(), await world.job()
    trigger = await add_trigger(world, job, every(world), rules, name="schedule")
    world.clock.advance(minutes * MINUTE + 90 * SECOND)
    await world.store.fire(100, lead)
    worker = await world.worker("first")
    for slice in await worker.claim(100):
        await worker.report(success(slice))
    return start, job, trigger


async def test_a_backfill_runs_missed_fires_and_splits_the_row(world: World):
    start, job, trigger = await missed(world)
    assert await rows(world, start) == [(1, 10, "skipped-misfire", False), (11, 11, "fired", True)]

    backfill = await make(world, job, start + 3 * MINUTE, start + 6 * MINUTE)
    worked = await work(world, backfill)

    (parcel,) = worked.parcels
    assert await rows(world, start) == [
        (1, 2, "skipped-misfire", False),
        *((minute, minute, "backfilled", True) for minute in (3, 4, 5)),
        (6, 10, "skipped-misfire", False), (11, 11, "fired", True),
    ]  # fmt: skip
    (stored,) = await world.store.parcels([parcel.id])
    assert extras_of(stored.extras, 0, 3)[1] == Extra(
        origin="backfill", trigger=trigger, fire_at=start + 4 * MINUTE,
        interval=(start + 3 * MINUTE, start + 4 * MINUTE),
        backfill=backfill.id,
    )  # fmt: skip
    assert stored.envelope.due_at == world.now()
    cause = await world.rows("SELECT cause FROM fires WHERE last = $1", start + 4 * MINUTE)
    assert cause == [(f"backfill {backfill.id}; was skipped-misfire: missed by more than 1m; misfire is skip",)]


async def test_fires_that_ran_are_not_run_again_and_a_second_backfill_finds_nothing(world: World):
    start, job, _ = await missed(world)
    worker = await world.worker()
    first = await finish(world, await make(world, job, start + 1, world.now(), counts=BackfillCounts(total=11)), worker)
    second = await finish(
        world, await make(world, job, start + 1, world.now(), counts=BackfillCounts(total=11)), worker
    )

    assert (first.state, first.counts) == ("done", BackfillCounts(total=11, already=1, started=10, succeeded=10))
    assert (second.state, second.counts) == ("done", BackfillCounts(total=11, already=11))


async def test_force_runs_all_fires_and_keeps_the_rows_of_those_that_ran(world: World):
    start, job, _ = await missed(world)
    before = await world.rows("SELECT first, last, execution FROM fires WHERE disposition = 'fired'")
    done = await finish(
        world,
        await make(world, job, start + 1, world.now(), force=True, counts=BackfillCounts(total=11)),
        await world.worker(),
    )

    assert done.counts == BackfillCounts(total=11, started=11, succeeded=11)
    assert await world.rows("SELECT first, last, execution FROM fires WHERE disposition = 'fired'") == before
    runs = await world.store.read(lambda: backfills.runs(done.id, (0, done.id), 100))
    assert [run.forced for run in runs] == [False] * 10 + [True]
    assert {run.outcome for run in runs} == {"success"}


async def test_the_number_of_live_executions_is_bounded(world: World):
    start, job, _ = await missed(world)
    backfill = await make(world, job, start + 1, world.now(), max_concurrent=3)
    worker = await world.worker()
    order = []

    assert len((await work(world, backfill)).parcels[0]) == 3
    assert (await work(world, backfill)).parcels == []
    while True:
        held = [*await world.on("queued"), *await world.on("running"), *await world.on("waiting")]
        assert sum(slice.hi - slice.lo for slice in held) <= 3
        granted = await worker.claim(1)
        if not granted:
            break
        (slice,) = granted
        (stored,) = await world.store.parcels([slice.parcel])
        order += [extra.fire_at for extra in extras_of(stored.extras, slice.lo, slice.hi)]
        await worker.report(success(slice))
        world.clock.advance(SECOND)
        await work(world, backfill)

    assert order == [start + minute * MINUTE for minute in range(1, 11)]
    assert (await world.store.read(lambda: backfills.get(backfill.id, NAMESPACE))).state == "done"


async def test_a_backfill_may_start_with_the_newest_fires(world: World):
    start, job, _ = await missed(world)
    backfill = await make(world, job, start + 1, world.now(), max_concurrent=2, newest_first=True)
    await work(world, backfill)

    runs = await world.store.read(lambda: backfills.runs(backfill.id, (0, backfill.id), 100))
    assert [(run.at - start) // MINUTE for run in runs] == [9, 10]
    assert (await rows(world, start))[0] == (1, 8, "skipped-misfire", False)


async def test_a_trigger_is_backfilled_before_it_was_made(world: World):
    start, job = world.now(), await world.job()
    trigger = await add_trigger(world, job, every(world), ALLOW)
    backfill = await make(world, job, start - 3 * MINUTE, start)
    await work(world, backfill)

    assert await rows(world, start) == [(m, m, "backfilled", True) for m in (-3, -2, -1)]
    world.clock.advance(MINUTE)
    await world.store.fire(100, lead)
    assert (await rows(world, start))[-1] == (1, 1, "fired", True)
    report = await world.store.read(
        lambda: audit_fires.audit_job(job.id, None, start - MINUTE, world.now(), world.now())
    )
    assert (report.dispositions, report.findings) == ({"backfilled": 1}, [])
    assert trigger


async def test_versions_keep_their_own_fires(world: World):
    start, job = world.now(), await world.job()
    await add_trigger(world, job, every(world), SKIP, name="schedule")
    world.clock.advance(5 * MINUTE + 90 * SECOND)
    await world.store.fire(100, lead)

    def edit():
        (old,) = yield from triggers.of_job(job.id, lock=True)
        yield from triggers.end(old, world.now())

    await world.store.write(edit)
    begun = world.now()
    await add_trigger(world, job, Interval(every=2 * MINUTE, anchor=begun), SKIP, name="schedule")
    world.clock.advance(5 * MINUTE + 90 * SECOND)
    await world.store.fire(100, lead)
    backfill = await make(world, job, start + 1, world.now(), max_concurrent=100)
    await work(world, backfill)

    runs = await world.store.read(lambda: backfills.runs(backfill.id, (0, backfill.id), 100))
    assert [run.at - start for run in runs] == [
        *(minute * MINUTE for minute in range(1, 6)), *(begun - start + minute * MINUTE for minute in (2, 4))
    ]  # fmt: skip


async def test_fires_that_a_pause_left_undecided_are_decided_and_then_run(world: World):
    start, job = world.now(), await world.job()
    await add_trigger(world, job, every(world), ALLOW)

    def pause():
        for timer in (yield from triggers.of_job(job.id, lock=True)):
            yield from triggers.pause(timer)

    def resume():
        for timer in (yield from triggers.of_job(job.id, lock=True)):
            yield from triggers.resume(timer, world.now())

    await world.store.write(pause)
    world.clock.advance(6 * MINUTE)
    await work(world, await make(world, job, start + 1, start + 4 * MINUTE))
    world.clock.advance(MINUTE)
    await world.store.write(resume)

    assert await rows(world, start) == [
        *((m, m, "backfilled", True) for m in (1, 2, 3)), (4, 7, "skipped-paused", False)
    ]  # fmt: skip


async def test_a_backfill_waits_for_the_scheduler_to_decide(world: World):
    start, job = world.now(), await world.job()
    await add_trigger(world, job, every(world), SKIP)
    world.clock.advance(5 * MINUTE)
    backfill = await make(world, job, start + 1, start + 5 * MINUTE)

    assert (await work(world, backfill)).backfill.state == "running"
    assert await rows(world, start) == []
    await world.store.fire(100, lead)
    await work(world, backfill)
    assert [row[2] for row in await rows(world, start)] == ["backfilled"] * 3 + ["fired", "fired"]


async def test_no_fire_is_passed_over_because_another_trigger_has_decided_further(world: World):
    start, job = world.now(), await world.job()
    await add_trigger(world, job, every(world), SKIP, name="a")
    slow = await add_trigger(world, job, every(world), SKIP, name="b")
    world.clock.advance(6 * MINUTE)
    await world.do("UPDATE timers SET next_fire_at = $1 WHERE trigger_id = $2", world.now() + MINUTE, slow)
    await world.store.fire(100, lead)
    backfill = await make(world, job, start + 1, start + 4 * MINUTE, max_concurrent=100)
    worked = await work(world, backfill)

    assert (worked.backfill.state, worked.parcels) == ("running", [])
    assert worked.backfill.note == "It waits until these triggers have decided: b."
    world.clock.advance(MINUTE)
    await world.store.fire(100, lead)
    worked = await work(world, backfill)
    assert (worked.backfill.counts.started, worked.backfill.note) == (6, "")


async def test_nothing_is_written_while_nothing_changes(world: World):
    start, job, _ = await missed(world)
    backfill = await make(world, job, start + 1, world.now(), max_concurrent=2)
    await work(world, backfill)
    before = world.driver.statements["advance_backfill"]
    await work(world, backfill)

    assert world.driver.statements["advance_backfill"] == before


async def test_fires_deleted_from_the_ledger_are_left_alone_unless_forced(world: World):
    start, job, _ = await missed(world)
    await world.do("DELETE FROM fires WHERE last < $1", start + 11 * MINUTE)
    await world.store.write(lambda: ledger.forget_before(start + 11 * MINUTE))
    worker = await world.worker()
    gentle = await finish(
        world, await make(world, job, start + 1, world.now(), counts=BackfillCounts(total=11)), worker
    )

    assert gentle.counts == BackfillCounts(total=11, already=1, unknown=10)
    forced = await make(world, job, start + 1, start + 3 * MINUTE, force=True, counts=BackfillCounts(total=2))
    assert (await finish(world, forced, worker)).counts == BackfillCounts(total=2, started=2, succeeded=2)
    assert [row[0] for row in await rows(world, start)] == [1, 2, 11]


async def test_a_paused_backfill_starts_nothing_and_a_cancelled_one_ends_when_its_executions_have(world: World):
    start, job, _ = await missed(world)
    backfill = await make(world, job, start + 1, world.now(), max_concurrent=2)
    await work(world, backfill)
    worker = await world.worker()

    await world.store.write(lambda: backfills.change(backfill.id, NAMESPACE, "paused", ["running"]))
    (slice,) = await worker.claim(1)
    await worker.report(success(slice))
    worked = await work(world, backfill)
    assert (worked.backfill.state, worked.parcels, worked.backfill.counts.live) == ("paused", [], 1)

    await world.store.write(lambda: backfills.change(backfill.id, NAMESPACE, "cancelled", ["paused"]))
    assert (await work(world, backfill)).backfill.completed_at is None
    (slice,) = await worker.claim(1)
    await worker.report(failed(slice))
    ended = (await work(world, backfill)).backfill
    assert (ended.state, ended.counts.succeeded, ended.counts.failed) == ("cancelled", 1, 1)
    assert ended.completed_at == world.now()
    assert await world.store.read(lambda: backfills.unfinished(10)) == []


async def test_a_deleted_job_ends_its_backfill(world: World):
    start, job, _ = await missed(world)
    backfill = await make(world, job, start + 1, world.now())
    await world.store.write(lambda: jobs.delete(job.id, None, world.now()))

    worked = await work(world, backfill)
    assert (worked.backfill.state, worked.parcels) == ("cancelled", [])
    assert "deleted" in worked.backfill.note


async def test_a_trigger_that_cannot_be_decided_pauses_the_backfill_with_the_reason(world: World):
    start, job, trigger = await missed(world)
    broken = '{"kind":"cron","expression":"* * * * *","timezone":"Mars/Olympus"}'
    await world.do("UPDATE triggers SET definition = $1 WHERE id = $2", broken, trigger)
    worked = await work(world, await make(world, job, start + 1, world.now()))

    assert worked.backfill.state == "paused"
    assert "Mars/Olympus" in worked.backfill.note
    await world.do("DELETE FROM triggers")


async def test_params_are_those_of_the_trigger_at_its_fire_with_the_backfills_over_them(world: World):
    start, job = world.now(), await world.job()
    await add_trigger(world, job, every(world), SKIP, name="often", params={"at": "${fire.at}", "day": 1})
    await work(world, await make(world, job, start - 2 * MINUTE, start, params='{"day":2}'))

    (slice,) = await world.on("queued")
    (stored,) = await world.store.parcels([slice.parcel])
    assert [msgspec.json.decode(item) for item in stored.items.part(0, 2)] == [
        {"at": format_instant(start - minute * MINUTE), "day": 2} for minute in (2, 1)
    ]


async def test_a_template_that_fails_pauses_the_backfill_with_the_reason(world: World):
    start, job = world.now(), await world.job()
    await add_trigger(world, job, every(world), SKIP, name="often", params={"at": "${params.nothing}"})
    worked = await work(world, await make(world, job, start - 2 * MINUTE, start))

    assert (worked.backfill.state, worked.parcels) == ("paused", [])
    assert "nothing" in worked.backfill.note
    assert await world.rows("SELECT last FROM fires") == []


@pytest.mark.parametrize(("outside", "minutes"), [("skip", [8, 9]), ("postpone", [1, 9]), ("advance", [2, 8, 9, 10])])
async def test_only_fires_within_the_calendar_are_run(world: World, outside, minutes):
    start, job = world.now(), await world.job()
    window = f"{format_instant(start + 8 * MINUTE)}/{format_instant(start + 10 * MINUTE)}"
    early = f"{format_instant(start - MINUTE)}/{format_instant(start + 2 * MINUTE)}"
    windows = [window] if outside != "advance" else [early, window]
    text = msgspec.json.encode({"windows": windows}).decode()
    await world.store.write(lambda: calendars.put(NAMESPACE, "work", text, "", start))
    await add_trigger(world, job, every(world), structs.replace(SKIP, calendars=("work",), outside=outside))

    def pause():
        for timer in (yield from triggers.of_job(job.id, lock=True)):
            yield from triggers.pause(timer)

    await world.store.write(pause)
    world.clock.advance(20 * MINUTE)
    since = start + (2 * MINUTE if outside == "advance" else 1)
    await work(world, await make(world, job, since, world.now(), max_concurrent=100))

    runs = await world.rows("SELECT at FROM backfill_runs ORDER BY at")
    assert [(at - start) // MINUTE for (at,) in runs] == minutes


async def test_a_calendar_that_is_gone_pauses_the_backfill(world: World):
    start, job = world.now(), await world.job()
    await world.store.write(lambda: calendars.put(NAMESPACE, "work", '{"hours":"00:00-24:00"}', "", start))
    await add_trigger(world, job, every(world), structs.replace(SKIP, calendars=("work",)))
    await world.do("DELETE FROM calendars")
    worked = await work(world, await make(world, job, start - 2 * MINUTE, start))

    assert worked.backfill.state == "paused"
    assert "work" in worked.backfill.note


async def test_a_spread_trigger_is_backfilled_where_it_has_decided(world: World):
    start, job = world.now(), await world.job()
    rules = Rules(misfire=Misfire(policy="skip"), overlap="allow", spread=30 * MINUTE, offset=3 * MINUTE)
    await add_trigger(world, job, every(world), rules)
    world.clock.advance(10 * MINUTE)
    await world.store.fire(100, lead)
    backfill = await make(world, job, start + 1, world.now())
    worked = await work(world, backfill)

    assert worked.backfill.state == "running"
    assert [row[0] for row in await rows(world, start)] == [1, 2, 3, 4, 5, 6, 7]
    assert (await work(world, backfill)).backfill.at == (start + 7 * MINUTE, worked.backfill.at[1])


async def test_a_long_run_is_worked_in_batches(world: World):
    start, job, _ = await missed(world, minutes=1000)
    backfill = await make(world, job, start + 1, world.now(), max_concurrent=1000)

    worked = await work(world, backfill, limit=64)
    assert worked.more
    assert worked.backfill.counts.started == 64
    assert await rows(world, start) == [
        *((m, m, "backfilled", True) for m in range(1, 65)), (65, 1000, "skipped-misfire", False),
        (1001, 1001, "fired", True),
    ]  # fmt: skip


async def test_an_instant_that_passed_is_backfilled_once(world: World):
    start, job = world.now(), await world.job()
    await add_trigger(world, job, Once(at=start + MINUTE), SKIP)
    world.clock.advance(10 * MINUTE)
    await world.store.fire(100, lead)
    backfill = await make(world, job, start + 1, world.now(), counts=BackfillCounts(total=1))
    done = await finish(world, backfill, await world.worker())

    assert done.counts == BackfillCounts(total=1, started=1, succeeded=1)
    assert await rows(world, start) == [(1, 1, "backfilled", True)]


async def test_completed_backfills_are_forgotten_with_their_runs_in_batches(world: World):
    start, job, _ = await missed(world)
    worker = await world.worker()
    await finish(world, await make(world, job, start + 1, world.now(), counts=BackfillCounts(total=11)), worker)
    kept = await make(world, job, start + 1, world.now())
    world.clock.advance(MINUTE)

    async def forget():
        return await world.store.write(lambda: backfills.sweep(Cutoffs(world.now(), 0, world.now()), most=6))

    assert [await forget(), await forget()] == [True, False]
    assert await world.rows("SELECT id FROM backfills") == [(kept.id,)]
    assert await world.rows("SELECT count(*) FROM backfill_runs") == [(0,)]


class Crash(Exception):
    pass


async def test_a_crash_between_any_two_statements_changes_nothing(world: World):
    start, job, _ = await missed(world)
    backfill = await make(world, job, start + 1, world.now(), max_concurrent=4)
    before = await rows(world, start)
    left = 0

    async def crash(op):
        nonlocal left
        left -= 1
        if left < 0:
            raise Crash

    for statements in range(100):
        left, world.driver.before = statements, crash
        try:
            worked = await work(world, backfill)
        except Crash:
            world.driver.before = None
            assert await rows(world, start) == before
            assert await world.on("queued") == []
            assert await world.rows("SELECT count(*) FROM backfill_runs") == [(0,)]
        else:
            break
    world.driver.before = None

    assert statements > 8
    assert worked.backfill.counts.started == 4
    done = await finish(world, backfill, await world.worker())
    assert (done.state, done.counts.started, done.counts.succeeded) == ("done", 10, 10)


@pytest.mark.parametrize("force", [False, True])
async def test_servers_that_work_at_the_same_time_start_each_fire_once(world: World, force):
    start, job, _ = await missed(world)
    one = await make(world, job, start + 1, world.now(), max_concurrent=3, counts=BackfillCounts(total=11), force=force)
    other = await make(world, job, start + 1, world.now(), max_concurrent=3, counts=BackfillCounts(total=11))
    worker = await world.worker()
    for _ in range(30):
        await asyncio.gather(*(work(world, backfill) for backfill in (one, other, one, other)))
        held = await worker.claim(100)
        assert sum(slice.hi - slice.lo for slice in held) <= 6
        for slice in held:
            await worker.report(success(slice))

    first, second = [await world.store.read(lambda b=b: backfills.get(b.id, NAMESPACE)) for b in (one, other)]
    assert (first.state, second.state) == ("done", "done")
    assert second.counts.started + second.counts.already == 11
    if force:
        assert first.counts.started == 11
    else:
        assert first.counts.started + second.counts.started == 10
