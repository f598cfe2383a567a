"""Workflows as an outside observer sees them, by REST alone: `horae up`, and two servers on PostgreSQL."""

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


def ran(fleet, name, params=None):
    """A workflow that has ended."""
    id = fleet.post("/executions", {"job": name, "params": params or {}})["executionId"]
    return eventually_sync(lambda: ended(fleet, id), within=30)


def ended(fleet, id):
    found = fleet.get(f"/executions/{id}")
    return found if found["status"] in ("success", "failed", "cancelled") else None


def children(fleet, id):
    """The steps of an execution as executions, oldest first."""
    return sorted(fleet.get(f"/executions?parent={id}")["items"], key=lambda one: one["executionId"])


def chain(fleet):
    """Three steps, one after another."""
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
    """Two steps at once, and one after both."""
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
