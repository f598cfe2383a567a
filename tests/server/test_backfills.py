"""Backfills and the audit of fires over HTTP, on a node whose services run on request."""

import pytest

from horae.engine.server_node import ServerNode
from horae.env import SECOND, VirtualClock
from horae.errors import StoreUnavailable
from horae.features.backfills.engine import backfills
from horae.features.backfills.part import BackfillsPart
from horae.model.base.instant import format_instant
from tests.server.conftest import Api
from tests.store_contract.world import World, failed, success

MINUTE = 60 * SECOND
HOURLY = {"cron": "0 * * * *", "misfire": "skip", "overlap": "allow"}


@pytest.fixture
async def missed(api: Api, node: ServerNode, clock: VirtualClock) -> str:
    """Create a job that fires every hour and missed ten fires; return its id."""
    made = await api.post("/api/v1/jobs", json={"name": "report", "command": "true", "schedule": HOURLY})
    assert made.status_code == 201
    clock.advance(10 * 60 * MINUTE + 120 * SECOND)
    await node.firing.scheduler.step()
    job: str = made.json()["jobId"]
    return job


def hour(node: ServerNode, back: int) -> str:
    """Return the start of an hour, this many hours ago."""
    at = node.env.now() // (60 * MINUTE) * 60 * MINUTE - back * 60 * MINUTE
    return format_instant(at)


async def create(api: Api, node: ServerNode, **more: object):
    body = {"job": "report", "from": hour(node, 4), "to": hour(node, 1), **more}
    return await api.post("/api/v1/backfills", json=body)


async def run_all(node: ServerNode, outcome=success) -> None:
    """Step the backfiller and run its executions until none is left."""
    world = World(node.store.driver, node.env)
    worker = await world.worker()
    for _ in range(20):
        await node.part(BackfillsPart).backfiller.step()
        for slice in await worker.claim(100):
            await worker.report(outcome(slice))


async def test_a_dry_run_returns_the_number_and_the_fires(api: Api, node: ServerNode, missed: str):
    answer = await create(api, node, dryRun=True)

    assert answer.status_code == 200
    plan = answer.json()
    assert (plan["fires"], plan["toRun"], plan["alreadyRan"], plan["unknown"]) == (3, 3, 0, 0)
    assert (plan["firstFireAt"], plan["lastFireAt"]) == (hour(node, 4), hour(node, 2))
    assert (await api.get("/api/v1/backfills")).json()["items"] == []


async def test_a_backfill_runs_to_its_end(api: Api, node: ServerNode, missed: str):
    answer = await create(api, node, maxConcurrent=2, priority=1, params={"day": 1})
    made = answer.json()
    place = answer.headers["location"]

    assert answer.status_code == 201
    assert (made["state"], made["fires"], made["progress"], made["maxConcurrent"]) == ("running", 3, 0.0, 2)
    await node.part(BackfillsPart).backfiller.step()
    begun = (await api.get(place)).json()
    assert (begun["started"], begun["live"]) == (2, 2)
    await run_all(node)
    done = (await api.get(place)).json()
    assert (done["state"], done["succeeded"], done["progress"]) == ("done", 3, 100.0)
    assert done["completedAt"]
    runs = (await api.get(f"{place}/runs")).json()["items"]
    assert [run["fireAt"] for run in runs] == [hour(node, 4), hour(node, 3), hour(node, 2)]
    one = (await api.get(f"/api/v1/executions/{runs[0]['executionId']}")).json()
    assert (one["fireAt"], one["backfillId"]) == (hour(node, 4), made["backfillId"])
    assert one["interval"] == {"start": hour(node, 5), "end": hour(node, 4)}
    assert (one["origin"], one["priority"], one["params"], one["status"]) == ("backfill", 1, {"day": 1}, "success")


async def test_finished_fires_are_reported_and_repeated_only_by_force(api: Api, node: ServerNode, missed: str):
    await create(api, node)
    await run_all(node)
    again = (await create(api, node, dryRun=True)).json()
    forced = (await create(api, node, dryRun=True, force=True)).json()

    assert (again["toRun"], again["alreadyRan"]) == (0, 3)
    assert any("not run again" in note for note in again["notes"])
    assert (forced["toRun"], forced["alreadyRan"]) == (3, 3)


async def test_a_failed_execution_is_counted(api: Api, node: ServerNode, missed: str):
    place = (await create(api, node)).headers["location"]
    await run_all(node, failed)

    done = (await api.get(place)).json()
    assert (done["state"], done["succeeded"], done["failed"]) == ("done", 0, 3)


async def test_it_is_paused_resumed_and_cancelled(api: Api, node: ServerNode, missed: str):
    place = (await create(api, node, maxConcurrent=1)).headers["location"]
    await node.part(BackfillsPart).backfiller.step()

    assert (await api.post(f"{place}/pause")).json()["state"] == "paused"
    await run_all(node)
    paused = (await api.get(place)).json()
    assert (paused["state"], paused["succeeded"], paused["started"]) == ("paused", 1, 1)
    assert (await api.post(f"{place}/resume")).json()["state"] == "running"
    await node.part(BackfillsPart).backfiller.step()
    cancelled = await api.post(f"{place}/cancel", json={"executions": "cancel"})
    assert cancelled.json()["state"] == "cancelled"
    await node.part(BackfillsPart).backfiller.step()
    ended = (await api.get(place)).json()
    assert (ended["endedOtherwise"], ended["live"], ended["started"]) == (1, 0, 2)
    assert ended["completedAt"]
    refused = await api.post(f"{place}/resume")
    assert refused.status_code == 409


async def test_a_cancellation_that_does_not_reach_the_store_is_an_error(
    api: Api, node: ServerNode, missed: str, monkeypatch: pytest.MonkeyPatch
):
    place = (await create(api, node)).headers["location"]
    await node.part(BackfillsPart).backfiller.step()

    async def fails(*_: object) -> None:
        raise StoreUnavailable("gone", "later")

    with monkeypatch.context() as patch:
        patch.setattr(node.part(BackfillsPart).backfills, "_cancel", fails)
        assert (await api.post(f"{place}/cancel", json={"executions": "cancel"})).status_code == 503
    assert (await api.post(f"{place}/cancel", json={"executions": "cancel"})).status_code == 200
    await node.part(BackfillsPart).backfiller.step()
    assert (await api.get(place)).json()["endedOtherwise"] == 3


@pytest.mark.parametrize(("params", "status"), [({"day": 1}, 201), ({"day": "one"}, 400), ({"hour": 1}, 400)])
async def test_params_are_checked_over_those_of_the_triggers(
    api: Api, node: ServerNode, clock: VirtualClock, params, status
):
    schema = {"properties": {"day": {"type": "integer"}, "hour": False}, "required": ["at", "region"]}
    trigger = {**HOURLY, "params": {"at": "${fire.at}", "region": "${params.region}"}}
    job = {"name": "report", "command": "true", "schedule": trigger, "schema": schema, "params": {"region": "eu"}}
    assert (await api.post("/api/v1/jobs", json=job)).status_code == 201
    clock.advance(10 * 60 * MINUTE)

    answer = await create(api, node, params=params)

    assert answer.status_code == status, answer.text


async def test_a_key_that_cannot_be_computed_pauses_it(api: Api, node: ServerNode, missed: str):
    await api.patch("/api/v1/jobs/report", json={"unique": {"key": "${params.day}"}})
    place = (await create(api, node)).headers["location"]
    await node.part(BackfillsPart).backfiller.step()
    stuck = (await api.get(place)).json()
    assert (stuck["state"], stuck["started"]) == ("paused", 0)
    assert stuck["notes"][0].startswith("It cannot continue: ")
    assert "day" in stuck["notes"][0]

    await api.patch("/api/v1/jobs/report", json={"unique": None})
    await api.post(f"{place}/resume")
    await run_all(node)
    assert (await api.get(place)).json()["succeeded"] == 3


async def test_backfills_are_listed_by_pages(api: Api, node: ServerNode, missed: str):
    made = [(await create(api, node)).json()["backfillId"] for _ in range(3)]

    first = (await api.get("/api/v1/backfills", params={"limit": 2, "job": "report"})).json()
    second = (await api.get("/api/v1/backfills", params={"limit": 2, "cursor": first["nextCursor"]})).json()
    assert [one["backfillId"] for one in first["items"] + second["items"]] == sorted(made, reverse=True)
    assert second["nextCursor"] is None
    assert (await api.get("/api/v1/backfills", params={"state": "done"})).json()["items"] == []


async def test_before_the_creation_of_the_job_its_first_version_counts(api: Api, node: ServerNode, missed: str):
    plan = (await create(api, node, **{"from": hour(node, 30), "to": hour(node, 20), "dryRun": True})).json()

    assert (plan["fires"], plan["toRun"], plan["beforeTrigger"]) == (10, 10, 10)
    assert "before the trigger was made" in plan["notes"][0]


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"from": "2027-01-15T12:00:00Z", "to": "2027-01-15T11:00:00Z"}, 400, "not after"),
        ({"from": "2027-01-15T12:00:00Z", "to": "2099-01-01T00:00:00Z"}, 400, "is in the future"),
        ({"from": "yesterday"}, 400, "RFC 3339"),
        ({"maxConcurrent": 0}, 400, "maxConcurrent"),
        ({"priority": 10}, 400, "priority"),
        ({"trigger": "shedule"}, 404, "no trigger"),
        ({"job": "repord"}, 404, "No job"),
        ({"params": [1]}, 400, "params"),
    ],
)
async def test_invalid_values_are_refused(api: Api, node: ServerNode, missed: str, fields, status, said):
    answer = await create(api, node, **fields)

    assert answer.status_code == status
    assert said in answer.text


async def test_a_job_without_a_trigger_cannot_be_backfilled(api: Api, node: ServerNode, missed: str):
    await api.post("/api/v1/jobs", json={"name": "alone", "command": "true"})
    answer = await create(api, node, job="alone")

    assert answer.status_code == 400
    assert "no trigger to backfill" in answer.text


async def test_more_than_ten_million_fires_are_refused_at_once(
    api: Api, node: ServerNode, clock: VirtualClock, missed: str
):
    often = {"cron": "* * * * * *", "misfire": "skip"}
    await api.post("/api/v1/jobs", json={"name": "often", "command": "true", "schedule": often})
    answer = await create(api, node, job="often", **{"from": "1971-01-01T00:00:00Z"})

    assert answer.status_code == 400
    assert "at most 10,000,000" in answer.text


async def test_the_limit_counts_the_fires_that_would_run(api: Api, node: ServerNode, missed: str, monkeypatch):
    await create(api, node)
    await run_all(node)
    monkeypatch.setattr(backfills, "MOST_FIRES", 2)

    assert (await create(api, node)).status_code == 201
    assert "3 fires would run" in (await create(api, node, force=True)).text


async def test_an_audit_counts_the_fires_of_a_job(api: Api, node: ServerNode, missed: str):
    await create(api, node)
    await run_all(node)
    query = {"job": "report", "from": hour(node, 9), "to": hour(node, 0)}
    report = (await api.get("/api/v1/audit/fires", params=query)).json()

    assert (report["fires"], report["findings"], report["undecided"]) == (9, [], 0)
    assert report["dispositions"] == {"backfilled": 3, "skipped-misfire": 6}
    assert report["tzdata"]


async def test_an_audit_names_holes_and_duplicates(api: Api, node: ServerNode, missed: str):
    world = World(node.store.driver, node.env)
    await world.do("DELETE FROM fires")
    query = {"job": missed, "from": hour(node, 3), "to": hour(node, 0)}
    (hole,) = (await api.get("/api/v1/audit/fires", params=query)).json()["findings"]

    assert (hole["kind"], hole["trigger"], hole["fires"]) == ("uncovered", "schedule", 3)
    assert hole["instants"] == [hour(node, 3), hour(node, 2), hour(node, 1)]


async def test_an_audit_names_a_hundred_and_counts_the_rest(api: Api, node: ServerNode, clock: VirtualClock):
    often = {"every": "1s", "misfire": "skip"}
    await api.post("/api/v1/jobs", json={"name": "often", "command": "true", "schedule": often})
    start = format_instant(node.env.now())
    clock.advance(3600 * SECOND)
    await node.firing.scheduler.step()
    world = World(node.store.driver, node.env)
    await world.do("DELETE FROM fires")
    query = {"job": "often", "from": start, "to": format_instant(node.env.now() - 600 * SECOND)}
    report = (await api.get("/api/v1/audit/fires", params=query)).json()

    assert len(report["findings"][0]["instants"]) == 100
    assert report["unlistedFires"] + 100 == report["findings"][0]["fires"] == 2999


async def test_undecided_fires_are_no_holes(api: Api, node: ServerNode, clock: VirtualClock, missed: str):
    await api.post("/api/v1/jobs/report/pause")
    clock.advance(3 * 60 * MINUTE)
    query = {"job": "report", "from": hour(node, 2), "to": format_instant(node.env.now())}
    report = (await api.get("/api/v1/audit/fires", params=query)).json()

    assert (report["findings"], report["undecided"], report["fires"]) == ([], 3, 0)
    assert (await api.get("/api/v1/audit/fires", params={**query, "to": query["from"]})).status_code == 400


async def test_metrics_report_the_progress_of_backfills(api: Api, node: ServerNode, missed: str):
    made = await create(api, node, maxConcurrent=1)
    assert made.status_code == 201
    await node.part(BackfillsPart).backfiller.step()

    told = (await api.get("/metrics")).text

    assert 'horae_backfills{job_name="report",namespace="default",state="running"} 1.0' in told
    assert 'horae_backfill_fires{job_name="report",namespace="default",state="live"} 1.0' in told
    assert 'horae_backfill_fires{job_name="report",namespace="default",state="pending"} 2.0' in told
    assert "horae_backfill_executions_total 1.0" in told
    await run_all(node)
    assert "horae_backfills{" not in (await api.get("/metrics")).text
    assert "horae_backfill_executions_total 3.0" in (await api.get("/metrics")).text
