"""Queues with one policy each, managed by the command line, for `horae up` and for two servers on PostgreSQL."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.acceptance.fleet import KEY, Fleet
from tests.acceptance.test_explain import begin
from tests.waiting import eventually_sync

pytestmark = pytest.mark.timeout(120)


def queues(fleet: Fleet, *arguments: str) -> Any:
    """Return the JSON output of `horae queues`."""
    url = next(iter(fleet.urls.values()))
    line = [sys.executable, "-m", "horae.cli.main", "queues", *arguments]
    done = subprocess.run([*line, "-o", "json", "--server", url, "--api-key", KEY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def submit(fleet: Fleet, *items: dict[str, Any], job: str = "work", **how: Any) -> list[str]:
    answer = fleet.post("/executions", {"job": job, "items": list(items), **how})
    return [item["executionId"] for item in answer["items"]]


def in_order(fleet: Fleet, ids: list[str]) -> list[str]:
    """Return the executions in the order of their starts, once all have ended."""
    for id in ids:
        fleet.until(id, "success")
    return sorted(ids, key=lambda id: str(fleet.get(f"/executions/{id}")["startedAt"]))


def test_policies_are_changed_live_and_queues_are_paused_drained_and_purged(fleet):
    begin(fleet)
    fleet.post("/jobs", {"name": "work", "command": "true"})
    fleet.post("/jobs", {"name": "unhurried", "command": "sleep 0.2"})  # too long to be fetched ahead of free slots

    shown = queues(fleet, "set", "default", "--policy", "fair", "--by", "${params.tenant}", "--weight", "acme=2")
    assert shown["policy"]["weights"] == {"acme": 2}
    assert queues(fleet, "pause", "default", "--reason", "a test")["state"] == "paused"
    heavy = submit(fleet, *[{"tenant": "heavy"}] * 60)
    light = submit(fleet, {"tenant": "light"})
    assert queues(fleet, "resume", "default")["state"] == "active"
    assert in_order(fleet, heavy + light).index(light[0]) < 40  # in submission order it would be the last

    queues(fleet, "pause", "default")
    least = submit(fleet, *[{"tenant": "a"}] * 40, job="unhurried", priority=0)
    most = submit(fleet, {"tenant": "a"}, job="unhurried", priority=9)
    queues(fleet, "set", "default", "--policy", "priority", "--strict")
    eventually_sync(lambda: queues(fleet, "show", "default")["lanes"][0]["share"] == "")
    queues(fleet, "resume", "default")
    assert in_order(fleet, least + most).index(most[0]) < 10  # among the first on the worker's ten slots

    queues(fleet, "pause", "default")
    gone = submit(fleet, *[{}] * 5)
    assert queues(fleet, "purge", "default", "--yes") == {"cancelled": 5}
    fleet.until(gone[0], "cancelled")
    queues(fleet, "resume", "default")
    assert queues(fleet, "drain", "default", "--wait")["state"] == "draining"
    eventually_sync(lambda: refused(fleet))
    assert queues(fleet, "resume", "default")["state"] == "active"
    fleet.until(submit(fleet, {})[0], "success")

    assert queues(fleet, "default", "mail")["default"]
    made = fleet.post("/jobs", {"name": "letter", "command": "true"})
    assert fleet.get(f"/jobs/{made['jobId']}")["queue"] == "mail"


def refused(fleet: Fleet) -> bool:
    return fleet.request("POST", "/executions", {"job": "work", "params": {}}).status_code == 409
