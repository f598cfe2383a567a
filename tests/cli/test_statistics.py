"""`horae overview` and `horae jobs stats`."""

import json

from tests.cli.fake_api import FakeApi, run

TOTALS = {
    "from": "2027-01-08T08:00:00Z", "to": "2027-01-15T08:00:00Z", "step": 7200, "executions": 4, "success": 3,
    "failed": 1, "cancelled": 0, "skipped": 0, "retried": 2, "lost": 0, "successRate": 0.75, "retryRate": 0.5,
    "p50": 1.25, "p95": 90.0, "p99": 90.0, "mean": None, "series": [],
}  # fmt: skip
SEEN = {
    "at": "2027-01-15T08:00:00Z", "counts": {"running": 1, "queued": 3, "waiting": 0, "retrying": 0},
    "ended": {"success": 3, "failed": 1}, "series": [], "timeline": {},
    "queues": [
        {"queue": "mail", "queued": 3, "running": 1, "oldestAt": "2027-01-15T07:58:00Z", "oldestSeconds": 120.0,
         "held": True},
    ],
    "workers": {"active": 2, "draining": 0, "lost": 1, "slots": 8, "busy": 1},
    "running": [
        {"executionId": "e1", "jobId": "j1", "jobName": "send", "startedAt": "2027-01-15T07:59:00Z", "progress": 40.0,
         "message": None, "workerId": "w"},
    ],
}  # fmt: skip


def test_statistics_of_a_job_are_shown():
    api = FakeApi({"GET /jobs/send/statistics": TOTALS})
    shown = run(api, "jobs", "stats", "send", "--from", "2027-01-08T08:00:00Z").stdout
    lines = dict(line.split(maxsplit=1) for line in shown.splitlines())
    assert lines["executions"] == "4"
    assert (lines["p50"], lines["p95"]) == ("1.25s", "1m 30s")
    assert "success rate  75.0%" in shown
    assert api.requests[-1].query == {"from": "2027-01-08T08:00:00Z"}
    assert json.loads(run(api, "jobs", "stats", "send", "-o", "json").stdout) == TOTALS


def test_an_overview_of_a_namespace_is_shown():
    api = FakeApi({"GET /overview": SEEN})
    shown = run(api, "overview").stdout
    assert "Now:     1 running, 3 queued, 0 waiting, 0 retrying" in shown
    assert "Slots:   1 of 8 busy" in shown
    assert ["mail", "3", "1", "2m", "yes"] in [line.split() for line in shown.splitlines()]
    assert ["1m", "ago", "send", "40", "w", "e1"] in [line.split() for line in shown.splitlines()]
    assert json.loads(run(api, "overview", "-o", "json").stdout) == SEEN
