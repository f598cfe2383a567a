"""Statistics over HTTP: the overview, jobs with their statistics, their days, and the grid of executions by steps."""

from typing import Any
from unittest.mock import AsyncMock

import msgspec
import pytest

from horae.engine.server_node import ServerNode
from horae.engine.topics import CancelledCount
from horae.env import SECOND, VirtualClock
from horae.errors import StoreUnavailable
from horae.features.statistics.part import StatisticsPart
from horae.model.base.instant import format_instant
from horae.model.executions.tally import HOUR, begin_of
from horae.model.fleet.protocol import PROTOCOL, Answer, Exchange, Failure, Outcome, Register
from tests.server.conftest import Api
from tests.server.test_jobs import create

JOB = "/api/v1/jobs/report"
DAY = 86_400 * SECOND


async def get(api: Api, path: str) -> Any:
    answer = await api.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def run(api: Api, node: ServerNode, clock: VirtualClock, seconds: int, outcome: Any = "success") -> str:
    """Run the job once: it waits in the queue for a second, and runs for the given time."""
    id = (await api.post(f"{JOB}/trigger")).json()["executionId"]
    await node.base.directory.step()
    session = (await node.gateway.register(1, Register(protocol=PROTOCOL, worker="w"))).session_id
    clock.advance(SECOND)
    granted = await node.gateway.exchange(1, session, Exchange(channel=0, n=1, free=1))
    (grant,) = msgspec.json.decode(granted, type=Answer).slices
    began = clock.now()
    clock.advance(seconds * SECOND)
    told = Outcome(
        parcel=grant.parcel, lo=grant.lo, hi=grant.hi, attempt=grant.attempt, outcome=outcome, started_at=[began],
        ended_at=[clock.now()], error=Failure(type="ValueError") if outcome == "failed" else None,
    )  # fmt: skip
    await node.gateway.exchange(1, session, Exchange(channel=0, n=2, outcomes=[told]))
    await node.gateway.close(1, session)
    await node.part(StatisticsPart).statistics.step()
    return str(id)


def day(clock: VirtualClock, ahead: int = 0) -> str:
    return format_instant(clock.now() + ahead * DAY)[:10]


async def test_the_overview_has_present_and_past_figures(api: Api, node: ServerNode, clock: VirtualClock):
    await create(api, schedule={"every": "10m"})
    await run(api, node, clock, 4)
    await run(api, node, clock, 4, "failed")
    await api.post(f"{JOB}/trigger")
    clock.advance(30 * SECOND)
    await node.work.gauges.step()
    await node.part(StatisticsPart).statistics.step()

    seen = await get(api, "/api/v1/overview")

    assert (seen["step"], len(seen["series"])) == (60, 61)
    assert seen["counts"] == {"running": 0, "queued": 1, "waiting": 0, "retrying": 0}
    assert seen["ended"] == {"success": 1, "failed": 1, "cancelled": 0, "skipped": 0, "retried": 0, "lost": 0}
    (happened,) = [point for point in seen["series"] if point["success"]]
    assert happened["waitP50"] == pytest.approx(1, rel=1 / 32)
    assert seen["series"][-1]["queued"] == 1
    (queue,) = seen["queues"]
    assert queue == {**queue, "queue": "default", "queued": 1, "running": 0, "oldestSeconds": 30.0, "held": False}
    assert seen["workers"] == {"active": 0, "draining": 0, "lost": 0, "slots": 0, "busy": 0}
    assert [len(seen["timeline"][part]) for part in ("past", "coming")] == [24, 24]
    assert sum(point["failed"] for point in seen["timeline"]["past"]) == 1
    assert [point["fires"] for point in seen["timeline"]["coming"][1:]] == [3] * 23
    month = await get(api, f"/api/v1/overview?from={format_instant(clock.now() - 31 * DAY)}")
    assert len(month["series"]) <= 120
    assert month["ended"] == seen["ended"]
    assert (await api.get("/api/v1/overview?from=2999-01-01T00:00:00Z")).status_code == 400


async def test_schedule_lag_is_in_the_overview(api: Api, node: ServerNode, clock: VirtualClock):
    await create(api, schedule={"every": "10m"})
    clock.advance(602 * SECOND)
    await node.firing.scheduler.step()
    await node.part(StatisticsPart).statistics.step()

    seen = await get(api, "/api/v1/overview")

    (late,) = [point for point in seen["series"] if point["lagMax"] is not None]
    assert late["lagMax"] == pytest.approx(late["lagP50"], rel=1 / 32)


async def test_jobs_are_listed_with_their_statistics(api: Api, node: ServerNode, clock: VirtualClock):
    await create(api)
    first = await run(api, node, clock, 2)
    last = await run(api, node, clock, 8, "failed")

    (job,) = (await get(api, "/api/v1/jobs?statistics=true"))["items"]

    seen = job["statistics"]
    assert (job["name"], seen["successRate"], seen["executions"]) == ("report", 0.5, 2)
    assert [seen["p50"], seen["p95"]] == pytest.approx([2, 8], rel=1 / 32)
    assert [(one["executionId"], one["status"], one["seconds"]) for one in seen["recent"]] == [
        (first, "success", 2.0),
        (last, "failed", 8.0),
    ]
    assert "statistics" not in (await get(api, "/api/v1/jobs"))["items"][0]


async def test_a_jobs_statistics_are_of_a_window(api: Api, node: ServerNode, clock: VirtualClock):
    await create(api)
    await run(api, node, clock, 100)
    clock.advance(3 * DAY)
    for seconds in (1, 2, 3, 4):
        await run(api, node, clock, seconds)

    since = format_instant(clock.now() - DAY)

    week, lately = await get(api, f"{JOB}/statistics"), await get(api, f"{JOB}/statistics?from={since}")

    assert (week["executions"], week["successRate"], week["retryRate"]) == (5, 1.0, 0.0)
    assert lately["executions"] == 4
    assert lately["from"] == lately["series"][0]["at"] <= since
    assert [lately[name] for name in ("p50", "p95", "p99", "mean")] == pytest.approx([2, 4, 4, 2.5], rel=1 / 32)
    assert sum(point["success"] for point in lately["series"]) == 4


async def test_the_answer_has_the_bounds_of_what_it_counted(api: Api, node: ServerNode, clock: VirtualClock):
    await create(api)
    await run(api, node, clock, 1)
    hour = begin_of(clock.now(), HOUR)
    clock.advance(10 * HOUR * SECOND)
    whole, asked_from, minute, asked_to, next_hour = (
        format_instant(hour + seconds * SECOND) for seconds in (0, 30, 1860, 1830, HOUR)
    )
    asked = f"from={asked_from}&to={asked_to}"

    overview, of_job = await get(api, f"/api/v1/overview?{asked}"), await get(api, f"{JOB}/statistics?{asked}")

    assert (overview["from"], overview["to"]) == (whole, minute)
    assert (of_job["from"], of_job["to"]) == (whole, next_hour)
    assert of_job["executions"] == sum(point["success"] for point in of_job["series"]) == 1


async def test_a_jobs_statistics_separate_waiting_from_running(api: Api, node: ServerNode, clock: VirtualClock):
    await create(api)
    for _ in range(3):
        await run(api, node, clock, 20)  # each after a second in the queue

    found = await get(api, f"{JOB}/statistics")

    (point,) = (point for point in found["series"] if point["success"])
    for told in (found, point):
        assert [told[name] for name in ("p50", "waitP50", "waitP95")] == pytest.approx([20, 1, 1], rel=1 / 32)


async def test_days_have_past_and_planned_fires(api: Api, node: ServerNode, clock: VirtualClock):
    await create(api, schedule="0 12 * * *")
    await run(api, node, clock, 1)
    today = await get(api, f"{JOB}/days?from={day(clock)}&to={day(clock, 2)}")
    far = await get(api, f"{JOB}/days?from={day(clock, -1)}&to={day(clock, 1)}&timezone=Pacific/Kiritimati")

    assert [(one["day"], one["success"], one["coming"]) for one in today["days"]] == [
        (day(clock), 1, 1), (day(clock, 1), 0, 1), (day(clock, 2), 0, 1),
    ]  # fmt: skip
    assert far["timezone"] == "Pacific/Kiritimati"
    assert sum(one["success"] for one in far["days"]) == 1


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=1970-01-01&to=1990-01-01", "to"),
        ("from=9999-12-31&to=9999-12-31", "from"),
        ("from=9998-12-31&to=9999-01-01", "to"),
        ("timezone=Nowhere", "timezone"),
    ],
)
async def test_days_that_cannot_be_counted_are_refused(api: Api, query: str, field: str):
    await create(api)
    for path in (f"{JOB}/days", "/api/v1/fires/counts"):
        answer = await api.get(f"{path}?{query}")
        assert (answer.status_code, answer.json().get("field")) == (400, field)


async def test_ended_executions_are_counted_while_the_store_cannot_be_written(
    api: Api, node: ServerNode, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
):
    await create(api)
    await run(api, node, clock, 1)
    monkeypatch.setattr(node.store, "write", AsyncMock(side_effect=StoreUnavailable("The disk is full.")))
    await api.post(f"{JOB}/trigger")
    node.part(StatisticsPart).statistics._cancelled(CancelledCount(node.env.new_id(), 1))
    assert (await get(api, "/api/v1/executions/counts"))["success"] == 1


async def test_the_grid_of_a_workflow_has_its_steps(api: Api, node: ServerNode, clock: VirtualClock):
    steps = [{"name": "extract", "command": "true"}, {"name": "load", "command": "true", "after": ["extract"]}]
    assert (await api.post("/api/v1/jobs", json={"name": "flow", "workflow": {"steps": steps}})).status_code == 201
    ids = []
    for _ in range(2):  # ids are ordered if their instants differ
        clock.advance(SECOND)
        ids.append((await api.post("/api/v1/jobs/flow/trigger")).json()["executionId"])
    await node.base.directory.step()
    await node.workflows.opener.step()

    page = await get(api, "/api/v1/jobs/flow/grid?limit=1")
    rest = await get(api, f"/api/v1/jobs/flow/grid?limit=1&cursor={page['nextCursor']}")

    assert page["steps"] == ["extract", "load"]
    assert [page["items"][0]["executionId"], rest["items"][0]["executionId"]] == ids[::-1]
    assert page["items"][0]["steps"] == {"extract": "running", "load": "pending"}


async def test_the_grid_is_ordered_by_data_intervals(api: Api, clock: VirtualClock):
    await create(api)
    for first in (3, 1, 2):
        interval = {"start": f"2026-11-0{first}T00:00:00Z", "end": f"2026-11-0{first + 1}T00:00:00Z"}
        answer = await api.post(f"{JOB}/trigger", json={"interval": interval})
        assert answer.status_code == 202, answer.text
        clock.advance(SECOND)
    page, by_data = await get(api, f"{JOB}/grid"), await get(api, f"{JOB}/grid?by=interval")

    assert [one["interval"]["start"][8:10] for one in page["items"]] == ["02", "01", "03"], "as they were made"
    assert [one["interval"]["start"][8:10] for one in by_data["items"]] == ["03", "02", "01"]
    assert by_data["items"][0]["interval"] == {"start": "2026-11-03T00:00:00Z", "end": "2026-11-04T00:00:00Z"}
    assert (await api.get(f"{JOB}/grid?by=day")).status_code == 400
    assert (await api.post(f"{JOB}/trigger")).status_code == 202
    assert (await get(api, f"{JOB}/grid?limit=1"))["items"][0]["interval"] is None


async def test_the_grid_of_a_plain_job_has_no_steps(api: Api, node: ServerNode, clock: VirtualClock):
    await create(api)
    id = await run(api, node, clock, 2)
    page = await get(api, f"{JOB}/grid")
    (item,) = page["items"]
    assert (page["steps"], item["executionId"], item["status"], item["seconds"]) == ([], id, "success", 2.0)
