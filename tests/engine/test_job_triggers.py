"""Several triggers of one job: an edit changes only the triggers that it names."""

from typing import Any
from uuid import UUID

import pytest

from horae.engine.definitions.jobs import Jobs
from horae.env import SECOND
from horae.errors import BadInput
from tests.engine.objects import jobs_of
from tests.store_contract.world import NAMESPACE, World, lead, rank, success

MINUTE = 60 * SECOND
OFTEN = {"name": "often", "every": "1m", "overlap": "allow"}
NIGHTLY = {"name": "nightly", "cron": "0 2 * * *"}
GIVEN = {"name": "x", "params": {"day": "today"}}


@pytest.fixture
def jobs(world: World) -> Jobs:
    return jobs_of(world.store, rank=rank, fire_due=lambda: world.store.fire(100, lead))


async def create(jobs: Jobs, **fields: Any) -> Any:
    return await jobs.create(NAMESPACE, {"name": "report", "command": "true", **fields})


async def timers(world: World) -> dict[str, tuple[Any, ...]]:
    """Return timers by name: id, state, number of fires, last execution, next fire."""
    rows = await world.rows(
        "SELECT g.name, g.id, g.state, t.fired, t.last_execution, t.next_fire_at FROM triggers g"
        " JOIN timers t ON t.trigger_id = g.id"
    )
    return {row[0]: tuple(row[1:]) for row in rows}


async def ledger(world: World, trigger: UUID) -> list[tuple[Any, ...]]:
    rows = await world.rows("SELECT disposition, cause FROM fires WHERE trigger_id = $1 ORDER BY last", trigger)
    return [tuple(row) for row in rows]


async def test_each_trigger_of_a_job_has_its_timer(jobs, world):
    made = await create(jobs, schedule="@daily", triggers=[OFTEN, NIGHTLY])

    assert made.triggers == [OFTEN, NIGHTLY]
    assert made.schedule_text == "at 00:00 every day, UTC time; every 1m; at 02:00 every day, UTC time"
    assert set(await timers(world)) == {"schedule", "often", "nightly"}


async def test_an_edit_keeps_unchanged_triggers(jobs, world):
    await create(jobs, triggers=[OFTEN, NIGHTLY])
    before = await timers(world)
    await jobs.edit(NAMESPACE, "report", {"triggers": [{"name": "nightly", "cron": "0 3 * * *"}, OFTEN, "@weekly"]})

    after = await timers(world)
    assert set(after) == {"often", "nightly", "cron"}
    assert after["often"] == before["often"]
    assert after["nightly"][0] != before["nightly"][0]
    await jobs.edit(NAMESPACE, "report", {"timeout": "5m"})
    assert await timers(world) == after


async def test_a_changed_trigger_keeps_its_count_and_its_last_execution(jobs, world):
    await create(jobs, triggers=[OFTEN | {"maxFires": 2}])
    world.clock.advance(MINUTE)
    await world.store.fire(100, lead)
    (id, _, fired, last, _) = (await timers(world))["often"]
    assert (fired, last is None) == (1, False)
    await jobs.edit(NAMESPACE, "report", {"triggers": [OFTEN | {"every": "2m", "maxFires": 2}]})

    changed = (await timers(world))["often"]
    assert changed[0] != id
    assert changed[2:4] == (1, last)
    world.clock.advance(2 * MINUTE)
    assert (await world.store.fire(100, lead)).timers == 1
    assert (await timers(world))["often"][2:] == (2, (await timers(world))["often"][3], None)


async def test_a_trigger_with_new_rules_continues_where_the_old_ones_ended(jobs, world):
    """An unchanged schedule loses no fire between two versions."""
    await create(jobs, triggers=[OFTEN])
    world.clock.advance(MINUTE)
    quiet = jobs_of(world.store, rank=rank)  # no server decides fires during the edit
    await quiet.edit(NAMESPACE, "report", {"triggers": [OFTEN | {"misfire": "skip"}]})

    done = await world.store.fire(100, lead)
    assert [len(parcel) for parcel in done.parcels] == [1]
    ended = await world.rows("SELECT valid_from, valid_to, state FROM triggers ORDER BY created_at, id")
    assert ended[0][1] == ended[1][0]


async def test_a_removed_trigger_ends_and_the_others_go_on(jobs, world):
    await create(jobs, triggers=[OFTEN, NIGHTLY])
    gone = (await timers(world))["often"][0]
    quiet = jobs_of(world.store, rank=rank)
    world.clock.advance(MINUTE)
    await quiet.edit(NAMESPACE, "report", {"triggers": [NIGHTLY]})

    assert set(await timers(world)) == {"nightly"}
    assert await ledger(world, gone) == [("skipped-misfire", "the trigger was removed before this was decided")]


async def test_a_trigger_may_begin_paused_and_a_definition_resumes_it(jobs, world):
    await create(jobs, triggers=[OFTEN | {"paused": True}, NIGHTLY])
    (id, state, *_, next_fire) = (await timers(world))["often"]
    assert (state, next_fire) == ("paused", None)
    world.clock.advance(10 * MINUTE)
    await jobs.edit(NAMESPACE, "report", {"triggers": [OFTEN, NIGHTLY]})

    after = (await timers(world))["often"]
    assert (after[0], after[1], after[4]) == (id, "active", world.now() + MINUTE)
    assert await ledger(world, id) == [("skipped-paused", "the trigger was paused")]


async def test_the_pauses_of_a_job_and_of_a_trigger_compose(jobs, world):
    await create(jobs, triggers=[OFTEN | {"paused": True}, NIGHTLY])
    await jobs.pause(NAMESPACE, "report")
    await jobs.resume(NAMESPACE, "report")
    assert [(one[1], one[4] is None) for one in (await timers(world)).values()].count(("paused", True)) == 1
    await jobs.pause(NAMESPACE, "report")
    await jobs.edit(NAMESPACE, "report", {"triggers": [OFTEN, NIGHTLY]})
    assert [one[4] for one in (await timers(world)).values()] == [None, None]
    world.clock.advance(MINUTE)
    await jobs.resume(NAMESPACE, "report")

    assert all(one[4] is not None for one in (await timers(world)).values())
    assert await ledger(world, (await timers(world))["often"][0]) == [("skipped-paused", "the job was paused")]


async def test_a_restored_job_has_its_triggers_as_they_were(jobs, world):
    await create(jobs, triggers=[OFTEN | {"maxFires": 1}, NIGHTLY | {"paused": True}])
    world.clock.advance(MINUTE)
    await world.store.fire(100, lead)
    await jobs.delete(NAMESPACE, "report")
    assert await timers(world) == {}
    await jobs.restore(NAMESPACE, "report")

    back = await timers(world)
    assert (back["often"][2], back["often"][4]) == (1, None)
    assert back["nightly"][1] == "paused"


async def test_triggers_of_one_job_do_not_hold_each_other_back(jobs, world):
    """Overlap is per trigger."""
    await create(jobs, triggers=[{"name": "a", "every": "1m"}, {"name": "b", "every": "1m"}])
    world.clock.advance(MINUTE)
    done = await world.store.fire(100, lead)
    assert sum(len(parcel) for parcel in done.parcels) == 2
    worker = await world.worker()
    (slice,) = await worker.claim(1)
    await worker.report(success(slice, 0))
    world.clock.advance(MINUTE)
    done = await world.store.fire(100, lead)

    assert sum(len(parcel) for parcel in done.parcels) == 1
    counts = await world.rows("SELECT disposition, count(*) FROM fires GROUP BY disposition ORDER BY disposition")
    assert [tuple(row) for row in counts] == [("fired", 3), ("skipped-overlap", 1)]


@pytest.mark.parametrize(
    ("trigger", "field", "detail"),
    [
        ({"name": "then", "at": "2026-03-01T08:00:00Z"}, "triggers[0].at", "has passed"),
        (GIVEN | {"every": "5m", "endAt": "2026-03-01T08:00:00Z"}, "triggers.x.endAt", "endAt has passed"),
        (
            GIVEN | {"cron": "0 0 1 1 *", "startAt": "2027-03-01T00:00:00Z", "endAt": "2027-04-01T00:00:00Z"},
            "triggers.x.endAt",
            "Nothing fires between",
        ),
        ({"name": "x", "every": "5m", "params": {"day": 5}}, "triggers.x.params.day", "string"),
        ({"name": "x", "every": "5m", "params": {"day": "${params.no}"}}, "triggers.x.params", "cannot be filled"),
        ({"name": "x", "every": "5m"}, "triggers.x.params", '"day" is a required property'),
    ],
)
async def test_triggers_that_never_fire_are_refused(jobs, world, trigger, field, detail):
    schema = {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]}
    with pytest.raises(BadInput) as refused:
        await create(jobs, schema=schema, triggers=[trigger])
    assert detail in refused.value.detail
    assert refused.value.fields["field"] == field
    await create(jobs, schema=schema, triggers=[])
    with pytest.raises(BadInput, match=detail):
        await jobs.edit(NAMESPACE, "report", {"triggers": [trigger]})


async def test_an_existing_instant_may_have_passed(jobs, world):
    """Only new instants must be in the future."""
    bounded = {"name": "x", "every": "5m", "endAt": "2027-03-01T08:00:00Z"}
    await create(jobs, triggers=[bounded])
    world.clock.advance(200 * 86_400 * SECOND)

    assert (await jobs.edit(NAMESPACE, "report", {"timeout": "5m"})).version == 2
    assert (await jobs.edit(NAMESPACE, "report", {"triggers": [bounded | {"misfire": "skip"}]})).version == 3
    with pytest.raises(BadInput, match="endAt has passed"):
        await jobs.edit(NAMESPACE, "report", {"triggers": [bounded | {"endAt": "2027-03-02T08:00:00Z"}]})
