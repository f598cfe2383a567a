"""Triggers with calendars: refusals, deletions of calendars in use, and changes that act at once."""

from typing import Any

import pytest

from horae.engine.definitions.jobs import Jobs
from horae.engine.triggers.calendars import Calendars
from horae.env import SECOND
from horae.errors import BadInput, Conflict
from horae.store.triggers import audit_fires
from tests.engine.objects import calendars_of, jobs_of
from tests.store_contract.world import NAMESPACE, World, lead, rank

HOUR = 3600 * SECOND
OFFICE = {"hours": "MON-FRI 09:00-17:00"}


@pytest.fixture
def jobs(world: World) -> Jobs:
    return jobs_of(world.store, rank=rank, fire_due=lambda: world.store.fire(100, lead))


@pytest.fixture
def calendars(world: World) -> Calendars:
    return calendars_of(world.store, fire_due=lambda: world.store.fire(100, lead))


async def create(jobs: Jobs, name: str = "report", **fields: Any) -> Any:
    return await jobs.create(NAMESPACE, {"name": name, "command": "true", **fields})


async def put(calendars: Calendars, name: str = "office", definition: Any = OFFICE) -> None:
    await calendars.put(NAMESPACE, name, definition)


async def told(world: World) -> list[tuple[str, int]]:
    rows = await world.rows("SELECT disposition, first, last FROM fires ORDER BY last")
    return [(disposition, (last - first) // HOUR + 1) for disposition, first, last in rows]


async def test_a_trigger_goes_by_its_calendar(jobs, calendars, world):
    await put(calendars)
    made = await create(jobs, schedule={"cron": "0 * * * *", "calendar": "office", "overlap": "allow"})
    assert made.schedule == {"cron": "0 * * * *", "calendar": "office", "overlap": "allow"}
    world.clock.advance(HOUR)
    await world.store.fire(100, lead)
    world.clock.advance(9 * HOUR)
    await world.store.fire(100, lead)

    assert (await told(world))[0] == ("fired", 1)
    assert (await world.store.read(audit_fires.audit_fires)).findings == []
    assert [use.job for use in (await calendars.get(NAMESPACE, "office")).used_by] == ["report"]


@pytest.mark.parametrize(
    ("rules", "words", "field"),
    [
        ({"calendar": "offica"}, 'Did you mean "office"', "schedule.calendar"),
        ({"calendars": ["office", "nobody"]}, 'no calendar named "nobody"', "schedule.calendars"),
        ({"calendars": []}, "is empty", "schedule.calendars"),
        ({"calendar": "office", "calendars": ["office"]}, "Both calendar and calendars", "schedule.calendars"),
        ({"calendar": 7}, "not a calendar's name", "schedule.calendar"),
        ({"calendar": "no spaces"}, "not a valid calendar", "schedule.calendar"),
        ({"outside": "skip"}, "without a calendar", "schedule.outside"),
        ({"calendar": "office", "outside": "later"}, "outside cannot be", "schedule.outside"),
        ({"calendar": "office"}, 'never fires while "office" is open', "schedule.calendar"),
    ],
)
async def test_mistakes_are_refused(jobs, calendars, rules, words, field):
    await put(calendars)
    with pytest.raises(BadInput) as caught:
        await create(jobs, schedule={"cron": "0 3 * * *", **rules})
    assert words in str(caught.value)
    assert caught.value.fields["field"] == field


async def test_one_of_several_triggers_is_named(jobs, calendars):
    await put(calendars)
    with pytest.raises(BadInput) as caught:
        await create(jobs, triggers=[{"name": "daily", "cron": "0 12 * * *", "calendar": "gone"}])
    assert caught.value.fields["field"] == "triggers.daily.calendar"


async def test_a_calendar_in_use_is_not_deleted(jobs, calendars):
    await put(calendars)
    await create(jobs, triggers=[{"name": "noon", "cron": "0 12 * * *", "calendar": "office"}])
    with pytest.raises(Conflict) as caught:
        await calendars.delete(NAMESPACE, "office")
    assert 'trigger "noon" of job "report"' in caught.value.detail
    assert caught.value.fields["usedBy"] == [{"job": "report", "trigger": "noon"}]

    await jobs.edit(NAMESPACE, "report", {"triggers": [{"name": "noon", "cron": "0 12 * * *"}]})
    await calendars.delete(NAMESPACE, "office")


async def test_a_deleted_job_frees_its_calendar_and_comes_back_only_with_it(jobs, calendars):
    await put(calendars)
    job = await create(jobs, schedule={"cron": "0 12 * * *", "calendar": "office"})
    await jobs.delete(NAMESPACE, "report")
    await calendars.delete(NAMESPACE, "office")
    with pytest.raises(BadInput, match='no calendar named "office"'):
        await jobs.restore(NAMESPACE, str(job.job_id))
    await put(calendars)
    assert (await jobs.restore(NAMESPACE, str(job.job_id))).state == "active"


async def test_an_edit_of_something_else_is_not_refused_for_an_old_calendar(jobs, calendars, world):
    await put(calendars, definition={"dates": ["2027-01-16"]})
    await create(jobs, schedule={"cron": "0 12 * * *", "calendar": "office"})
    world.clock.advance(72 * HOUR)
    assert (await jobs.edit(NAMESPACE, "report", {"retries": 2})).version == 2
    with pytest.raises(BadInput, match="never fires"):
        await jobs.edit(NAMESPACE, "report", {"schedule": {"cron": "0 13 * * *", "calendar": "office"}})


async def test_a_change_of_a_referenced_calendar_acts_at_once(jobs, calendars, world):
    """A holiday added today moves tomorrow's fire to the end of today."""
    start = world.now()  # Friday 08:00
    await put(calendars, "closed", {"dates": ["2027-12-25"]})
    await put(calendars, "days", {"hours": "00:00-24:00", "except": ["closed"]})
    await create(jobs, schedule={"cron": "0 9 * * *", "calendar": "days", "outside": "advance", "overlap": "allow"})
    await world.store.fire(100, lead)
    world.clock.advance(2 * HOUR)
    await world.store.fire(100, lead)
    await put(calendars, "closed", {"dates": ["2027-01-16"]})
    await world.store.fire(100, lead)

    assert await world.store.next_fire_at() == start + 16 * HOUR - SECOND
    world.clock.advance(14 * HOUR)
    await world.store.fire(100, lead)
    assert await world.rows("SELECT first, disposition FROM fires ORDER BY last") == [
        (start + HOUR, "fired"), (start + 25 * HOUR, "moved"),
    ]  # fmt: skip


async def test_a_paused_trigger_stays_paused_when_its_calendar_opens(jobs, calendars, world):
    await put(calendars)
    await create(jobs, schedule={"cron": "30 * * * *", "calendar": "office", "outside": "advance"})
    await jobs.pause(NAMESPACE, "report")
    await put(calendars, definition={"hours": "MON-FRI 09:00-18:00"})
    assert await world.rows("SELECT next_fire_at FROM timers") == [(None,)]
    world.clock.advance(3 * HOUR)
    await jobs.resume(NAMESPACE, "report")
    assert await told(world) == [("skipped-paused", 3)]
    await world.store.fire(100, lead)
    assert (await world.store.read(audit_fires.audit_fires)).findings == []
