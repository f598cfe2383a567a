"""`horae explain`: an execution or a job, by id or name."""

import json

from horae.errors import NotFound
from tests.cli.fake_api import FakeApi, run

ID = "0198c5a0-0000-7000-8000-000000000000"
HELD = {
    "gate": "held", "message": 'The queue "default" is held until 2027-01-15T08:10:00Z (deploy).',
    "opensWhen": "`horae queues release default` ends it now.", "until": "2027-01-15T08:10:00Z", "details": {},
}  # fmt: skip
EXECUTION = {
    "executionId": ID, "jobId": ID, "job": "report", "status": "queued", "summary": HELD["message"],
    "blockers": [HELD], "estimate": {"startsAt": "2027-01-15T08:10:00Z", "reason": "When the last gate opens."},
}  # fmt: skip
JOB = {"jobId": ID, "job": "report", "state": "active", "summary": "x", "blockers": [], "executions": [EXECUTION]}


def test_an_execution_is_explained_in_order_with_the_remedy_of_each_gate():
    api = FakeApi({f"GET /executions/{ID}/explain": EXECUTION})
    shown = run(api, "explain", ID).stdout.splitlines()
    assert shown[0] == f"1. held: {HELD['message']} (in 10m)"
    assert shown[1].strip() == HELD["opensWhen"]
    assert shown[2] == "It probably starts in 10m. When the last gate opens."
    assert json.loads(run(api, "explain", ID, "-o", "json").stdout) == EXECUTION


def test_an_unknown_start_says_why():
    blind = {**EXECUTION, "estimate": {"startsAt": None, "reason": "The job is paused.", "gate": "paused"}}
    shown = run(FakeApi({f"GET /executions/{ID}/explain": blind}), "explain", ID).stdout
    assert "Its start cannot be estimated. The job is paused." in shown


def test_a_job_is_explained_with_its_executions():
    shown = run(FakeApi({"GET /jobs/report/explain": JOB}), "explain", "report").stdout
    assert shown.splitlines()[0] == "x"
    assert f"Execution {ID} (queued):" in shown
    assert "  1. held:" in shown


def test_an_id_that_is_no_execution_may_be_a_job():
    missing = NotFound(f"There is no execution {ID}.", "List them.")
    assert run(
        FakeApi({f"GET /executions/{ID}/explain": missing, f"GET /jobs/{ID}/explain": JOB}), "explain", ID
    ).stdout
    nowhere = run(FakeApi({f"GET /executions/{ID}/explain": missing}), "explain", ID)
    assert nowhere.exit_code == 3
    assert "There is no execution" in nowhere.stderr
