"""Explain for jobs: every gate of jobs is named, and the remedy of its blocker opens it."""

from pathlib import Path

import pytest

from horae.engine.admission.holds import HoldRequest
from horae.env import SECOND
from horae.errors import NotFound
from horae.model.base.instant import format_instant
from horae.model.executions.explain_view import BlockerView
from horae.model.executions.gates import GATES
from tests.engine.explain_scenes import SCENES
from tests.engine.explain_stage import Stage
from tests.store_contract.world import NAMESPACE

HOUR = 3_600 * SECOND


@pytest.fixture(params=("memory", "postgres"))
def store_url(request: pytest.FixtureRequest) -> str:
    return "sqlite://" if request.param == "memory" else request.getfixturevalue("emptied_database")


async def explained(stage: Stage, ref: str = "job") -> dict[str, BlockerView]:
    found = await stage.node.work.explainer.job(NAMESPACE, ref)
    return {blocker.gate: blocker for blocker in found.blockers}


async def test_a_job_without_triggers_runs_only_when_asked_for(stage: Stage):
    await stage.job()
    blockers = await explained(stage)
    assert list(blockers) == ["no-worker", "no-trigger"]
    assert blockers["no-worker"].message == "There is no live worker."
    assert blockers["no-worker"].opens_when == "Start one with `horae worker`."
    await stage.worker()
    await stage.node.definitions.triggers.add(NAMESPACE, "job", {"name": "hourly", "every": "1h"})
    assert list(await explained(stage)) == ["not-due"]


async def test_a_schedule_reports_its_next_fire(stage: Stage):
    await stage.job(schedule={"every": "1h", "anchor": format_instant(stage.world.now())})
    await stage.worker()
    found = await stage.node.work.explainer.job(NAMESPACE, "job")
    (blocker,) = found.blockers
    assert blocker.gate == "not-due"
    assert blocker.until == found.next_fire_at == format_instant(stage.world.now() + HOUR)
    assert blocker.details == {"trigger": "schedule"}
    assert found.executions == []


async def test_pauses_holds_and_deletion(stage: Stage):
    await stage.job(schedule={"every": "1h"})
    await stage.worker()
    await stage.node.admission.holds.open(NAMESPACE, "default", HoldRequest(length="30m", reason="deploy"), "key:1")
    assert list(await explained(stage)) == ["held", "not-due"]
    await stage.node.admission.holds.release(NAMESPACE, "default", None, "key:1")

    await stage.node.definitions.jobs.pause(NAMESPACE, "job")
    assert list(await explained(stage)) == ["paused"]
    await stage.node.definitions.jobs.resume(NAMESPACE, "job")

    await stage.node.definitions.triggers.pause(NAMESPACE, "job", "schedule")
    blockers = await explained(stage)
    assert list(blockers) == ["trigger-paused"]
    assert blockers["trigger-paused"].opens_when == "Resume it with `horae triggers resume job schedule`."
    await stage.node.definitions.triggers.resume(NAMESPACE, "job", "schedule")

    deleted = await stage.node.definitions.jobs.delete(NAMESPACE, "job")
    with pytest.raises(NotFound):
        await explained(stage)
    assert next(iter(await explained(stage, str(deleted.job_id)))) == "deleted"


async def test_a_trigger_that_has_ended(stage: Stage):
    await stage.job(schedule={"at": format_instant(stage.world.now() + SECOND)})
    worker = await stage.worker()
    await stage.pass_time(2)
    (first,) = await stage.fire()
    assert await stage.starts(first)
    await worker.end()
    blockers = await explained(stage)
    assert list(blockers) == ["trigger-ended"]
    assert blockers["trigger-ended"].details == {"trigger": "schedule", "fired": 1}


async def test_a_closed_calendar_and_its_skipped_fire_are_reported(stage: Stage):
    opens = format_instant(stage.world.now() + 30 * 24 * HOUR)[:10]
    await stage.node.definitions.calendars.create(NAMESPACE, {"name": "fair", "dates": [opens]})
    await stage.job(schedule={"every": "1h", "calendar": "fair"})
    await stage.worker()
    blockers = await explained(stage)
    assert list(blockers) == ["calendar", "not-due"]
    assert blockers["calendar"].until == f"{opens}T00:00:00Z"
    assert blockers["calendar"].details == {"trigger": "schedule", "calendars": ["fair"]}
    await stage.pass_time(3_601)
    blockers = await explained(stage)
    assert blockers["last-decision"].details["disposition"] == "skipped-calendar"


async def test_events_and_upstream_jobs_are_waited_for(stage: Stage):
    await stage.job("extract")
    await stage.job(dependencies=["extract"])
    await stage.job("listener", triggers=[{"name": "files", "event": "file.new"}])
    await stage.worker()
    assert (await explained(stage))["upstream"].details["job"] == "extract"
    assert (await explained(stage, "listener"))["no-event"].details == {"trigger": "files"}


async def test_a_trigger_that_cannot_be_decided(stage: Stage):
    await stage.job(schedule={"every": "1h"})
    await stage.worker()
    await stage.world.do("UPDATE timers SET trouble = 'no such zone.'")
    blockers = await explained(stage)
    assert list(blockers) == ["trigger-failing"]
    assert blockers["trigger-failing"].message == 'The trigger "schedule" cannot be decided: no such zone.'


async def test_executions_of_a_job_are_explained_with_it(stage: Stage):
    await stage.job(needs=["gpu"])
    id = await stage.submit()
    found = await stage.node.work.explainer.job(NAMESPACE, "job")
    assert found.summary == "There is no live worker. There is 1 more reason."
    (one,) = found.executions
    assert (one.execution_id, [blocker.gate for blocker in one.blockers]) == (id, ["no-worker"])
    assert one.estimate is not None
    assert one.estimate.starts_at is None


def test_every_gate_of_jobs_has_a_test():
    text = Path(__file__).read_text()
    beside = SCENES.keys()  # tests/engine/test_explain.py tests these
    assert [g.name for g in GATES if "job" in g.about and f'"{g.name}"' not in text and g.name not in beside] == []
