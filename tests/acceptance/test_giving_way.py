"""Preemption, spot workers, drains and autoscaling by the command line and REST, for `horae up` and for two servers."""

import json
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.acceptance.fleet import APP, KEY, Fleet, Process
from tests.acceptance.test_explain import begin
from tests.waiting import eventually_sync

pytestmark = pytest.mark.timeout(120)


def horae(fleet: Fleet, *arguments: str) -> Any:
    """Return the JSON output of a command."""
    url = next(iter(fleet.urls.values()))
    line = [sys.executable, "-m", "horae.cli.main", *arguments, "-o", "json", "--server", url, "--api-key", KEY]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def define(fleet: Fleet, name: str, **fields: Any) -> None:
    fleet.post("/jobs", {"name": name, "queue": "narrow", **fields})


def attempts(fleet: Fleet, id: str) -> list[str]:
    return [attempt["outcome"] for attempt in fleet.get(f"/executions/{id}/attempts")["items"]]


def test_urgent_work_preempts_work_that_later_continues_from_its_step(fleet, tmp_path):
    begin(fleet)
    fleet.add_worker("only", concurrency=1, HORAE_QUEUES="narrow")
    define(fleet, "low", python="stepwise", priority=1, preemptible=True, retries=0)
    define(fleet, "high", python="add", priority=9, preempts=True)
    low = fleet.submit("low", {"path": str(tmp_path / "go")})
    eventually_sync(lambda: list(tmp_path.glob("go.*.began")))

    high = fleet.submit("high", {"a": 1, "b": 2})
    assert fleet.until(high, "success")["result"] == 3
    (tmp_path / "go").touch()

    done = fleet.until(low, "success")
    assert done["result"] == ["go.first", "go.second"]
    assert (done["retryCount"], attempts(fleet, low)) == (0, ["preempted", "success"])
    assert (tmp_path / "go.first").read_text() == "x"  # finished steps are not repeated

    again = fleet.submit("low", {"path": str(tmp_path / "again")})
    eventually_sync(lambda: list(tmp_path.glob("again.*.began")))
    define(fleet, "plain", python="add", priority=9)
    waits = fleet.submit("plain", {"a": 2, "b": 2})
    assert horae(fleet, "queues", "set", "narrow", "--preempts")["preempts"]
    assert fleet.until(waits, "success")["result"] == 4
    (tmp_path / "again").touch()
    assert fleet.until(again, "success")["retryCount"] == 0


def test_a_worker_under_notice_hands_back_and_uninterruptible_work_avoids_spot_machines(fleet, tmp_path):
    begin(fleet)
    notice = tmp_path / "notice"
    spot = fleet.add_worker(
        "spot", concurrency=2, HORAE_QUEUES="narrow", HORAE_SPOT="true", HORAE_NOTICE_FILE=str(notice)
    )
    define(fleet, "moves", python="waits_for", preemptible=True)
    define(fleet, "stays", python="add", interruptible=False)
    held = fleet.submit("moves", {"path": str(tmp_path / "go")})
    eventually_sync(lambda: list(tmp_path.glob("go.*.began")))
    off = fleet.submit("stays", {"a": 1, "b": 1})
    assert "spot" in eventually_sync(lambda: fleet.execution(off)["hint"])

    notice.touch()
    assert spot.wait(20) == 0
    assert fleet.execution(held)["status"] == "queued"
    steady = fleet.add_worker("steady", HORAE_QUEUES="narrow")
    assert fleet.until(off, "success")["workerId"] == "steady"
    (tmp_path / "go").touch()
    done = fleet.until(held, "success")
    assert (done["workerId"], done["retryCount"], "lost" in attempts(fleet, held)) == ("steady", 0, False)

    assert horae(fleet, "workers", "drain", "steady")["workerId"] == "steady"
    assert steady.wait(20) == 0


def test_workers_are_started_and_drained_with_demand(fleet, tmp_path):
    begin(fleet)
    define(fleet, "slow", python="waits_for")
    go = str(tmp_path / "go")
    ids = [fleet.submit("slow", {"path": go}) for _ in range(4)]
    route = "/autoscale/queues/narrow"
    signals = fleet.get(f"{route}?targetWait=1s&slots=2")
    assert (signals["backlog"], signals["workers"], signals["desiredWorkers"]) == (4, 0, 2)
    said = horae(fleet, "workers", "autoscale", "--queue", "narrow", "--slots", "2", "--dry-run", "--once")
    assert (said["current"], said["next"], said["dryRun"]) == (0, 2, True)

    url = next(iter(fleet.urls.values()))
    worker = [sys.executable, "-m", "horae.cli.main", "worker", "--queue", "narrow", "--concurrency", "2", "--app", APP]
    options = ["--queue", "narrow", "--max", "3", "--slots", "2", "--every", "200ms", "--cooldown", "400ms"]
    line = ["workers", "autoscale", *options, "--server", url, "--api-key", KEY, "--", *worker]
    scaler = Process(fleet.folder, "autoscale", line, {"HORAE_URL": url, "HORAE_KEY": KEY, "HORAE_DRAIN_GRACE": "1s"})
    fleet.workers["autoscale"] = scaler
    for id in ids:
        fleet.until(id, "running")
    assert len(scaler.children()) >= 2
    assert eventually_sync(lambda: fleet.get(route)["workers"] == 2)

    (tmp_path / "go").touch()
    for id in ids:
        assert fleet.until(id, "success")["retryCount"] == 0
    eventually_sync(lambda: fleet.get(route)["workers"] == 0, within=60)
    scaler.signal(signal.SIGTERM)
    assert scaler.wait(20) == 0
