"""Counts after a server was killed equal the number of stored executions."""

from tests.acceptance.fleet import Fleet
from tests.waiting import eventually_sync

MANY = 3000


def test_counts_are_right_after_a_server_is_killed_under_load(tmp_path):
    fleet = Fleet(tmp_path, f"sqlite:///{tmp_path}/horae.db")
    try:
        fleet.add_server("first")
        fleet.add_worker("w", concurrency=4)
        eventually_sync(lambda: fleet.request("GET", "/jobs/add").status_code == 200 or _define(fleet))
        fleet.post("/executions", {"job": "add", "items": [{"a": n, "b": 1} for n in range(MANY)]})
        eventually_sync(lambda: fleet.get("/executions?status=success&limit=1")["items"])
        fleet.servers["first"].kill()
        fleet.workers["w"].kill()
        fleet.urls.clear()

        fleet.add_server("second")
        fleet.add_worker("v", concurrency=4)

        def done() -> bool:
            counts = fleet.get("/executions/counts")
            return counts["waiting"] + counts["queued"] + counts["running"] == 0

        eventually_sync(done, within=40)
        assert fleet.get("/executions/counts")["success"] == MANY
    finally:
        print(fleet.logs())
        fleet.close()


def _define(fleet: Fleet) -> bool:
    return fleet.request("POST", "/jobs", {"name": "add", "python": "add"}).status_code < 300
