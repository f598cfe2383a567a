"""Dependencies over REST."""

from tests.server.conftest import Api

JOB = {"command": "true"}


async def test_a_triggered_job_names_its_dependencies_and_the_jobs_it_starts(api: Api):
    for name, upstream in (
        ("extract", []),
        ("report", ["extract"]),
        ("alarm", [{"job": "report", "condition": "failure"}]),
    ):
        made = await api.post("/api/v1/jobs", json={"name": name, "dependencies": upstream, **JOB})
        assert (made.status_code, made.json()["dependencies"]) == (201, upstream)

    plain = (await api.post("/api/v1/jobs/report/trigger")).json()
    assert (plain["status"], plain["fires"]) == ("queued", ["alarm"])
    assert plain["note"].startswith('It runs at once, whatever becomes of "extract".')

    body = {"waitForDependencies": True, "propagate": False}
    waiting = (await api.post("/api/v1/jobs/report/trigger", json=body)).json()
    assert (waiting["status"], waiting["fires"]) == ("waiting", [])
    assert waiting["note"] == 'It waits for "extract". Its end starts nothing: it is not reported to "alarm".'

    shown = (await api.get(f"/api/v1/executions/{waiting['executionId']}")).json()
    assert (shown["reason"], shown["interval"], shown["upstream"]) == ("dependency", None, [])
    assert shown["hint"].startswith('It waits for the success of "extract"')


async def test_an_interval_is_given_and_shown(api: Api):
    await api.post("/api/v1/jobs", json={"name": "extract", **JOB})
    interval = {"start": "2026-11-14T00:00:00Z", "end": "2026-11-15T00:00:00Z"}
    for route, body in (("/api/v1/jobs/extract/trigger", {}), ("/api/v1/executions", {"job": "extract"})):
        made = (await api.post(route, json={**body, "interval": interval})).json()
        assert (await api.get(f"/api/v1/executions/{made['executionId']}")).json()["interval"] == interval
    wrong = await api.post("/api/v1/jobs/extract/trigger", json={"interval": {"start": "today", "end": "tomorrow"}})
    assert (wrong.status_code, wrong.json()["field"]) == (400, "interval.start")


async def test_dependencies_of_a_job(api: Api):
    await api.post("/api/v1/jobs", json={"name": "extract", **JOB})
    body = {
        "name": "report",
        "dependencies": ["extract"],
        "dependencyTimeout": "6h",
        "onDependencyTimeout": "run",
        **JOB,
    }
    made = (await api.post("/api/v1/jobs", json=body)).json()
    assert (made["dependencyTimeout"], made["onDependencyTimeout"]) == ("6h", "run")
    await api.post("/api/v1/jobs/report/trigger", json={"waitForDependencies": True})

    told = (await api.get("/api/v1/jobs/report/dependencies")).json()
    (dependency,) = told["dependencies"]
    assert (dependency["job"], dependency["condition"], dependency["unusedExecutions"]) == ("extract", "success", 0)
    (join,) = told["joins"]
    assert (join["state"], join["interval"], join["upstream"][0]["state"]) == ("open", None, "pending")
    assert join["deadline"] is not None
    assert (await api.get("/api/v1/jobs/extract/dependencies")).json()["dependents"] == ["report"]
    assert (await api.get("/api/v1/jobs/nobody/dependencies")).status_code == 404
