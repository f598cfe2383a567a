"""Limits as an outside observer sees them, by the command line and REST alone: with `horae up`, and with two
servers.
"""

from collections import Counter
from itertools import cycle

import pytest

from tests.acceptance.test_failures import fleet, horae
from tests.waiting import eventually_sync

__all__ = ("fleet",)
pytestmark = pytest.mark.timeout(180)
WORK = 'echo "+ $1" >> "$2"; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo "- $1" >> "$2"'


class Observer:
    """A job whose commands log their starts and ends."""

    def __init__(self, fleet, path, name, **said):
        self.fleet, self.path, self.name = fleet, path / f"{name}.log", name
        self.path.touch()
        command = ["sh", "-c", WORK, "sh", "${params.key}", str(self.path)]
        fleet.post("/jobs", {"name": name, "command": command, **said})

    def submit(self, *keys, servers=None):
        """Submit executions one after another, at one or several servers, and wait for all of them."""
        turns = cycle(servers or self.fleet.urls)
        for key in keys:
            body = {"job": self.name, "params": {"key": key}}
            self.fleet.post("/executions", body, server=next(turns))
        eventually_sync(lambda: len(self.lines("-")) == len(keys), within=60)
        return self

    def lines(self, sign):
        return [line[2:] for line in self.path.read_text().splitlines() if line.startswith(sign)]

    def most(self):
        """Return the maximum number of executions running at once, per key and in total."""
        now, most, total = Counter(), Counter(), 0
        for line in self.path.read_text().splitlines():
            now[line[2:]] += 1 if line.startswith("+") else -1
            most[line[2:]] = max(most[line[2:]], now[line[2:]])
            total = max(total, now.total())
        return {**most, "all": total}


def test_limits(fleet, tmp_path):
    by_key(fleet, tmp_path)
    limit_of_job(fleet, tmp_path)
    sequence(fleet, tmp_path)
    limit_of_queue(fleet, tmp_path)
    limit_of_namespace(fleet, tmp_path)
    rate(fleet, tmp_path)
    changed_live(fleet)
    refused(fleet)


def by_key(fleet, path):
    """Check that no key exceeds its limit, and that keys do not block each other."""
    seen = Observer(fleet, path, "keyed", limits=[{"key": "${params.key}", "concurrency": 2}])
    most = seen.submit(*"aaaaabaaaabab").most()
    assert most["a"] <= 2
    assert most["b"] <= 2


def limit_of_job(fleet, path):
    assert Observer(fleet, path, "narrow", concurrency=1).submit(*"abcdef").most()["all"] == 1


def sequence(fleet, path):
    """Check that executions run one at a time, in the order of submission, whichever server received them."""
    seen = Observer(fleet, path, "ordered", sequence="all")
    keys = [str(i) for i in range(8)]
    assert seen.submit(*keys).lines("+") == keys
    assert seen.most()["all"] == 1


def limit_of_queue(fleet, path):
    """Check that a queue runs one execution at a time, or in the order in which one server receives them."""
    assert horae(fleet, "queues", "set", "default", "--concurrency", "1")["concurrency"] == 1
    assert Observer(fleet, path, "shared").submit(*"abcdef").most()["all"] == 1
    horae(fleet, "queues", "set", "default", "--concurrency", "none", "--sequence")
    seen = Observer(fleet, path, "in-order")
    assert seen.submit(*"123456", servers=[next(iter(fleet.urls))]).lines("+") == list("123456")
    assert not fleet.request("PATCH", "/queues/default", {"sequence": None}).json().get("sequence")


def limit_of_namespace(fleet, path):
    horae(fleet, "namespaces", "quota", "--running", "1")
    assert Observer(fleet, path, "tenant").submit(*"abcd").most()["all"] == 1
    fleet.request("PUT", "/namespaces/default/quota", {})


def rate(fleet, path):
    """Check that four starts at five per second take at least three fifths of a second."""
    seen = Observer(fleet, path, "paced", rate="5/1s").submit(*"abcd")
    items = fleet.get(f"/executions?job={seen.name}")["items"]
    times = sorted(item["startedAt"] for item in items)
    assert len(times) == 4
    assert seconds(times[-1]) - seconds(times[0]) >= 0.55


def seconds(instant):
    hours, minutes, rest = instant[11:].rstrip("Z").split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)


def states(fleet, job):
    return Counter(item["status"] for item in fleet.get(f"/executions?job={job}")["items"])


def changed_live(fleet):
    """Check that a raised limit admits waiting executions, and that explain named the one that blocked them."""
    fleet.post("/jobs", {"name": "live", "command": "true", "queue": "nobody", "concurrency": 1})
    first = fleet.submit("live")
    second = fleet.submit("live")
    fleet.submit("live")
    assert states(fleet, "live") == {"queued": 1, "waiting": 2}
    (blocker,) = [one for one in fleet.get(f"/executions/{second}/explain")["blockers"] if one["gate"] == "limit"]
    assert blocker["details"]["holders"] == [first]
    assert fleet.request("PATCH", "/jobs/live", {"concurrency": 2}).status_code == 200
    eventually_sync(lambda: states(fleet, "live") == {"queued": 2, "waiting": 1})
    fleet.post(f"/executions/{first}/cancel")
    eventually_sync(lambda: states(fleet, "live") == {"queued": 2, "cancelled": 1})


def refused(fleet):
    """Check that contradicting limits and keys that cannot be rendered are refused."""
    for said, field in (
        ({"concurrency": 0}, "concurrency"),
        ({"burst": 3}, "burst"),
        ({"rate": "often"}, "rate"),
        ({"limits": [{"key": "${params.k}"}]}, "limits[0]"),
        ({"limits": [{"key": "k", "concurrency": 1}, {"key": "k", "rate": "1/s"}]}, "limits[1].key"),
        ({"limits": [{"key": "k", "concurrency": 2}], "sequence": "k"}, "limits[0].concurrency"),
        ({"sequence": "${params."}, "sequence"),
    ):
        answer = fleet.request("POST", "/jobs", {"name": "bad", "command": "true", **said})
        assert (answer.status_code, answer.json().get("field")) == (400, field), answer.text
    fleet.post("/jobs", {"name": "by-customer", "command": "true", "sequence": "${params.customer}"})
    answer = fleet.request("POST", "/executions", {"job": "by-customer", "params": {}})
    assert answer.status_code == 400
    assert "${params.customer}" in answer.json()["remedy"]
    answer = fleet.request("PUT", "/queues/mail", {"sequence": True, "concurrency": 5})
    assert (answer.status_code, answer.json()["field"]) == (400, "concurrency")
