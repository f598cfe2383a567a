"""Wall times that a clock change skips are recorded in the ledger, and stay recorded when the rows change."""

from horae.features.backfills.model.values import Backfill
from horae.features.backfills.store import backfills
from horae.features.backfills.store import work as backfill_work
from horae.model.base.duration import DAY, HOUR, MINUTE
from horae.model.base.instant import parse_instant
from horae.model.triggers.decisions.rules import Misfire, Rules
from horae.model.triggers.decisions.values import Cron
from horae.store.triggers import audit_fires, triggers
from tests.store_contract.world import NAMESPACE, World, add_trigger, lead

NIGHTLY = Cron(expression="30 2 * * *", timezone="America/New_York", dst_gap="skip")
SPRING = parse_instant("2027-03-14T07:00:00Z")
ALLOW = Rules(overlap="allow")


async def at(world: World, instant):
    world.clock.advance(instant - world.now())


async def ledger(world: World):
    rows = await world.rows("SELECT first, last, disposition FROM fires ORDER BY last")
    return [((first - SPRING) / HOUR, (last - SPRING) / HOUR, what) for first, last, what in rows]


LOST = (-1 / HOUR, -1 / HOUR, "skipped-nonexistent")


async def test_the_ledger_records_lost_wall_times_at_a_clock_change(world: World):
    await at(world, SPRING - 12 * HOUR)
    trigger = await add_trigger(world, await world.job(), NIGHTLY, ALLOW)
    await at(world, SPRING)
    met = await world.store.fire(100, lead)
    assert (met.timers, met.parcels) == (1, [])
    assert await ledger(world) == [LOST]
    assert (await world.rows("SELECT next_fire_at FROM timers"))[0][0] == SPRING + 23 * HOUR + 30 * MINUTE
    (cause,) = (await world.rows("SELECT cause FROM fires"))[0]
    assert cause.startswith("2027-03-14 02:30 did not exist in America/New_York: clocks went forward by 1h")
    await at(world, SPRING + 23 * HOUR + 30 * MINUTE)
    assert len((await world.store.fire(100, lead)).parcels) == 1
    assert await ledger(world) == [LOST, (23.5, 23.5, "fired")]
    await world.check()

    await world.do("DELETE FROM fires WHERE disposition = 'skipped-nonexistent'")
    (finding,) = (await world.store.read(audit_fires.audit_fires)).findings
    assert (finding.kind, finding.trigger, finding.first, finding.last) == (
        "uncovered",
        trigger,
        SPRING - 1,
        SPRING - 1,
    )
    await world.do("DELETE FROM fires")
    await world.do("DELETE FROM timers")
    await world.do("DELETE FROM triggers")


async def test_an_audit_of_the_job_names_the_change(world: World):
    await at(world, SPRING - 12 * HOUR)
    job = await world.job()
    await add_trigger(world, job, NIGHTLY, ALLOW)
    await at(world, SPRING + HOUR)
    now = world.now()
    report = await world.store.read(lambda: audit_fires.audit_job(job.id, None, SPRING - DAY, now, now))
    (finding,) = report.findings
    assert (finding.kind, finding.instants) == ("uncovered", [SPRING - 1])
    await world.store.fire(100, lead)
    report = await world.store.read(lambda: audit_fires.audit_job(job.id, None, SPRING - DAY, now, now))
    assert (report.findings, dict(report.dispositions)) == ([], {"skipped-nonexistent": 1})


async def test_a_paused_or_ended_trigger_keeps_the_record(world: World):
    await at(world, SPRING - 12 * HOUR)
    job = await world.job()
    await add_trigger(world, job, NIGHTLY, ALLOW)
    (timer,) = await world.store.read(lambda: triggers.of_job(job.id))
    await world.store.write(lambda: triggers.pause(timer))
    await at(world, SPRING + HOUR)
    now = world.now()
    await world.store.write(lambda: triggers.resume(timer, now))
    assert await ledger(world) == [LOST]
    await world.do("DELETE FROM fires")
    await world.store.write(lambda: triggers.end(timer, now))
    assert await ledger(world) == [LOST]
    await world.check()


async def test_a_row_around_the_change_reports_it_until_a_backfill_splits_it(world: World):
    await at(world, SPRING - 2 * DAY)
    job = await world.job()
    await add_trigger(world, job, NIGHTLY, Rules(misfire=Misfire(policy="skip"), overlap="allow"))
    await at(world, SPRING + 3 * DAY - HOUR)
    await world.store.fire(100, lead)
    assert await ledger(world) == [(-47.5, 47.5, "skipped-misfire")]
    await world.check()

    made = Backfill(
        id=world.env.new_id(), namespace=NAMESPACE, job=job.id, since=SPRING - DAY, until=SPRING + DAY,
        created_at=world.now(),
    )  # fmt: skip
    await world.store.write(lambda: backfills.put(made))
    now = world.now()
    await world.store.write(lambda: backfill_work.process(made.id, lead, world.env.new_id, now))
    assert await ledger(world) == [
        (-47.5, -47.5, "skipped-misfire"), (-23.5, -23.5, "backfilled"), LOST, (23.5, 23.5, "backfilled"),
        (47.5, 47.5, "skipped-misfire"),
    ]  # fmt: skip
    await world.check()
