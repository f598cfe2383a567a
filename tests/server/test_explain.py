"""The routes that explain why something does not run."""

from tests.server.conftest import Api

JOB = {"name": "job", "command": "true"}


async def test_an_execution_and_its_job_are_explained(api: Api):
    await api.post("/api/v1/jobs", json=JOB)
    id = (await api.post("/api/v1/jobs/job/trigger", json={"delay": "10m"})).json()["executionId"]

    found = await api.get(f"/api/v1/executions/{id}/explain")
    told = found.json()
    assert (found.status_code, told["status"], told["job"], told["queue"]) == (200, "waiting", "job", "default")
    assert [blocker["gate"] for blocker in told["blockers"]] == ["delay", "no-worker"]
    assert told["blockers"][0] == {
        "gate": "delay",
        "message": "It is due at 2027-01-15T08:10:00Z.",
        "opensWhen": "It becomes due.",
        "until": "2027-01-15T08:10:00Z",
        "details": {},
    }
    assert told["estimate"]["startsAt"] is None
    assert (told["estimate"]["reason"], told["estimate"]["gate"]) == ("There is no live worker.", "no-worker")

    job = (await api.get("/api/v1/jobs/job/explain")).json()
    assert [blocker["gate"] for blocker in job["blockers"]] == ["no-worker", "no-trigger"]
    assert job["executions"] == [told]


async def test_an_ended_execution_has_no_closed_gates(api: Api):
    await api.post("/api/v1/jobs", json=JOB)
    id = (await api.post("/api/v1/jobs/job/trigger")).json()["executionId"]
    await api.post(f"/api/v1/executions/{id}/cancel", json={"reason": "not needed"})
    told = (await api.get(f"/api/v1/executions/{id}/explain")).json()
    assert (told["blockers"], told["estimate"]) == ([], None)
    assert told["summary"] == "It has ended at 2027-01-15T08:00:00Z as cancelled: not needed."


async def test_missing_things_are_not_explained(api: Api):
    assert (await api.get("/api/v1/executions/0198c5a0-0000-7000-8000-000000000000/explain")).status_code == 404
    assert (await api.get("/api/v1/jobs/nothing/explain")).status_code == 404
