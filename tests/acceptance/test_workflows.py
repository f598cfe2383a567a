"""Workflows as an outside observer sees them, by REST alone: with `horae up`, and with two servers on PostgreSQL."""

import pytest

from tests.acceptance.test_failures import fleet
from tests.waiting import eventually_sync

__all__ = ("fleet",)
pytestmark = pytest.mark.timeout(180)


def test_workflows(fleet):
    for name in ("one", "two"):
        fleet.post("/jobs", {"name": name, "command": ["true"]})
    chain(fleet)
    diamond(fleet)
    foreach(fleet)
    below(fleet)
    cancelled(fleet)
    paused(fleet)
    large(fleet)
    looped(fleet)


def ran(fleet, name, params=None):
    """Wait until a workflow has ended, and return it."""
    id = fleet.post("/executions", {"job": name, "params": params or {}})["executionId"]
    return eventually_sync(lambda: ended(fleet, id), within=30)


def ended(fleet, id):
    found = fleet.get(f"/executions/{id}")
    return found if found["status"] in ("success", "failed", "cancelled") else None


def children(fleet, id):
    """Return the executions of an execution's steps, oldest first."""
    return sorted(fleet.get(f"/executions?parent={id}")["items"], key=lambda one: one["executionId"])


def chain(fleet):
    """Check three steps, one after another."""
    steps = [
        {"name": "a", "job": "one"},
        {"name": "b", "job": "two", "after": ["a"]},
        {"name": "c", "job": "one", "after": ["b"]},
    ]
    fleet.post("/jobs", {"name": "chain", "workflow": {"steps": steps}})
    done = ran(fleet, "chain")
    assert done["status"] == "success"
    assert [one["jobName"] for one in children(fleet, done["executionId"])] == ["one", "two", "one"]


def diamond(fleet):
    """Check two parallel steps, and one after both."""
    steps = [
        {"name": "top", "job": "one"},
        {"name": "left", "job": "two", "after": ["top"]},
        {"name": "right", "command": ["true"], "after": ["top"]},
        {"name": "bottom", "job": "one", "after": ["left", "right"]},
    ]
    fleet.post("/jobs", {"name": "diamond", "workflow": {"steps": steps}})
    done = ran(fleet, "diamond")
    assert done["status"] == "success"
    top, *middle, bottom = children(fleet, done["executionId"])
    assert len(middle) == 2
    assert all(top["completedAt"] <= one["startedAt"] and one["completedAt"] <= bottom["startedAt"] for one in middle)


def foreach(fleet):
    """Check a foreach over a list known only at run time, two items at once, and its results."""
    echo = ["sh", "-c", 'echo "{\\"result\\": $1}" > "$HORAE_OUTPUT"', "sh"]
    steps = [
        {"name": "list", "command": [*echo, "[3, 1, 2]"]},
        {
            "name": "each",
            "command": [*echo, "${params.n * 10}"],
            "foreach": {"items": "${steps.list.result}", "concurrency": 2},
            "params": {"n": "${item}"},
        },
    ]
    fleet.post("/jobs", {"name": "fan", "workflow": {"steps": steps, "output": "${steps.each.result}"}})
    done = ran(fleet, "fan")
    assert (done["status"], done["result"]) == ("success", [30, 10, 20])
    graph = fleet.get(f"/executions/{done['executionId']}/graph")
    assert graph["criticalPath"] == ["list", "each"]
    (each,) = [node for node in graph["nodes"] if node["step"] == "each"]
    assert each["items"] == {"total": 3, "success": 3, "failed": 0, "remaining": 0}


def large(fleet):
    """Check that other steps can refer to parts of a result over 64 KiB, which is stored as a file."""
    line = """printf '{"result": {"text": "%s"}}' "$(head -c 200000 /dev/zero | tr '\\0' x)" > "$HORAE_OUTPUT\""""
    steps = [
        {"name": "big", "command": ["sh", "-c", line]},
        {"name": "after", "job": "one", "params": {"n": "${size(steps.big.result.text)}"}},
    ]
    fleet.post("/jobs", {"name": "large", "workflow": {"steps": steps}})
    done = ran(fleet, "large")
    assert done["status"] == "success"
    big, after = children(fleet, done["executionId"])
    assert fleet.get(f"/executions/{after['executionId']}")["params"] == {"n": 200_000}
    artifact = fleet.get(f"/executions/{big['executionId']}")["result"]["$artifact"]
    assert (artifact["size"], artifact["type"], len(artifact["sha256"])) == (200_011, "application/json", 64)
    assert fleet.get(artifact["url"].removeprefix("/api/v1")) == {"text": "x" * 200_000}


def looped(fleet):
    """Check that a loop interrupted by another step's failure is not a success, and that a rerun repeats it."""
    gate = fleet.folder / "there"
    look = f'test -e {gate} && echo "{{\\"result\\": true}}" > "$HORAE_OUTPUT" || true'
    for name, loop in (("until", "${steps.poll.result == true}"), ("while", "${steps.poll.result != true}")):
        gate.unlink(missing_ok=True)
        steps = [
            {"name": "poll", "command": ["sh", "-c", look], name: loop, "every": "1s", "maxRuns": 300},
            {"name": "bad", "command": ["test", "-e", str(gate)]},
            {"name": "next", "job": "one", "after": ["poll"]},
        ]
        fleet.post("/jobs", {"name": f"loop-{name}", "workflow": {"onError": "finish", "steps": steps}})
        done = ran(fleet, f"loop-{name}")
        assert done["status"] == "failed"
        assert stands(fleet, done["executionId"]) == {"poll": "cancelled", "bad": "failed", "next": "skipped"}
        gate.touch()
        again = fleet.post(f"/executions/{done['executionId']}/rerun", {"from": "failed"})["executionId"]
        assert eventually_sync(lambda: ended(fleet, again), within=30)["status"] == "success"  # noqa: B023
        nodes = fleet.get(f"/executions/{again}/graph")["nodes"]
        assert [node["reason"] for node in nodes] == ["", "", ""], "nothing is taken over"


def below(fleet):
    """Check a nested workflow: a failure inside it fails the outer one."""
    steps = [
        {"name": "part", "steps": [{"name": "x", "job": "one"}, {"name": "y", "command": ["false"], "after": ["x"]}]},
        {"name": "never", "job": "two", "after": ["part"]},
    ]
    fleet.post("/jobs", {"name": "above", "workflow": {"steps": steps}})
    done = ran(fleet, "above")
    assert done["status"] == "failed"
    graph = fleet.get(f"/executions/{done['executionId']}/graph")
    assert {node["step"]: node["status"] for node in graph["nodes"]} == {"part": "failed", "never": "skipped"}


def cancelled(fleet):
    """Check that cancelling a workflow stops the executions below it."""
    steps = [{"name": "part", "steps": [{"name": "x", "command": ["sleep", "60"]}]}, {"name": "nap", "sleep": "1h"}]
    fleet.post("/jobs", {"name": "long", "workflow": {"steps": steps}})
    id = fleet.post("/executions", {"job": "long"})["executionId"]
    eventually_sync(lambda: any(one["status"] == "running" for one in children(fleet, id)), within=30)
    fleet.post(f"/executions/{id}/cancel", {"reason": "enough"})
    assert eventually_sync(lambda: ended(fleet, id), within=30)["status"] == "cancelled"
    (part,) = children(fleet, id)
    assert part["status"] == "cancelled"


def paused(fleet):
    """Check that a paused workflow starts nothing until it is resumed."""
    steps = [{"name": "nap", "sleep": "3s"}, {"name": "b", "job": "one", "after": ["nap"]}]
    fleet.post("/jobs", {"name": "calm", "workflow": {"steps": steps}})
    id = fleet.post("/executions", {"job": "calm"})["executionId"]
    eventually_sync(lambda: fleet.get(f"/executions/{id}")["status"] == "running", within=30)
    fleet.post(f"/executions/{id}/pause")
    eventually_sync(lambda: stands(fleet, id)["b"] == "held", within=30)
    assert fleet.get(f"/executions/{id}/graph")["paused"] is True
    fleet.post(f"/executions/{id}/resume")
    assert eventually_sync(lambda: ended(fleet, id), within=30)["status"] == "success"


def stands(fleet, id):
    return {node["step"]: node["status"] for node in fleet.get(f"/executions/{id}/graph")["nodes"]}
