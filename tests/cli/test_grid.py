"""`horae jobs grid`."""

from tests.cli.fake_api import FakeApi, run

DATA = {"start": "2026-11-03T00:00:00Z", "end": "2026-11-04T00:00:00Z"}


def test_a_grid_has_a_line_for_each_execution_with_its_data():
    one = {"executionId": "e1", "status": "failed", "at": "2026-11-16T09:00:00Z", "seconds": 2.5, "interval": DATA}
    other = {"executionId": "e2", "status": "running", "at": "2026-11-16T10:00:00Z", "seconds": None, "interval": None}
    items = [{**one, "steps": {"a": "success", "b": "failed"}}, {**other, "steps": {"b": "running"}}]
    api = FakeApi({"GET /jobs/daily/grid": {"steps": ["a", "b"], "items": items, "nextCursor": None}})
    lines = run(api, "jobs", "grid", "daily").stdout.splitlines()
    assert api.requests[0].query == {"by": "interval"}
    assert lines[0] == "Steps: a, b"
    assert lines[2].split() == [DATA["start"], DATA["end"], one["at"], "failed", "2.5", "s", "+", "x", "e1"]
    assert lines[3].split() == [other["at"], "running", ">", "e2"]
    run(api, "jobs", "grid", "daily", "--by", "run", "--limit", "5")
    assert api.requests[1].query == {"by": "run", "limit": "5"}
