"""Several servers and workers: kill any of them at any time, and every execution still finishes."""

import signal
import sys

import psutil
import pytest

from tests.acceptance.fleet import APP, KEY
from tests.waiting import eventually_sync

pytestmark = pytest.mark.timeout(120)


def apply_app(fleet):
    from horae.cli.apps import load_app

    for function in load_app(APP).jobs.values():
        fleet.post("/jobs", function.definition())


def began(tmp_path, name):
    return list(tmp_path.glob(f"{name}.*.began"))


def test_a_workers_loaded_code_is_excluded_from_garbage_collection(fleet):
    """A full collection would halt the worker for 30 to 50 ms in its first burst of executions."""
    fleet.add_server("a")
    apply_app(fleet)
    fleet.add_worker("w")

    assert fleet.until(fleet.submit("frozen_objects"), "success")["result"] > 10_000


def test_work_continues_when_a_worker_is_killed(fleet, tmp_path):
    fleet.add_server("a")
    apply_app(fleet)
    first = fleet.add_worker("first")
    executions = [fleet.submit("waits_for", {"path": str(tmp_path / f"go-{i}")}) for i in range(3)]
    eventually_sync(lambda: all(began(tmp_path, f"go-{i}") for i in range(3)))

    first.kill()
    fleet.add_worker("second")
    for i in range(3):
        (tmp_path / f"go-{i}").touch()

    for id in executions:
        done = fleet.until(id, "success", "failed")
        assert (done["status"], done["result"], done["attempt"], done["retryCount"]) == ("success", "seen", 2, 0)
        assert done["workerId"] == "second"
    assert eventually_sync(lambda: fleet.worker("first")["status"]) == "lost"


def test_the_report_of_a_frozen_worker_is_refused(fleet, tmp_path):
    fleet.add_server("a")
    apply_app(fleet)
    frozen = fleet.add_worker("frozen")
    id = fleet.submit("waits_for", {"path": str(tmp_path / "go")})
    eventually_sync(lambda: began(tmp_path, "go"))

    frozen.signal(signal.SIGSTOP)
    fleet.add_worker("other")
    eventually_sync(lambda: len(began(tmp_path, "go")) == 2, within=20)
    (tmp_path / "go").touch()
    done = fleet.until(id, "success")
    frozen.signal(signal.SIGCONT)

    eventually_sync(lambda: "registered" in frozen.log.read_text().split("registered", 1)[1], within=20)
    assert (done["workerId"], done["attempt"]) == ("other", 2)
    assert fleet.execution(id)["completedAt"] == done["completedAt"]


def test_an_at_most_once_execution_ends_with_its_worker(fleet, tmp_path):
    fleet.add_server("a")
    apply_app(fleet)
    worker = fleet.add_worker("first")
    id = fleet.submit("waits_once", {"path": str(tmp_path / "go")})
    eventually_sync(lambda: began(tmp_path, "go"))

    worker.kill()
    fleet.add_worker("second")

    done = fleet.until(id, "failed")
    assert (done["reason"], done["error"]["type"], len(began(tmp_path, "go"))) == ("delivery", "WorkerLost", 1)
    assert [letter["execution"]["executionId"] for letter in fleet.get("/dlq")["items"]] == [id]


def test_a_drained_worker_hands_back_without_burning_an_attempt(fleet, tmp_path):
    fleet.add_server("a")
    apply_app(fleet)
    leaving = fleet.add_worker("leaving", concurrency=1)
    held = fleet.submit("waits_for", {"path": str(tmp_path / "go")})
    eventually_sync(lambda: began(tmp_path, "go"))

    leaving.signal(signal.SIGTERM)
    assert leaving.wait(20) == 0
    fleet.add_worker("staying")
    (tmp_path / "go").touch()

    done = fleet.until(held, "success")
    assert (done["workerId"], done["retryCount"]) == ("staying", 0)
    assert [a["outcome"] for a in fleet.get(f"/executions/{held}/attempts")["items"]].count("lost") == 0


def test_no_child_survives_a_killed_server_or_worker(fleet, tmp_path):
    fleet.add_server("a")
    child = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    script = f"import subprocess, sys, time; {child}; time.sleep(600)"
    fleet.post("/jobs", {"name": "family", "command": [sys.executable, "-c", script]})
    worker = fleet.add_worker("parent")
    id = fleet.submit("family")
    fleet.until(id, "running")
    family = eventually_sync(lambda: (found := worker.children()) and len(found) >= 3 and found)

    fleet.servers["a"].kill()
    worker.kill()

    eventually_sync(lambda: not [pid for pid in family if psutil.pid_exists(pid)], within=15)


def test_two_servers_share_the_work_and_either_may_be_killed(pg_fleet, tmp_path):
    fleet = pg_fleet
    fleet.add_server("a")
    fleet.add_server("b")
    apply_app(fleet)
    fleet.add_worker("w")

    ids = [fleet.submit("add", {"a": i, "b": i}) for i in range(20)]
    fleet.servers["a"].kill()
    del fleet.urls["a"]
    ids += [fleet.submit("add", {"a": i, "b": i}) for i in range(20, 40)]

    results = [fleet.until(id, "success")["result"] for id in ids]
    assert results == [2 * i for i in range(40)]


def test_a_worker_gets_a_submission_made_at_another_server(pg_fleet):
    fleet = pg_fleet
    fleet.add_server("a")
    fleet.add_server("b")
    apply_app(fleet)
    fleet.add_worker("w", servers=fleet.urls["b"])

    answer = fleet.post("/executions", {"job": "add", "params": {"a": 1, "b": 2}}, server="a")
    id = answer["items"][0]["executionId"] if "items" in answer else answer["executionId"]

    done = fleet.until(id, "success", within=5)
    assert done["result"] == 3


def test_work_survives_an_outage_of_the_store(own_postgres, tmp_path):
    from tests.acceptance.fleet import Fleet

    fleet = Fleet(tmp_path, own_postgres.create_database("horae"))
    try:
        url = fleet.add_server("a")
        apply_app(fleet)
        fleet.add_worker("w")
        held = fleet.submit("waits_for", {"path": str(tmp_path / "go")})
        eventually_sync(lambda: began(tmp_path, "go"))

        own_postgres.stop("immediate")
        eventually_sync(lambda: not fleet.is_ready(url))
        refused = fleet.request("POST", "/executions", {"job": "add", "params": {"a": 1, "b": 1}})
        (tmp_path / "go").touch()
        own_postgres.start()

        assert (refused.status_code, refused.headers["content-type"]) == (503, "application/problem+json")
        assert int(refused.headers["retry-after"]) >= 1
        eventually_sync(lambda: fleet.is_ready(url), within=5)
        done = fleet.until(held, "success", within=10)
        assert (done["attempt"], done["result"]) == (1, "seen")
    finally:
        print(fleet.logs())
        fleet.close()


def test_a_second_server_on_a_sqlite_file_is_told_the_owner(tmp_path):
    from tests.acceptance.fleet import Fleet

    fleet = Fleet(tmp_path, f"sqlite:///{tmp_path}/horae.db")
    try:
        fleet.add_server("a")
        fleet.add_server("b", ready=False)
        assert fleet.servers["b"].wait(20) != 0
        log = fleet.servers["b"].log.read_text()
        assert "horae server" in log
        assert "Traceback" not in log
    finally:
        fleet.close()


def test_requests_without_the_key_are_refused(fleet):
    url = fleet.add_server("a")
    import httpx2

    assert httpx2.get(f"{url}/api/v1/jobs").status_code == 401
    assert httpx2.get(f"{url}/healthz").status_code == 200
    assert KEY not in (fleet.folder / "a.log").read_text()
