"""`horae backfills` and `horae audit fires`: their requests, output and exit codes."""

import json

import pytest

from horae.errors import BadInput
from tests.cli.fake_api import FakeApi, page, run

BETWEEN = ("--from", "2026-11-01T00:00:00Z", "--to", "2026-11-15T00:00:00Z")
PLAN = {
    "jobId": "j1", "jobName": "report", "from": BETWEEN[1], "to": BETWEEN[3], "fires": 1400, "toRun": 1390,
    "alreadyRan": 10, "unknown": 0, "beforeTrigger": 0, "firstFireAt": "2026-11-01T00:00:00Z",
    "lastFireAt": "2026-11-14T23:45:00Z", "knownFrom": None, "notes": ["10 fires ran before: not run again."],
}  # fmt: skip
BACKFILL = {
    "backfillId": "b1", "jobId": "j1", "jobName": "report", "from": BETWEEN[1], "to": BETWEEN[3], "order": "oldest",
    "force": False, "maxConcurrent": 16, "state": "running", "progress": 12.5, "fires": 1400, "alreadyRan": 10,
    "unknown": 0, "started": 20, "live": 4, "succeeded": 16, "failed": 0, "endedOtherwise": 0, "notes": [],
    "createdAt": "2027-01-15T07:58:00Z", "completedAt": None,
}  # fmt: skip
DONE = {
    **BACKFILL,
    "state": "done",
    "live": 0,
    "succeeded": 1390,
    "progress": 100.0,
    "completedAt": "2027-01-15T08:00:00Z",
}
AUDIT = {
    "jobId": "j1", "jobName": "report", "from": BETWEEN[1], "to": BETWEEN[3], "knownFrom": None, "fires": 1400,
    "rows": 12, "versions": 1, "dispositions": {"fired": 1390, "skipped-overlap": 10}, "undecided": 0, "findings": [],
    "unlistedFires": 0, "tzdata": "2026a", "notes": [],
}  # fmt: skip


def test_a_dry_run_shows_the_number_of_fires_and_the_first_and_last():
    api = FakeApi({"POST /backfills": PLAN})
    result = run(api, "backfills", "create", "report", *BETWEEN, "--dry-run", "--max-concurrent", "4")

    assert "1,390 of 1,400 fires would run, from 2026-11-01T00:00:00Z to 2026-11-14T23:45:00Z." in result.stdout
    assert "10 fires ran before" in result.stdout
    assert api.requests[0].body == {
        "job": "report", "from": BETWEEN[1], "to": BETWEEN[3], "maxConcurrent": 4, "dryRun": True
    }  # fmt: skip
    assert json.loads(run(api, "backfills", "create", "report", *BETWEEN, "--dry-run", "-o", "json").stdout) == PLAN


def test_a_backfill_starts_with_the_given_options():
    api = FakeApi({"POST /backfills": BACKFILL})
    result = run(
        api, "backfills", "create", "report", *BETWEEN, "--trigger", "nightly", "--force", "--newest-first",
        "--priority", "1", "--param", "day=7",
    )  # fmt: skip

    assert "Backfill b1 of 1,400 fires has started." in result.stdout
    assert api.requests[0].body == {
        "job": "report", "from": BETWEEN[1], "to": BETWEEN[3], "trigger": "nightly", "force": True, "order": "newest",
        "priority": 1, "params": {"day": 7},
    }  # fmt: skip


STUCK = {**DONE, "state": "paused", "completedAt": None, "notes": ["It cannot continue: no day."]}


@pytest.mark.parametrize(
    ("final", "code"), [(DONE, 0), ({**DONE, "failed": 2}, 1), ({**DONE, "state": "cancelled"}, 1), (STUCK, 1)]
)
def test_the_exit_code_after_waiting_depends_on_the_outcome(final, code):
    answers = iter([BACKFILL, {**BACKFILL, "state": "paused"}, final])
    api = FakeApi({"POST /backfills": BACKFILL, "GET /backfills/b1": lambda request: next(answers)})
    result = run(api, "backfills", "create", "report", *BETWEEN, "--wait")

    assert result.exit_code == code
    assert "1,390 succeeded" in result.stdout
    assert all(note in result.stdout for note in final["notes"])


def test_list_show_runs_pause_resume_and_cancel():
    ran = {"fireAt": BETWEEN[1], "trigger": "schedule", "executionId": "e1", "forced": False, "outcome": None}
    api = FakeApi({
        "GET /backfills": page(BACKFILL), "GET /backfills/b1": BACKFILL, "GET /backfills/b1/runs": page(ran),
        "POST /backfills/b1/pause": {**BACKFILL, "state": "paused"}, "POST /backfills/b1/resume": BACKFILL,
        "POST /backfills/b1/cancel": {**BACKFILL, "state": "cancelled"},
    })  # fmt: skip

    row = run(api, "backfills", "list", "--job", "report").stdout.splitlines()[1].split()
    assert row[:6] == ["b1", "report", "running", "12.5%", "1400", "4"]
    assert "maxConcurrent" in run(api, "backfills", "show", "b1").stdout
    assert run(api, "backfills", "runs", "b1").stdout.splitlines()[1].split()[2:4] == ["e1", "live"]
    assert "Backfill b1: paused;" in run(api, "backfills", "pause", "b1").stdout
    assert "Backfill b1: running;" in run(api, "backfills", "resume", "b1").stdout
    assert "Backfill b1: cancelled;" in run(api, "backfills", "cancel", "b1", "--executions").stdout
    assert api.requests[-1].body == {"executions": "cancel"}


def test_a_refused_range_exits_with_2_and_says_why():
    refused = BadInput("`to` is not after `from`.", "`from` is the first instant that counts.", field="to")
    result = run(FakeApi({"POST /backfills": refused}), "backfills", "create", "report", *BETWEEN)

    assert result.exit_code == 2
    assert "is not after" in result.stderr


def test_an_audit_without_findings_exits_with_0_and_a_count():
    api = FakeApi({"GET /audit/fires": AUDIT})
    result = run(api, "audit", "fires", "report", *BETWEEN)

    assert result.exit_code == 0
    assert "1,400 fires of report accounted for exactly once: 1,390 fired, 10 skipped-overlap." in result.stdout
    assert api.requests[0].query == {"job": "report", "from": BETWEEN[1], "to": BETWEEN[3]}


def test_an_audit_that_finds_something_exits_with_1_and_names_it():
    hole = {
        "kind": "uncovered", "trigger": "schedule", "triggerId": "t1", "first": BETWEEN[1], "last": BETWEEN[3],
        "fires": 250, "instants": [BETWEEN[1]], "detail": None,
    }  # fmt: skip
    api = FakeApi({"GET /audit/fires": {**AUDIT, "findings": [hole], "unlistedFires": 249}})
    result = run(api, "audit", "fires", "report", *BETWEEN)

    assert result.exit_code == 1
    assert result.stdout.splitlines()[-2].split() == ["uncovered", "schedule", "250", BETWEEN[1]]
    assert "249 more fires are not listed." in result.stdout
    assert run(api, "audit", "fires", "report", *BETWEEN, "-o", "json").exit_code == 1
