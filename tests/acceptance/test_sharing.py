"""Deduplication and quotas, by the command line and REST alone: with `horae up`, and with two servers."""

from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import pytest

from tests.acceptance.test_failures import fleet, horae
from tests.waiting import eventually_sync

__all__ = ("fleet",)
pytestmark = pytest.mark.timeout(180)


def create(fleet, name, **more):
    fleet.post("/jobs", {"name": name, "command": "true", **more})


def at_once(fleet, bodies):
    """Return the answers to requests sent to all servers at the same time."""
    servers = cycle(fleet.urls)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(fleet.request, "POST", "/executions", body, server=next(servers)) for body in bodies]
    return [one.result() for one in asked]


def asked(job, count=8, **params):
    return [{"job": job, "params": params}] * count


def test_sharing(fleet):
    unique(fleet)
    debounce(fleet)
    batch(fleet)
    cache(fleet)
    max_queued(fleet)
    quotas(fleet)


def unique(fleet):
    """Check that submissions with one key share the first execution until it has ended."""
    create(fleet, "single", queue="nobody", unique={"key": "${params.table}"})
    answers = at_once(fleet, asked("single", table="a"))
    assert sorted(one.status_code for one in answers) == [200] * 7 + [201]
    (id,) = {one.json()["executionId"] for one in answers}
    assert fleet.request("POST", "/executions", {"job": "single"}).json()["field"] == "unique.key"
    fleet.post(f"/executions/{id}/cancel")
    assert fleet.submit("single", {"table": "a"}) != id


def debounce(fleet):
    """Check that a burst of submissions becomes one execution with the newest params."""
    create(fleet, "render", debounce={"key": "${params.page}", "wait": "500ms"})
    answers = at_once(fleet, asked("render", page=1, n=1))
    (id,) = {one.json()["executionId"] for one in answers}
    assert fleet.submit("render", {"page": 1, "n": 2}) == id
    assert fleet.until(id, "success")["params"] == {"page": 1, "n": 2}
    assert fleet.submit("render", {"page": 1, "n": 3}) != id


def batch(fleet):
    """Check that one execution receives all items of a batch, each once."""
    create(fleet, "index", batch={"size": 8, "wait": "1m"})
    answers = at_once(fleet, [{"job": "index", "params": {"n": n}} for n in range(8)])
    (id,) = {one.json()["executionId"] for one in answers}
    items = fleet.until(id, "success")["params"]["items"]
    places = [one.json()["index"] for one in answers]
    assert [items[place]["n"] for place in places] == list(range(8))


def cache(fleet):
    """Check that a cached success answers later submissions until it expires."""
    create(fleet, "total", cache={"ttl": "1h"})
    id = fleet.submit("total", {"a": 1, "b": 2})
    fleet.until(id, "success")
    again = fleet.request("POST", "/executions", {"job": "total", "params": {"b": 2, "a": 1}})
    assert (again.status_code, again.json()["executionId"], again.json()["cached"]) == (200, id, True)
    assert horae(fleet, "jobs", "forget-results", "total") == {"forgotten": 1}
    assert fleet.submit("total", {"a": 1, "b": 2}) != id


def max_queued(fleet):
    """Check that a queue takes no more than its limit, whichever server is asked."""
    create(fleet, "many", queue="small")
    horae(fleet, "queues", "set", "small", "--max-queued", "5")

    def full():
        answers = at_once(fleet, asked("many"))
        refused = [one for one in answers if one.status_code == 429]
        assert all(int(one.headers["retry-after"]) >= 1 for one in refused)
        return len(refused) == 8

    eventually_sync(full, within=20)
    assert fleet.get("/queues/small")["queued"] >= 5


def quotas(fleet):
    """Check that a namespace stays within its quota and can read its usage."""
    used = fleet.get("/namespaces/default/usage")
    made = used["days"][-1]["executions"]
    horae(fleet, "namespaces", "quota", "--executions-per-day", str(made))
    eventually_sync(
        lambda: all(
            fleet.request("POST", "/executions", {"job": "many"}, server=name).status_code == 429 for name in fleet.urls
        ),
        within=20,
    )
    create(fleet, "clock", queue="nobody", schedule={"every": "1s", "overlap": "allow"})  # usage is known 5 s later
    skipped = eventually_sync(lambda: fleet.get("/fires?job=clock&disposition=skipped-quota")["items"], within=20)
    assert "executionsPerDay" in skipped[0]["cause"]
    fleet.request("PUT", "/namespaces/default/quota", {})
    assert horae(fleet, "namespaces", "usage")["days"][-1]["refused"] >= 1
