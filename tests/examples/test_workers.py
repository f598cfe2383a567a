"""Requirements for workers in every language: the same tests for Python and JavaScript."""

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest

from tests.acceptance.fleet import Fleet
from tests.acceptance.test_fleet import apply_app, began
from tests.examples.fleet_js import JsFleet
from tests.examples.lossy import LossyProxy
from tests.waiting import eventually_sync

pytestmark = pytest.mark.timeout(120)
LANGUAGES = ["python", "javascript"]
LOSSES = 10


def fleet_of(request, folder) -> Fleet:
    store = f"sqlite:///{folder}/horae.db"
    if request.param == "python":
        return Fleet(folder, store)
    return JsFleet(folder, store, request.getfixturevalue("node"))


@pytest.fixture(scope="module", params=LANGUAGES)
def settled(request, tmp_path_factory) -> Iterator[Fleet]:
    """Start a server and a worker for all tests of a module."""
    fleet = fleet_of(request, tmp_path_factory.mktemp(request.param))
    fleet.add_server("a")
    apply_app(fleet)
    fleet.add_worker("w", concurrency=2)
    yield fleet
    print(fleet.logs())
    fleet.close()


@pytest.fixture(params=LANGUAGES)
def fleet(request, tmp_path) -> Iterator[Fleet]:
    """Start a server for one test, which starts the workers."""
    fleet = fleet_of(request, tmp_path)
    fleet.add_server("a")
    apply_app(fleet)
    yield fleet
    print(fleet.logs())
    fleet.close()


def test_executions_end_with_their_results(settled):
    items = [{"job": "add", "params": {"a": i, "b": i}} for i in range(50)]
    ids = [one["executionId"] for one in settled.post("/executions", {"items": items})["items"]]
    done = [settled.until(id, "success", "failed") for id in ids]
    assert [one["result"] for one in done] == [2 * i for i in range(50)]
    assert [one["attempt"] for one in done] == [1] * 50
    assert [
        one for one in done if datetime.fromisoformat(one["startedAt"]) > datetime.fromisoformat(one["completedAt"])
    ] == []


def test_a_failing_execution_is_retried_and_then_a_dead_letter(settled):
    id = settled.submit("fails", {"message": "a \U0001f600 and a \\ud800"})
    done = settled.until(id, "failed")
    assert (done["attempt"], done["retryCount"], done["reason"]) == (3, 2, "retries")
    assert done["errorMessage"] == "a \U0001f600 and a \\ud800"
    assert done["error"]["traceback"]
    attempts = settled.get(f"/executions/{id}/attempts")["items"]
    assert [one["outcome"] for one in attempts] == ["failed"] * 3


def test_a_running_execution_is_cancelled(settled, tmp_path):
    id = settled.submit("waits_for", {"path": str(tmp_path / "go")})
    eventually_sync(lambda: began(tmp_path, "go"))
    assert settled.post(f"/executions/{id}/cancel")["outcome"] == "requested"
    assert settled.until(id, "cancelled", "success")["status"] == "cancelled"


def test_an_execution_that_takes_too_long_is_stopped(settled, tmp_path):
    settled.post("/jobs", {"name": "hurried", "python": "waits_for", "timeout": "200ms"})
    done = settled.until(settled.submit("hurried", {"path": str(tmp_path / "go")}), "failed", "success")
    assert (done["status"], done["error"]["type"]) == ("failed", "RunTimeout")


def all_ended(fleet: Fleet, ids: list[str]) -> list[Any]:
    """Return the executions once all of them have succeeded."""
    found = [fleet.execution(id) for id in ids]
    return found if {one["status"] for one in found} == {"success"} else []


def test_full_slots_are_filled_again_at_once(settled, tmp_path):
    """With both slots in use, the next execution starts as soon as one has ended, not at the next heartbeat."""
    held = [settled.submit("waits_for", {"path": str(tmp_path / f"go-{i}")}) for i in range(2)]
    eventually_sync(lambda: all(began(tmp_path, f"go-{i}") for i in range(2)))
    queued = [settled.submit("add", {"a": i, "b": 1}) for i in range(10)]
    assert {settled.execution(id)["status"] for id in queued} <= {"queued", "running"}  # fetched ahead, not started
    for i in range(2):
        (tmp_path / f"go-{i}").touch()
    done = eventually_sync(lambda: all_ended(settled, queued), within=8)
    assert [one["result"] for one in done] == [i + 1 for i in range(10)]
    assert [settled.until(id, "success")["attempt"] for id in held] == [1, 1]


def test_sigterm_finishes_running_executions_and_claims_no_new_ones(fleet, tmp_path):
    leaving = fleet.add_worker("leaving", HORAE_DRAIN_GRACE="20s")
    running = fleet.submit("waits_for", {"path": str(tmp_path / "go")})
    eventually_sync(lambda: began(tmp_path, "go"))

    leaving.signal(signal.SIGTERM)
    eventually_sync(lambda: fleet.worker("leaving")["status"] == "draining")
    later = fleet.submit("add", {"a": 1, "b": 2})
    (tmp_path / "go").touch()

    assert leaving.wait(20) == 0
    done = fleet.execution(running)
    assert (done["status"], done["result"], done["attempt"]) == ("success", "seen", 1)
    assert fleet.execution(later)["status"] == "queued"
    fleet.add_worker("next")
    assert fleet.until(later, "success")["attempt"] == 1


def test_a_worker_leaves_when_it_is_drained(fleet):
    asked = fleet.add_worker("asked")
    fleet.post("/workers/asked/drain")
    assert asked.wait(20) == 0


@contextmanager
def lossy() -> Iterator[LossyProxy]:
    """Run the proxy on its own event loop, so that tests may block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    proxy = asyncio.run_coroutine_threadsafe(LossyProxy().__aenter__(), loop).result(10)
    try:
        yield proxy
    finally:
        asyncio.run_coroutine_threadsafe(proxy.__aexit__(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_lost_requests_and_answers_neither_lose_nor_repeat_executions(language, request, tmp_path):
    with lossy() as proxy:
        request.param = language
        fleet = fleet_of(request, tmp_path)
        try:
            url = f"http://127.0.0.1:{proxy.port}"
            fleet.add_server("a", HORAE_ADVERTISE=url)  # otherwise the worker would bypass the proxy
            proxy.target = int(fleet.urls["a"].rpartition(":")[2])
            apply_app(fleet)
            fleet.add_worker("w", servers=url)
            done = []
            while proxy.lost < LOSSES:  # counts lost answers and lost requests
                items = [{"job": "add", "params": {"a": len(done) + i, "b": 1}} for i in range(5)]
                ids = [one["executionId"] for one in fleet.post("/executions", {"items": items})["items"]]
                done += [fleet.until(id, "success", "failed") for id in ids]
        finally:
            print(fleet.logs())
            fleet.close()
    assert [(one["result"], one["attempt"]) for one in done] == [(i + 1, 1) for i in range(len(done))]
