"""Versions of jobs over HTTP: read, compared and restored."""

from tests.server.conftest import Api
from tests.server.test_jobs import create


async def test_versions_are_read_one_by_one_and_compared(api: Api):
    await create(api, timeout="5m", env={"REGION": "eu"})
    await api.patch("/api/v1/jobs/report", json={"retries": 2, "env": {"REGION": "us"}})

    first = (await api.get("/api/v1/jobs/report/versions/1")).json()
    diff = (await api.get("/api/v1/jobs/report/versions/1/diff/2")).json()
    missing = await api.get("/api/v1/jobs/report/versions/1/diff/7")

    assert (first["version"], first["current"], first["definition"]["timeout"]) == (1, False, "5m")
    assert {c["path"]: (c["kind"], c["before"], c["after"]) for c in diff["changes"]} == {
        "retries": ("changed", 0, 2),
        "env.REGION": ("changed", "eu", "us"),
    }
    assert (missing.status_code, missing.json()["remedy"]) == (404, "Its versions run from 1 to 2.")


async def test_a_rollback_checks_the_version_it_was_based_on(api: Api):
    await create(api, timeout="5m")
    await api.patch("/api/v1/jobs/report", json={"timeout": "6m"})

    stale = await api.post("/api/v1/jobs/report/rollback", json={"version": 1}, headers={"if-match": '"1"'})
    rolled = await api.post("/api/v1/jobs/report/rollback", json={"version": 1}, headers={"if-match": '"2"'})

    assert (stale.status_code, stale.json()["type"]) == (412, "urn:horae:stale")
    assert (rolled.status_code, rolled.headers["etag"].partition(".")[0], rolled.json()["timeout"]) == (
        200,
        'W/"3',
        "5m",
    )
    assert (await api.get("/api/v1/jobs/report/versions/1/diff/3")).json()["changes"] == []
