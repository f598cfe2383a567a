"""Reasons why an execution does not run, by the command line and HTTP, for `horae up` and for two servers on
PostgreSQL.
"""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.acceptance.fleet import KEY, Fleet, Process, free_port
from tests.waiting import eventually_sync

pytestmark = pytest.mark.timeout(120)


def begin(fleet: Fleet) -> None:
    """`horae up` on a file, or two servers and a worker on PostgreSQL."""
    if fleet.store.startswith("postgres"):
        fleet.add_server("a")
        fleet.add_server("b")
        fleet.add_worker("plain")
        return
    port = free_port()
    fleet.urls["up"] = f"http://127.0.0.1:{port}"
    args = ["up", "--store", fleet.store, "--data", str(fleet.folder), "--port", str(port)]
    fleet.servers["up"] = Process(fleet.folder, "up", args, {})
    eventually_sync(lambda: fleet.is_ready(fleet.urls["up"]) and fleet.get("/workers")["items"], within=20)


def explain(fleet: Fleet, what: str) -> Any:
    """Return the JSON output of `horae explain`."""
    url = next(iter(fleet.urls.values()))
    line = [sys.executable, "-m", "horae.cli.main", "explain", what, "-o", "json", "--server", url, "--api-key", KEY]
    return json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)


def gates(document: Any) -> list[str]:
    return [blocker["gate"] for blocker in document["blockers"]]


def test_each_reported_blocker_is_removed_and_the_execution_starts(fleet):
    """Remove one blocker after another: a required label, a paused job and a held queue."""
    begin(fleet)
    fleet.post("/jobs", {"name": "report", "command": "echo hi", "needs": ["gpu=a100"]})
    fleet.post("/queues/default/hold", {"for": "1h", "reason": "deploy"})
    fleet.post("/jobs/report/pause")
    id = fleet.submit("report")

    explained = explain(fleet, id)
    assert gates(explained) == ["paused", "held", "no-worker"]
    assert explained["blockers"][2]["details"]["lacking"] == ["gpu=a100"]
    assert explained["estimate"]["startsAt"] is None
    assert gates(explain(fleet, "report")) == ["paused", "held", "no-worker", "no-trigger"]

    fleet.post("/jobs/report/resume")
    eventually_sync(lambda: gates(fleet.get(f"/executions/{id}/explain")) == ["held", "no-worker"])
    fleet.request("DELETE", "/queues/default/hold")
    eventually_sync(lambda: gates(fleet.get(f"/executions/{id}/explain")) == ["no-worker"])
    fleet.add_worker("w", HORAE_LABELS="gpu=a100")

    fleet.until(id, "success")
    ended = fleet.get(f"/executions/{id}/explain")
    assert ended["blockers"] == []
    assert ended["summary"].endswith("as success.")


def test_a_circuit_opens_on_failures_is_shown_and_closes_after_a_probe(fleet, tmp_path):
    begin(fleet)
    script = f"import os, sys; sys.exit(0 if os.path.exists({str(tmp_path / 'up')!r}) else 1)"
    circuit = {"failures": "50%", "minimum": 3, "openFor": "2s"}
    fleet.post("/jobs", {"name": "pay", "command": [sys.executable, "-c", script], "circuit": circuit})
    for _ in range(3):
        fleet.until(fleet.submit("pay"), "failed")
    eventually_sync(lambda: [one["state"] for one in fleet.get("/circuits")["items"]] in (["open"], ["half-open"]))
    (tmp_path / "up").touch()

    waiting = fleet.submit("pay")
    fleet.until(waiting, "success")
    eventually_sync(lambda: fleet.get("/circuits")["items"] == [])
    states = [change["state"] for change in fleet.get("/jobs/pay/circuit")["changes"]]
    assert states[-1] == "open"
    assert states[:2] == ["closed", "half-open"]

    fleet.post("/jobs/pay/circuit/open", {"reason": "by hand"})
    held = fleet.submit("pay")
    eventually_sync(lambda: "circuit" in gates(fleet.get(f"/executions/{held}/explain")))
    assert "circuit" in gates(explain(fleet, "pay"))
    fleet.post("/jobs/pay/circuit/reset", {})
    fleet.until(held, "success")
