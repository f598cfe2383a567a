"""Placement, by the command line and REST alone: with `horae up`, and with two servers on PostgreSQL."""

import json
import os
import subprocess
import sys
from datetime import datetime

import pytest

from tests.acceptance.fleet import APP, FAST, KEY, Fleet, Process, free_port
from tests.waiting import eventually_sync

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(params=["up", "two servers"])
def fleet(request, tmp_path):
    """A server on SQLite with its worker, or two servers on PostgreSQL; and two workers of different size."""
    up = request.param == "up"
    fleet = Fleet(tmp_path, f"sqlite:///{tmp_path}/horae.db" if up else request.getfixturevalue("postgres_url"))
    try:
        if up:
            fleet.urls["up"] = f"http://127.0.0.1:{(port := free_port())}"
            args = ["up", "--data", str(tmp_path), "--port", str(port), "--concurrency", "1"]
            fleet.servers["up"] = Process(tmp_path, "up", args, {})
            eventually_sync(lambda: fleet.is_ready(fleet.urls["up"]), within=20)
        else:
            fleet.add_server("a")
            fleet.add_server("b")
        first, last = min(fleet.urls.values()), max(fleet.urls.values())
        worker(fleet, "big", first, "--label", "zone=eu", "--slots", "4", "--resource", "memory=4GiB")
        worker(fleet, "small", last, "--label", "zone=us", "--slots", "2")
        yield fleet
        print(fleet.logs())
    finally:
        fleet.close()


def worker(fleet, name, url, *options):
    args = ["worker", "--server", url, "--key", KEY, "--app", APP, "--name", name, "--label", "tests", *options]
    fleet.workers[name] = Process(fleet.folder, name, args, {})
    eventually_sync(lambda: fleet.worker(name)["status"] == "live", within=20)


def horae(fleet, *args):
    """Return the command line's output as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "horae.cli.main", *args, "-o", "json"],
        env=os.environ | FAST | {"HORAE_URL": next(iter(fleet.urls.values())), "HORAE_KEY": KEY},
        cwd=fleet.folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def job(fleet, name, function="waits_for", needs=(), **fields):
    return fleet.post("/jobs", {"name": name, "python": function, "needs": ["tests", *needs], **fields})


def begun(fleet, name, paths):
    """Submit an execution that waits for each of these files, and return where each one began."""
    ids = [fleet.submit(name, {"path": str(path)}) for path in paths]
    return [fleet.until(id, "running")["workerId"] for id in ids]


def gates(fleet, id):
    return [blocker["gate"] for blocker in fleet.get(f"/executions/{id}/explain")["blockers"]]


def test_placement(fleet, tmp_path):
    job(fleet, "anywhere")
    needs(fleet, tmp_path)
    costs(fleet, tmp_path)
    spreading(fleet, tmp_path)
    preferences(fleet, tmp_path)
    affinity(fleet, tmp_path)


def needs(fleet, tmp_path):
    """Check that labels decide, including built-in ones, and that a label without any worker causes a warning."""
    (tmp_path / "now").touch()
    job(fleet, "in-us", needs=["zone=us"])
    job(fleet, "pinned", needs=["worker=big"])
    for name, where in (("in-us", "small"), ("pinned", "big")):
        assert fleet.until(fleet.submit(name, {"path": str(tmp_path / "now")}), "success")["workerId"] == where
    made = job(fleet, "nowhere", needs=["gpu=h100"], slots=64)
    answer = fleet.post("/executions", {"job": "nowhere"})
    said = "No worker has ever had gpu=h100 and 64 slots: executions stay queued until one does."
    assert (made["notes"], answer["warning"]) == ([said], said)
    for many in ({"job": "nowhere", "items": [{}, {}]}, {"items": [{"job": "nowhere"}, {"job": "nowhere"}]}):
        assert fleet.post("/executions", many)["warnings"] == [f'Job "nowhere": {said}']
    assert gates(fleet, answer["executionId"]) == ["no-worker"]


def costs(fleet, tmp_path):
    """Check that work with slots and memory runs where it fits, and that smaller work overtakes it meanwhile."""
    costly = ("--need", "tests", "--slots", "3", "--resource", "memory=3GiB", "--prefer", "ssd,weight=2,patience=1h")
    horae(fleet, "jobs", "create", "heavy", "--python", "waits_for", *costly)
    go, late = tmp_path / "heavy", tmp_path / "late"
    assert begun(fleet, "heavy", [go]) == ["big"]
    second = fleet.submit("heavy", {"path": str(late)})
    assert "room" in gates(fleet, second)
    big = next(one for one in horae(fleet, "workers", "list")["items"] if one["workerId"] == "big")
    assert big["labels"] == {"zone": "eu", "tests": "", "worker": "big", "host": big["host"]}
    assert (big["used"], big["resources"]) == ({"slots": 3, "memory": 3 << 30}, {"memory": 4 << 30})
    assert fleet.until(fleet.submit("anywhere", {"path": str(tmp_path / "now")}), "success")
    go.touch()
    assert fleet.until(second, "running")["workerId"] == "big"
    late.touch()
    fleet.until(second, "success")


def spreading(fleet, tmp_path):
    """Check that work is spread evenly over two workers while both have room."""
    job(fleet, "even", spread=True)
    assert sorted(begun(fleet, "even", [tmp_path / "even"] * 4)) == ["big", "big", "small", "small"]
    (tmp_path / "even").touch()
    eventually_sync(lambda: fleet.get("/executions/counts")["running"] == 0)


def preferences(fleet, tmp_path):
    """Check that a busy preferred worker is waited for, but not forever."""
    job(fleet, "rather", prefers=[{"label": "zone=eu", "patience": "1500ms"}])
    go = tmp_path / "rather"
    assert begun(fleet, "rather", [go] * 4) == ["big"] * 4
    id = fleet.submit("rather", {"path": str(go)})
    assert "preferred" in gates(fleet, id)
    late = fleet.until(id, "running")
    queued, started = (datetime.fromisoformat(late[at]) for at in ("queuedAt", "startedAt"))
    assert late["workerId"] == "small"
    assert (started - queued).total_seconds() >= 1.4
    go.touch()
    fleet.until(id, "success")


def affinity(fleet, tmp_path):
    """Check that an execution with an affinity key runs where that key ran last."""
    job(fleet, "keyed", "add", affinity={"key": "${params.a}", "patience": "20s"})

    def where(key):
        return fleet.until(fleet.submit("keyed", {"a": key, "b": 1}), "success")["workerId"]

    assert begun(fleet, "pinned", [tmp_path / "full"] * 4) == ["big"] * 4
    assert where(7) == "small"
    (tmp_path / "full").touch()
    eventually_sync(lambda: fleet.worker("big")["running"] == 0)
    assert [where(7) for _ in range(3)] == ["small"] * 3
