"""Views of triggers with calendars: next runs, coming fires and previews."""

from typing import Any

import pytest

from horae.engine.definitions.jobs import Jobs
from horae.engine.triggers import fires
from horae.engine.triggers.calendars import Calendars
from horae.engine.triggers.fires import Fires
from horae.engine.triggers.triggers import Triggers
from horae.env import SECOND
from horae.errors import BadInput
from horae.model.triggers.decisions.timetable import Timetable
from tests.engine.objects import calendars_of, jobs_of, triggers_of
from tests.store_contract.world import NAMESPACE, World, lead, rank

HOUR = 3600 * SECOND
OFFICE = {"hours": "MON-FRI 09:00-17:00"}


@pytest.fixture
def jobs(world: World) -> Jobs:
    return jobs_of(world.store, rank=rank)


@pytest.fixture
def triggers(world: World, jobs: Jobs) -> Triggers:
    return triggers_of(world.store, jobs)


@pytest.fixture
async def calendars(world: World) -> Calendars:
    made = calendars_of(world.store)
    await made.put(NAMESPACE, "office", OFFICE)
    return made


async def create(jobs: Jobs, name: str = "report", **fields: Any) -> Any:
    return await jobs.create(NAMESPACE, {"name": name, "command": "true", **fields})


@pytest.mark.parametrize(
    ("outside", "following", "text"),
    [
        ("skip", "2027-01-18T09:00:00Z", 'every hour at :00, UTC time, only while "office" is open'),
        ("postpone", "2027-01-18T09:00:00Z", 'every hour at :00, UTC time, or when "office" opens next'),
        ("advance", "2027-01-18T09:00:00Z", 'every hour at :00, UTC time, or when "office" was open last'),
    ],
)
async def test_the_next_run_is_shown_and_not_a_skipped_fire(jobs, triggers, calendars, world, outside, following, text):
    """Set the time to a Friday evening, after the fires of the last opening."""
    await create(jobs, schedule={"cron": "0 * * * *", "calendar": "office", "outside": outside})
    for _ in range(12):
        world.clock.advance(HOUR)
        await world.store.fire(100, lead)
    assert (await world.store.next_fire_at()) < world.now() + 2 * HOUR

    view = await triggers.get(NAMESPACE, "report", "schedule")
    assert (view.next_fire_at, view.text) == (following, text)
    assert [each.next_fire_at for each in (await triggers.list(NAMESPACE)).items] == [following]
    assert [each.next_fire_at for each in await triggers.of_job(NAMESPACE, "report")] == [following]
    assert (await jobs.get(NAMESPACE, "report")).next_fire_at == following
    assert [each.next_fire_at for each in (await jobs.list(NAMESPACE)).items] == [following]


async def test_a_job_whose_calendar_opens_no_more_is_idle(jobs, triggers, calendars, world):
    await calendars.put(NAMESPACE, "office", {"dates": ["2027-01-15"]})
    await create(jobs, schedule={"cron": "0 * * * *", "calendar": "office"})
    assert (await jobs.get(NAMESPACE, "report")).status == "scheduled"
    world.clock.advance(24 * HOUR)
    await world.store.fire(100, lead)
    world.clock.advance(HOUR)
    await world.store.fire(100, lead)
    view = await triggers.get(NAMESPACE, "report", "schedule")
    assert (view.next_fire_at, view.state) == (None, "active")
    assert (await jobs.get(NAMESPACE, "report")).next_fire_at is None


async def test_coming_fires_are_the_ones_that_run(jobs, calendars, world):
    await create(jobs, "skips", schedule={"cron": "0 */4 * * *", "calendar": "office"})
    await create(jobs, "waits", schedule={"cron": "0 3 * * *", "calendar": "office", "outside": "postpone"})
    await create(jobs, "hurries", schedule={"cron": "0 20 * * *", "calendar": "office", "outside": "advance"})
    await world.store.fire(100, lead)
    page = await Fires(world.env, world.store).list(
        NAMESPACE, since="2027-01-15T08:00:00Z", until="2027-01-19T00:00:00Z"
    )
    assert [(each.job, each.at, each.due_at) for each in page.items] == [
        ("skips", "2027-01-15T12:00:00Z", "2027-01-15T12:00:00Z"),
        ("skips", "2027-01-15T16:00:00Z", "2027-01-15T16:00:00Z"),
        ("hurries", "2027-01-15T20:00:00Z", "2027-01-15T16:59:59Z"),
        ("waits", "2027-01-16T03:00:00Z", "2027-01-18T09:00:00Z"),
        ("skips", "2027-01-18T12:00:00Z", "2027-01-18T12:00:00Z"),
        ("skips", "2027-01-18T16:00:00Z", "2027-01-18T16:00:00Z"),
        ("hurries", "2027-01-18T20:00:00Z", "2027-01-18T16:59:59Z"),
    ]


async def test_pages_of_coming_fires_continue_at_their_cursor(jobs, calendars, world):
    await create(jobs, schedule={"cron": "0 * * * *", "calendar": "office", "outside": "postpone"})
    fires, seen, cursor = Fires(world.env, world.store), [], None
    while True:
        page = await fires.list(
            NAMESPACE, since="2027-01-15T08:00:00Z", until="2027-01-18T12:00:00Z", limit=2, cursor=cursor
        )
        seen += [each.due_at for each in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    friday = [f"2027-01-15T{hour:02d}:00:00Z" for hour in range(9, 17)]
    assert seen == [*friday, *(f"2027-01-18T{hour:02d}:00:00Z" for hour in (9, 10, 11))]


@pytest.mark.parametrize("outside", ["skip", "postpone", "advance"])
@pytest.mark.parametrize("since", ["2027-03-10T10:00:00Z", "2027-03-10T12:30:00Z", "2027-03-10T20:00:00Z"])
async def test_distant_fires_by_a_calendar_cost_no_more_than_near_ones(
    jobs, calendars, world, monkeypatch, outside, since
):
    await create(jobs, schedule={"cron": "0 */2 * * *", "calendar": "office", "outside": outside})
    await create(jobs, "few", schedule={"cron": "0 12 * * *", "calendar": "office", "maxFires": 39})
    await world.store.fire(100, lead)
    fires, until, computed = Fires(world.env, world.store), "2027-03-11T19:30:00Z", []
    every = (await fires.list(NAMESPACE, since="2027-01-15T08:00:00Z", until=until, limit=500)).items
    found = Timetable.next
    monkeypatch.setattr(Timetable, "next", lambda self, after: computed.append(after) or found(self, after))

    page = await fires.list(NAMESPACE, since=since, until=until)

    assert page.items == [fire for fire in every if since <= fire.due_at < until]
    assert len(page.items) >= 4
    assert len({(fire.job, fire.due_at) for fire in page.items}) == len(page.items)
    assert len(computed) < 20


async def test_fires_that_take_too_long_to_compute_are_left_out_with_a_note(jobs, calendars, world, monkeypatch):
    monkeypatch.setattr(fires, "SECONDS", -1)
    await create(jobs, schedule={"cron": "0 * * * *", "calendar": "office"})
    page = await Fires(world.env, world.store).list(NAMESPACE)
    assert (page.items, page.complete) == ([], False)
    assert "Computing them takes too long." in page.notes[0]


async def test_a_preview_goes_by_calendars(triggers, calendars):
    asked = {"cron": "0 3 * * *", "calendar": "office", "outside": "postpone", "from": "2027-01-15T08:00:00Z"}
    shown = await triggers.preview(NAMESPACE, {**asked, "count": 3})
    assert shown.fires == ["2027-01-18T09:00:00Z", "2027-01-19T09:00:00Z", "2027-01-20T09:00:00Z"]
    assert shown.details[0].note == "moved from 2027-01-16T03:00:00Z"
    assert shown.text == 'at 03:00 every day, UTC time, or when "office" opens next'

    never = await triggers.preview(NAMESPACE, {"cron": "0 3 * * *", "calendar": "office"})
    assert (never.fires, never.notes) == ([], ["The trigger has no more fires."])
    with pytest.raises(BadInput, match='no calendar named "offica"'):
        await triggers.preview(NAMESPACE, {"cron": "0 3 * * *", "calendar": "offica"})


async def test_a_trigger_that_exists_is_previewed_by_its_calendars(jobs, triggers, calendars):
    await create(jobs, triggers=[{"name": "noon", "cron": "0 12 * * *", "calendars": ["office"]}])
    shown = await triggers.preview(NAMESPACE, {"job": "report", "trigger": "noon", "count": 2})
    assert shown.fires == ["2027-01-15T12:00:00Z", "2027-01-18T12:00:00Z"]


async def test_a_trigger_is_changed_to_go_by_a_calendar_and_back(jobs, triggers, calendars):
    await create(jobs, triggers=[{"name": "noon", "cron": "0 12 * * *"}])
    await triggers.edit(NAMESPACE, "report", "noon", {"calendar": "office", "outside": "advance"})
    view = await triggers.get(NAMESPACE, "report", "noon")
    assert view.definition == {"cron": "0 12 * * *", "calendar": "office", "outside": "advance"}
    assert [each.trigger for each in (await calendars.get(NAMESPACE, "office")).used_by] == ["noon"]
    await triggers.edit(NAMESPACE, "report", "noon", {"calendar": None, "outside": None})
    assert (await calendars.get(NAMESPACE, "office")).used_by == []
