"""Housekeeping: each duty is held by one server, and only expired rows are deleted."""

import asyncio

from horae.features.statistics.store import statistics
from horae.model.executions.tally import OutcomeCounts
from horae.model.fleet.protocol import Step
from horae.model.fleet.server import ServerProcess
from horae.model.triggers.decisions.rules import Misfire, Rules
from horae.model.triggers.decisions.values import Interval
from horae.model.triggers.ledger import LedgerRow
from horae.store.executions.durable import steps
from horae.store.executions.reads import housekeeping
from horae.store.fleet import sessions
from horae.store.triggers import audit_fires, ledger, triggers
from tests.store_contract.world import NAMESPACE, World, add_trigger, lead, released

HOUR = 3_600_000_000
DAY = 24 * HOUR
MINUTE = 60_000_000


async def test_a_duty_is_held_by_one_server_until_its_time_is_over(world: World):
    a, b = world.env.new_id(), world.env.new_id()

    async def take(holder):
        now = world.now()
        return await world.store.write(lambda: housekeeping.take_duty("sweep", holder, now, now + 30))

    assert await take(a) == 1
    assert await take(b) is None
    assert await take(a) == 1
    world.clock.advance(31)
    assert await take(b) == 2
    assert await take(a) is None


async def test_one_of_many_servers_gets_the_duty(world: World):
    now = world.now()
    holders = [world.env.new_id() for _ in range(5)]
    taken = await asyncio.gather(
        *(world.store.write(lambda id=id: housekeeping.take_duty("sweep", id, now, now + 30)) for id in holders)
    )

    assert sorted(epoch or 0 for epoch in taken) == [0, 0, 0, 0, 1]


async def test_only_expired_keys_are_deleted(world: World):
    job = await world.job()
    await world.submit(job, key="short", key_for=5)
    await world.submit(job, key="long", key_for=6)
    world.clock.advance(5)
    await world.store.write(lambda: housekeeping.forget_expired(world.now(), 0))

    assert await world.rows("SELECT key FROM unique_keys") == [("long",)]


async def test_expired_keys_are_deleted_in_batches(world: World):
    job = await world.job()
    for key in "abc":
        await world.submit(job, key=key, key_for=5)
    world.clock.advance(5)

    async def forget():
        return await world.store.write(lambda: housekeeping.forget_expired(world.now(), 0, most=2))

    assert await forget()
    assert len(await world.rows("SELECT key FROM unique_keys")) == 1
    assert not await forget()
    assert await world.rows("SELECT key FROM unique_keys") == []


async def test_servers_without_recent_heartbeats_are_deleted(world: World):
    gone, there = world.env.new_id(), world.env.new_id()
    for server in (gone, there):
        seen = ServerProcess(id=server, url="http://a", host="a", pid=1, version="1", roles=("api",))
        await world.store.write(lambda seen=seen: sessions.record_server(seen, world.now()))
        world.clock.advance(HOUR)
    await world.store.write(lambda: housekeeping.forget_expired(world.now(), world.now() - HOUR))

    assert await world.rows("SELECT id FROM servers") == [(there,)]


async def test_sessions_are_deleted_in_batches(world: World):
    for name in "abc":
        await world.store.close_session((await world.worker(name)).session)
    world.clock.advance(HOUR)

    async def forget():
        return await world.store.write(lambda: housekeeping.forget_expired(world.now(), world.now(), most=2))

    assert await forget()
    assert len(await world.rows("SELECT id FROM sessions")) == 1
    assert not await forget()
    assert await world.rows("SELECT id FROM sessions") == []


async def test_fires_are_deleted_in_batches_after_their_retention(world: World):
    start = world.now()
    trigger = await add_trigger(world, await world.job(), Interval(every=HOUR, anchor=start), Rules(overlap="allow"))
    for _ in range(5):
        world.clock.advance(HOUR)
        await world.store.fire(100, lead)
    await world.do("UPDATE fires SET decided_at = last")
    before = start + 4 * HOUR

    while await world.driver.expire_fires(0, before, batch=2):
        pass
    if world.driver.dialect == "sqlite":  # PostgreSQL drops whole days
        assert await world.rows("SELECT last FROM fires ORDER BY last") == [(before,), (start + 5 * HOUR,)]
        assert await world.store.read(ledger.known_from) == before
    report = await world.store.read(lambda: audit_fires.audit_fires(before))
    assert (report.rows, report.findings) == (2, [])
    assert trigger


async def test_recently_decided_fires_are_kept_however_old_they_are(world: World):
    start = world.now()
    job = await world.job()
    trigger = await add_trigger(world, job, Interval(every=DAY, anchor=start), Rules(overlap="allow"))
    row = LedgerRow(
        trigger=trigger, first=start - 90 * DAY, last=start - 90 * DAY, disposition="backfilled", cause="backfill",
        execution=world.env.new_id(), decided_at=start,
    )  # fmt: skip
    await world.store.write(lambda: ledger.exchange_rows([], [row]))

    async def left(low, before):
        while await world.driver.expire_fires(low, before):
            pass
        return len(await world.rows("SELECT last FROM fires"))

    assert await left(0, start - 30 * DAY) == 1
    assert await left(start - 31 * DAY, start - DAY) == 1
    assert await left(start - 2 * DAY, start + DAY) == 0


async def test_an_ended_trigger_is_deleted_with_the_last_of_its_fires(world: World):
    start, job = world.now(), await world.job()
    gone = await add_trigger(world, job, Interval(every=HOUR, anchor=start), Rules(overlap="allow"), name="gone")
    kept = await add_trigger(world, job, Interval(every=HOUR, anchor=start), Rules(overlap="allow"), name="kept")
    world.clock.advance(HOUR)
    await world.store.fire(100, lead)

    def end():
        for timer in (yield from triggers.of_job(job.id, lock=True)):
            if timer.id == gone:
                yield from triggers.end(timer, world.now())

    await world.store.write(end)
    world.clock.advance(DAY)

    async def forget():
        await world.store.write(lambda: housekeeping.forget_records(world.now(), 0))
        return {id for (id,) in await world.rows("SELECT id FROM triggers")}

    assert await forget() == {gone, kept}
    await world.do("DELETE FROM fires WHERE trigger_id = $1", gone)
    assert await forget() == {kept}


async def test_a_run_of_fires_is_kept_as_long_as_its_last(world: World):
    start = world.now()
    job = await world.job()
    trigger = await add_trigger(world, job, Interval(every=HOUR, anchor=start), Rules(misfire=Misfire(policy="skip")))
    world.clock.advance(100 * HOUR + HOUR // 2)
    await world.store.fire(100, lead)
    while await world.driver.expire_fires(0, start + 100 * HOUR):
        pass

    assert await world.rows("SELECT first, last FROM fires") == [(start + HOUR, start + 100 * HOUR)]
    assert trigger


async def test_statistics_are_deleted_in_batches_after_their_retention(world: World):
    job, server, first = world.env.new_id(), world.env.new_id(), world.now() // MINUTE
    counts = {(job, first + n): OutcomeCounts(success=1) for n in range(5)}
    await world.store.write(lambda: statistics.add(server, counts))

    async def forget():
        return await world.store.write(lambda: housekeeping.forget_records(0, (first + 3) * MINUTE, most=2))

    assert [await forget(), await forget()] == [True, False]
    assert await world.rows("SELECT minute FROM job_minutes ORDER BY minute") == [(first + 3,), (first + 4,)]


async def test_sessions_are_deleted_when_they_ended_long_ago_and_hold_nothing(world: World):
    await world.parcel(await world.job(), 1)
    live, ended, owner = [await world.worker(name) for name in ("live", "ended", "owner")]
    await owner.claim(1)
    for w in (ended, owner):
        await world.store.close_session(w.session)
    world.clock.advance(HOUR)
    await world.store.write(lambda: housekeeping.forget_expired(world.now(), world.now() - HOUR + 1))

    rows = await world.rows("SELECT id FROM sessions")
    assert {row[0] for row in rows} == {live.session, owner.session}


async def test_a_step_is_stored_once_and_only_for_the_session_that_holds_it(world: World):
    parcel = await world.parcel(await world.job(), 1)
    w, thief = await world.worker(), await world.worker("thief")
    (slice,) = await w.claim(1)

    async def remember(by, attempt, result):
        step = Step(parcel=parcel, item=0, attempt=attempt, name="pay", result=result)
        (answer,) = await world.store.write(lambda: steps.remember([(by.session, step)], world.now()))
        return answer

    assert (await remember(thief, 1, b"0")).refused
    assert (await remember(w, 2, b"0")).refused
    first = await remember(w, 1, b"1")
    again = await remember(w, 1, b"2")
    assert (first.known, again.known, bytes(again.result)) == (False, True, b"1")
    await w.report(released(slice))
    await w.claim(1)
    assert (await remember(w, 1, b"3")).refused
    kept = await remember(w, 2, b"4")
    assert (kept.known, bytes(kept.result)) == (True, b"1")
    known = await world.store.read(lambda: steps.known_steps(parcel, 0, NAMESPACE))
    assert {name: bytes(result) for name, result in known.steps.items()} == {"pay": b"1"}
    await w.lose()
    assert (await remember(w, 2, b"5")).refused
