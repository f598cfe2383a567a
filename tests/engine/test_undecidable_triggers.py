"""An undecidable trigger is reported in the log and on its job, and another schedule repairs it."""

from structlog.testing import capture_logs

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.env import SECOND
from tests.engine.objects import jobs_of, scheduler_of
from tests.store_contract.world import NAMESPACE, World, rank

NOWHERE = '{"kind":"cron","expression":"* * * * *","timezone":"Mars/Olympus"}'
MINUTE = 60 * SECOND


async def test_an_undecidable_schedule_is_reported_and_repaired(world: World):
    hints = Hints(world.env, world.store, world.env.new_id())
    LocalDirectory(world.env, world.store, hints)
    watch = ClockWatch(world.env, world.store, hints)
    scheduler = scheduler_of(world.store, hints, watch)
    jobs = jobs_of(world.store, rank=rank, fire_due=scheduler.step)
    made = await jobs.create(NAMESPACE, {"name": "report", "command": ["true"], "schedule": "* * * * *"})
    await world.do("UPDATE triggers SET definition = $1", NOWHERE)

    world.clock.advance(MINUTE)
    with capture_logs() as logs:
        await scheduler.step()
    (line,) = logs
    assert (line["event"], line["job"], line["log_level"]) == ("trigger cannot be decided", str(made.job_id), "error")
    shown = await jobs.get(NAMESPACE, "report")
    assert shown.schedule_text is None
    assert any("Mars/Olympus" in note and "another schedule" in note for note in shown.notes)

    await jobs.edit(NAMESPACE, "report", {"schedule": {"every": "1m"}})
    world.clock.advance(MINUTE)
    await scheduler.step()
    assert (await jobs.get(NAMESPACE, "report")).notes == []
    assert sum(s.hi - s.lo for s in await world.on("queued")) == 1
    await world.do("DELETE FROM triggers WHERE state = 'ended'")
