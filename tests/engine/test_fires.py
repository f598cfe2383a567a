"""Past and coming fires: the ledger and the timers in one list."""

from datetime import timedelta
from typing import Any

import pytest

from horae.engine.definitions.jobs import Jobs
from horae.engine.triggers import fire_counts
from horae.engine.triggers import fires as listing
from horae.engine.triggers.fire_counts import FireCounts
from horae.engine.triggers.fires import Fires
from horae.env import SECOND
from horae.errors import BadInput
from horae.features.statistics.engine.job_statistics import ended_counts
from horae.model.base.days import day_at
from horae.model.base.duration import HOUR
from horae.model.base.instant import format_instant, parse_instant
from tests.engine.objects import jobs_of
from tests.store_contract.world import NAMESPACE, World, lead, rank

MINUTE = 60 * SECOND


@pytest.fixture
def jobs(world: World) -> Jobs:
    return jobs_of(world.store, rank=rank)


async def create(jobs: Jobs, name: str, **fields: Any) -> Any:
    return await jobs.create(NAMESPACE, {"name": name, "command": "true", **fields})


async def test_the_past_and_the_future_make_one_list(jobs, world):
    start = world.now()
    await create(jobs, "often", schedule={"every": "1m", "overlap": "allow", "misfire": "skip", "grace": 0})
    world.clock.advance(3 * MINUTE + SECOND)
    await world.store.fire(100, lead)
    world.clock.advance(MINUTE - SECOND)
    await world.store.fire(100, lead)
    fires = Fires(world.env, world.store)
    until = format_instant(start + 6 * MINUTE + 1)
    page = await fires.list(NAMESPACE, until=until)

    told = [(one.at, one.until, one.count, one.disposition) for one in page.items]
    assert told == [
        (format_instant(start + MINUTE), format_instant(start + 3 * MINUTE), 3, "skipped-misfire"),
        (format_instant(start + 4 * MINUTE), None, 1, "fired"),
        (format_instant(start + 5 * MINUTE), None, 1, "planned"),
        (format_instant(start + 6 * MINUTE), None, 1, "planned"),
    ]
    assert page.items[1].execution_id is not None
    assert page.items[2].due_at == page.items[2].at
    seen, cursor = [], None
    while True:
        part = await fires.list(NAMESPACE, until=until, limit=1, cursor=cursor)
        seen += part.items
        cursor = part.next_cursor
        if cursor is None:
            break
    assert seen == page.items
    (skipped,) = (await fires.list(NAMESPACE, until=until, disposition="skipped-misfire")).items
    assert skipped.count == 3


async def test_a_page_reads_a_limited_number_of_rows_for_a_rare_disposition(jobs, world, monkeypatch):
    monkeypatch.setattr(listing, "MOST_SCANNED", 4)
    monkeypatch.setattr(listing, "BATCH", 2)
    await create(jobs, "often", schedule={"every": "1m", "overlap": "allow"})
    for _ in range(10):
        world.clock.advance(MINUTE)
        await world.store.fire(100, lead)
    fires = Fires(world.env, world.store)
    page = await fires.list(NAMESPACE, disposition="skipped-overlap")

    assert (page.items, page.next_cursor is None) == ([], False)
    assert len((await fires.list(NAMESPACE, disposition="fired", limit=50)).items) == 4


async def test_a_spread_fire_shows_its_due_time(jobs, world):
    await create(jobs, "spread", schedule={"every": "1h", "spread": "30m"})
    (first, *_) = (await Fires(world.env, world.store).list(NAMESPACE)).items

    assert first.due_at > first.at
    assert first.due_at == (await jobs.get(NAMESPACE, "spread")).next_fire_at


async def test_a_fire_skipped_by_a_clock_change_is_listed_but_never_the_next_fire(jobs, world):
    spring = parse_instant("2027-03-14T07:00:00Z")
    world.clock.advance(spring - 12 * HOUR - world.now())
    made = await create(
        jobs, "nightly", schedule={"cron": "30 2 * * *", "timezone": "America/New_York", "dstGap": "skip"}
    )
    view = await jobs.get(NAMESPACE, str(made.job_id))
    assert view.next_fire_at == "2027-03-15T06:30:00Z"
    (listed,) = (await jobs.list(NAMESPACE)).items
    assert listed.next_fire_at == "2027-03-15T06:30:00Z"
    world.clock.advance(13 * HOUR)
    await world.store.fire(100, lead)
    page = await Fires(world.env, world.store).list(
        NAMESPACE, since="2027-03-14T00:00:00Z", until="2027-03-16T00:00:00Z"
    )

    told = [(one.at, one.count, one.disposition) for one in page.items]
    assert told == [
        ("2027-03-14T06:59:59.999999Z", 1, "skipped-nonexistent"),
        ("2027-03-15T06:30:00Z", 1, "planned"),
    ]
    assert "2027-03-14 02:30 did not exist" in page.items[0].cause


async def test_days_and_hours_are_counted(jobs, world):
    await create(jobs, "often", schedule={"every": "1m", "overlap": "allow", "misfire": "skip", "grace": 0})
    for name in ("nightly", "alike"):
        await create(jobs, name, schedule={"cron": "30 1 * * *", "timezone": "Europe/Paris"})
    world.clock.advance(3 * MINUTE + SECOND)
    await world.store.fire(100, lead)
    world.clock.advance(MINUTE - SECOND)
    await world.store.fire(100, lead)
    counts = FireCounts(world.env, world.store, ended_counts)
    today = day_at("Europe/Paris", world.now())

    day = await counts.of(NAMESPACE, zone="Europe/Paris", since=str(today), until=str(today + timedelta(days=2)))
    assert (day.items[0].fired, day.items[0].missed) == (1, 1)  # one row covers the three missed fires
    assert [one.planned for one in day.items[1:]] == [1442, 1442]
    assert day.complete

    of_one = await counts.of(
        NAMESPACE, zone="Europe/Paris", since=str(today + timedelta(days=1)), by="hour", job="nightly"
    )
    assert [place for place, one in enumerate(of_one.items) if one.planned] == [1]
    assert len(of_one.items) == 24
    minutes = await counts.of(NAMESPACE, zone="Europe/Paris", since=str(today), by="minute")
    # Minutes without fires are left out.
    assert [(minute.fired, minute.missed) for minute in minutes.items[:2]] == [(0, 1), (1, 0)]
    tomorrow = str(today + timedelta(days=1))
    minutes = await counts.of(NAMESPACE, zone="Europe/Paris", since=tomorrow, by="minute")
    assert [place for place, one in enumerate(minutes.items) if one.planned == 3] == [90]
    assert sum(one.planned for one in minutes.items) == 1442


@pytest.mark.parametrize(
    ("by", "most", "remedy"),
    [
        ("day", 62, "Give a shorter window."),
        ("hour", 8, "Give a shorter window, or count by day."),
        ("minute", 1, "Give a shorter window, or count by day."),
    ],
)
async def test_a_window_that_is_too_long_is_refused_with_what_helps(world, by, most, remedy):
    with pytest.raises(BadInput, match=f"not a window of 1 to {most} days") as refused:
        await FireCounts(world.env, world.store).of(NAMESPACE, since="2026-01-01", until="2026-04-01", by=by)
    assert refused.value.remedy == remedy


async def test_a_ledger_that_is_too_long_is_counted_from_its_end(jobs, world, monkeypatch):
    monkeypatch.setattr(fire_counts, "MOST_FATES", 2)
    await create(jobs, "often", schedule={"every": "1m", "overlap": "allow"})
    for _ in range(3):
        world.clock.advance(MINUTE)
        await world.store.fire(100, lead)
    told = await FireCounts(world.env, world.store, ended_counts).of(NAMESPACE)
    assert sum(one.fired for one in told.items) == 2
    assert not told.complete
    assert "newest 2" in told.notes[0]
