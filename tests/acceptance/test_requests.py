"""The first requests of a new user, exactly as the design spells them, on both stores."""

import resource
import sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.acceptance.fleet import KEY, ROOT
from tests.waiting import eventually_sync

pytestmark = pytest.mark.timeout(120)

DAILY = {
    "name": "daily-report",
    "schedule": "0 0 * * *",
    "command": "python report.py",
    "dependencies": ["extract"],
    "retries": 3,
    "timeout": 3600,
}


def test_create_read_and_trigger_a_job(fleet, tmp_path):
    fleet.add_server("a")
    fleet.add_worker("w")

    missing = fleet.request("POST", "/jobs", DAILY)
    assert missing.status_code == 400
    assert missing.json()["missing"] == ["extract"]
    assert "horae jobs create extract" in missing.json()["remedy"]
    assert fleet.get("/jobs")["items"] == []

    script = (
        "import json, os, sys; from pathlib import Path\n"
        "out = open(os.environ['HORAE_OUTPUT'], 'a', buffering=1)\n"
        "print('hello', flush=True); print('{\"progress\": 50}', file=out)\n"
        f"import tests.waiting as w; w.eventually_sync(lambda: Path({str(tmp_path / 'go')!r}).exists(), within=60)\n"
        'print(\'{"result": {"rows": 3}}\', file=out)'
    )
    env = {"PYTHONPATH": str(ROOT)}
    fleet.post("/jobs", {"name": "extract", "command": [sys.executable, "-c", script], "env": env})
    created = fleet.request("POST", "/jobs", DAILY)
    assert (created.status_code, created.json()["status"]) == (201, "scheduled")
    assert created.json()["jobId"]
    assert created.json()["dependencies"] == ["extract"]

    triggered = fleet.request("POST", "/jobs/extract/trigger")
    assert (triggered.status_code, triggered.json()["status"]) == (202, "queued")
    id = triggered.json()["executionId"]
    assert triggered.headers["location"].endswith(id)

    running = eventually_sync(lambda: (job := fleet.get("/jobs/extract"))["progress"] == 50 and job)
    assert (running["status"], running["executionId"]) == ("running", id)
    assert running["startedAt"]
    eventually_sync(lambda: any(line["text"] == "hello" for line in fleet.get(f"/executions/{id}/logs")["items"]))

    (tmp_path / "go").touch()
    done = fleet.until(id, "success")
    assert (done["result"], done["exitCode"], done["attempt"]) == ({"rows": 3}, 0, 1)


def test_a_repeated_request_changes_nothing(fleet):
    fleet.add_server("a")
    fleet.post("/jobs", {"name": "say", "command": "echo hi"})

    first = fleet.post("/jobs/say/trigger", {"key": "today"})
    again = fleet.request("POST", "/jobs/say/trigger", {"key": "today"})
    assert (again.json()["executionId"], again.json()["deduplicated"]) == (first["executionId"], True)

    one = fleet.request("POST", "/executions", {"job": "say"}, **{"Idempotency-Key": "abc"})
    two = fleet.request("POST", "/executions", {"job": "say"}, **{"Idempotency-Key": "abc"})
    other = fleet.request("POST", "/executions", {"job": "say", "priority": 9}, **{"Idempotency-Key": "abc"})
    assert one.json()["items"] == two.json()["items"] if "items" in one.json() else one.json() == two.json()
    assert other.status_code == 422
    assert len(fleet.get("/executions")["items"]) == 2


def test_a_bulk_submission_reports_each_item_or_is_atomic(fleet):
    fleet.add_server("a")
    fleet.post("/jobs", {"name": "say", "command": "echo hi"})
    items = [{"job": "say"}, {"job": "sya"}, {"job": "say", "priority": 11}, {"job": "say", "params": {"n": 1}}]

    some = fleet.request("POST", "/executions", {"items": items}).json()
    none = fleet.request("POST", "/executions", {"items": items, "atomic": True})

    assert (some["accepted"], some["refused"]) == (2, 2)
    assert some["items"][1]["error"]["status"] == 404
    assert none.status_code == 400
    assert len(fleet.get("/executions")["items"]) == 2


def test_an_execution_of_an_unknown_function_stays_queued_with_a_reason(fleet):
    fleet.add_server("a")
    fleet.add_worker("w")
    fleet.post("/jobs", {"name": "unknown", "python": "nowhere"})

    id = fleet.submit("unknown")
    shown = fleet.execution(id)

    assert shown["status"] == "queued"
    assert "nowhere" in shown["hint"]


def test_a_failure_is_retried_and_then_a_dead_letter_that_can_be_retried(fleet):
    fleet.add_server("a")
    fleet.add_worker("w")
    fleet.post("/jobs", {"name": "fails", "python": "fails", "retries": 2, "retry": {"delay": "100ms"}})

    id = fleet.submit("fails", {"message": "broken"})
    failed = fleet.until(id, "failed")
    attempts = fleet.get(f"/executions/{id}/attempts")["items"]
    retried = fleet.post("/dlq/retry", {"ids": [id]})

    assert (failed["retryCount"], failed["attempt"], failed["errorMessage"]) == (2, 3, "broken")
    assert [attempt["error"]["type"] for attempt in attempts] == ["ValueError"] * 3
    assert "fails" in attempts[0]["error"]["traceback"]
    new = retried["executionIds"][0]
    assert fleet.execution(new)["retryOf"] == id
    fleet.until(new, "failed")


def test_a_job_is_paused_edited_deleted_and_restored(fleet):
    fleet.add_server("a")
    job = fleet.post("/jobs", {"name": "tick", "command": "true", "schedule": {"every": "1h"}})

    assert fleet.post("/jobs/tick/pause")["status"] == "paused"
    id = fleet.submit("tick")
    fleet.add_worker("w")
    eventually_sync(lambda: fleet.execution(id)["reason"] == "paused")
    assert fleet.post("/jobs/tick/resume")["status"] in ("queued", "running", "scheduled")
    assert fleet.until(id, "success")["exitCode"] == 0

    stale = fleet.request("PUT", "/jobs/tick", {"name": "tick", "command": "false"}, **{"If-Match": '"7"'})
    assert stale.status_code == 412
    edited = fleet.request("PATCH", "/jobs/tick", {"priority": 9})
    assert (edited.json()["version"], edited.json()["priority"]) == (2, 9)

    assert fleet.request("DELETE", "/jobs/tick").status_code in (200, 204)
    assert fleet.request("GET", "/jobs/tick").status_code == 404
    assert fleet.execution(id)["status"] == "success"
    assert fleet.post(f"/jobs/{job['jobId']}/restore")["state"] == "active"
    assert [v["version"] for v in fleet.get("/jobs/tick/versions")["items"]] == [2, 1]


def test_a_running_execution_submits_others(fleet):
    fleet.add_server("a")
    fleet.add_worker("w")
    for name in ("add", "parent"):
        fleet.post("/jobs", {"name": name, "python": name})

    id = fleet.submit("parent", {"n": 2})
    children = fleet.until(id, "success", "failed")["result"]

    assert [fleet.until(child, "success")["result"] for child in children] == [1, 2]
    assert {fleet.execution(child)["parent"] for child in children} == {id}


@pytest.mark.parametrize("path", ["/api/v1/jobs", "/api/v1/executions"])
def test_oversized_requests_are_refused_with_a_reason(fleet, path):
    url = urlsplit(fleet.add_server("a"))
    connection = HTTPConnection(url.hostname, url.port, timeout=30)

    connection.request("POST", path, b" " * (20 << 20), {"Authorization": f"Bearer {KEY}"})
    answer = connection.getresponse()

    assert answer.status == 413
    assert b"Send at most" in answer.read()
    connection.close()


def test_a_server_may_have_as_many_open_files_as_its_hard_limit_allows(fleet):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        fleet.add_server("a")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    limits = Path(f"/proc/{fleet.servers['a'].pid}/limits").read_text().splitlines()
    assert int(next(line for line in limits if line.startswith("Max open files")).split()[3]) > 256
