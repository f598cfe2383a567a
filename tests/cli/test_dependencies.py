"""Dependencies in `horae jobs`."""

from tests.cli.fake_api import FakeApi, run

JOB = {"jobId": "0190-1", "name": "report", "version": 1, "state": "active", "status": "idle"}
TOLD = {
    "jobId": "0190-1",
    "dependencies": [
        {"jobId": "0190-2", "job": "extract", "state": "active", "condition": "success", "unusedExecutions": 2}
    ],
    "dependents": ["alarm"],
    "joins": [
        {
            "interval": {"start": "2026-11-14T00:00:00Z", "end": "2026-11-15T00:00:00Z"},
            "state": "open",
            "executionId": None,
            "upstream": [{"job": "extract", "condition": "success", "state": "pending"}],
        }
    ],
    "notes": ['"load" is deleted.'],
}


def test_conditions_and_timeouts_are_options():
    api = FakeApi({"POST /jobs": JOB})
    run(
        api, "jobs", "create", "report", "--command", "true", "--depends-on", "extract", "--depends-on",
        "load:finished", "--dependency-timeout", "6h", "--on-dependency-timeout", "skip",
    )  # fmt: skip
    body = api.requests[0].body
    assert body["dependencies"] == ["extract", {"job": "load", "condition": "finished"}]
    assert (body["dependencyTimeout"], body["onDependencyTimeout"]) == ("6h", "skip")


def test_a_trigger_may_wait_for_dependencies_not_propagate_and_name_an_interval():
    answer = {"executionId": "e1", "status": "waiting", "deduplicated": False, "note": 'It waits for "extract".'}
    api = FakeApi({"POST /jobs/report/trigger": answer, "GET /executions/e1": answer})
    result = run(
        api, "jobs", "trigger", "report", "--wait-for-dependencies", "--no-propagate", "--interval",
        "2026-11-14T00:00:00Z/2026-11-15T00:00:00Z",
    )  # fmt: skip
    assert api.requests[0].body == {
        "interval": {"start": "2026-11-14T00:00:00Z", "end": "2026-11-15T00:00:00Z"},
        "propagate": False,
        "waitForDependencies": True,
    }
    assert result.stdout.startswith('Execution e1 is waiting. It waits for "extract".\n')
    assert "has no end" in run(api, "jobs", "trigger", "report", "--interval", "2026").stderr


def test_dependencies_are_shown():
    api = FakeApi({"GET /jobs/report/dependencies": TOLD})
    text = run(api, "jobs", "dependencies", "report").stdout
    for word in ("extract", "success", "2026-11-14T00:00:00Z", "extract pending", "alarm", '"load" is deleted.'):
        assert word in text
