"""The job routes: the requests of the design, edits with ETags, and refusals."""

import pytest

from horae.engine.server_node import ServerNode
from horae.model.definitions.job import JOB
from horae.server.routes.definitions.jobs import JobBody, JobPatch
from tests.server.conftest import Api

REPORT = {
    "name": "daily-report", "schedule": "0 0 * * *", "command": "python report.py", "dependencies": ["extract"],
    "retries": 3, "timeout": 3600,
}  # fmt: skip


async def create(api: Api, name: str = "report", **more: object) -> dict:
    answer = await api.post("/api/v1/jobs", json={"name": name, "command": "true", **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def test_the_designs_three_requests(api: Api):
    await create(api, "extract")

    created = await api.post("/api/v1/jobs", json=REPORT)
    job = created.json()
    assert (created.status_code, job["status"]) == (201, "scheduled")
    assert created.headers["location"] == f"/api/v1/jobs/{job['jobId']}"
    assert created.headers["etag"].startswith('W/"1.')

    read = await api.get(f"/api/v1/jobs/{job['jobId']}")
    assert {"jobId", "status", "startedAt", "progress", "nextFireAt", "lastExecution"} <= read.json().keys()

    triggered = await api.post(f"/api/v1/jobs/{job['jobId']}/trigger")
    assert (triggered.status_code, triggered.json()["status"]) == (202, "queued")
    assert triggered.headers["location"] == f"/api/v1/executions/{triggered.json()['executionId']}"


async def test_on_an_empty_store_the_missing_dependency_is_named(api: Api):
    answer = await api.post("/api/v1/jobs", json=REPORT)
    problem = answer.json()
    assert answer.status_code == 400
    assert "extract" in problem["detail"]
    assert problem["remedy"]


async def test_a_taken_name_is_409_with_the_existing_id(api: Api):
    job = await create(api)
    answer = await api.post("/api/v1/jobs", json={"name": "report", "command": "true"})
    assert (answer.status_code, answer.json()["jobId"]) == (409, job["jobId"])


async def test_a_dry_run_writes_nothing_and_refuses_in_the_same_words(api: Api):
    body = {"name": "report", "command": "true", "schedule": "0 9 * * MON"}
    told = await api.post("/api/v1/jobs?dryRun=true", json=body, headers={"Idempotency-Key": "k"})
    plan = told.json()
    assert (told.status_code, plan["dryRun"], plan["version"], plan["changes"]) == (200, True, 1, [])
    assert (plan["scheduleText"], plan["definition"]["schedule"]) == ("at 09:00 on Monday, UTC time", "0 9 * * MON")
    assert (await api.get("/api/v1/jobs")).json()["items"] == []

    job = (await api.post("/api/v1/jobs", json=body, headers={"Idempotency-Key": "k"})).json()
    taken = await api.post("/api/v1/jobs?dryRun=true", json=body)
    assert (taken.status_code, taken.json()["jobId"]) == (409, job["jobId"])
    patched = (await api.patch("/api/v1/jobs/report?dryRun=true", json={"retries": 2})).json()
    assert (patched["version"], [change["path"] for change in patched["changes"]]) == (2, ["retries"])
    put = f"/api/v1/jobs/{job['jobId']}?dryRun=true"
    assert (await api.put(put, json=body)).json()["version"] == 1
    assert (await api.put(put, json={**body, "retries": -1})).json()["field"] == "retries"
    assert (await api.put(put, json=body, headers={"If-Match": '"7"'})).status_code == 412
    await create(api, "other")
    assert (await api.put(put, json={**body, "name": "other"})).status_code == 409

    assert (await api.get("/api/v1/jobs/report")).json()["version"] == 1
    log = (await api.get("/api/v1/audit/log")).json()["items"]
    assert [row["action"] for row in log] == ["jobs.create", "jobs.create"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "a", "command": "true", "colour": "red"}, "colour"),
        ({"name": "a b", "command": "true"}, "name"),
        ({"name": "a"}, "command"),
        ({"name": "a", "command": "true", "retries": -1}, "retries"),
        ({"name": "a", "command": "true", "priority": 10}, "priority"),
        ({"name": "a", "command": "true", "timeout": "soon"}, "timeout"),
        ({"name": "a", "command": "true", "schedule": "every day"}, "schedule"),
    ],
)
async def test_a_bad_definition_is_400_with_its_field(body: dict, field: str, api: Api):
    answer = await api.post("/api/v1/jobs", json=body)
    assert answer.status_code == 400
    assert answer.json()["field"].startswith(field)
    assert (await api.get("/api/v1/jobs")).json()["items"] == []


async def test_an_edit_checks_the_version_it_was_based_on(api: Api):
    await create(api)

    edited = await api.patch("/api/v1/jobs/report", json={"timeout": "5m"}, headers={"if-match": '"1"'})
    stale = await api.patch("/api/v1/jobs/report", json={"timeout": "6m"}, headers={"if-match": '"1"'})
    bad = await api.patch("/api/v1/jobs/report", json={"timeout": "6m"}, headers={"if-match": "yesterday"})

    assert (edited.status_code, edited.headers["etag"].partition(".")[0], edited.json()["timeout"]) == (
        200,
        'W/"2',
        "5m",
    )
    assert (stale.status_code, stale.json()["type"]) == (412, "urn:horae:stale")
    assert (bad.status_code, bad.json()["field"]) == (400, "If-Match")


async def test_put_replaces_and_versions_can_be_rolled_back(api: Api):
    await create(api, timeout="5m")

    replaced = (await api.put("/api/v1/jobs/report", json={"name": "report", "command": "false"})).json()
    assert (replaced["version"], replaced["timeout"]) == (2, None)

    versions = (await api.get("/api/v1/jobs/report/versions")).json()["items"]
    assert [v["version"] for v in versions] == [2, 1]

    rolled = (await api.post("/api/v1/jobs/report/rollback", json={"version": 1})).json()
    assert (rolled["version"], rolled["timeout"]) == (3, "5m")


async def test_pause_resume_delete_restore(api: Api):
    job = await create(api)
    assert (await api.post("/api/v1/jobs/report/pause")).json()["state"] == "paused"
    assert (await api.post("/api/v1/jobs/report/resume")).json()["state"] == "active"
    assert (await api.delete("/api/v1/jobs/report?queued=finish")).json()["state"] == "deleted"
    assert (await api.get("/api/v1/jobs/report")).status_code == 404
    assert (await api.get(f"/api/v1/jobs/{job['jobId']}")).json()["state"] == "deleted"
    gone = await api.post("/api/v1/executions", json={"job": job["jobId"]})
    assert (gone.status_code, f"horae jobs restore {job['jobId']}" in gone.json()["remedy"]) == (404, True)
    other = await create(api)
    gone = await api.post("/api/v1/executions", json={"job": job["jobId"]})
    assert gone.json()["remedy"] == "Another job has its name now: name that one."
    await api.delete(f"/api/v1/jobs/{other['jobId']}")
    assert (await api.post(f"/api/v1/jobs/{job['jobId']}/restore")).json()["state"] == "active"


async def test_lists_are_paged_and_filtered(api: Api):
    for n in range(3):
        await create(api, f"job-{n}", tags={"n": str(n)})

    first = (await api.get("/api/v1/jobs?limit=2")).json()
    rest = (await api.get("/api/v1/jobs", params={"limit": 2, "cursor": first["nextCursor"]})).json()

    assert [j["name"] for j in first["items"] + rest["items"]] == ["job-0", "job-1", "job-2"]
    assert rest["nextCursor"] is None
    assert [j["name"] for j in (await api.get("/api/v1/jobs?tag=n=1")).json()["items"]] == ["job-1"]
    assert (await api.get("/api/v1/jobs?cursor=nonsense")).status_code == 400


async def test_another_namespaces_job_is_not_found(api: Api, connect, node: ServerNode):
    job = await create(api)
    stranger = connect(authorization=f"Bearer {(await node.tenancy.keys.create(2, 'stranger', 'admin')).text}")
    for ref in ("report", job["jobId"]):
        assert (await stranger.get(f"/api/v1/jobs/{ref}")).status_code == 404
        assert (await stranger.patch(f"/api/v1/jobs/{ref}", json={"timeout": "5m"})).status_code == 404
        assert (await stranger.post(f"/api/v1/jobs/{ref}/trigger")).status_code == 404
        assert (await stranger.delete(f"/api/v1/jobs/{ref}")).status_code == 404


async def test_a_repeated_creation_is_answered_alike(api: Api):
    body, once = {"name": "report", "command": "true"}, {"idempotency-key": "k"}
    first = await api.post("/api/v1/jobs", json=body, headers=once)
    second = await api.post("/api/v1/jobs", json=body, headers=once)
    assert (second.status_code, second.content) == (201, first.content)
    assert second.headers["location"] == first.headers["location"]


def test_the_document_has_every_field_of_a_definition():
    for body in (JobBody, JobPatch):
        assert set(body.__struct_encode_fields__) == set(JOB.names)
