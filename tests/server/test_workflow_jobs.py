"""Workflows over HTTP: created, listed with their own jobs, refused by step, and protected from losing their jobs."""

from tests.server.conftest import Api

ETL = {
    "name": "etl",
    "workflow": {
        "steps": [
            {"name": "extract", "command": "true"},
            {"name": "load", "job": "load", "after": ["extract"], "retries": 2},
        ]
    },
}


async def test_a_workflow_is_created_listed_and_owns_its_jobs(api: Api):
    missing = await api.post("/api/v1/jobs", json=ETL)
    assert (missing.status_code, missing.json()["step"]) == (400, "load")
    assert missing.json()["field"] == "workflow.steps[1].job"
    await api.post("/api/v1/jobs", json={"name": "load", "command": "true"})
    made = await api.post("/api/v1/jobs", json=ETL)
    assert (made.status_code, made.json()["workflow"]["steps"]) == (201, ETL["workflow"]["steps"])

    async def listed(query: str = "") -> list[str]:
        return [job["name"] for job in (await api.get(f"/api/v1/jobs{query}")).json()["items"]]

    assert await listed() == ["etl", "load"]
    assert await listed("?ownerWorkflow=etl") == ["etl/extract", "etl/load"]
    assert await listed("?owned=true&limit=3") == ["etl", "etl/extract", "etl/load"]
    page = (await api.get("/api/v1/jobs?owned=true&limit=3")).json()
    assert await listed(f"?owned=true&cursor={page['nextCursor']}") == ["load"]

    refused = await api.delete("/api/v1/jobs/load")
    assert (refused.status_code, refused.json()["workflows"]) == (409, ["etl"])
    assert (await api.delete("/api/v1/jobs/load?force=true")).status_code == 200
    assert (await api.patch("/api/v1/jobs/etl%2Fextract", json={"retries": 1})).status_code == 409
